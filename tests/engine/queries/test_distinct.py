"""The choice for COUNT(DISTINCT), by statistics that are given."""

from dataclasses import replace

import pytest
from support.questions import query
from support.schemas import XYZ

from skimql import BudgetExceeded, Settings, UnsupportedQuery
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
