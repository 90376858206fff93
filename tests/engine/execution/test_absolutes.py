"""A plan that adds up absolute values beside its sums."""

from __future__ import annotations

from support.questions import query
from support.schemas import schema, table
from support.tables import folded

from skimql.engine.execution.absolutes import with_absolutes
from skimql.optimizer.choose import ClassSample, choose

TABLES = schema(
    table("a", k="bigint", x="double", n="int"), table("b", k="bigint", y="double"), table("c", k="bigint")
)


def planned(text, *folds):
    asked = query(text, TABLES)
    residual = folded(asked.graph, *folds) if folds else None
    return choose(asked, 1, 0, 0, True, residual, sample=ClassSample(0, 1.0))


def terms_of(plan):
    return tuple(dict.fromkeys(t.synopses for a in plan.aggregates for t in (*a.total, *a.presence)))


def test_terms_of_doubles_have_one_of_absolute_values_and_integers_none():
    plan = planned("SUM(a.x * b.y), SUM(a.n), COUNT(*) FROM a JOIN b ON a.k = b.k")
    terms = terms_of(plan)
    wide, found, absolutes = with_absolutes(plan, terms)
    assert found[: len(terms)] == terms
    assert list(absolutes) == [0]
    own = [wide.synopses[i].weight.expression for i in found[absolutes[0]]]
    assert own == ["abs(CAST((`x`) AS DOUBLE))", "abs(CAST((`y`) AS DOUBLE))"]
    assert wide.synopses[: len(plan.synopses)] == plan.synopses
    assert sorted(i for s in wide.scans for i in s.synopses) == list(range(len(wide.synopses)))


def test_counts_need_nothing_more():
    plan = planned("COUNT(*), COUNT(a.x), SUM(a.n) FROM a JOIN b ON a.k = b.k")
    assert with_absolutes(plan, terms_of(plan)) == (plan, terms_of(plan), {})


def test_messages_add_up_absolute_values_too():
    plan = planned("SUM(a.x) FROM a JOIN b ON a.k = b.k JOIN c ON b.k = c.k", 0)
    wide, found, absolutes = with_absolutes(plan, terms_of(plan))
    weights = [m.weight.expression for i in found[absolutes[0]] for m in wide.synopses[i].messages]
    assert weights == ["abs(CAST((`x`) AS DOUBLE))"]
