"""Queries answered from kept sketches of every kind alone, without Spark."""

from __future__ import annotations

import math

import numpy as np
import pytest
from support.kept import remember
from support.kept_kinds import of_table

from skimql import Session
from skimql.engine.catalog.catalog import Catalog
from skimql.engine.catalog.form import Groups
from skimql.engine.materialized.answering import best, materialized_answers
from skimql.engine.materialized.matching import Asked
from skimql.engine.sources.environment import Circumstances
from skimql.engine.spark.own import OwnSpark
from skimql.parser.statement import parse_statement

RNG = np.random.default_rng(7)
LEFT = (RNG.zipf(1.2, 20_000) % 3_000).astype(np.int64)
RIGHT = RNG.integers(0, 3_000, 10_000)
VALUES = RNG.integers(0, 50, 20_000)
GROUP = RNG.integers(0, 3, 20_000)
COUNTS, SUMS = np.bincount(LEFT, minlength=3_000), np.bincount(LEFT, VALUES, 3_000)
OTHERS = np.bincount(RIGHT, minlength=3_000)
N, S = int(COUNTS @ OTHERS), float(SUMS @ OTHERS)
QUERY = "SELECT APPROXIMATE COUNT(*) AS n, SUM(t.v) AS s, AVG(t.v) AS a FROM t JOIN u ON t.k = u.k"
BY_GROUP = "SELECT APPROXIMATE t.g, COUNT(*) AS n, SUM(t.v) AS s FROM t JOIN u ON t.k = u.k GROUP BY t.g"

# Counters or samples, and whether they are exact.
SIZES = {
    "hash": {"rows": 11, "buckets": 512, "limit_bytes": 0},
    "agms": {"rows": 11, "buckets": 128, "limit_bytes": 0},
    "skimmed": {"rows": 11, "buckets": 512, "parameters": (("domain_bits", 12), ("level_buckets", 128), ("level_rows", 5))},
    "key_sample": {"rows": 1, "buckets": 1_000},
    "two_level": {"rows": 1, "buckets": 1_000, "parameters": (("dense", 2),)},
}  # fmt: skip
GROUPS = Groups(("`g`",), ("bigint",), (("0",), ("1",), ("2",)), ())


def left(method, grouped=False, name="a", **changes):
    by = (GROUP, GROUPS) if grouped else ()
    return of_table(name, method, "t", {"k": LEFT}, VALUES, *by, **{**SIZES[method], **changes})


def right(method, name="b", **changes):
    return of_table(name, method, "u", {"k": RIGHT}, None, **{**SIZES[method], **changes})


@pytest.fixture
def asked(monkeypatch):
    """A session on some kept sketches for which asking for Spark fails the test."""

    def make(*sketches):
        monkeypatch.setattr(Session, "spark", property(lambda self: pytest.fail("Spark was asked for")))
        monkeypatch.setattr(OwnSpark, "running", lambda self: None)
        return Session(catalog=remember(Catalog(), *sketches))

    return make


@pytest.mark.parametrize("method", SIZES)
def test_every_kind_answers_counts_sums_and_averages(asked, method):
    answer = asked(left(method), right(method)).sql(QUERY)
    for cell, truth in zip(answer.rows[0], (N, S, S / N), strict=True):
        # Half as wide again: one interval in twenty misses.
        slack = (cell.high - cell.low) / 4
        assert cell.low - slack <= truth <= cell.high + slack
        assert math.isnan(cell.value) or abs(cell.value - truth) < 0.35 * truth
    assert answer.notes[0].startswith("from the kept sketches a (as of")
    assert answer.method == method


def test_hash_sketches_alone_are_no_sample_sketch(asked):
    with pytest.raises(pytest.fail.Exception, match="Spark was asked for"):
        asked(left("hash"), right("hash")).sql(f"{QUERY} USING sample_sketch")


@pytest.mark.parametrize("method", SIZES)
def test_every_kind_answers_group_by(asked, method):
    answer = asked(left(method, grouped=True), right(method)).sql(BY_GROUP)
    assert [row[0] for row in answer.rows] == [0, 1, 2]
    for group, n, _ in answer.rows:
        truth = int(np.bincount(LEFT[group == GROUP], minlength=3_000) @ OTHERS)
        assert n.low <= truth <= n.high


@pytest.mark.parametrize("method", ["key_sample", "two_level"])
def test_samples_of_all_keys_are_exact(asked, method):
    answer = asked(left(method, buckets=5_000), right(method, buckets=5_000)).sql(QUERY)
    assert [c.value for c in answer.rows[0]] == [N, S, pytest.approx(S / N)]
    assert all(c.exact for c in answer.rows[0])


@pytest.mark.parametrize("method", SIZES)
def test_sketches_of_another_method_or_size_than_the_statement_says_are_not_used(asked, method):
    session = asked(left(method), right(method))
    assert session.sql(f"{QUERY} USING {method}").rows
    nbytes = left(method).head.nbytes + right(method).head.nbytes
    assert session.sql(f"{QUERY} SIZE {nbytes}").rows
    other = next(m for m in SIZES if m != method)
    for clause in (f"USING {other}", f"SIZE {nbytes - 1}"):
        with pytest.raises(pytest.fail.Exception, match="Spark was asked for"):
            session.sql(f"{QUERY} {clause}")


def test_sketches_with_groups_answer_no_question_without_them_and_the_other_way_round(asked):
    with pytest.raises(pytest.fail.Exception, match="Spark was asked for"):
        asked(left("hash", grouped=True), right("hash")).sql(QUERY)
    with pytest.raises(pytest.fail.Exception, match="Spark was asked for"):
        asked(left("hash"), right("hash")).sql(BY_GROUP)
    with pytest.raises(pytest.fail.Exception, match="Spark was asked for"):
        asked(left("hash", grouped=True), right("hash")).sql(BY_GROUP.replace("t.g", "t.v"))


def test_of_several_kinds_the_narrowest_answers(asked):
    session = asked(
        left("hash", buckets=64),
        right("hash", buckets=64),
        left("two_level", name="c"),
        right("two_level", name="d"),
    )
    query = session.typed(session._resolved(parse_statement(QUERY)))
    heads, now = session.catalog.heads(), Circumstances(True, "UTC")
    found = materialized_answers(query, heads, Asked(), now)
    assert {f.method for f in found} == {"hash", "two_level"}
    assert all(f.nbytes == sum(h.nbytes for h in f.heads) for f in found)
    widths = {f.method: f.half_width(f.joined(session.catalog.load), 0.95) for f in found}
    taken, joined = best(found, session.catalog.load, 0.95)
    assert widths[taken.method] == min(widths.values()) < max(widths.values())
    assert list(joined) == [()]
    assert taken.heads[0].name in session.sql(QUERY).notes[0]
    assert "no scan, from the kept sketches" in session.sql(f"EXPLAIN {QUERY}").value


def test_a_table_joined_with_itself_is_answered_too(asked):
    truth = int(COUNTS @ COUNTS)
    for method in SIZES:
        n = asked(left(method)).sql("SELECT APPROXIMATE COUNT(*) FROM t a JOIN t b ON a.k = b.k").rows[0][0]
        assert n.low <= truth <= n.high, method


def values(name, method, table, columns, **changes):
    sizes = {"rows": 32, "buckets": 256} if method == "distinct" else {"rows": 64, "buckets": 4_096}
    return of_table(name, method, table, columns, None, **{**sizes, "limit_bytes": 0, **changes})


def test_distinct_values_are_counted_from_level_sketches(asked):
    session = asked(
        values("a", "distinct", "t", {"k": LEFT}),
        values("b", "distinct", "u", {"k": RIGHT}),
        of_table("g", "distinct", "t", {"k": LEFT}, None, GROUP, GROUPS, rows=32, buckets=256, limit_bytes=0),
    )
    here, there = set(LEFT.tolist()), set(RIGHT.tolist())
    questions = {
        "SELECT APPROXIMATE COUNT(DISTINCT k) FROM t": len(here),
        "SELECT APPROXIMATE COUNT(DISTINCT t.k) FROM t JOIN u ON t.k = u.k": len(here & there),
        "SELECT APPROXIMATE COUNT(DISTINCT k) FROM (SELECT k FROM t EXCEPT SELECT k FROM u)": len(here - there),
        "SELECT APPROXIMATE COUNT(DISTINCT k) FROM (SELECT k FROM t UNION SELECT k FROM u) USING distinct": len(here | there),
    }  # fmt: skip
    for question, truth in questions.items():
        cell = session.sql(question).rows[0][0]
        assert cell.low <= truth <= cell.high, question
    for group, cell in session.sql("SELECT APPROXIMATE g, COUNT(DISTINCT k) AS n FROM t GROUP BY g").rows:
        assert cell.low <= len(set(LEFT[group == GROUP].tolist())) <= cell.high


def test_distinct_pairs_are_counted_from_pair_samples(asked):
    a, c = LEFT % 40, RIGHT % 30
    session = asked(
        values("ra", "join_distinct", "t", {"l": a, "k": LEFT}),
        values("sc", "join_distinct", "u", {"g": c, "k": RIGHT}),
        values("la", "distinct", "t", {"l": a}),
        values("lc", "distinct", "u", {"g": c}),
    )
    cell = session.sql("SELECT APPROXIMATE COUNT(DISTINCT t.l, u.g) FROM t JOIN u ON t.k = u.k").rows[0][0]
    both = set(LEFT.tolist()) & set(RIGHT.tolist())
    sides = {k: ({x % 40 for x in (k,)}, {x % 30 for x in (k,)}) for k in both}
    truth = len(
        {(x, y) for left_values, right_values in sides.values() for x in left_values for y in right_values}
    )
    assert cell.low <= truth <= cell.high
