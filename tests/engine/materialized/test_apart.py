"""Synopses of each table by itself: by every method, with groups, within the asked size, kept and found again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from support.tables import register

from skimql import Session, SkimqlError
from skimql.engine.materialized.apart import bytes_of, fitted
from skimql.engine.memory_backend.backend import MemoryBackend
from skimql.engine.memory_backend.run import MemoryRun
from skimql.engine.memory_backend.tables import MemoryTables
from skimql.engine.settings import Settings
from skimql.optimizer.apart import TableSynopsis
from skimql.optimizer.physical import ApartJoin
from skimql.optimizer.plan import Attribute, Weight

DRAW = np.random.default_rng(5)
TABLES = {
    "clicks": pa.table({"user": DRAW.integers(0, 500, 3_000), "day": DRAW.integers(0, 3, 3_000)}),
    "orders": pa.table(
        {
            "user": DRAW.integers(0, 500, 2_000),
            "item": DRAW.integers(0, 700, 2_000),
            "paid": DRAW.integers(1, 100, 2_000),
            "shop": np.array(["a", "b"])[DRAW.integers(0, 2, 2_000)],
        }
    ),
    "reviews": pa.table({"item": DRAW.integers(0, 700, 3_000), "stars": DRAW.integers(1, 6, 3_000)}),
}
BACKEND = MemoryBackend(MemoryTables(TABLES))
TWO = "FROM clicks c JOIN orders o ON c.user = o.user"
CHAIN = f"{TWO} JOIN reviews r ON o.item = r.item"
SUMS = "COUNT(*) AS n, SUM(o.paid) AS s, AVG(o.paid) AS a"
SETS = "SELECT user AS k FROM clicks INTERSECT SELECT user AS k FROM orders"

# A question, a clause, and the method that answers.
ASKED = [
    (f"{SUMS} {TWO}", "USING agms", "agms"),
    (f"{SUMS} {TWO}", "USING skimmed", "skimmed"),
    (f"{SUMS} {TWO}", "USING key_sample SIZE 20 KB", "key_sample"),
    (f"{SUMS} {TWO}", "USING two_level SIZE 20 KB", "two_level"),
    (f"{SUMS}, SUM(r.stars) AS z, SUM(o.paid + r.stars) AS y {CHAIN}", "USING sample_sketch SIZE 40 KB", "sample_sketch"),
    (f"{SUMS} {CHAIN}", "SIZE 40 KB", "sample_sketch"),
    (f"COUNT(*) AS n FROM clicks c JOIN clicks d ON c.user = d.user JOIN orders o ON d.user = o.user", "SIZE 9 KB", "key_sample"),
    (f"o.shop, {SUMS} {TWO} GROUP BY o.shop", "USING hash", "hash"),
    (f"o.shop, c.day, {SUMS} {TWO} GROUP BY o.shop, c.day ORDER BY n", "USING key_sample SIZE 60 KB", "key_sample"),
    (f"c.day, {SUMS} {CHAIN} GROUP BY c.day HAVING COUNT(*) > 5", "USING sample_sketch SIZE 90 KB", "sample_sketch"),
    ("shop, COUNT(*) AS n, SUM(paid) AS s FROM orders GROUP BY shop", "", "total"),
    (f"COUNT(DISTINCT o.user) AS d {TWO}", "", "distinct"),
    (f"COUNT(DISTINCT o.item, c.day) AS d {TWO}", "", "join_distinct"),
    ("shop, COUNT(DISTINCT item) AS d FROM orders GROUP BY shop", "", "distinct"),
    (f"COUNT(DISTINCT k) AS d FROM ({SETS})", "", "distinct"),
]  # fmt: skip


def run_of(sql, **settings):
    return MemoryRun.of(sql, BACKEND, replace(Settings(), cache=True, **settings))


@pytest.mark.parametrize(("question", "clause", "method"), ASKED, ids=[f"{c} {q}"[:60] for q, c, _ in ASKED])
def test_every_method_answers_by_synopses_of_each_table_by_itself(question, clause, method):
    run = run_of(f"SELECT APPROXIMATE {question} {clause}")
    plan, answer = run.plan(), run.answer()
    assert isinstance(plan.attempt, ApartJoin)
    assert (answer.method, plan.method) == (method, method)
    truths = {tuple(c for c in row if not hasattr(c, "low")): row for row in run.exact().rows}
    found = {tuple(c for c in row if not hasattr(c, "low")): row for row in answer.rows}
    assert found.keys() == truths.keys()
    for group, row in found.items():
        for cell, truth in zip(row, truths[group], strict=True):
            if hasattr(cell, "low"):
                # Half as wide again: of so many intervals some miss.
                slack = (cell.high - cell.low) / 4 + 1e-9 * abs(cell.value)
                assert cell.low - slack <= truth.value <= cell.high + slack, (group, cell)
    if "SIZE" in clause:
        asked = int(clause.split("SIZE ")[1].split()[0]) << 10
        assert (0 if "GROUP" in question else asked / 2) < answer.bytes_used <= asked


@pytest.mark.parametrize(
    ("question", "settings", "code", "why"),
    [
        (f"COUNT(DISTINCT o.item) {TWO}", {}, "SKIMQL_CLAUSE", "behind an exact message of clicks"),
        (f"COUNT(*) {CHAIN} USING skimmed", {}, "SKIMQL_CLAUSE", "join two tables on one key"),
        (f"COUNT(*) {TWO} USING key_sample OPTIONS (buckets = 64)", {}, "SKIMQL_CLAUSE", "no rows and buckets"),
        (f"COUNT(*) {CHAIN} USING sample_sketch OPTIONS (rows = 5)", {"cache": False}, "SKIMQL_CLAUSE", "no rows and buckets"),
        (f"SUM(CAST(o.paid AS DOUBLE)) {TWO} USING key_sample", {}, "SKIMQL_WEIGHT_TYPE", "keeps integers"),
        (f"COUNT(*) {TWO} USING agms", {"max_bytes": 1 << 10}, "SKIMQL_MAX_BYTES", "more than skimql.max_bytes"),
        (f"COUNT(*) {TWO} SIZE 200 USING skimmed", {}, "SKIMQL_BUDGET_EXCEEDED", "too few"),
        (f"COUNT(*) {TWO} USING key_sample", {"route": "jvm"}, "SKIMQL_ROUTE", "Python workers make it"),
    ],
)  # fmt: skip
def test_what_cannot_be_kept_is_refused_with_the_reason(question, settings, code, why):
    with pytest.raises(SkimqlError, match=why) as caught:
        MemoryRun.of(
            f"SELECT APPROXIMATE {question}", BACKEND, replace(Settings(), **{"cache": True, **settings})
        ).answer()
    assert (caught.value.code, bool(caught.value.hint)) == (code, True)


def test_sizes_fit_in_what_is_asked_and_exact_maps_beside_samples_stay():
    key = Attribute(("`k`",), ("bigint",), "k")
    hash_map = TableSynopsis("t", None, (key,), (Weight(),), "hash", 11, 100)
    sample = replace(hash_map, method="sample_sketch", rows=1, buckets=3_000)

    def number(synopsis):
        return 1

    size = 8 * 11 * 100 + 20_000
    made = fitted((sample, hash_map), Settings(size_bytes=size), number, "")
    assert made[1] == hash_map
    assert 0.9 * size < bytes_of(made, number) <= size
    (smaller,) = fitted((replace(hash_map, method="skimmed"),), Settings(size_bytes=60_000), number, "")
    assert smaller.buckets < 100
    assert dict(smaller.parameters)["level_buckets"] < 512


QUESTIONS = (
    f"SELECT APPROXIMATE {SUMS} {TWO} USING agms",
    f"SELECT APPROXIMATE {SUMS} {TWO} USING two_level SIZE 4 KB",
    f"SELECT APPROXIMATE {SUMS} {CHAIN} USING sample_sketch SIZE 12 KB",
    f"SELECT APPROXIMATE o.shop, c.day, COUNT(*) AS n {TWO} GROUP BY o.shop, c.day SIZE 12 KB",
    f"SELECT APPROXIMATE COUNT(DISTINCT o.user) AS d {TWO}",
)


def test_what_a_query_has_kept_answers_the_next_one_without_a_scan(session, monkeypatch):
    kinds = {"clicks": "user BIGINT, day BIGINT", "orders": "user BIGINT, item BIGINT, paid BIGINT, shop STRING",
             "reviews": "item BIGINT, stars BIGINT"}  # fmt: skip
    register(session, **{n: (kinds[n], [tuple(r.values()) for r in t.slice(0, 400).to_pylist()]) for n, t in TABLES.items()})
    session.settings = replace(session.settings, cache=True, error=0.05)
    first = [session.sql(q) for q in QUESTIONS]
    heads = session.catalog.heads()
    assert {h.method for h in heads} >= {"agms", "two_level", "sample_sketch", "distinct"}
    assert any(h.groups is not None for h in heads)
    assert {h.made_by for h in heads} == {"cache"}
    session.sql("EXPLAIN " + QUESTIONS[2]).value.index("no scan, from the kept sketches")
    monkeypatch.setattr(Session, "spark", property(lambda self: pytest.fail("Spark was asked for")))
    for question, before in zip(QUESTIONS, first, strict=True):
        again = session.sql(question)
        assert again.notes[0].startswith("from the kept sketches")
        assert (again.rows, again.method) == (before.rows, before.method)
    monkeypatch.undo()
    # A table that another query shares is not read again, and what depends on the day is not kept.
    session.sql(f"{QUESTIONS[0]} SEED 3")
    number = len(session.catalog.heads())
    told = session.sql(
        f"SELECT APPROXIMATE COUNT(*) {TWO} WHERE o.paid < length(current_date()) USING agms SEED 3"
    )
    assert "the sketch of orders is not kept: CURRENT_DATE has another value tomorrow" in told.notes
    assert len(session.catalog.heads()) == number
