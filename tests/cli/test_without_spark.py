"""A catalog's command line without Java and without PySpark: answers, and what it must not even import."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from support.kept import kept, remember

from skimql.cli import app
from skimql.cli.main import plain_request
from skimql.engine.catalog.catalog import Catalog

QUERY = "SELECT APPROXIMATE COUNT(*) AS n, SUM(l.price) AS s, AVG(l.price) AS a FROM orders o JOIN lines l ON o.id = l.oid"
# What a plain answer may not load: Spark, and what takes longer to import than the answer takes.
POISON = (
    "pyspark",
    "py4j",
    "scipy",
    "networkx",
    "pandas",
    "typer",
    "rich",
    "pydantic",
    "pyarrow.compute",
    "numpy.ma",
    "skimql.sketches.distinct",
    "skimql.sketches.samples",
    "skimql.sketches.reference",
    "skimql.engine.execution.partial_aggregate",
    "skimql.engine.memory_backend",
    "skimql.engine.statistics",
    "skimql.engine.queries.backend",
    "skimql.optimizer.workload",
    "skimql.optimizer.candidates.enumerate",
)


@pytest.fixture(scope="module")
def catalog(tmp_path_factory):
    folder = tmp_path_factory.mktemp("catalog")
    counters = {"buckets": 512, "sparse": False}
    lines = kept(
        "s_lines", "lines", {"oid": [1, 1, 2, 9]}, classes=["id"], summed=("price", [5, 6, 7, 8]), **counters
    )
    remember(Catalog(folder), kept("s_orders", "orders", {"id": range(5)}, **counters), lines)
    return folder


@pytest.fixture(scope="module")
def poisoned(tmp_path_factory):
    """A folder in which importing any of the poisoned modules fails, and an environment without Java."""
    folder = tmp_path_factory.mktemp("poison")
    for name in POISON:
        path = folder.joinpath(*name.split("."))
        if "." in name:
            continue
        path.mkdir()
        (path / "__init__.py").write_text(f"raise SystemExit('{name} was imported')\n")
    environment = {k: v for k, v in os.environ.items() if k not in ("JAVA_HOME", "SPARK_HOME")}
    return {**environment, "PYTHONPATH": str(folder), "PATH": "/nonexistent"}


def skimql(environment, *arguments):
    code = "import os, sys; os._exit = sys.exit; from skimql.cli.main import run\ntry: run()\nfinally: print([m for m in %r if m in sys.modules], file=sys.stderr)"
    command = [sys.executable, "-c", code % (POISON,), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)


def test_answers_show_describe_and_explain_import_nothing_of_spark(catalog, poisoned):
    statements = [QUERY, "SHOW SKETCHES", "DESCRIBE SKETCH EXTENDED s_lines", f"EXPLAIN {QUERY}"]
    commands = [a for s in statements for a in ("-c", s)]
    done = skimql(poisoned, "--catalog", str(catalog), "-o", "json", *commands)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[-1] == "[]", "none of these may be loaded"
    results = json.JSONDecoder()
    text, found = done.stdout, []
    while text.strip():
        value, end = results.raw_decode(text.lstrip())
        found.append(value)
        text = text.lstrip()[end:]
    answer, shown, described, explained = found
    assert (answer[0]["n"], answer[0]["s"]) == (3, 18)
    assert [r["sketch"] for r in shown] == ["s_lines", "s_orders"]
    assert {"property": "tuples", "value": "4"} in described
    assert "from the kept sketches s_orders, s_lines" in explained[0]["plan"]
    assert "from the kept sketches" in done.stderr


def test_what_needs_spark_says_so_without_java(catalog, poisoned):
    """The same folder, a question that it cannot answer: PySpark is asked for, and here it cannot be had."""
    done = skimql(poisoned, "--catalog", str(catalog), "-c", f"{QUERY} WHERE l.price > 5")
    assert "pyspark was imported" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    "arguments",
    [
        ["--catalog", "d", "-c", "SELECT 1"],
        ["--catalog", "d", "-c", "a", "-e", "b", "-o", "json", "-s", "seed=3", "-s", "rows = 7", "-q"],
        ["-c", "a", "--catalog", "d", "--keep-going", "-t", "x=y.csv", "-t", "z=a=b.csv", "--output-format", "table"],
    ],
)  # fmt: skip
def test_the_quick_way_reads_what_typer_reads(arguments, monkeypatch):
    seen = []
    monkeypatch.setattr("skimql.cli.run.run_texts", lambda request: seen.append(request) or 0)
    app.app(arguments, standalone_mode=False)
    assert seen == [plain_request(arguments)]


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["-c", "SELECT 1"],
        ["--catalog", "d"],
        ["--catalog", "d", "-c"],
        ["--catalog", "d", "-c", "a", "-o", "xml"],
        ["--catalog", "d", "-c", "a", "-t", "x"],
        ["--catalog", "d", "-c", "a", "--demo"],
        ["--catalog", "d", "-c", "a", "--nosuch"],
        ["--catalog", "d", "-f", "nosuch.sql"],
        ["--catalog", "d", "-f", "-"],
        ["--catalog=d", "-c", "a"],
        ["doctor"],
    ],
)
def test_everything_else_is_left_to_typer(arguments):
    assert plain_request(arguments) is None
