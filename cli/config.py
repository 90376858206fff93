"""The configuration: every setting, its value, and where it came from.

Later ones win: built in, `config.toml` in the XDG folder, a project's `.skimql.toml` (once it is trusted),
``SKIMQL_<NAME>``, flags.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .. import ParseError, SkimqlError
from .folders import CONFIG_FILE, PROJECT_FILE, config_folder, state_folder
from .formats import FORMATS

BAD = "SKIMQL_BAD_SETTING"
BUILT_IN = "built in"
_TRUSTED = "trusted.json"


@dataclass(frozen=True, slots=True)
class Option:
    """A setting of the command: what it is by default, what it may be, and what it does."""

    default: str | bool | None
    help: str
    values: tuple[str, ...] = ()

    @property
    def is_switch(self) -> bool:
        """Whether it is true or false."""
        return isinstance(self.default, bool)


# What the command and the shell look at; beside them there are the settings of `SET skimql.<name>`.
OPTIONS: Mapping[str, Option] = {
    "catalog": Option(None, "folder or URI in which sketches are kept"),
    "master": Option(None, 'where Spark runs, such as "local[4]" or "spark://host:7077"'),
    "output": Option(
        None, "format of results; without it a table on a terminal, else csv", FORMATS
    ),
    "timing": Option(False, "print the wall and CPU time of each statement"),
    "init": Option(None, "a file of SQL that is run first"),
    "theme": Option("auto", "colours of the shell", ("auto", "dark", "light", "none")),
    "editing": Option("emacs", "keys of the shell", ("emacs", "vi")),
    "enter": Option(
        "complete", "what runs a statement: Enter where it is complete, or a semicolon", ("complete", "semicolon")
    ),
    "expanded": Option("auto", "results down the page", ("auto", "on", "off")),
    "pager": Option(True, "long results of the shell go to $PAGER, or less"),
    "confirm": Option(True, "the shell asks before DROP and CREATE OR REPLACE"),
    "history": Option(True, "the shell keeps what was typed"),
}  # fmt: skip
_TABLES = ("tables", "queries", "spark")


@dataclass(frozen=True, slots=True)
class Value:
    """A setting's value and its origin."""

    value: Any
    origin: str


@dataclass
class Config:
    """What is configured.

    Attributes
    ----------
    values : dict of str to Value
        Of every option of the command, and of every setting of `Settings` that anybody has set, as text.
    tables, queries, spark : dict of str to Value
        Tables by name with their paths, saved queries, settings of Spark.
    notes : list of str
        What is there and was not read.
    """

    values: dict[str, Value] = field(default_factory=dict)
    tables: dict[str, Value] = field(default_factory=dict)
    queries: dict[str, Value] = field(default_factory=dict)
    spark: dict[str, Value] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def __getitem__(self, name: str) -> Any:
        return self.values[name].value

    @property
    def settings(self) -> dict[str, str]:
        """The settings of queries that somebody has set, as text."""
        return {n: str(v.value) for n, v in self.values.items() if n not in OPTIONS and v.origin != BUILT_IN}

    @property
    def spark_conf(self) -> dict[str, str]:
        """What Spark is started with."""
        conf = {name: str(v.value) for name, v in self.spark.items()}
        return {**conf, **({"spark.master": self["master"]} if self["master"] else {})}

    def set(self, name: str, value: Any, origin: str) -> None:
        """Set an option or a setting; a later call wins.

        Raises
        ------
        SkimqlError
            ``SKIMQL_BAD_SETTING`` with near names, or with what it takes.
        """
        self.values[name] = Value(checked(name, value), origin)


def names() -> tuple[str, ...]:
    """Every name that a file or a variable may set."""
    return (*OPTIONS, *_settings())


def _settings() -> Mapping[str, tuple[str, ...]]:
    """The settings of queries; late, as most command lines and files have none."""
    from .. import vocabulary

    return vocabulary().settings


def checked(name: str, value: Any) -> Any:
    """The value of a setting in its type.

    Raises
    ------
    SkimqlError
        ``SKIMQL_BAD_SETTING``.
    """
    if name not in OPTIONS and name in _settings():
        from .. import Settings

        text = str(value).lower() if isinstance(value, bool) else str(value)
        Settings().with_text({name: text})
        return text
    if name not in OPTIONS:
        near = difflib.get_close_matches(name, names(), 1)
        raise SkimqlError(
            f"there is no setting {name!r}", BAD, hint=near[0] if near else "skimql config, which lists them"
        )
    option = OPTIONS[name]
    if option.is_switch:
        if isinstance(value, str) and value.strip().lower() in _SWITCHES:
            return _SWITCHES[value.strip().lower()]
        if isinstance(value, bool):
            return value
        raise SkimqlError(f"{name} = {value} is neither true nor false", BAD, hint=f"{name} = true")
    text = _SWITCHED[value] if isinstance(value, bool) else str(value)
    if option.values and text not in option.values:
        near = difflib.get_close_matches(text, option.values, 1)
        rest = ", ".join(option.values)
        raise SkimqlError(
            f"{name} = {text} is none of {rest}", BAD, hint=f"{name} = {(near or option.values)[0]}"
        )
    return text


_SWITCHES = {
    "true": True,
    "on": True,
    "yes": True,
    "1": True,
    "false": False,
    "off": False,
    "no": False,
    "0": False,
}
_SWITCHED = {True: "on", False: "off"}


def load(flags: Mapping[str, Any] | None = None, *, project: bool = False) -> Config:
    """The configuration of this process.

    Parameters
    ----------
    flags : mapping of str to value
        What the command line says, by name; None stands for what it does not say.
    project : bool
        Whether `.skimql.toml` of this folder is read though nobody has trusted it.

    Raises
    ------
    SkimqlError
        ``SKIMQL_BAD_SETTING`` for an unknown name or value, with file and line.
    """
    config = Config()
    for name, option in OPTIONS.items():
        config.values[name] = Value(option.default, BUILT_IN)
    _read_file(config, config_folder() / CONFIG_FILE)
    here = Path(PROJECT_FILE)
    if here.exists():
        if project or is_trusted(here):
            _read_file(config, here)
        else:
            config.notes.append(
                f"{PROJECT_FILE} of this folder is not trusted, and not read; skimql --project reads it"
            )
    _read_environment(config)
    for name, value in (flags or {}).items():
        if value is not None:
            config.set(name, value, "the command line")
    return config


def default(name: str) -> str:
    """What a setting of queries is by itself, as text."""
    from .. import Settings

    value = getattr(Settings(), name)
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


def _read_environment(config: Config) -> None:
    for variable in sorted(os.environ):
        name = variable.removeprefix("SKIMQL_").lower()
        if not variable.startswith("SKIMQL_") or name == "debug":
            continue
        if name not in names():
            near = difflib.get_close_matches(name, names(), 1)
            meant = f"; SKIMQL_{near[0].upper()}" if near else ""
            config.notes.append(f"{variable} is no setting{meant}")
            continue
        try:
            config.set(name, os.environ[variable], variable)
        except SkimqlError as fault:
            raise SkimqlError(f"{variable}: {fault.message}", BAD, hint=fault.hint) from fault


def _read_file(config: Config, path: Path) -> None:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return
    except (OSError, UnicodeDecodeError) as fault:
        why = fault.strerror if isinstance(fault, OSError) else "it is not UTF-8"
        raise SkimqlError(f"cannot read {path}: {why}", BAD) from fault
    try:
        told = tomllib.loads(text)
    except tomllib.TOMLDecodeError as fault:
        raise ParseError(f"{path} is not TOML: {fault}", BAD, text, _place_told(text, str(fault))) from fault
    for name, value in told.items():
        if name in _TABLES:
            _read_table(config, path, text, name, value)
            continue
        span = _place_of(text, name)
        if isinstance(value, (dict, list)):
            raise ParseError(
                f"{path}: there is no table [{name}]",
                BAD,
                text,
                span,
                hint=" or ".join(f"[{t}]" for t in _TABLES),
            )
        try:
            config.set(
                name, _path(path, value) if name in ("catalog", "init") else value, _origin(path, text, span)
            )
        except SkimqlError as fault:
            raise ParseError(f"{path}: {fault.message}", BAD, text, span, fault.hint) from fault


def _read_table(config: Config, path: Path, text: str, name: str, table: Any) -> None:
    if not isinstance(table, dict):
        raise ParseError(f"{path}: [{name}] is a table", BAD, text, _place_of(text, name), hint=f"[{name}]")
    into = getattr(config, name)
    for key, value in _flat(table):
        span = _place_of(text, key)
        if not isinstance(value, (str, int, float, bool)):
            raise ParseError(f"{path}: {name}.{key} is a text", BAD, text, span, hint=f'{key} = "..."')
        kept = str(value).lower() if isinstance(value, bool) else str(value)
        into[key] = Value(_path(path, kept) if name == "tables" else kept, _origin(path, text, span))


def _flat(table: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Keys with dots, which TOML reads as tables in tables."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{key}.")
        else:
            yield before + key, value


def _path(file: Path, value: Any) -> str:
    """A path in a file, as it is from the file's folder."""
    text = str(value)
    return text if "://" in text else str(Path(file).resolve().parent / os.path.expanduser(text))


def _origin(path: Path, text: str, span: tuple[int, int]) -> str:
    line = text.count("\n", 0, span[0]) + 1
    return f"{path}, line {line}"


def _place_of(text: str, key: str) -> tuple[int, int]:
    """Where a key stands; tomllib does not tell."""
    last = key.rpartition(".")[2]
    for name in (key, last):
        quoted = re.escape(name)
        found = re.search(rf"""^[ \t]*\[?(?:[\w.]+\.)?(["']?{quoted}["']?)[ \t]*[=\].]""", text, re.MULTILINE)
        if found is not None:
            return found.span(1)
    return (0, 1)


def _place_told(text: str, said: str) -> tuple[int, int]:
    found = re.search(r"line (\d+), column (\d+)", said)
    if found is None:
        return (len(text), len(text) + 1)
    lines = text.split("\n")
    place = sum(len(line) + 1 for line in lines[: int(found[1]) - 1]) + int(found[2]) - 1
    return (place, place + 1)


def is_trusted(path: Path) -> bool:
    """Whether the user has said that a project's file, as it is now, may be read."""
    return _trusted().get(str(path.resolve())) == _digest(path)


def trust(path: Path) -> None:
    """Read this file of a project from now on, until it changes."""
    folder = state_folder()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    known = {**_trusted(), str(path.resolve()): _digest(path)}
    draft = folder / f"{_TRUSTED}.{os.getpid()}"
    draft.write_text(json.dumps(known, indent=1), encoding="utf-8")
    draft.replace(folder / _TRUSTED)


def _trusted() -> dict[str, str]:
    try:
        known = json.loads((state_folder() / _TRUSTED).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""


def described(config: Config) -> list[tuple[str, str, str]]:
    """Every setting: name, value, where it came from."""
    values = {**{name: Value(default(name), BUILT_IN) for name in _settings()}, **config.values}
    rows = [(n, _shown(values[n].value), values[n].origin) for n in names()]
    for name in _TABLES:
        rows += [(f"{name}.{key}", _shown(v.value), v.origin) for key, v in getattr(config, name).items()]
    return rows


def _shown(value: Any) -> str:
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def example() -> str:
    """A `config.toml` with every setting in a comment."""
    lines = [
        "# SkimQL. Flags and SKIMQL_<NAME> go over this file; `skimql config` prints what holds and why.",
        "",
    ]
    for name, option in OPTIONS.items():
        takes = f" ({', '.join(option.values)})" if option.values else ""
        shown = _toml(option.default) if option.default is not None else '"..."'
        lines += [f"# {option.help}{takes}", f"# {name} = {shown}", ""]
    lines += ["# Settings of queries, as SET skimql.<name> takes them"]
    lines += [
        f"# {name} = {_toml(examples[0].strip(chr(39)) if default(name) == 'none' else default(name))}"
        for name, examples in _settings().items()
    ]
    lines += [
        "",
        "# [spark]",
        '# "spark.driver.memory" = "4g"',
        "",
        "# [tables]",
        '# flights = "data/flights.parquet"',
        "",
        "# [queries]   # \\n NAME runs one in the shell; $1, $2 stand for what is typed behind it",
        '# delayed = "SELECT APPROXIMATE COUNT(*) FROM flights WHERE dep_delay > $1"',
    ]
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    text = str(value)
    return text if re.fullmatch(r"true|false|\d+(\.\d+)?", text) else json.dumps(text)


def write_example() -> Path:
    """Write the example where there is no file yet.

    Raises
    ------
    SkimqlError
        ``SKIMQL_BAD_SETTING`` where there is one.
    """
    path = config_folder() / CONFIG_FILE
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as sink:
            sink.write(example())
    except FileExistsError as fault:
        raise SkimqlError(f"{path} is there already", BAD, hint="skimql config") from fault
    except OSError as fault:
        raise SkimqlError(f"cannot write {path}: {fault.strerror}", BAD) from fault
    return path
