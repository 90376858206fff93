"""The columns of a COUNT(DISTINCT): on which vertices each can be read."""

from dataclasses import replace

from support.questions import query
from support.schemas import schema, table

from skimql.optimizer.counted import attribute_of, counted_columns, key_classes

TABLES = schema(*(table(name, k="int", m="int") for name in "ab"))


def columns(text):
    resolved = query(text, TABLES)
    aggregate = replace(resolved.aggregates[0], types=("int",) * len(resolved.aggregates[0].distinct))
    return resolved, counted_columns(resolved, aggregate)


def test_a_join_key_can_be_read_on_either_side_any_other_column_on_its_own():
    resolved, (key, other) = columns("COUNT(DISTINCT a.k, b.m) FROM a JOIN b ON a.k = b.k")
    assert set(key.at) == {0, 1}
    assert set(other.at) == {1}
    assert key.joined in key_classes(resolved, 0)
    assert other.joined is None


def test_columns_of_one_vertex_are_an_attribute_and_none_a_constant():
    _, (key, other) = columns("COUNT(DISTINCT a.k, b.m) FROM a JOIN b ON a.k = b.k")
    assert attribute_of([key, other], 1, "c").keys == ("`k`", "`m`")
    assert attribute_of([], 1, "c").keys == ("0",)
