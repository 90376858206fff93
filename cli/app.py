"""The arguments of the `skimql` command, by typer: order of statements, exit codes, help.

Exit codes: 0 all went well, 1 a statement failed, 2 wrong usage, 130 interrupted. Results go to stdout and nothing
else does; progress, notes and errors go to stderr.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from .completers import files, formats, plan_formats, settings_of_queries

if TYPE_CHECKING:
    from .config import Config

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

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """Subcommands, options, and files, which are tables."""
        from click.shell_completion import CompletionItem

        found = list(super().shell_complete(ctx, incomplete))
        if incomplete.startswith("-"):
            return found
        return [*found, *map(CompletionItem, files(incomplete))]


app = typer.Typer(
    cls=InOrder,
    add_completion=True,
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
        list[Path] | None,
        typer.Option(
            "-f",
            "--file",
            help="Run the statements of this file; repeats.",
            autocompletion=files,
        ),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "-o",
            "--output-format",
            help="table, csv, tsv, json, jsonl, markdown or vertical. Without it: table on a terminal, csv with a"
            " header into a pipe or file.",
            autocompletion=formats,
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
            autocompletion=files,
        ),
    ] = None,
    catalog: Annotated[
        str | None,
        typer.Option(
            "--catalog",
            metavar="DIR",
            help="Folder or URI in which sketches are kept, and answered from.",
            autocompletion=files,
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
            "behavior, bounds, max_groups, route, fold_bytes, max_bytes, max_exact_seconds, cache or simultaneous.",
            autocompletion=settings_of_queries,
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
    master: Annotated[
        str | None, typer.Option("--master", help="Where Spark runs, such as local[4] or spark://host:7077.")
    ] = None,
    conf: Annotated[
        list[str] | None,
        typer.Option(
            "--conf", metavar="KEY=VALUE", help="A setting of Spark, such as spark.driver.memory=4g; repeats."
        ),
    ] = None,
    timing: Annotated[
        bool | None, typer.Option("--timing/--no-timing", help="Print the time that each statement took.")
    ] = None,
    output_file: Annotated[
        str | None,
        typer.Option(
            "--output-file",
            metavar="FILE",
            help="Write results there, not to stdout.",
            autocompletion=files,
        ),
    ] = None,
    init: Annotated[
        Path | None,
        typer.Option(
            "--init",
            metavar="FILE",
            help="Run the statements of this file first, silently.",
            autocompletion=files,
        ),
    ] = None,
    project: Annotated[
        bool, typer.Option("--project", help="Read .skimql.toml of this folder, and trust it from now on.")
    ] = False,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Approximate SQL for joins on Spark. Without statements, on a terminal: the shell.

    Example: skimql --demo -c "SELECT APPROXIMATE COUNT(*) FROM flights f JOIN planes p ON f.tailnum = p.tailnum"
    """
    if version:
        from .. import __version__

        print(f"skimql {__version__}")
        raise typer.Exit
    from .request import Request

    config = _configured(
        {
            "catalog": catalog,
            "master": master,
            "timing": timing,
            "init": init,
            "output": _format_given(output),
        },
        setting or [],
        conf or [],
        project,
    )
    texts = list(_texts(ctx.meta.get("skimql.order", []), command or [], file or []))
    if not texts and ctx.invoked_subcommand is None and not sys.stdin.isatty():
        texts = [_read(Path("-"))]
    request = Request(
        texts=tuple(texts),
        output=_format(config["output"], output_file),
        tables=(
            *((name, value.value) for name, value in config.tables.items()),
            *(pair for t in table or [] for pair in _tables(t)),
        ),
        catalog=config["catalog"],
        demo=demo,
        compare=compare,
        settings=config.settings,
        keep_going=keep_going,
        progress=not quiet and (sys.stderr.isatty() if progress is None else progress),
        quiet=quiet,
        conf=config.spark_conf,
        timing=config["timing"],
        output_file=output_file,
        first=(_read(Path(config["init"])),) if config["init"] else (),
    )
    if ctx.invoked_subcommand is not None:
        ctx.obj = (request, config)
        return
    if not texts and not sys.stdout.isatty():
        print(ctx.get_help())
        raise typer.Exit(USAGE)
    if not texts:
        from .shell.loop import run_shell

        raise typer.Exit(run_shell(request, config))
    _say_notes(config, quiet)
    from .run import run_texts

    raise typer.Exit(run_texts(request))


def _configured(flags: dict[str, Any], settings: list[str], conf: list[str], project: bool) -> Config:
    """The configuration, the command line over all."""
    from .. import SkimqlError
    from .config import Value, load, trust
    from .folders import PROJECT_FILE

    try:
        if project and Path(PROJECT_FILE).exists():
            trust(Path(PROJECT_FILE))
        told = {name: str(value) if isinstance(value, Path) else value for name, value in flags.items()}
        config = load(told, project=project)
        for name, value in (_pair(s, "--set") for s in settings):
            config.set(name.removeprefix("skimql."), value, "the command line")
        for name, value in (_pair(c, "--conf") for c in conf):
            config.spark[name] = Value(value, "the command line")
    except SkimqlError as fault:
        print(fault, file=sys.stderr)
        raise typer.Exit(1) from fault
    return config


def _say_notes(config: Config, quiet: bool) -> None:
    for note in [] if quiet else config.notes:
        print(f"note: {note}", file=sys.stderr)


@app.command("config")
def config_command(
    ctx: typer.Context,
    init: Annotated[bool, typer.Option("--init", help="Write a commented config.toml.")] = False,
    trust: Annotated[bool, typer.Option("--trust", help="Trust .skimql.toml of this folder.")] = False,
) -> None:
    """Print every setting, its value and where it came from."""
    from .. import SkimqlError
    from . import config as module
    from .folders import PROJECT_FILE

    try:
        if init:
            print(module.write_example())
            return
        if trust:
            module.trust(Path(PROJECT_FILE))
            ctx.obj = (ctx.obj[0], module.load())
    except SkimqlError as fault:
        print(fault, file=sys.stderr)
        raise typer.Exit(1) from fault
    _, config = ctx.obj
    rows = module.described(config)
    widths = [max(len(row[i]) for row in rows) for i in (0, 1)]
    for name, value, origin in rows:
        print(f"{name:<{widths[0]}}  {value:<{widths[1]}}  {origin}")
    _say_notes(config, False)


@app.command("explain")
def explain_command(
    ctx: typer.Context,
    sql: Annotated[str, typer.Argument(help="An approximate SELECT.")],
    analyze: Annotated[
        bool, typer.Option("--analyze", help="Run it, and show predicted beside actual.")
    ] = False,
    form: Annotated[
        str,
        typer.Option("--format", help="text, json, mermaid or svg.", autocompletion=plan_formats),
    ] = "text",
) -> None:
    """Print the join graph and the plan of a query: EXPLAIN [ANALYZE] [FORMAT ...]."""
    from dataclasses import replace

    from .run import run_texts

    request, _ = ctx.obj
    words = f"EXPLAIN {'ANALYZE ' if analyze else ''}FORMAT {form} "
    raise typer.Exit(run_texts(replace(request, texts=(words + sql.strip().rstrip(";"),), output="table")))


_CATALOG = typer.Option("--catalog", metavar="DIR", help="The catalog's folder.")


@app.command("serve")
def serve_command(ctx: typer.Context, catalog: Annotated[str | None, _CATALOG] = None) -> None:
    """Run the continuous views of a catalog until stopped: SIGTERM and Ctrl-C finish the batches on their way."""
    from dataclasses import replace

    from .serve import serve

    request, _ = ctx.obj
    raise typer.Exit(serve(replace(request, catalog=catalog or request.catalog)))


@app.command("thrift")
def thrift_command(
    ctx: typer.Context,
    catalog: Annotated[str | None, _CATALOG] = None,
    host: Annotated[str, typer.Option("--host", help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", help="Port to listen at; 0: one that is free.")] = 10000,
    table: Annotated[
        list[str] | None,
        typer.Option("-t", "--table", metavar="[NAME=]PATH", help="A table that all connections see."),
    ] = None,
) -> None:
    """Serve JDBC and ODBC clients (beeline, pyhive, BI tools): Spark's Thrift server with SkimQL's statements."""
    from dataclasses import replace

    from .thrift import serve_thrift

    request, _ = ctx.obj
    tables = (*request.tables, *(named for text in table or () for named in _tables(text)))
    asked = replace(request, catalog=catalog or request.catalog, tables=tables)
    raise typer.Exit(serve_thrift(asked, host, port))


@app.command("watch")
def watch_command(
    ctx: typer.Context,
    view: Annotated[str, typer.Argument(help="A continuous view.")],
    catalog: Annotated[str | None, _CATALOG] = None,
    every: Annotated[float, typer.Option("--every", min=0.05, help="Seconds between two looks.")] = 1.0,
    times: Annotated[int | None, typer.Option("--times", min=1, help="End after so many looks.")] = None,
) -> None:
    """Show a continuous view live, from any process: value, interval, how it went, events a second."""
    from dataclasses import replace

    from .watch import watch

    request, _ = ctx.obj
    raise typer.Exit(watch(replace(request, catalog=catalog or request.catalog), view, every, times))


@app.command("plot")
def plot_command(
    ctx: typer.Context,
    sql: Annotated[str, typer.Argument(help="An approximate SELECT.")],
    to: Annotated[
        Path | None, typer.Option("--to", help="A png, svg or pdf; without it the terminal.")
    ] = None,
) -> None:
    """Draw the predicted error of a query against bytes; with --to a file, beside the intervals of its answer."""
    from .run import plot

    request, _ = ctx.obj
    raise typer.Exit(plot(request, sql.strip().rstrip(";"), to))


@app.command("doctor")
def doctor_command() -> None:
    """Check Java, Python, Spark's workers, memory and temporary space; say what to do for each fault."""
    from .doctor import print_doctor

    raise typer.Exit(print_doctor())


@app.command("jar")
def jar_command(
    build: Annotated[
        bool, typer.Option("--build", help="Build it where the package has none (needs a JDK).")
    ] = False,
) -> None:
    """Print the path of the jar that makes Spark SQL know SkimQL's statements: the value of spark.jars."""
    from .jar import print_jar

    raise typer.Exit(print_jar(build))


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


def _format(asked: str | None, output_file: str | None) -> str:
    """The format of results; of a file without one, by its ending."""
    from .formats import default_format, format_of_file

    if asked is not None:
        return asked
    if output_file is None:
        return default_format(sys.stdout)
    return format_of_file(output_file)


def _format_given(asked: str | None) -> str | None:
    from .formats import FORMATS

    if asked is not None and asked not in FORMATS:
        raise typer.BadParameter(f"{asked!r} is none of {', '.join(FORMATS)}", param_hint="--output-format")
    return asked
