"""The arguments of the `skimql` command, by typer: order of statements, exit codes, help.

Exit codes: 0 all went well, 1 a statement failed, 2 wrong usage, 130 interrupted. Results go to stdout and nothing
else does; progress, notes and errors go to stderr.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

USAGE = 2


class InOrder(TyperGroup):
    """Remembers in which order -c and -f were given, which typer forgets."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse as usual; the order of the options goes to ``ctx.meta``."""
        args = list(args)
        _, rest, order = self.make_parser(ctx).parse_args(list(args))
        while rest and rest[0] not in self.commands and not rest[0].startswith("-"):
            # A file in front of the statements is a table.
            at = len(args) - len(rest)
            args[at : at + 1] = ["--table", rest[0]]
            _, rest, order = self.make_parser(ctx).parse_args(list(args))
        ctx.meta["skimql.order"] = [p.name for p in order if p.name in ("command", "file")]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=InOrder,
    add_completion=False,
    no_args_is_help=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def query(
    ctx: typer.Context,
    command: Annotated[
        list[str] | None,
        typer.Option("-c", "-e", "--command", help="Run this SQL; repeats, in order with -f."),
    ] = None,
    file: Annotated[
        list[Path] | None, typer.Option("-f", "--file", help="Run the statements of this file; repeats.")
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "-o",
            "--output-format",
            help="table, csv, tsv, json, jsonl, markdown or vertical. Without it: table on a terminal, csv with a"
            " header into a pipe or file.",
        ),
    ] = None,
    table: Annotated[
        list[str] | None,
        typer.Option(
            "-t",
            "--table",
            metavar="[NAME=]PATH",
            help="Register a Parquet, CSV or JSON file or folder; without a name, under that of the file. DIR/"
            " registers every file and folder in it.",
        ),
    ] = None,
    catalog: Annotated[
        str | None,
        typer.Option(
            "--catalog", metavar="DIR", help="Folder or URI in which sketches are kept, and answered from."
        ),
    ] = None,
    demo: Annotated[bool, typer.Option("--demo", help="Register the flights demo tables.")] = False,
    compare: Annotated[
        bool, typer.Option("--compare", help="Run each approximate query exactly too, and print the error.")
    ] = False,
    setting: Annotated[
        list[str] | None,
        typer.Option(
            "-s",
            "--set",
            metavar="NAME=VALUE",
            help="A setting, as SET skimql.NAME = VALUE: seed, rows, buckets, size_bytes, sparse, confidence, error, "
            "behavior, bounds, max_groups, route, fold_bytes, max_bytes, max_exact_seconds or cache.",
        ),
    ] = None,
    keep_going: Annotated[
        bool, typer.Option("--keep-going", help="Go on after a statement fails; the exit code is still 1.")
    ] = False,
    progress: Annotated[
        bool | None,
        typer.Option("--progress/--no-progress", help="Progress on stderr; by default on a terminal."),
    ] = None,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No notes, no timing, no progress.")] = False,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Approximate SQL for joins on Spark.

    Example: skimql --demo -c "SELECT APPROXIMATE COUNT(*) FROM flights f JOIN planes p ON f.tailnum = p.tailnum"
    """
    if version:
        from .. import __version__

        print(f"skimql {__version__}")
        raise typer.Exit
    if ctx.invoked_subcommand is not None:
        return
    texts = list(_texts(ctx.meta.get("skimql.order", []), command or [], file or []))
    if not texts and not sys.stdin.isatty():
        texts = [_read(Path("-"))]
    if not texts:
        print(ctx.get_help())
        raise typer.Exit(USAGE)
    from .run import Request, run_texts

    raise typer.Exit(
        run_texts(
            Request(
                texts=tuple(texts),
                output=_format(output),
                tables=tuple(pair for t in table or [] for pair in _tables(t)),
                catalog=catalog,
                demo=demo,
                compare=compare,
                settings=dict(_pair(s, "--set") for s in setting or []),
                keep_going=keep_going,
                progress=not quiet and (sys.stderr.isatty() if progress is None else progress),
                quiet=quiet,
            )
        )
    )


@app.command("doctor")
def doctor_command() -> None:
    """Check Java, Python, Spark's workers, memory and temporary space; say what to do for each fault."""
    from .doctor import print_doctor

    raise typer.Exit(print_doctor())


@app.command("demo")
def demo_command(
    seed: Annotated[int, typer.Option("--seed", help="Sketch seed.")] = 1,
) -> None:
    """Ask the flights tables four questions: estimate, exact answer, error, bytes and times."""
    from .demo import run_demo

    raise typer.Exit(run_demo(seed))


def _texts(order: list[str], commands: list[str], files: list[Path]) -> Iterator[str]:
    """The SQL of -c and -f in the order of the command line."""
    texts, paths = iter(commands), iter(files)
    for name in order:
        yield next(texts) if name == "command" else _read(next(paths))


def _read(path: Path) -> str:
    try:
        if str(path) == "-":
            return sys.stdin.buffer.read().decode("utf-8")
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        what = "stdin" if str(path) == "-" else str(path)
        why = "it is not UTF-8" if isinstance(fault, UnicodeDecodeError) else fault.strerror
        raise typer.BadParameter(f"cannot read {what}: {why}", param_hint="--file") from fault


def _pair(text: str, option: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (equals and name.strip() and value.strip()):
        raise typer.BadParameter(f"{text!r} is not NAME=VALUE", param_hint=option)
    return name.strip(), value.strip()


def _tables(text: str) -> list[tuple[str, str]]:
    """``NAME=PATH``, or the tables that a path without a name stands for."""
    path = Path(text)
    if "=" in text and not path.exists():
        return [_pair(text, "--table")]
    if not path.exists() and "://" not in text:
        raise typer.BadParameter(f"there is no file {text}, and it is not NAME=PATH", param_hint="--table")
    inside = []
    if path.is_dir() and text.endswith("/"):
        inside = [
            p for p in sorted(path.iterdir()) if p.name[0] not in "._" and not p.name.startswith("part-")
        ]
    return [(_name_of(p), str(p)) for p in inside or [path]]


def _name_of(path: Path) -> str:
    """A file's name as that of a table: without its endings, other signs as underscores."""
    name = "".join(c if c.isalnum() else "_" for c in path.resolve().name.partition(".")[0])
    return f"t{name}" if name[:1].isdigit() or not name else name


def _format(asked: str | None) -> str:
    from .render import FORMATS, default_format

    if asked is None:
        return default_format(sys.stdout)
    if asked not in FORMATS:
        raise typer.BadParameter(f"{asked!r} is none of {', '.join(FORMATS)}", param_hint="--output-format")
    return asked
