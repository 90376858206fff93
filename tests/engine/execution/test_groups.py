"""The groups of a query as numbers."""

from dataclasses import dataclass

from support.questions import query
from support.schemas import XYZ

from skimql.engine.execution.groups import Groups, VertexGroups, too_many


@dataclass(frozen=True)
class Some(Groups):
    parts: tuple[VertexGroups, ...]


FOUND = Some(
    (VertexGroups(0, (1,), (("a",), ("b",))), VertexGroups(2, (0, 2), ((1, "x"), (2, "y"), (3, "z"))))
)


def test_a_group_of_the_query_is_one_of_each_vertex():
    assert (dict(FOUND.counts), FOUND.number) == ({0: 2, 2: 3}, 6)
    assert list(FOUND.combinations())[:4] == [(0, 0), (0, 1), (0, 2), (1, 0)]


def test_values_come_in_the_order_of_the_clause():
    assert FOUND.values((1, 2)) == (3, "b", "z")


def test_too_many_groups_are_refused_at_the_clause():
    asked = query("COUNT(*) FROM x JOIN z ON x.id = z.id GROUP BY n, w", XYZ)
    fault = too_many(asked, 10)
    assert fault.code == "SKIMQL_TOO_MANY_GROUPS"
    assert asked.sql[slice(*fault.span)] == "n, w"
