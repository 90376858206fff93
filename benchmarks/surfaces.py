"""Whether every surface gives the same: ``python -m benchmarks.surfaces [--json FILE]``.

Runs the statements of ``tests/surfaces/statements.sql`` by `Session.sql`, by ``spark.sql`` with the extension, in
``%%skimql``, without a jar by ``spark.read.format("skimql")`` on the kept sketches, and by the clients of
`surface_clients`; compares columns, types, rows and error codes with those of `Session.sql`. Records: {spark, surface,
statements, same, differ, not_possible}; the last are those that docs/spark-sql.md lists. And whether Spark's own
statements are as they were (see `untouched`).
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from . import surface_clients as clients
from .untouched import ordinary, outcomes

FILE = Path(__file__).parents[1] / "tests" / "surfaces" / "statements.sql"
TABLES = {
    "a": "SELECT id % 40 AS k, id % 100 AS x, IF(id % 3 = 0, 'p', 'q') AS g FROM range(400)",
    "b": "SELECT id % 60 AS k, id % 7 AS y FROM range(300)",
    "c": "SELECT id % 7 AS j, id AS z FROM range(50)",
}
CLIENTS = ("beeline", "pyhive", "spark-sql", "connect")
PARTS = ("process", "untouched", *CLIENTS)
Outcome = tuple[Any, ...]


def statements() -> list[str]:
    """Those of the file."""
    from skimql.parser.statement import split_statements

    text = FILE.read_text().partition("\n")[2]
    # One of them has a text that is not closed, which would take in all that follows.
    return [s.sql for line in text.splitlines() for s in split_statements(line)]


def outcome(ask: Callable[[str], Any], text: str) -> Outcome:
    """Columns, types and rows; or the code of the error."""
    from pyspark.errors import PySparkException

    from skimql import SkimqlError

    try:
        table = ask(text)
    except SkimqlError as fault:
        return "error", fault.code
    except PySparkException as fault:
        codes = re.findall(r"SKIMQL_[A-Z_]+", f"{fault.getCondition()} {fault}")
        return "error", codes[0] if codes else f"Spark's: {str(fault)[:200]}"
    if table is None:
        return ("rows",)
    # What has no value anywhere has another type, or none, on other surfaces.
    table = table.select([n for n, f in enumerate(table.schema) if str(f.type) != "null"])
    named = [(f.name, str(f.type)) for f in table.schema]
    rows = [[clients.VARYING.sub("*", str(v)) for v in row.values()] for row in table.to_pylist()]
    return "rows", named, rows


def by_session(session: Any) -> Callable[[str], Any]:
    """What `Session.sql` gives."""

    def ask(text: str) -> Any:
        from skimql import Answer

        found = session.sql(text)
        table = found.arrow() if isinstance(found, Answer) else found.toArrow()
        return table if table.column_names else None

    return ask


def by_spark(spark: Any) -> Callable[[str], Any]:
    """What ``spark.sql`` gives."""

    def ask(text: str) -> Any:
        frame = spark.sql(text)
        return frame.toArrow() if frame.columns else None

    return ask


def by_source(spark: Any) -> Callable[[str], Any]:
    """What ``spark.read.format("skimql")`` gives, without a jar."""
    return lambda text: spark.read.format("skimql").option("query", text).load().toArrow()


Compared = list[tuple[str, Outcome, Outcome | None]]


def compared(spark: Any, folder: str) -> Iterator[tuple[str, Compared]]:
    """(surface, (statement, by `Session.sql`, by the surface or None)) of each that runs in this process."""
    import skimql

    texts = statements()
    paths = tables(spark, folder)
    for name, path in paths.items():
        spark.read.parquet(path).createOrReplaceTempView(name)

    def made(ask: Callable[[str], Any]) -> list[Outcome]:
        return [outcome(ask, text) for text in texts]

    session = skimql.Session(spark, catalog=f"{folder}/one")
    for name, path in paths.items():
        # Of files a session without Spark can tell that they are as they were.
        session.table(name, path)
    first = made(by_session(session))
    yield "Session.sql", list(zip(texts, first, first, strict=True))
    yield "%%skimql", list(zip(texts, first, made(by_magic(spark, f"{folder}/two", paths)), strict=True))
    skimql.enable(spark, catalog=f"{folder}/three")
    try:
        yield "spark.sql", list(zip(texts, first, made(by_spark(spark)), strict=True))
    finally:
        skimql.disable(spark)
    # The sketches are there now, and the tables known.
    skimql.register(spark, f"{folder}/one")
    yield "without a jar", list(zip(texts, first, made(by_source(spark)), strict=True))
    spark.sql("DROP TEMPORARY FUNCTION skimql_answer")


def tables(spark: Any, folder: str) -> dict[str, str]:
    """The tables as files, written where they are not there yet."""
    paths = {name: f"{folder}/{name}.parquet" for name in TABLES}
    for name, path in paths.items():
        if not Path(path).exists():
            spark.sql(TABLES[name]).coalesce(1).write.parquet(path)
    return paths


def by_magic(spark: Any, catalog: str, paths: dict[str, str]) -> Callable[[str], Any]:
    """What a cell ``%%skimql`` gives."""
    from IPython.core.interactiveshell import InteractiveShell

    import skimql

    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "skimql")
    shell.user_ns["session"] = skimql.Session(spark, catalog=catalog)
    for name, path in paths.items():
        shell.user_ns["session"].table(name, path)

    def ask(text: str) -> Any:
        found = shell.run_cell_magic("skimql", "", text)
        table = found.arrow() if isinstance(found, skimql.Answer) else found.toArrow()
        return table if table.column_names else None

    return ask


def by_clients(
    paths: dict[str, str], first: list[Outcome], wanted: Sequence[str]
) -> Iterator[tuple[str, Compared]]:
    """The same for those that are processes of their own."""
    texts = statements()

    def beside(wanted: list[Outcome], found: list[Outcome | None]) -> Compared:
        return list(zip(texts, wanted, found, strict=True))

    shown = [clients.as_texts(one) for one in first]
    if "beeline" in wanted:
        with clients.thrift(paths) as port:
            yield "beeline", beside(shown, clients.by_beeline(port, texts))
    if "pyhive" in wanted and importlib.util.find_spec("pyhive"):
        with clients.thrift(paths) as port:
            yield "pyhive", beside([clients.as_hive(one) for one in first], clients.by_pyhive(port, texts))
    if "spark-sql" in wanted:
        found = map(clients.as_lines, clients.by_spark_sql(paths, texts))
        yield "spark-sql -f", beside([clients.as_lines(one) for one in shown], list(found))
    if "connect" in wanted and importlib.util.find_spec("grpc"):
        for name, found in clients.by_connect(paths, texts).items():
            yield name, beside(first, list(found))


def is_impossible(surface: str, found: Outcome | None) -> bool:
    """Whether a surface cannot do this, as docs/spark-sql.md says; without a jar it says so itself."""
    return found is None or (
        surface == "without a jar"
        and found[:1] == ("error",)
        and found[1] in ("SKIMQL_NOT_KEPT", "SKIMQL_NOT_AN_ANSWER")
    )


def main(arguments: list[str] | None = None) -> int:
    """Print the records, and each difference; 1 where there is one."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.surfaces", description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument(
        "--only", nargs="+", choices=PARTS, default=PARTS, help="of this process, Spark's own, or clients"
    )
    asked = parser.parse_args(arguments)
    from skimql.engine.spark.session import start_spark

    spark = start_spark({"spark.master": "local[2]", "spark.sql.session.timeZone": "UTC"})
    records: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        first: list[Outcome] = []
        for surface, found in compared(spark, folder):
            first = first or [wanted for _, wanted, _ in found]
            records.append(record(spark.version, surface, found))
            if "process" not in asked.only:
                break
        paths, version = tables(spark, folder), spark.version
        if "untouched" in asked.only:
            records.append(untouched(spark))
        spark.stop()
        for surface, found in by_clients(paths, first, asked.only):
            records.append(record(version, surface, found))
    if asked.json is not None:
        asked.json.write_text("\n".join(map(json.dumps, records)) + "\n")
    return int(any(r["differ"] for r in records))


def record(version: str, surface: str, found: Compared) -> dict[str, Any]:
    """The record of a surface, printed with what differs."""
    impossible = [o for o in found if is_impossible(surface, o[2])]
    differing = [o for o in found if o[1] != o[2] and o not in impossible]
    made = {
        "spark": version,
        "surface": surface,
        "statements": len(found),
        "same": len(found) - len(differing) - len(impossible),
        "differ": len(differing),
        "not_possible": len(impossible),
    }
    print(made)
    for text, wanted, other in differing:
        print(f"  {text}\n    Session.sql: {wanted}\n    {surface}: {other}", flush=True)
    return made


def untouched(spark: Any) -> dict[str, Any]:
    """The record of Spark's own statements, with the extension and without."""
    import skimql

    texts = ordinary()
    without = outcomes(spark, texts)
    skimql.enable(spark)
    having = outcomes(spark, texts)
    skimql.disable(spark)
    changed = [(t, w, h) for (t, _), w, h in zip(texts, without, having, strict=True) if w != h]
    made = {
        "spark": spark.version,
        "surface": "untouched",
        "statements": len(texts),
        "same": len(texts) - len(changed),
        "differ": len(changed),
        "not_possible": 0,
    }
    print(made, f"({sum(o[0] != 'rows' for o in without)} of them errors)")
    for text, wanted, found in changed:
        print(f"  {text}\n    without: {wanted}\n    with: {found}", flush=True)
    return made


if __name__ == "__main__":
    sys.exit(main())
