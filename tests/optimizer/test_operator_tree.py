"""The operators of each kind of attempt, and what is predicted of them; nothing is made up where nothing is known."""

import pytest
from support.questions import query
from support.schemas import XYZ

from skimql.optimizer.choose import ClassSample, choose
from skimql.optimizer.operator_tree import operators_of, relations_in
from skimql.optimizer.operators import Figures
from skimql.optimizer.physical import (
    ExactRun,
    MaterializedJoin,
    Nothing,
    PhysicalPlan,
    Predicted,
    SampleJoin,
    SketchJoin,
)
from skimql.optimizer.plan import most_bytes
from skimql.optimizer.prediction.relation import RelationStatistics

QUERY = query("COUNT(*) FROM x JOIN y ON x.id = y.id WHERE x.n > 1", XYZ)
BUILD = choose(QUERY, 1, 11, 64)
KNOWN = (RelationStatistics(tuples=500.0, scanned=1000.0), RelationStatistics(tuples=2000.0))


def tree(attempt, statistics=()):
    (top,) = operators_of(PhysicalPlan(QUERY, (), attempt), attempt, statistics)
    return top


def test_scans_have_rows_by_statistics_bytes_by_the_plan_and_a_cost():
    top = tree(SketchJoin("hash", BUILD, Predicted(0.02, 1.0, 4096)), KNOWN)
    assert (top.name, top.predicted.half_width, top.predicted.bytes_held) == ("estimate", 0.02, 4096)
    assert [(o.name, o.predicted.rows) for o in top.inputs] == [("scan x", 500.0), ("scan y", 2000.0)]
    assert sum(o.predicted.bytes_held for o in top.inputs) == sum(map(most_bytes, BUILD.synopses))
    assert all(o.predicted.cpu_seconds > 0 for o in top.inputs)


def test_without_statistics_neither_rows_nor_costs_are_told():
    for attempt in (
        SketchJoin("hash", BUILD),
        SampleJoin("key_sample", choose(QUERY, 1, 0, 0, sample=ClassSample(0, 0.1))),
    ):
        assert {(o.predicted.rows, o.predicted.cpu_seconds) for o in tree(attempt).inputs} == {(None, None)}


def test_a_sample_has_its_share_of_the_tuples():
    sampled = choose(QUERY, 1, 0, 0, sample=ClassSample(0, 0.1))
    top = tree(SampleJoin("key_sample", sampled, expected=(500.0, 2000.0)))
    assert {o.of.split()[0]: o.predicted.rows for o in top.inputs} == {"x": 50.0, "y": 200.0}


def test_what_the_catalog_has_is_read_and_what_is_missing_scanned():
    top = tree(MaterializedJoin(BUILD, ("s",), missing=(1,), expected=((7, 80),)), KNOWN)
    assert [o.name for o in top.inputs] == ["load s", "scan y"]
    assert top.inputs[0].predicted == Figures(rows=7, bytes_held=80)


@pytest.mark.parametrize(
    ("attempt", "name"),
    [(ExactRun("SELECT 1", Predicted(0.0, 3.0, 0.0)), "exact run"), (Nothing("never"), "estimate")],
)
def test_what_builds_nothing_is_one_operator(attempt, name):
    top = tree(attempt, KNOWN)
    assert (top.name, top.inputs, top.predicted.half_width, top.predicted.rows) == (name, (), 0.0, 1.0)


def test_relations_of_a_scan_are_told_apart_by_their_filters():
    own = query("COUNT(*) FROM x JOIN x AS z ON x.id = z.id WHERE x.n > 1", XYZ)
    plan = choose(own, 1, 11, 64)
    assert [sorted(relations_in(plan, s)) for s in plan.scans] == [["x", "x where `n` > 1"]]
