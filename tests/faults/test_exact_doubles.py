"""What is exact but for the rounding of doubles says how far that goes, whatever gave it, or shows nine digits that stand."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from support.tables import folded

from skimql import DataError, Settings
from skimql.engine.memory_backend.backend import MemoryBackend
from skimql.engine.memory_backend.run import MemoryRun
from skimql.engine.memory_backend.tables import MemoryTables
from skimql.engine.results.answer import answer_plan
from skimql.engine.results.estimator import SketchJoin
from skimql.optimizer.choose import choose
from skimql.sketches.intervals.rounding import CANCELS, SHOWN, rounded, shown
from skimql.sketches.samples.known_keys import JoinTerms
from skimql.sketches.samples.sample_join import complete_ratio, complete_total

N = 2000
WILD = np.ones(N)
WILD[[0, 1]] = 1e17, -1e17
TAME = np.arange(N) * 0.1 - 20
# In every key what cancels, 2 tuples of b for one of its 4 keys in 5.
K = np.arange(N) // 2 % 5
BIG = np.full(N, 3, np.int64)
BIG[[0, 1]] = 1 << 60, -(1 << 60)
TABLES = {
    "a": pa.table(
        {"k": K, "one": np.zeros(N, np.int64), "x": WILD, "y": TAME, "big": BIG, "f": TAME.astype("f4")}
    ),
    "b": pa.table(
        {"k": [0, 1, 1, 2, 3], "one": np.zeros(5, np.int64), "g": [1, 1, 2, 2, 3], "z": [1.0, 2, 3, 4, 5]}
    ),
    "c": pa.table({"k": [0, 1, 2, 3, 4, 4], "w": [1.0, 1, 1, 1, 1, 1]}),
}
BACKEND = MemoryBackend(MemoryTables(TABLES))
JOINED = "FROM a JOIN b ON a.k = b.k"
ONE_KEY = "FROM a JOIN b ON a.one = b.one"
TIMES = np.array([1, 2, 1, 1, 0])[K]
FSUM = {
    (JOINED, "a.x"): math.fsum(WILD * TIMES),
    (JOINED, "a.y"): math.fsum(TAME * TIMES),
    (ONE_KEY, "a.x"): math.fsum(WILD * 5),
    (ONE_KEY, "a.y"): math.fsum(TAME * 5),
    ("FROM a", "a.x"): math.fsum(WILD),
    ("FROM a", "a.y"): math.fsum(TAME),
    (f"{JOINED} JOIN c ON b.k = c.k", "a.x"): math.fsum(WILD * TIMES),
    (f"{JOINED} JOIN c ON b.k = c.k", "a.y"): math.fsum(TAME * TIMES),
}
WAYS = {
    "maps": ({}, ""),
    "messages": ({}, "SIZE 64 KB"),
    "exact run": (None, ""),
    "counters": ({}, "OPTIONS (sparse = false)"),
    "jvm": ({"route": "jvm"}, "OPTIONS (rows = 11)"),
    "planned": ({"error": 0.05}, ""),
    "sample": ({}, "USING key_sample SIZE 1 MB"),
}


def ask(text, way):
    settings, clause = WAYS[way]
    run = MemoryRun.of(
        f"SELECT APPROXIMATE {text} {clause}", BACKEND, Settings(**{"error": None, **(settings or {})})
    )
    return run.exact() if settings is None else run.answer()


def holds(cell, truth):
    """The interval holds the truth, but for the nine digits of what is shown as exact."""
    slack = SHOWN * abs(truth)
    return cell.low - slack <= truth <= cell.high + slack


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("joined", dict.fromkeys(j for j, _ in FSUM))
def test_sums_of_doubles_that_cancel_hold_the_truth_whatever_gives_them(way, joined):
    if way == "sample" and joined == "FROM a":
        pytest.skip("one table has no key")
    answer = ask(f"SUM(a.x), AVG(a.x), SUM(a.y), SUM(a.x) - SUM(a.y), COUNT(*) {joined}", way)
    wild, mean, tame, less, count = answer.rows[0]
    for cell, truth in (
        (wild, FSUM[joined, "a.x"]),
        (mean, FSUM[joined, "a.x"] / count.value),
        (tame, FSUM[joined, "a.y"]),
        (less, FSUM[joined, "a.x"] - FSUM[joined, "a.y"]),
    ):
        assert holds(cell, truth), (cell, truth)
    assert not wild.exact
    assert not mean.exact
    assert not less.exact
    assert any(CANCELS in n for n in answer.notes)
    assert wild.high - wild.low < 1e-10 * 2e17 * count.value, "and it is no wider than it must be"


@pytest.mark.parametrize("folds", [(0,), (2, 1), (0, 1), (2, 0)])
def test_what_cancels_within_a_message_is_not_lost_to_its_receiver(folds):
    text = "SUM(a.x), AVG(a.x), SUM(a.y), COUNT(*) FROM a JOIN b ON a.k = b.k JOIN c ON b.k = c.k"
    query = MemoryRun.of(f"SELECT APPROXIMATE {text}", BACKEND).query
    plan = choose(query, 1, 11, 64, True, folded(query.graph, *folds))
    built = BACKEND.build(plan)
    wild, mean, tame, count = answer_plan(plan, SketchJoin(plan, built), 0.95).rows[0]
    assert holds(wild, 1998.0)
    assert holds(mean, 1998.0 / count.value)
    assert holds(tame, FSUM[JOINED, "a.y"])
    assert not wild.exact
    assert tame.exact


def test_messages_of_floats_take_their_slack_along_and_others_none():
    query = MemoryRun.of(f"SELECT APPROXIMATE SUM(a.x), SUM(a.big) {JOINED}", BACKEND).query
    built = BACKEND.build(choose(query, 1, 11, 64, True, folded(query.graph, 0)))
    slacks = [b.tally.slack for b in built]
    assert max(slacks) > 100
    assert min(slacks) == 0


def test_groups_and_having_know_what_cancels():
    text = f"b.g, SUM(a.x) AS s, SUM(a.y) AS t {JOINED} GROUP BY b.g HAVING SUM(a.x) > 0 ORDER BY b.g"
    for answer in (ask(text, "maps"), ask(text, "exact run"), ask(text, "planned")):
        sums = {row[0]: row[1:] for row in answer.rows}
        for group, keys in ((1, [1, 1, 0, 0, 0]), (2, [0, 1, 1, 0, 0]), (3, [0, 0, 0, 1, 0])):
            times = np.array(keys)[K]
            wild, tame = sums[group]
            assert holds(wild, math.fsum(WILD * times))
            assert holds(tame, math.fsum(TAME * times))
            assert tame.exact
        assert not sums[1][0].exact
        assert sums[2][0].exact or answer.method != "exact_run", "nothing cancels in the keys of this group"


def test_integers_and_decimals_are_exact_to_the_last_digit_or_have_an_interval():
    cents = [Decimal("90071992547409.93"), Decimal("-90071992547409.92"), Decimal("0.07")] * 3
    tables = {
        "a": pa.table(
            {
                "k": [1, 2, 3] * 3,
                "n": [(1 << 53) + 1, 7, -(1 << 53)] * 3,
                "d": pa.array(cents, pa.decimal128(18, 2)),
                "w": pa.array([d * 10 for d in cents], pa.decimal128(30, 5)),
            }
        ),
        "b": pa.table({"k": [1, 2, 3], "m": [1, 1, 1]}),
    }
    truths = {"SUM(a.n)": 24, "SUM(a.d)": Fraction(24, 100), "AVG(a.n)": Fraction(24, 9)}
    for clause in ("", "USING key_sample SIZE 1 MB", "SIZE 64 KB", "OPTIONS (sparse = false)"):
        text = f"SELECT APPROXIMATE {', '.join(truths)} FROM a JOIN b ON a.k = b.k {clause}"
        answer = MemoryRun.of(text, MemoryBackend(MemoryTables(tables)), Settings(error=None)).answer()
        for cell, truth in zip(answer.rows[0], truths.values(), strict=True):
            assert Fraction(cell.low) <= truth <= Fraction(cell.high), (clause, cell)
            assert not cell.exact or cell.value == truth


def test_sums_that_leave_the_range_of_double_are_no_values():
    huge = pa.table({"k": [1, 1, 1, 1], "x": [1.5e308, 1.5e308, -1.5e308, -1.5e308]})
    tables = MemoryBackend(MemoryTables({"a": huge, "b": pa.table({"k": [1]})}))
    for joined in ("FROM a", "FROM a JOIN b ON a.k = b.k"):
        run = MemoryRun.of(f"SELECT APPROXIMATE SUM(a.x) {joined}", tables, Settings(error=None))
        with pytest.raises(DataError, match="more than a DOUBLE holds"):
            run.answer()
    cell = rounded(math.inf, math.inf)
    assert (cell.low, cell.high, cell.certified) == (-math.inf, math.inf, False)


def test_a_sample_of_all_keys_is_exact_in_whole_numbers_alone():
    def terms(*columns):
        n = len(columns[0])
        return JoinTerms(np.arange(n), np.array(columns, float), np.ones(n), np.zeros((len(columns), 2)))

    assert complete_total(terms([3, -5, 7])).value == 5
    assert (
        complete_total(terms([2.0**53, 1, -(2.0**53)])).low
        <= 1
        <= complete_total(terms([2.0**53, 1, -(2.0**53)])).high
    )
    assert not shown(complete_total(terms([2.0**60, 1.0]))).exact, "a BIGINT has all its digits"
    lost = complete_total(terms([1e17, 0.5, -1e17]))
    assert lost.low <= 0.5 <= lost.high
    assert shown(complete_ratio(terms([1.5, 2.5], [1, 1]))).exact
    assert not shown(complete_ratio(terms([1e17, 0.5, -1e17], [1, 1, 1]))).exact
