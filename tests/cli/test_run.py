"""Running statements in order, and what is printed in each format, on the shared Spark session."""

from __future__ import annotations

import csv
import io
import json

import pytest

from skimql.cli.render import render
from skimql.cli.request import Request
from skimql.cli.run import run_texts

pytestmark = pytest.mark.spark

QUERY = "SELECT APPROXIMATE COUNT(*) AS n, SUM(m) AS s FROM x JOIN y ON x.id = y.id"


@pytest.fixture
def run(session, capsys):
    """Over views x and y of Spark's, which take no job to read."""
    for name, rows in (("x(id, n)", "(1, 10), (2, 20)"), ("y(id, m)", "(1, 100), (1, 101), (3, 300)")):
        session.spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW {name} AS VALUES {rows}")

    def go(*texts, output="json", **changes):
        request = {
            "texts": texts,
            "output": output,
            "tables": (),
            "catalog": None,
            "demo": False,
            "compare": False,
            "settings": {},
            "keep_going": False,
            "progress": False,
            "quiet": False,
        }
        code = run_texts(Request(**(request | changes)))
        told = capsys.readouterr()
        return code, told.out, told.err

    return go


def test_the_first_error_stops_unless_told_otherwise(run):
    code, out, err = run("SELECT 1 AS a; SELECT nosuch FROM x; SELECT 2 AS b")
    assert (code, out) == (1, '[{"a": 1}]\n')
    assert err.startswith("error: ")
    code, out, _ = run("SELECT 1 AS a; SELECT nosuch FROM x; SELECT 2 AS b", keep_going=True)
    assert (code, out) == (1, '[{"a": 1}]\n[{"b": 2}]\n')


def test_tables_of_the_command_line_are_read(run, tmp_path):
    (tmp_path / "f.csv").write_text("id,n\n1,10\n2,20\n")
    query = "SELECT APPROXIMATE COUNT(*) AS n, SUM(m) AS s FROM f JOIN y ON f.id = y.id"
    _, out, _ = run(query, output="csv", tables=(("f", str(tmp_path / "f.csv")),))
    _, expected, _ = run(QUERY, output="csv")
    assert out == expected


def test_every_format_carries_the_same_numbers(run, session):
    session.sql("SET skimql.error = 0.05")  # as the command line has it
    answer = session.sql(QUERY)

    def shown(output):
        sink = io.StringIO()
        render(answer, output, sink)
        return sink.getvalue()

    assert run(QUERY)[1] == shown("json")
    assert json.loads(shown("json"))[0]["s"] == 201.0
    assert json.loads(shown("jsonl"))["n"] == 2.0
    for output, separator in (("csv", ","), ("tsv", "\t")):
        row = next(csv.DictReader(io.StringIO(shown(output)), delimiter=separator))
        assert (row["n"], row["s_low"], row["certified"], row["target"]) == ("2", "201.0", "true", "met")
    assert "| 2 |" in shown("markdown")
    assert "n_low" in shown("vertical")
    assert {"n", "s", "2", "201"} <= set(shown("table").split())


def test_comparing_prints_exact_value_and_error(run):
    code, out, _ = run(QUERY, output="table", compare=True)
    assert code == 0
    assert "exact" in out
    assert out.count("0.00 %") == 2
    record = json.loads(run(QUERY, compare=True)[1])[0]
    assert (record["n_exact"], record["s_relative_error"]) == (2, 0.0)
    # What is no estimate runs as it is.
    assert json.loads(run("SELECT 3 AS three", compare=True)[1]) == [{"three": 3}]


def test_spark_rounding_an_average_is_no_miss(run):
    # Spark gives AVG of these DECIMALs as 0.333333, the estimate is 1/3.
    thirds = "(SELECT id, CAST(id AS DECIMAL(8,2)) - 1 AS d FROM y WHERE m < 400) t"
    _, out, _ = run(f"SELECT APPROXIMATE AVG(d * 0.5) AS a FROM {thirds}", output="table", compare=True)
    assert "yes" in out


def test_quiet_leaves_stderr_empty(run):
    assert run(QUERY, quiet=True)[2] == ""
    assert "exact" in run(QUERY)[2]
    assert "95 % interval" in run(QUERY, settings={"sparse": "false"})[2]


def test_settings_of_the_command_line_reach_the_plan_and_wrong_ones_fail(run):
    code, _, err = run(QUERY, settings={"buckets": "64"})
    assert code == 0
    code, _, err = run(QUERY, settings={"bucket": "64"})
    assert code == 1
    assert "buckets" in err


def test_strict_json_has_no_nan(run):
    _, out, _ = run("SELECT APPROXIMATE AVG(m) AS a FROM x JOIN y ON x.id = y.id WHERE m > 1000")
    assert json.loads(out, parse_constant=lambda c: pytest.fail(f"{c} is no JSON"))[0]["a"] is None
    _, out, _ = run("SELECT double('NaN') AS x, double('Infinity') AS y, CAST(1.50 AS DECIMAL(5,2)) AS d")
    assert json.loads(out, parse_constant=lambda c: pytest.fail(f"{c} is no JSON")) == [
        {"x": None, "y": None, "d": 1.5}
    ]
