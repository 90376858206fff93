"""The groups of a query as numbers: those of every grouped vertex, and a group of the query as one of each."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from ...errors import BudgetExceeded
from ...parser.join_graph import Group, Query


@dataclass(frozen=True, slots=True)
class VertexGroups:
    """The groups of one vertex.

    Attributes
    ----------
    vertex : int
    places : tuple of int
        Where each expression that its tuples are grouped by stands in the GROUP BY clause.
    values : tuple of tuples
        The values of these expressions in each group, by group number.
    """

    vertex: int
    places: tuple[int, ...]
    values: tuple[tuple[Any, ...], ...]


class Groups:
    """The groups of a query; where the tables are, they know the number of each tuple's group.

    Attributes
    ----------
    parts : tuple of VertexGroups
        One for each vertex whose tuples are grouped, ascending.
    """

    parts: tuple[VertexGroups, ...]

    @property
    def counts(self) -> Mapping[int, int]:
        """How many groups each grouped vertex has."""
        return {p.vertex: len(p.values) for p in self.parts}

    @property
    def number(self) -> int:
        """How many groups the query may have at most."""
        return math.prod(self.counts.values())

    def combinations(self) -> Iterator[tuple[int, ...]]:
        """The groups of the query as numbers of groups of its vertices, in the order of `per_group`."""
        return product(*(range(len(p.values)) for p in self.parts))

    def values(self, numbers: Sequence[int]) -> tuple[Any, ...]:
        """The value of each GROUP BY expression in one group of the query."""
        found = {
            place: value
            for part, number in zip(self.parts, numbers, strict=True)
            for place, value in zip(part.places, part.values[number], strict=True)
        }
        return tuple(found[place] for place in range(len(found)))


def too_many(query: Query, most: int) -> BudgetExceeded:
    """The refusal of a query with more groups than can have synopses of their own."""
    return BudgetExceeded(
        f"more than {most:,} groups of {', '.join(g.name for g in query.groups)}; each takes its own sketches",
        "SKIMQL_TOO_MANY_GROUPS",
        query.sql,
        span(query.groups),
        "SET skimql.max_groups = ..., or EXACT SELECT ...",
    )


def span(groups: Sequence[Group]) -> tuple[int, int]:
    """Where a GROUP BY clause stands."""
    return groups[0].span.start, groups[-1].span.end
