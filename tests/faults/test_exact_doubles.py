"""What is exact but for the rounding of doubles says how far that goes, whatever gave it, or shows nine digits that stand."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from skimql import Settings
from skimql.engine.memory_backend.backend import MemoryBackend
from skimql.engine.memory_backend.run import MemoryRun
from skimql.engine.memory_backend.tables import MemoryTables
from skimql.sketches.intervals.interval import Estimate
from skimql.sketches.intervals.rounding import CANCELS, MANY, SHOWN, rounded, shown, slack_of, widened
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
    "a": pa.table({"k": K, "one": np.zeros(N, np.int64), "x": WILD, "y": TAME, "big": BIG, "f": TAME.astype("f4")}),
    "b": pa.table({"k": [0, 1, 1, 2, 3], "one": np.zeros(5, np.int64), "g": [1, 1, 2, 2, 3], "z": [1.0, 2, 3, 4, 5]}),
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
    run = MemoryRun.of(f"SELECT APPROXIMATE {text} {clause}", BACKEND, Settings(**{"error": None, **(settings or {})}))
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
