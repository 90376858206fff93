"""The surfaces of `benchmarks.surfaces` that are processes of their own: beeline, pyhive, spark-sql, Spark Connect.

Each is given a folder of tables and makes a catalog of its own; what clients print is compared as texts, and as values
where they have any. pyhive (with pure-sasl) and what Spark Connect needs (``pip install pyspark[connect]``) are asked
where they are installed.
"""

from __future__ import annotations

import contextlib
import csv
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

Outcome = tuple[Any, ...]
MARK = "statement-"
# Whatever `skimql` is first on PATH: that of this Python.
SKIMQL = (sys.executable, "-c", "from skimql.cli.main import run; run()")
SECONDS = 400
# What Hive calls the types that Arrow has.
HIVE = {
    "int64": "BIGINT",
    "int32": "INT",
    "double": "DOUBLE",
    "string": "STRING",
    "bool": "BOOLEAN",
    "timestamp[us, tz=UTC]": "TIMESTAMP",
}
# Of every new sketch or run.
VARYING = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+(?:Z|\+00:00)|(?<=table )\S+(?=, \d+ file)|/tmp/\S+")
_CODE = re.compile(r"SKIMQL_[A-Z_]+")


def is_closed(text: str) -> bool:
    """Whether a statement ends where a client that cuts scripts thinks that it does."""
    return text.count("'") % 2 == 0


def as_texts(found: Outcome) -> Outcome:
    """An outcome as a client that prints knows it: names and texts."""
    if found[0] != "rows" or len(found) < 3:
        return ("rows", [], []) if found == ("rows",) else _refused(str(found[1]))
    return _valued([name for name, _ in found[1]], [[plain(v) for v in row] for row in found[2]])


def _refused(told: str) -> Outcome:
    """The code of an error; what else is told where it is none that anybody asks for."""
    codes = _CODE.findall(told)[:1]
    return "error", codes if codes and codes != ["SKIMQL_FAILED"] else told[:500]


def as_lines(found: Outcome | None) -> Outcome | None:
    """An outcome as a client knows it that prints texts of several lines as they are, where there is one column."""
    if found is None or found[0] != "rows" or len(found[1]) != 1:
        return found
    return "rows", found[1], ["".join(row[0] for row in found[2])]


def _valued(names: list[str], rows: list[list[str]]) -> Outcome:
    """Rows without the columns that have no value anywhere: those have another type on each surface, or none."""
    known = [n for n in range(len(names)) if any(row[n] != "NULL" for row in rows if n < len(row))]
    return "rows", [names[n] for n in known], [[row[n] for n in known if n < len(row)] for row in rows]


def as_hive(found: Outcome) -> Outcome:
    """An outcome as a client of the Thrift server knows it: with Hive's types."""
    texts = as_texts(found)
    if texts[0] != "rows" or len(found) < 3:
        return texts
    if not texts[1]:
        return texts
    kinds = dict(found[1])
    return (*texts, [HIVE.get(kinds[name], kinds[name]) for name in texts[1]])


def plain(value: str) -> str:
    """A value as text, whoever has written it."""
    value = VARYING.sub("*", value)
    if value in ("None", "NULL", "null", ""):
        return "NULL"
    if value in ("True", "False"):
        return value.lower()
    with contextlib.suppress(ValueError):
        if not value.lstrip("-").isdigit():
            return repr(float(value))
    # Beeline leaves line breaks out.
    return "".join(value.split())


def environment() -> dict[str, str]:
    """For Spark's own scripts: this Python, and the commands of its environment."""
    import pyspark

    binaries = Path(sys.executable).parent
    home = Path(pyspark.__file__).parent
    return os.environ | {
        "SPARK_HOME": str(home),
        "PYSPARK_PYTHON": sys.executable,
        "PATH": f"{binaries}{os.pathsep}{home / 'bin'}{os.pathsep}{os.environ['PATH']}",
    }


def free_port() -> int:
    """One at which nobody listens."""
    with socket.socket() as tried:
        tried.bind(("127.0.0.1", 0))
        return int(tried.getsockname()[1])


@contextlib.contextmanager
def process(command: Sequence[str], folder: str, port: int) -> Iterator[None]:
    """Within, a server runs and listens."""
    log = Path(folder) / "server.log"
    with log.open("w") as sink:
        server = subprocess.Popen(
            command, cwd=folder, env=environment(), stdout=sink, stderr=sink, start_new_session=True
        )
        try:
            begun = time.monotonic()
            while True:
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                    break
                if server.poll() is not None or time.monotonic() - begun > SECONDS:
                    raise RuntimeError(f"{command[0]} does not serve:\n{log.read_text()[-2000:]}")
                time.sleep(0.5)
            yield
        finally:
            server.send_signal(signal.SIGTERM)
            try:
                server.wait(30)
            except subprocess.TimeoutExpired:
                server.kill()


@contextlib.contextmanager
def thrift(tables: dict[str, str]) -> Iterator[int]:
    """Within, ``skimql thrift`` serves; gives the port."""
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        named = [word for name, path in tables.items() for word in ("-t", f"{name}={path}")]
        conf = ["--conf", "spark.sql.session.timeZone=UTC", "--conf", "spark.master=local[2]"]
        command = [*SKIMQL, *conf, "thrift", "--port", str(port), "--catalog", f"{folder}/catalog", *named]
        with process(command, folder, port):
            yield port


def by_beeline(port: int, texts: Sequence[str]) -> list[Outcome | None]:
    """What beeline prints; None for what cannot stand in its scripts."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "script.sql"
        script.write_text(_marked(texts))
        options = ["--outputformat=csv2", "--silent=true", "--force=true", "--maxColumnWidth=10000"]
        command = ["beeline", "-u", f"jdbc:hive2://127.0.0.1:{port}/", "-n", "u", *options, "-f", str(script)]
        told = subprocess.run(
            command,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS,
            check=False,
        ).stdout
    # Its logs come from a thread of their own, behind which it prints a prompt that is null.
    told = re.sub(r"\nnull +\nnull", "", told)
    return _parts(told, texts, {"delimiter": ",", "quotechar": "\0"}, error="Error: ")


def by_spark_sql(tables: dict[str, str], texts: Sequence[str]) -> list[Outcome | None]:
    """What ``spark-sql -f`` prints with the jar alone; None for what cannot stand in its scripts."""
    from skimql.engine.extension import jar

    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "script.sql"
        views = [f"CREATE TEMP VIEW {n} AS SELECT * FROM parquet.`{p}`;\n" for n, p in tables.items()]
        script.write_text("".join(views) + _marked(texts))
        conf = {
            "spark.jars": str(jar.find()),
            "spark.sql.extensions": "skimql.spark.SkimqlExtensions",
            "spark.skimql.python": sys.executable,
            "spark.skimql.catalog": f"{folder}/catalog",
            "spark.sql.session.timeZone": "UTC",
            "spark.master": "local[2]",
        }
        named = [word for name, value in conf.items() for word in ("--conf", f"{name}={value}")]
        hive = ["--hiveconf", "hive.cli.errors.ignore=true", "--hiveconf", "hive.cli.print.header=true"]
        told = subprocess.run(
            ["spark-sql", *named, *hive, "-f", str(script)],
            cwd=folder,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS,
            check=False,
        ).stdout
    return _parts(told, texts, {"delimiter": "\t", "quoting": csv.QUOTE_NONE}, error="[SKIMQL_")


def _marked(texts: Sequence[str]) -> str:
    return "".join(
        f"SELECT '{MARK}{number}' AS mark;\n" + (f"{text.rstrip().rstrip(';')};\n" if is_closed(text) else "")
        for number, text in enumerate(texts)
    )


def _parts(told: str, texts: Sequence[str], dialect: dict[str, Any], error: str) -> list[Outcome | None]:
    """What stands between the marks, read as rows or as an error."""
    parts = re.split(rf"(?m)^'?{MARK}(\d+)'?\s*$", told)
    found = dict(zip(map(int, parts[1::2]), parts[2::2], strict=True))
    return [
        _part(found.get(n, "Error: nothing"), dialect, error) if is_closed(t) else None
        for n, t in enumerate(texts)
    ]


def _part(told: str, dialect: dict[str, Any], error: str) -> Outcome:
    lines = [line for line in told.strip("\n").splitlines() if line.strip() not in ("mark", "", "Time taken")]
    lines = [
        line
        for line in lines
        if not re.match(r"Time taken: |\d\d/\d\d/\d\d |\d{4}-\d\d-\d\d \d\d:|WARN", line)
    ]
    if any(error in line or line.startswith(("Error: ", "[")) for line in lines):
        return _refused("\n".join(lines))
    if not lines:
        return "rows", [], []
    rows = list(csv.reader(lines, **dialect))
    return _valued(rows[0], [[plain(v) for v in row] for row in rows[1:]])


def by_pyhive(port: int, texts: Sequence[str]) -> list[Outcome | None]:
    """What pyhive gives, with types."""
    from pyhive import hive

    # It parses dates by a module that it does not bring.
    connection = hive.connect("127.0.0.1", port, username="u")
    found: list[Outcome | None] = []
    for text in texts:
        cursor = connection.cursor()
        try:
            cursor.execute(text.rstrip().rstrip(";"))
            about = cursor.description or []
            rows = cursor.fetchall() if about else []
        except hive.OperationalError as fault:
            found.append(_refused(str(fault)))
            continue
        kinds = {column[0]: column[1].removesuffix("_TYPE") for column in about}
        given = _valued(list(kinds), [[plain(str(v)) for v in row] for row in rows])
        found.append((*given, [kinds[name] for name in given[1]]) if given[1] else given)
    connection.close()
    return found


CLIENT = """
import json, sys, tempfile
from pyspark.sql import SparkSession
from benchmarks.surfaces import by_session, by_spark, outcome, statements
import skimql

asked = json.load(sys.stdin)
spark = SparkSession.builder.remote(f"sc://127.0.0.1:{asked['port']}").getOrCreate()
for name, path in asked["tables"].items():
    spark.read.parquet(path).createOrReplaceTempView(name)
found = {"Connect, spark.sql": [outcome(by_spark(spark), text) for text in asked["texts"]]}
with tempfile.TemporaryDirectory() as folder:
    session = skimql.Session(spark, catalog=folder)
    for name, path in asked["tables"].items():
        # Of files alone a client can tell that they are as they were.
        session.table(name, path)
    found["Connect, Session.sql"] = [outcome(by_session(session), text) for text in asked["texts"]]
print("OUTCOMES" + json.dumps(found))
"""


def by_connect(tables: dict[str, str], texts: Sequence[str]) -> dict[str, list[Outcome]]:
    """What a client of a Connect server with the jar gets from ``spark.sql``, and from a `Session` of its own."""
    from skimql.engine.extension import jar

    port = free_port()
    conf = {
        "spark.jars": str(jar.find()),
        "spark.sql.extensions": "skimql.spark.SkimqlExtensions",
        "spark.skimql.python": sys.executable,
        "spark.sql.session.timeZone": "UTC",
        "spark.master": "local[2]",
        "spark.connect.grpc.binding.port": str(port),
    }
    with tempfile.TemporaryDirectory() as folder:
        conf["spark.skimql.catalog"] = f"{folder}/catalog"
        named = [word for name, value in conf.items() for word in ("--conf", f"{name}={value}")]
        server = ["spark-submit", "--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
        with process([*server, *named, "spark-internal"], folder, port):
            told = subprocess.run(
                [sys.executable, "-c", CLIENT],
                input=json.dumps({"port": port, "tables": tables, "texts": list(texts)}),
                env=environment(),
                capture_output=True,
                text=True,
                timeout=SECONDS,
                check=False,
            )
    if "OUTCOMES" not in told.stdout:
        raise RuntimeError(told.stderr[-2000:])
    outcomes = json.loads(told.stdout.partition("OUTCOMES")[2])
    return {name: [_outcome(one) for one in found] for name, found in outcomes.items()}


def _outcome(told: list[Any]) -> Outcome:
    """As it was before it was JSON: columns are pairs."""
    return tuple(
        [tuple(c) for c in part] if n == 1 and told[0] == "rows" else part for n, part in enumerate(told)
    )
