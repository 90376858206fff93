"""Commands with a backslash: their names, what they take, what they do."""

from __future__ import annotations

import difflib
import io
import os
import re
import shlex
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ... import SkimqlError
from .. import config as configuration
from .display import UNKNOWN
from .interrupts import INTERRUPTS
from .keyboard import typed_lines
from .names import keys_of
from .shell import Shell

if TYPE_CHECKING:
    from ... import Answer


@dataclass(frozen=True, slots=True)
class Command:
    """A command: what it takes, in words; what kind of names complete it; what it does."""

    takes: str
    about: str
    run: Callable[[Shell, str], None]
    completes: str = ""


def run(shell: Shell, text: str) -> None:
    """Run a line that begins with a backslash.

    Raises
    ------
    SkimqlError
        ``SKIMQL_UNKNOWN_COMMAND`` with the nearest one.
    """
    typed = text.strip().rstrip(";").rstrip() if not text.lstrip().startswith("\\!") else text.strip()
    name, _, rest = typed[1:].partition(" ")
    if name.startswith("!"):
        name, rest = "!", (name[1:] + " " + rest).strip()
    # As other shells have it, and in capitals.
    name = name if name in COMMANDS else _ALIASES.get(name.lower(), name.lower())
    command = COMMANDS.get(name)
    if command is None:
        near = difflib.get_close_matches(name, list(COMMANDS), 1)
        raise SkimqlError(f"there is no command \\{name}", UNKNOWN, hint=f"\\{near[0]}" if near else "\\?")
    command.run(shell, rest.strip())


_ALIASES = {
    "d+": "d",
    "dt+": "dt",
    "dv+": "dv",
    "h": "?",
    "help": "?",
    "quit": "q",
    "exit": "q",
    "s": "history",
}


def _wrong(command: str, takes: str) -> SkimqlError:
    return SkimqlError(f"\\{command} takes {takes}", UNKNOWN, hint="\\?")


def _last(shell: Shell) -> str:
    if shell.last is None:
        raise SkimqlError("there is no query yet", UNKNOWN, hint="SELECT APPROXIMATE ...")
    return shell.last


def _describe(shell: Shell, name: str) -> None:
    if not name:
        _tables(shell, "")
        return
    from ... import Answer
    from .foot import age_text

    plain = name.strip("`\"'").lower()
    shell.wait(shell.refresh_names, "looking at tables")
    table = shell.names.by_name.get(plain)
    if table is None:
        near = difflib.get_close_matches(plain, list(shell.names.by_name), 1)
        hint = f"\\d {shell.names.by_name[near[0]].name}" if near else "\\d"
        raise SkimqlError(f"there is no table {name!r}", UNKNOWN, hint=hint)
    shown = shell.session.sql("SHOW SKETCHES")
    kept = (
        [r for r in shown.records() if str(r["table"]).lower() == plain] if isinstance(shown, Answer) else []
    )
    rows = []
    for column, kind in table.columns:
        of = [str(r["sketch"]) for r in kept if column.lower() in keys_of(r)]
        rows.append((column, kind, ", ".join(of)))
    shell.show(_answer(("column", "type", "sketches"), rows))
    seen = shell.wait(lambda: shell.session.table_statistics(table.name), "looking at the table")
    if seen is not None and seen.tuples is not None:
        shell.say(f"{seen.tuples:,.0f} tuples")
    for one in seen.gathered if seen is not None else ():
        keys = f", about {one.distinct:,.0f} keys" if one.distinct is not None else ""
        age = f", {age_text(one.seconds)} old" if one.seconds is not None else ""
        shell.say(f"statistics of {one.of}: {one.source}{keys}{age}")
    for record in kept:
        shell.say(
            f"{record['sketch']}: {record['tuples']:,} tuples, {record['method']}, updated {record['updated']}"
        )


def _answer(columns: tuple[str, ...], rows: Any) -> Answer:
    from ... import Answer

    return Answer(columns, tuple(map(tuple, rows)), exact=True)


def _tables(shell: Shell, pattern: str) -> None:
    shell.wait(shell.refresh_names, "looking at tables")
    rows = [
        (t.name, len(t.columns), ", ".join(sorted(t.keys)))
        for t in sorted(shell.names.tables, key=lambda t: t.name.lower())
        if pattern.lower().strip("*") in t.name.lower()
    ]
    if not rows:
        shell.first_page()
        return
    shell.show(_answer(("table", "columns", "keys of sketches"), rows))
    if not shell.names.complete:
        shell.say("Spark's own tables are listed once Spark runs")


def _views(shell: Shell, _: str) -> None:
    shell.statement("SHOW VIEWS")


def _continuous(shell: Shell, _: str) -> None:
    shell.statement("SHOW QUERIES EXTENDED")


def _sketches(shell: Shell, pattern: str) -> None:
    shell.statement(f"SHOW SKETCHES LIKE '{pattern}'" if pattern else "SHOW SKETCHES")


def _explain(shell: Shell, _: str) -> None:
    _draw_plan(shell, "EXPLAIN")


def _plan(shell: Shell, _: str) -> None:
    _draw_plan(shell, "EXPLAIN ANALYZE")


def _draw_plan(shell: Shell, words: str) -> None:
    """The join graph and the plan of the last query as trees; of one that Spark answers, what Spark tells."""
    from ...parser.statement import is_approximate
    from .tree import drawn

    query = _last(shell)
    if not is_approximate(query):
        shell.statement(f"EXPLAIN {query}", remember=False)
        return

    def ask() -> tuple[str, str]:
        return tuple(
            str(shell.session.sql(f"{w} {query}").rows[0][0]) for w in (words, "EXPLAIN FORMAT JSON")
        )  # type: ignore[return-value]

    told = shell.wait(ask, "planning")
    if told is not None:
        shell.page("\n".join(drawn(*told, unicode=shell.screen().unicode)) + "\n")


def _exact(shell: Shell, _: str) -> None:
    from . import rewrite

    shell.statement(rewrite.exact(_last(shell)), remember=False)


def _compare(shell: Shell, _: str) -> None:
    shell.statement(_last(shell), compare=True, remember=False)


def _tighten(shell: Shell, _: str) -> None:
    from . import rewrite

    tighter = rewrite.tighter(_last(shell), shell.last_answer, shell.session.settings.error)
    if tighter is None:
        shell.say("the last answer is exact: there is nothing to tighten")
        return
    shell.say(tighter)
    shell.statement(tighter)


def _size(shell: Shell, _: str) -> None:
    from .. import pictures

    query = _last(shell)

    def ask() -> Answer:
        points = [p for p in pictures.curve(shell.session, query) if not p.chosen]
        rows = [(p.told, pictures.width_text(p.half_width), p.method) for p in points]
        return _answer(("size", "predicted", "method"), rows)

    result = shell.wait(ask, "planning")
    if result is not None:
        shell.show(result)


def _plot(shell: Shell, path: str) -> None:
    from .. import pictures

    query = _last(shell)
    points = shell.wait(lambda: pictures.curve(shell.session, query), "planning")
    if points is None:
        return
    if path:
        pictures.draw(points, shell.last_answer, path)
        shell.say(f"drawn in {path}")
        return
    screen = shell.screen()
    told = pictures.chart(points, screen.width, unicode=screen.unicode)
    if shell.last_answer is not None and shell.last_answer.plan is not None:
        told += pictures.intervals(shell.last_answer, screen.width, unicode=screen.unicode)
    shell.page(told)


def _switch(shell: Shell, name: str, text: str, command: str) -> None:
    values = configuration.OPTIONS[name].values
    if not text:
        now = shell.option(name)
        text = ("off" if now else "on") if not values else ("auto" if now != "auto" else "on")
    shell.set_option(name, text)
    shown = shell.option(name)
    shell.say(f"{command} is {'on' if shown is True else 'off' if shown is False else shown}")


def _output(shell: Shell, path: str) -> None:
    shell.redirect(path or None)
    shell.say(f"results go to {path}" if path else "results go to the terminal")


def _include(shell: Shell, path: str) -> None:
    if not path:
        raise _wrong("i", "a file")
    shell.execute(_read(path), remember=False)


def _read(path: str) -> str:
    try:
        return Path(os.path.expanduser(path)).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError, ValueError) as fault:
        from ...engine.sources.paths import near_file

        why = getattr(fault, "strerror", None) or "it is not UTF-8"
        hint = near_file(os.path.expanduser(path)) if isinstance(fault, FileNotFoundError) else ""
        raise SkimqlError(f"cannot read {path}: {why}", UNKNOWN, hint=hint) from fault


def _edit(shell: Shell, path: str) -> None:
    """The last query in $EDITOR; what is saved stands at the prompt."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    with tempfile.TemporaryDirectory(prefix="skimql-") as folder:
        file = Path(folder) / "query.sql"
        file.write_text(_read(path) if path else (shell.last or ""), encoding="utf-8")
        try:
            with typed_lines():
                subprocess.run([*shlex.split(editor), str(file)], check=False)
        except (OSError, ValueError) as fault:
            raise SkimqlError(f"cannot start {editor}: {fault}", UNKNOWN, hint="set EDITOR") from fault
        shell.offered = file.read_text(encoding="utf-8", errors="replace").strip()


def _named(shell: Shell, text: str) -> None:
    """``\\n`` lists, ``\\n NAME = SQL`` keeps, ``\\n NAME VALUE ...`` runs with $1, $2."""
    name, _, rest = text.partition(" ")
    if not name:
        shell.show(_answer(("query", "text"), sorted(shell.names.queries.items())))
        shell.say("\\n NAME = SQL keeps one, \\n NAME VALUE ... runs it with $1, $2, ...")
        return
    if rest.lstrip().startswith("="):
        shell.keep_query(name, rest.lstrip()[1:].strip())
        return
    if name not in shell.names.queries:
        if "=" in rest:
            raise SkimqlError(
                f"{name} {rest.partition('=')[0].strip()} is no name: it is one word",
                UNKNOWN,
                hint="\\n NAME = SQL",
            )
        near = difflib.get_close_matches(name, list(shell.names.queries), 1)
        raise SkimqlError(f"there is no query {name!r}", UNKNOWN, hint=f"\\n {near[0]}" if near else "\\n")
    try:
        values = shlex.split(rest)
    except ValueError as fault:
        raise SkimqlError(f"the values of \\n cannot be read: {fault}", UNKNOWN) from fault
    sql = with_values(name, shell.names.queries[name], values)
    shell.say(sql)
    shell.execute(sql)


def with_values(name: str, sql: str, values: Sequence[str]) -> str:
    """A saved query with what stands for $1, $2, ...

    Raises
    ------
    SkimqlError
        ``SKIMQL_UNKNOWN_COMMAND`` where there are too few.
    """
    wanted = max((int(n) for n in re.findall(r"\$(\d{1,3})", sql)), default=0)
    if len(values) < wanted:
        told = " ".join(f"${n}" for n in range(1, wanted + 1))
        raise SkimqlError(
            f"{name} takes {told}, and has {len(values)} of them", UNKNOWN, hint=f"\\n {name} {told}"
        )
    # $0 is nothing of ours.
    return re.sub(r"\$([1-9]\d{0,2})", lambda found: values[int(found[1]) - 1], sql)


def _watch(shell: Shell, text: str) -> None:
    query = _last(shell)
    try:
        period = float(text) if text else 2.0
    except ValueError:
        period = 0.0
    if not 0 < period < 1e6:
        raise _wrong("watch", "seconds, such as \\watch 5")
    shell.say(f"every {period:g} s; Ctrl-C ends it")
    while shell.statement(query, remember=False):
        next_time = time.monotonic() + period
        while time.monotonic() < next_time:
            if INTERRUPTS.take():
                return
            time.sleep(0.05)


def _set(shell: Shell, text: str) -> None:
    name, _, value = text.replace("=", " ", 1).partition(" ")
    if not name:
        shell.show(_answer(("setting", "value", "from"), configuration.described(shell.config)))
        return
    if not value.strip():
        raise _wrong("set", "a name and a value")
    shell.set_option(name.removeprefix("skimql."), value.strip().strip("'"))


def _unset(shell: Shell, name: str) -> None:
    plain = name.removeprefix("skimql.")
    if plain not in configuration.names():
        configuration.checked(plain or "?", "")
    shell.unset_option(plain)


def _history(shell: Shell, text: str) -> None:
    most = int(text) if text.isascii() and text.isdigit() and len(text) < 6 else 20
    entries = list(shell.history.load_history_strings())[:most] if shell.history is not None else []
    for entry in reversed(entries):
        shell.say(entry)


def _copy(shell: Shell, path: str) -> None:
    if not path:
        raise _wrong("copy", "a file: .csv, .tsv, .json, .jsonl, .md or .parquet")
    shell.copy(path)


def _outside(shell: Shell, command: str) -> None:
    if command:
        with typed_lines():
            subprocess.run(command, shell=True, check=False)


def _help(shell: Shell, _: str) -> None:
    width = max(len(f"\\{name} {c.takes}") for name, c in COMMANDS.items())
    heads = [f"\\{name} {command.takes}" for name, command in COMMANDS.items()]
    lines = [f"{head:<{width}}  {c.about}" for head, c in zip(heads, COMMANDS.values(), strict=True)]
    keys = [
        "",
        "Enter runs a statement that is complete, Alt-Enter makes a line, Tab completes,",
        "Ctrl-R finds in the history, Ctrl-C clears the line or cancels what runs,",
        "Ctrl-D leaves. Statements that are not SkimQL's go to Spark.",
        "",
        "  SELECT APPROXIMATE COUNT(*) FROM a JOIN b ON a.k = b.k ERROR WITHIN 5%;",
        "  CREATE SKETCH s ON a (k);    kept: what it answers needs no scan then",
        "  EXPLAIN SELECT APPROXIMATE ...;    what would be built, before it runs",
    ]
    shell.page("\n".join([*lines, *keys]) + "\n")


def _quit(shell: Shell, _: str) -> None:
    raise EOFError


def _restart(shell: Shell, _: str) -> None:
    shell.restart()


def _doctor(shell: Shell, _: str) -> None:
    from ..doctor import print_doctor

    # The waiting line has the terminal's last line until all is checked.
    told = io.StringIO()
    shell.wait(lambda: print_doctor(told), "checking")
    shell.page(told.getvalue())


def _demo(shell: Shell, _: str) -> None:
    from ... import demo_tables

    def register() -> None:
        for name, path in demo_tables().items():
            shell.session.table(name, path)

    shell.wait(register, "reading the tables")
    shell.refresh_names()
    _tables(shell, "")


def _table(shell: Shell, text: str) -> None:
    name, equals, path = text.partition("=")
    if not equals or not path.strip():
        raise _wrong("t", "NAME=PATH")
    name, path = name.strip(), path.strip()
    shell.wait(lambda: shell.session.table(name, os.path.expanduser(path)), "reading the file")
    shell.refresh_names()
    table = shell.names.by_name.get(name.lower())
    if table is not None:
        shell.say(
            f"{name}: {', '.join(c for c, _ in table.columns[:MOST_NAMED]) or 'no columns'}"
            f"{f', ... ({len(table.columns)} columns)' if len(table.columns) > MOST_NAMED else ''}"
        )


# Columns of a new table that are named.
MOST_NAMED = 12


def _expanded(shell: Shell, text: str) -> None:
    _switch(shell, "expanded", text, "expanded")


COMMANDS: Mapping[str, Command] = {
    "d": Command("[NAME]", "tables, or the columns of one with the sketches of it", _describe, "table"),
    "dt": Command("[NAME]", "tables", _tables),
    "dv": Command("", "views", _views),
    "sketches": Command("[PATTERN]", "kept sketches", _sketches),
    "views": Command("", "continuous views, and how they are", _continuous),
    "queries": Command("", "saved queries", lambda s, _: _named(s, "")),
    "t": Command("NAME=PATH", "make a file or folder a table", _table, "file"),
    "demo": Command("", "the flights tables, to try", _demo),
    "explain": Command("", "of the last query: join graph and plan", _explain),
    "plan": Command("", "the last query again, predicted beside actual", _plan),
    "exact": Command("", "the last query, run exactly", _exact),
    "compare": Command("", "the last query, exact values beside the estimates", _compare),
    "tighten": Command("", "the last query at half its error", _tighten),
    "size": Command("", "of the last query: bytes against predicted error", _size),
    "plot": Command("[FILE]", "error against bytes; in FILE beside the intervals", _plot, "file"),
    "x": Command("[on|off|auto]", "results down the page", _expanded, "expanded"),
    "timing": Command("[on|off]", "time of each statement", lambda s, t: _switch(s, "timing", t, "timing"), "switch"),
    "pager": Command("[on|off]", "long results in $PAGER", lambda s, t: _switch(s, "pager", t, "pager"), "switch"),
    "theme": Command("dark|light|none", "colours", lambda s, t: _switch(s, "theme", t, "theme"), "theme"),
    "o": Command("[FILE]", "results to a file, or back to the terminal", _output, "file"),
    "copy": Command("FILE", "the last result into a file", _copy, "file"),
    "i": Command("FILE", "run the statements of a file", _include, "file"),
    "e": Command("[FILE]", "the last query, or a file, in $EDITOR", _edit, "file"),
    "n": Command("[NAME ...]", "saved queries: list, NAME = SQL, NAME VALUES", _named, "query"),
    "watch": Command("[SECONDS]", "the last query again and again", _watch),
    "set": Command("[NAME VALUE]", "settings, and where they came from", _set, "setting"),
    "unset": Command("NAME", "a setting as it is built in", _unset, "setting"),
    "history": Command("[N]", "what was typed last", _history),
    "restart": Command("", "end Spark; it starts anew when needed", _restart),
    "doctor": Command("", "check Java, Python, Spark, memory, space", _doctor),
    "!": Command("COMMAND", "run a command of the system", _outside),
    "?": Command("", "this page", _help),
    "q": Command("", "leave", _quit),
}  # fmt: skip


def complete(text: str, shell_names: Any, files: Callable[[str], list[str]]) -> list[tuple[str, int, str]]:
    """Candidates for a command line, whole words: text, where it starts, what it is."""
    name, blank, rest = text[1:].partition(" ")
    if not blank:
        return [(f"\\{n}", 0, c.about) for n, c in COMMANDS.items() if n.startswith(name)]
    command = COMMANDS.get(name)
    takes_file = command is not None and command.completes == "file"
    # A path may have blanks.
    word = (
        (rest.rpartition("=")[2].lstrip() if "=" in rest else rest) if takes_file else rest.rpartition(" ")[2]
    )
    start = len(text) - len(word)
    match command.completes if command is not None else "":
        case "table":
            known = [t.name for t in shell_names.tables]
        case "query":
            known = list(shell_names.queries)
        case "setting":
            known = list(configuration.names())
        case "file":
            known = files(word)
        case "switch":
            known = ["on", "off"]
        case "theme" | "expanded" as option:
            known = list(configuration.OPTIONS[option].values)
        case _:
            known = []
    return [(k, start, "") for k in known if k.lower().startswith(word.lower())]
