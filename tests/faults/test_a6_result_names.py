"""The user's result names stand; ours take the next free one, ignoring case, the same in every format."""

from __future__ import annotations

import csv
import io
import json

import pytest

from skimql import Answer, Estimate
from skimql.cli.formats import FORMATS
from skimql.cli.render import render
from skimql.engine.results.columns import Names, unique


def estimate(value):
    return Estimate(value, value - 1, value + 1, 0.95, True, "theorem")


def answer(*names, **changes):
    return Answer(names, (tuple(estimate(10.0 + i) for i in range(len(names))),), **changes)


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        (("n", "n_low"), ["n", "n_low_2", "n_high", "n_low", "n_low_low", "n_low_high", "confidence", "certified"]),
        (("confidence", "certified"), ["confidence", "confidence_low", "confidence_high", "certified", "certified_low", "certified_high", "confidence_2", "certified_2"]),
        (("n", "n"), ["n", "n_low", "n_high", "n_2", "n_2_low", "n_2_high", "confidence", "certified"]),
        (("n", "N", "n_2"), ["n", "n_low", "n_high", "N_3", "N_3_low", "N_3_high", "n_2", "n_2_low", "n_2_high", "confidence", "certified"]),
        (("x", "X_LOW", "x_low_2"), ["x", "x_low_3", "x_high", "X_LOW", "X_LOW_low", "X_LOW_high", "x_low_2", "x_low_2_low", "x_low_2_high", "confidence", "certified"]),
        (("Certified",), ["Certified", "Certified_low", "Certified_high", "confidence", "certified_2"]),
    ],
)  # fmt: skip
def test_names_are_free_in_every_format(names, shown):
    result = answer(*names)
    assert list(result.names) == shown
    assert list(result.records()[0]) == shown
    assert result.arrow().column_names == shown
    assert list(result.toPandas().columns) == shown
    by_name = dict(zip(result.names, [c.values[0] for c in result.result], strict=True))
    for i, name in enumerate(unique(names)[0]):
        assert by_name[name] == 10.0 + i
    for output, separator in (("csv", ","), ("tsv", "\t")):
        out = io.StringIO()
        render(result, output, out)
        assert next(csv.reader(io.StringIO(out.getvalue()), delimiter=separator)) == shown
    out = io.StringIO()
    render(result, "json", out)
    assert list(json.loads(out.getvalue())[0]) == shown


def test_uncertain_and_exact_columns_give_way_too():
    result = answer("uncertain", "n", "n_exact", uncertain=(True,), compared=((1, 2, 3),))
    record = result.records()[0]
    assert (record["uncertain"], record["uncertain_2"], record["n_exact"], record["n_exact_2"]) == (
        10.0,
        True,
        12.0,
        2,
    )
    shown = answer("uncertain", uncertain=(True,)).grid()
    assert shown.header == ("uncertain", "uncertain_2")
    assert shown.rows == (("10.0 ± 1.0", "yes"),)


def test_no_column_of_plain_rows_is_lost():
    result = Answer(("a", "a", "A"), ((1, 2, 3),), exact=True)
    assert result.records() == [{"a": 1, "a_2": 2, "A_3": 3}]
    assert result.arrow().to_pylist() == result.records()
    for output in FORMATS:
        out = io.StringIO()
        render(result, output, out)
        assert {"1", "2", "3"} <= set(
            out.getvalue().replace(",", " ").replace("}", " ").replace("]", " ").split()
        )


def test_an_answer_without_rows_has_the_same_columns():
    empty = Answer(("n", "n_low"), (), aggregated=(True, False))
    assert empty.names == ("n", "n_low_2", "n_high", "n_low", "confidence", "certified")
    assert empty.arrow().column_names == list(empty.names)


def test_a_name_is_handed_out_once():
    names = Names({"n"})
    assert [names.free(n) for n in ("n", "N", "n_2", "m")] == ["n_2", "N_3", "n_2_2", "m"]


@pytest.mark.spark
def test_names_of_queries(session, spark):
    session.table("a", spark.sql("SELECT id AS k, id AS y FROM range(3)"))
    join = "FROM a JOIN a b ON a.k = b.k"
    found = session.sql(
        f"SELECT APPROXIMATE COUNT(*) AS n, SUM(a.y) AS n_low, SUM(a.y) AS n, COUNT(*) AS n_2 {join}"
    ).records()[0]
    assert (found["n"], found["n_low"], found["n_3"], found["n_2"], found["n_low_2"]) == (3, 3, 3, 3, 3.0)
    groups = f"SELECT APPROXIMATE a.y AS confidence, COUNT(*) AS certified, COUNT(*) AS uncertain {join} GROUP BY a.y ORDER BY a.y LIMIT 2"
    grouped = session.sql(groups)
    # The same columns where it is run exactly, as is cheapest for a session that aims at an error.
    session.sql("SET skimql.error = 0.05")
    for answer in (grouped, exactly := session.sql(groups)):
        assert [(r["confidence"], r["certified"], r["certified_2"], r["uncertain_2"]) for r in answer] == [
            (0, 1, True, False),
            (1, 1, True, False),
        ]
    assert (grouped.method, exactly.method) == ("hash", "exact_run")
    assert exactly.names == (*grouped.names, "target")
    assert grouped.df.columns == list(grouped.names)
    exact = session.sql("EXACT SELECT 1 AS n, 2 AS n, 3 AS plan")
    assert exact.records() == [{"n": 1, "n_2": 2, "plan": 3}]
    out = io.StringIO()
    render(spark.sql("SELECT 1 AS n, 2 AS n"), "json", out)
    assert json.loads(out.getvalue()) == [{"n": 1, "n_2": 2}]
    for sql in ("EXACT SELECT 7 AS plan", "SELECT APPROXIMATE COUNT(*) AS plan FROM a"):
        out = io.StringIO()
        render(session.sql(sql), "table", out)
        assert out.getvalue().split()[0] == "plan"
