"""Virtual relations in memory: tuples, keys, and the messages that are joined in."""

import numpy as np
import pyarrow as pa
import pytest
from support.questions import query

from skimql.engine.execution.message_limit import MessageTooLarge
from skimql.engine.memory_backend.relations import Relation, Relations
from skimql.engine.memory_backend.tables import MemoryTables
from skimql.optimizer.choose import choose
from skimql.optimizer.messages import tree_of, whole

TABLES = MemoryTables(
    {
        "a": pa.table({"k": [1, 1, 2, None], "v": [5, 6, 7, 8]}),
        "b": pa.table({"k": [1, 2, 2, 3], "l": [1, 1, 2, 2]}),
        "c": pa.table({"l": [2, 2, 9]}),
    }
)


def folded(limit=None):
    """A plan in which a message of c goes into b."""
    asked = TABLES.typed(query("COUNT(*) FROM a JOIN b ON a.k = b.k JOIN c ON b.l = c.l", TABLES))
    tree = tree_of(asked.graph)
    plan = choose(asked, 1, 3, 16, residual=whole(tree).without(2, 1))
    return plan, Relations(plan, TABLES, limit)


def test_tuples_are_those_behind_the_filter():
    _, relations = folded()
    assert relations.tuples("A", "`v` > 6").column("v").to_pylist() == [7, 8]
    assert relations.tuples("a", None).num_rows == 4


def test_a_message_weighs_each_tuple_by_its_partners_and_drops_those_without():
    plan, relations = folded()
    synopsis = next(s for s in plan.synopses if s.messages)
    joined = relations.joined(Relation(TABLES.table("b")), [synopsis.messages])
    assert joined.tuples.column("k").to_pylist() == [2, 3]
    weights = relations.weights(synopsis.weight, synopsis.messages, joined)
    assert weights.values.tolist() == [2, 2]
    assert relations.weight_range(synopsis.messages[0]) == (0.0, 2.0)
    assert relations.nbytes > 0


def test_a_message_that_is_larger_than_it_may_be_is_not_sent():
    plan, relations = folded(limit=1)
    synopsis = next(s for s in plan.synopses if s.messages)
    with pytest.raises(MessageTooLarge) as fault:
        relations.joined(Relation(TABLES.table("b")), [synopsis.messages])
    assert fault.value.relation.table == "c"


def test_a_relation_that_keeps_all_is_the_same():
    relation = Relation(TABLES.table("a"))
    assert relation.filtered(np.ones(4, bool)) is relation
    assert relation.filtered(np.array([True, False, False, True])).tuples.column("v").to_pylist() == [5, 8]
