"""Samples with the groups of what hangs behind their keys, in memory against a plain join."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from support.theory import most_misses

from skimql import Settings
from skimql.engine.execution.sample_tree import Grouped
from skimql.engine.memory_backend.backend import MemoryBackend
from skimql.engine.memory_backend.run import MemoryRun
from skimql.engine.memory_backend.tables import MemoryTables
from skimql.optimizer.choose import ClassSample, choose

RNG = np.random.default_rng(3)
BACKEND = MemoryBackend(
    MemoryTables(
        {
            n: pa.table({c: RNG.integers(0, m, 300) for c, m in (("k", 40), ("l", 30), ("g", 3))})
            for n in "abc"
        }
    )
)


def test_combinations_of_groups_are_told_apart_and_add_up():
    keys, groups = np.array([1, 1, 2, 2]), np.array([[0, 1, 0, 1]])
    found = Grouped(keys, np.array([[2.0, 3.0, 5.0, 7.0]]), groups, (0,))
    parts = found.of_groups()
    assert {n: p.weights.tolist() for n, p in parts.items()} == {(0,): [[2.0, 5.0]], (1,): [[3.0, 7.0]]}
    assert found.whole().weights.tolist() == [[5.0, 12.0]]


@pytest.mark.parametrize("by", ["a.g", "c.g", "a.g, c.g", "b.g, c.g", "a.g, b.g, c.g"])
def test_all_keys_give_the_join_of_every_group(by):
    sql = f"SELECT APPROXIMATE {by}, COUNT(*) n FROM a JOIN b ON a.k = b.k JOIN c ON b.l = c.l GROUP BY {by}"
    run = MemoryRun.of(sql, BACKEND)
    exact = Counter({tuple(row[:-1]): row[-1].value for row in run.exact().rows})
    plan = choose(run.query, 1, 0, 0, sample=ClassSample(0, 1.0))
    groups = BACKEND.groups(run.query, 100)
    joined = BACKEND.sample(plan, 1 << 28, {}, groups)
    total = plan.aggregates[0].total
    assert {groups.values(n): j.known(total) for n, j in joined.items() if j.known(total)} == exact


def test_estimates_of_groups_are_unbiased_and_covered():
    sql = "SELECT APPROXIMATE a.g, b.g AS h, COUNT(*) n FROM a JOIN b ON a.k = b.k GROUP BY a.g, b.g USING key_sample SIZE 3 KB"
    exact = {r[:2]: r[2].value for r in MemoryRun.of(sql, BACKEND).exact().rows}
    seeds, missed, sums = 100, 0, Counter()
    for seed in range(seeds):
        rows = MemoryRun.of(sql, BACKEND, Settings(seed=seed, error=None)).answer().rows
        found = {r[:2]: r[2] for r in rows}
        sums.update({g: found[g].value if g in found else 0.0 for g in exact})
        # One group a seed: those of one draw are not independent.
        group = list(exact)[seed % len(exact)]
        missed += group in found and not found[group].low <= exact[group] <= found[group].high
    assert missed <= most_misses(seeds, 0.05, 1e-6)
    total = sum(exact.values())
    assert abs(sum(sums.values()) / seeds / total - 1) < 0.05
