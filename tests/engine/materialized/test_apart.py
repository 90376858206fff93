"""Synopses of each table by itself: by every method, with groups, within the asked size, kept and found again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from support.tables import register

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
    (f"{SUMS}, SUM(r.stars) AS z, SUM(o.paid + r.stars) AS y {CHAIN}", "USING sample_sketch SIZE 5 KB", "sample_sketch"),
    (f"{SUMS} {CHAIN}", "SIZE 5 KB", "sample_sketch"),
    ("COUNT(*) AS n FROM clicks c JOIN clicks d ON c.user = d.user JOIN orders o ON d.user = o.user", "SIZE 9 KB", "key_sample"),
    (f"o.shop, {SUMS} {TWO} GROUP BY o.shop", "USING hash", "hash"),
    (f"o.shop, c.day, {SUMS} {TWO} GROUP BY o.shop, c.day ORDER BY n", "USING key_sample SIZE 60 KB", "key_sample"),
    (f"c.day, {SUMS} {CHAIN} GROUP BY c.day HAVING COUNT(*) > 5", "USING sample_sketch SIZE 9 KB", "sample_sketch"),
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
        assert (0 if "GROUP" in question else asked / 8) < answer.bytes_used <= asked


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
    f"SELECT APPROXIMATE {SUMS} {CHAIN} USING sample_sketch SIZE 12 KB",
    f"SELECT APPROXIMATE o.shop, COUNT(*) AS n {TWO} GROUP BY o.shop USING hash",
)


def test_what_a_query_has_kept_answers_the_next_one(session):
    kinds = {"clicks": "user BIGINT, day BIGINT", "orders": "user BIGINT, item BIGINT, paid BIGINT, shop STRING",
             "reviews": "item BIGINT, stars BIGINT"}  # fmt: skip
    rows = {n: [tuple(r.values()) for r in t.slice(0, 400).to_pylist()] for n, t in TABLES.items()}
    register(session, **{n: (kinds[n], rows[n]) for n in TABLES})
    session.settings = replace(session.settings, cache=True)
    for question in QUESTIONS:
        first, again = session.sql(question), session.sql(question)
        assert again.notes[0].startswith("from the kept sketches cached_")
        assert (again.rows, again.method) == (first.rows, first.method)
    heads = session.catalog.heads()
    assert {h.method for h in heads} == {"agms", "sample_sketch", "hash"}
    assert {h.made_by for h in heads} == {"cache"}
    assert "no scan, from the kept sketches" in session.sql(f"EXPLAIN {QUESTIONS[1]}").value
    # A table that another query shares is not read again, and what depends on the day is not kept.
    told = session.sql(f"SELECT APPROXIMATE COUNT(*) {TWO} WHERE o.paid < length(current_date()) USING agms")
    assert "the sketch of orders is not kept: CURRENT_DATE has another value tomorrow" in told.notes
    assert session.catalog.heads() == heads


def test_groups_that_miss_the_error_are_run_exactly_where_that_is_asked():
    asked = "ERROR WITHIN 1% BEHAVIOR 'partial_run_on_base_table' USING sample_sketch SIZE 12 KB"
    sql = f"SELECT APPROXIMATE c.day, o.shop, COUNT(*) AS n {CHAIN} GROUP BY o.shop, c.day {asked}"
    run = MemoryRun.of(sql, BACKEND, Settings())
    answer = run.answer()
    assert any("run exactly" in n for n in answer.notes)
    truths = {row[:2]: row[2].value for row in run.exact().rows}
    assert {row[:2] for row in answer.rows if row[2].exact and row[2].value == truths[row[:2]]}


@pytest.mark.parametrize("groups", ["", "GROUP BY t0.h"])
@pytest.mark.parametrize("clause", ["", "USING sample_sketch", "USING convolution"])
@pytest.mark.parametrize(
    "joins",
    [
        # One key in two classes: the type of l + 1 is not known when classes are made, and s is compared as text.
        "t0.l + 1 = t1.k JOIN b t2 ON t1.k = t2.l",
        "t0.l + 1 = t1.k JOIN b t2 ON t1.k = t2.l + 1 JOIN a t3 ON t1.k = t3.h",
        "t0.h = t1.k JOIN b t2 ON t1.k = t2.s",
    ],
)
def test_one_key_may_be_of_several_classes(joins, clause, groups):
    rng = np.random.default_rng(1)

    def table(tuples):
        k, l, h = (rng.integers(0, n, tuples) for n in (9, 9, 3))  # noqa: E741
        return pa.table({"k": k, "l": l, "h": h, "s": [str(x) for x in l], "v": rng.integers(0, 9, tuples)})

    backend = MemoryBackend(MemoryTables({"a": table(50), "b": table(60)}))
    named = "t0.h, " if groups else ""
    text = f"SELECT APPROXIMATE {named}COUNT(*) AS n, SUM(t2.v) AS v FROM a t0 JOIN b t1 ON {joins} {groups} {clause}"
    answer = MemoryRun.of(text, backend, Settings(cache=True)).answer()
    exact = {str(row[:-2]): row[-2:] for row in MemoryRun.of(text, backend).exact().rows}
    for row in answer.rows:
        for cell, truth in zip(row[-2:], exact[str(row[:-2])], strict=True):
            assert cell.low <= truth.value <= cell.high
