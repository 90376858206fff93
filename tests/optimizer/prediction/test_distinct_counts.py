"""Predicted errors of the distinct counts of a query: by which values there are in a part, a group, a set."""

from dataclasses import replace

import numpy as np
import pytest
from support.questions import query
from support.schemas import schema, table

from skimql.optimizer.distinct import DistinctPlanner
from skimql.optimizer.groups import grouped_vertices
from skimql.optimizer.messages import JoinTree, tree_of
from skimql.optimizer.plan import Synopsis, Weight
from skimql.optimizer.prediction.distinct_counts import DistinctPredictor, _most_tuples
from skimql.optimizer.prediction.figures import Figures
from skimql.optimizer.prediction.relation import AttributeStatistics, RelationStatistics, complete
from skimql.parser.join_graph import SetLeaf, SetOperation

TABLES = schema(*(table(name, k="int", l="int", m="int") for name in "ab"))
TUPLES, VALUES, KEYS = 1e6, 1e4, 1e5


def predicted(text, distinct=VALUES, groups=None, sparse=False):
    """The prediction of the first count, and how many values an exact run tells apart."""
    asked = query(text, TABLES)
    asked = replace(
        asked,
        aggregates=tuple(replace(a, types=("int",) * len(a.distinct)) for a in asked.aggregates),
        sets=typed(asked.sets),
    )
    tree = JoinTree(1, ()) if asked.sets is not None else tree_of(asked.graph)
    at = range(len(asked.graph.vertices))
    own = [
        () if asked.sets is not None else (AttributeStatistics(KEYS),) * len(tree.classes_of(v)) for v in at
    ]
    figures = Figures(tree, [complete(RelationStatistics(TUPLES, a, source="exact"), len(a)) for a in own])

    def seen(synopsis):
        attributes = tuple(AttributeStatistics(distinct) for _ in synopsis.attributes)
        return complete(RelationStatistics(TUPLES, attributes, source="exact"), len(attributes))

    synopses = []
    planner = DistinctPlanner(
        asked, 512, sparse, lambda s: (synopses.append(s), len(synopses) - 1)[1], grouped_vertices(asked), ()
    )
    count = planner.plan(asked.aggregates[0])
    found = DistinctPredictor(figures, seen, 0.95, groups or {})
    return found.error(count, synopses), found.grouped(count, synopses)


def typed(sets):
    match sets:
        case SetLeaf():
            return replace(sets, types=("int",) * len(sets.columns))
        case SetOperation():
            return replace(sets, left=typed(sets.left), right=typed(sets.right))
    return None


def test_of_one_table_all_values_are_counted_with_the_error_of_its_sketch():
    found, grouped = predicted("COUNT(DISTINCT m) FROM a")
    assert found.value == pytest.approx(VALUES, rel=0.01)
    assert grouped == found.value
    assert 0.0 < found.error < 0.1
    assert predicted("COUNT(DISTINCT m) FROM a", distinct=20, sparse=True)[0].error == 0.0


def test_a_group_has_the_values_of_its_tuples():
    text = "a.l, COUNT(DISTINCT a.m) FROM a GROUP BY a.l"
    one, _ = predicted(text, groups={0: 1000})
    # A group of 1,000 tuples of 10,000 values that all are as frequent.
    assert one.value == pytest.approx(VALUES * -np.expm1(1000 * np.log1p(-1 / VALUES)), rel=0.05)


@pytest.mark.parametrize(("operator", "value"), [("UNION", VALUES), ("INTERSECT", VALUES), ("EXCEPT", 0.0)])
def test_sides_of_as_many_values_are_taken_to_have_the_same(operator, value):
    found, grouped = predicted(f"COUNT(DISTINCT k) FROM (SELECT k FROM a {operator} SELECT k FROM b)")
    assert found.value == pytest.approx(value, rel=0.01, abs=1e-6)
    assert grouped == pytest.approx(2 * VALUES, rel=0.01), "an exact run groups both sides"


def test_the_tuples_that_a_pilot_has_scaled_up_are_no_bound_but_those_of_the_table_are():
    relation = complete(RelationStatistics(0.99 * TUPLES, (AttributeStatistics(VALUES),), TUPLES), 1)
    everything = Synopsis("a", None, (), Weight(), "pairs", 8, 64, True)
    assert _most_tuples(relation, everything, 1.0) == TUPLES
    assert _most_tuples(relation, everything, 0.5) == pytest.approx(1.05 * 0.5 * 0.99 * TUPLES)
    kept = replace(everything, filter="k > 1")
    assert _most_tuples(relation, kept, 1.0) == pytest.approx(1.05 * 0.99 * TUPLES)
