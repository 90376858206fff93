"""Spark's own sums of doubles, and those of its messages and groups, say how far the order of the tuples decides them."""

from __future__ import annotations

import pytest
from support.tables import register

from skimql import AccuracyNotReached
from skimql.sketches.intervals.rounding import CANCELS

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("as_users_have_it")]

# As many as it takes that Spark loses some; the exact sums of x are 1,998 and 798 of the keys that join.
WILD = [1e17, *[1.0] * 9, -1e17, *[1.0] * 1989]
BIG = [int(x) if abs(x) > 1 else 3 for x in WILD]
JOINED = "FROM d JOIN o ON d.k = o.k"


@pytest.fixture
def tables(session):
    rows = [(i % 5, x, i * 0.1 - 20, b, i) for i, (x, b) in enumerate(zip(WILD, BIG, strict=True))]
    register(
        session, d=("k INT, x DOUBLE, y FLOAT, big BIGINT, n INT", rows), o=("k INT, g INT", [(0, 1), (1, 2)])
    )
    return session


def test_the_exact_run_tells_what_cancels_and_nothing_else(tables):
    text = f"""SUM(d.x) AS "FROM", SUM(d.x) FILTER (WHERE d.n > 20) AS f, -- FROM here
        AVG(d.x /* ) */), SUM(d.x) / COUNT(*), AVG(d.big), SUM(d.big), SUM(d.y), AVG(d.n), SUM(d.n) {JOINED}"""
    text = text.replace('"FROM"', "`FROM`")
    tables.sql("SET skimql.error = 0.05")
    answer = tables.sql(f"SELECT APPROXIMATE {text}")
    assert answer.method == "exact_run"
    wild, part, mean, ratio, average, *known = answer.rows[0]
    for cell, truth in ((wild, 798.0), (mean, 798 / 800), (ratio, 798 / 800), (average, 2394 / 800)):
        assert cell.low <= truth <= cell.high
        assert not cell.exact
    assert (part.value, part.exact) == (791.0, True)
    assert all(c.exact for c in known)
    assert sum(CANCELS in n for n in answer.notes) == 1
    assert answer.columns[0] == "FROM"
    (plain,) = tables.sql(f"EXACT SELECT {text}").rows
    assert [c.value for c in answer.rows[0][5:]] == list(plain[5:])


def test_columns_of_one_name_and_means_of_text_are_told_apart(tables):
    tables.sql("SET skimql.error = 0.05")
    text = f"AVG(CAST(d.n AS STRING)) AS a, AVG(d.n) AS a, AVG(d.x) AS a, COUNT(*) AS a {JOINED}"
    answer = tables.sql(f"SELECT APPROXIMATE {text}")
    assert (answer.method, answer.columns) == ("exact_run", ("a", "a_2", "a_3", "a_4"))
    texts, whole, wild, count = answer.rows[0]
    assert texts.value == whole.value == 998
    assert (whole.exact, wild.exact, count.value) == (True, False, 800)


def test_integers_that_cancel_have_a_mean_with_all_its_digits(tables):
    """Of absolute values below 2^52 no order of adding loses any; as doubles their sum could be off by hundreds."""
    tables.sql("SET skimql.error = 0.05")
    mean = tables.sql(f"SELECT APPROXIMATE AVG(CAST(d.x / 100 AS BIGINT) + 3) {JOINED}").estimate
    assert (mean.value, mean.exact) == (3.0, True)


def test_groups_keep_their_order_and_have_intervals_of_their_own(tables):
    text = (
        f"o.g, SUM(d.x) * o.g AS s, SUM(d.y) {JOINED} GROUP BY 1 HAVING COUNT(*) > 5 ORDER BY 1 DESC LIMIT 7"
    )
    tables.sql("SET skimql.error = 0.05")
    answer = tables.sql(f"SELECT APPROXIMATE {text}")
    assert [row[0] for row in answer.rows] == [2, 1]
    assert answer.rows[0][1].exact
    assert not answer.rows[1][1].exact
    assert answer.rows[1][1].low <= 398 <= answer.rows[1][1].high
    assert all(row[2].exact for row in answer.rows)


def test_an_asked_error_that_no_order_of_adding_reaches_is_missed(tables):
    strict = f"SELECT APPROXIMATE SUM(d.x) {JOINED} ERROR WITHIN 5% BEHAVIOR 'strict'"
    with pytest.raises(AccuracyNotReached) as caught:
        tables.sql(strict)
    assert "DECIMAL(38, 6)" in caught.value.hint
    found = tables.sql(strict.replace("d.x", "CAST(d.x AS DECIMAL(38, 6))"))
    assert (float(found.value), found.estimate.exact) == (798.0, True)


@pytest.mark.parametrize("clause", ["", "USING key_sample SIZE 1 MB", "OPTIONS (sparse = false)"])
def test_synopses_on_spark_tell_it_too(tables, clause):
    tables.sql("SET skimql.error = none")
    wild, tame, count = tables.sql(f"SELECT APPROXIMATE SUM(d.x), SUM(d.y), COUNT(*) {JOINED} {clause}").rows[
        0
    ]
    assert wild.low <= 798 <= wild.high
    assert wild.high - wild.low > 100
    assert tame.high - tame.low <= 1e-8 * tame.value
    assert count.low == count.high == 800


def test_messages_of_spark_take_it_along(tables):
    tables.sql("SET skimql.error = none")
    tables.sql("SET skimql.route = arrow")
    from support.tables import folded

    from skimql.engine.execution.build import build
    from skimql.engine.results.answer import answer_plan
    from skimql.engine.results.estimator import SketchJoin
    from skimql.engine.sources.keys import with_key_types
    from skimql.optimizer.choose import choose
    from skimql.parser.statement import parse_statement

    query = tables._resolved(parse_statement(f"SELECT APPROXIMATE SUM(d.x), SUM(d.y), SUM(d.n) {JOINED}"))
    query = with_key_types(query, tables.tables, True)
    plan = choose(query, 1, 11, 64, True, folded(query.graph, 0))
    wild, tame, whole = answer_plan(
        plan, SketchJoin(plan, build(tables.spark, plan, tables.tables)), 0.95
    ).rows[0]
    assert wild.low <= 798 <= wild.high
    assert not wild.exact
    assert tame.exact
    assert whole.exact
