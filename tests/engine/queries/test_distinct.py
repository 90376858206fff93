"""The choice for COUNT(DISTINCT), by statistics that are given."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from support.questions import query
from support.schemas import XYZ

from skimql import BudgetExceeded, Settings, UnsupportedQuery
from skimql.engine.memory_backend.backend import MemoryBackend
from skimql.engine.memory_backend.run import MemoryRun
from skimql.engine.memory_backend.tables import MemoryTables
from skimql.engine.queries.distinct import DistinctPlan
from skimql.optimizer.prediction.relation import AttributeStatistics, RelationStatistics


def plan(text="COUNT(DISTINCT y.m) FROM y", may_run=True, distinct=1e6, **settings):
    asked = query(text, XYZ)
    typed = tuple(replace(a, types=("int",) * len(a.distinct)) for a in asked.aggregates)

    def gather(relations, *, jobs):
        known = AttributeStatistics(distinct)
        return {r: RelationStatistics(1e7, (known,) * len(r.attributes), source="exact") for r in relations}

    return DistinctPlan(
        replace(asked, aggregates=typed), Settings(route="arrow", **settings), gather, may_run
    )


def test_the_exact_run_is_a_candidate_where_it_may_be_run():
    methods = {c.method for c in plan(error=0.05).choice()[0].candidates}
    assert methods == {"distinct", "exact_run"}
    alone = {c.method for c in plan(error=0.05, may_run=False).choice()[0].candidates if not c.refused}
    assert alone == {"distinct"}


def test_a_size_is_kept_to_and_one_that_is_too_small_says_what_would_do():
    choice, statistics = plan(error=None, size_bytes=1 << 20).choice()
    assert choice.taken.nbytes <= 1 << 20
    assert [s.tuples for s in statistics] == [1e7]
    with pytest.raises(BudgetExceeded):
        plan(error=None, size_bytes=100).choice()


def test_where_no_size_reaches_the_error_and_nothing_may_be_run_the_best_is_taken():
    choice, _ = plan(error=1e-6, may_run=False, distinct=1e7).choice()
    assert choice.taken.method == "distinct"
    assert choice.objective.relative_error is None


def test_without_workers_there_is_none():
    with pytest.raises(UnsupportedQuery) as refused:
        replace(plan(error=1e-6, may_run=False), settings=Settings(route="jvm", error=1e-6)).choice()
    assert refused.value.code == "SKIMQL_ROUTE"


@pytest.mark.parametrize("seed", [0, 5, 6, 9])
def test_pairs_over_hubs_that_a_pilot_has_seen_a_part_of_are_kept_as_foretold(seed):
    """A map that is as large as the pilot says the pairs are overflows in a third of the draws; a sample then misses."""
    rng = np.random.default_rng(seed)
    keys, values, hubs = 100, 10_000, 100
    a = np.r_[np.arange(values), np.repeat(np.arange(hubs), keys)]
    k = np.r_[rng.integers(0, keys, values), np.tile(np.arange(keys), hubs)]
    order = rng.permutation(a.size)
    tables = {
        "r": pa.table({"a": a[order], "k": k[order]}),
        "s": pa.table({"k": np.arange(keys), "c": np.arange(keys)}),
    }
    sql = "SELECT APPROXIMATE COUNT(DISTINCT r.a, s.c) FROM r JOIN s ON r.k = s.k ERROR WITHIN 5%"
    backend = MemoryBackend(MemoryTables(tables), pilot_tuples=1250)
    answer = MemoryRun.of(f"{sql} USING join_distinct", backend).answer()
    (attempt,) = answer.attempts
    ((cell,),) = answer.rows
    assert attempt.attempt.predicted.half_width == 0.0
    assert (cell.value, cell.exact) == (len({*zip(a.tolist(), k.tolist(), strict=True)}), True)
