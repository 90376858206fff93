"""Plan COUNT(DISTINCT ...): which synopses of which vertices, and what is folded away as an exact message.

Multiplicities do not matter, so a vertex without counted columns is only a filter: an exact message of its keys drops
the tuples without a partner. With all else folded, the values of one vertex are counted by a level sketch. Values of
two vertices, or of one beside another that cannot be folded, are counted from samples of both.

References
----------
.. [1] S. Ganguly, M. Garofalakis, A. Kumar, R. Rastogi, "Join-Distinct Aggregate Estimation over Update Streams",
   PODS 2005, Sections 2.1 and 5: the projections pi_{A,C}, pi_{A,B} and pi_{A,B,C}.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from ..errors import UnsupportedQuery
from ..parser.join_graph import Aggregate, Query, SetLeaf, SetOperation, Term
from .combinations import aggregate_fault
from .counted import Counted, attribute_of, counted_columns, key_classes
from .distinct_count import (
    LEVELS,
    DistinctCount,
    JoinedPairs,
    KeySet,
    KeySets,
    PairsByKey,
    Part,
)
from .fold import INTEGERS, ResidualTree, class_attribute, residual_tree
from .messages import JoinTree, Residual, receiver_of, tree_of, whole
from .methods import LEVEL, PAIRS
from .plan import Attribute, Synopsis, Weight

CODE = "SKIMQL_DISTINCT_JOIN"
EXACT = "EXACT SELECT ..."


@dataclass
class DistinctPlanner:
    """Plans the COUNT(DISTINCT)s of one query.

    Parameters
    ----------
    query : Query
        With the types of all keys and counted columns known.
    buckets : int
        Size of every sketch; see `level_buckets` and `sample_size`.
    sparse : bool
        Whether synopses start as exact maps.
    number : callable
        Gives a synopsis its number in the plan.
    grouped : collection of int
        The vertices whose groups are told apart: they are not folded.
    too_large : collection of int
        Vertices whose messages are too large to be folded.
    only_folded : collection of int
        Vertices that have no synopsis: they are always folded.

    Attributes
    ----------
    folded : Residual or None
        The tree with all but one vertex folded, if a count asked for it.
    """

    query: Query
    buckets: int
    sparse: bool
    number: Callable[[Synopsis], int]
    grouped: Collection[int] = ()
    too_large: Collection[int] = ()
    only_folded: Collection[int] = ()
    folded: Residual | None = field(default=None, init=False)

    def plan(self, aggregate: Aggregate) -> DistinctCount:
        """How one COUNT(DISTINCT) is counted.

        Raises
        ------
        UnsupportedQuery
            ``SKIMQL_DISTINCT_JOIN``, if no synopsis gives an honest interval; ``SKIMQL_UNKNOWN_METHOD``, if the asked
            method cannot count these values.
        """
        count = self._planned(aggregate)
        samples = isinstance(count, JoinedPairs | PairsByKey)
        if self.query.method == "distinct" and samples:
            raise aggregate_fault(
                self.query, aggregate, "level sketches cannot count these values", "join_distinct"
            )
        if self.query.method == "join_distinct" and not samples:
            raise aggregate_fault(
                self.query, aggregate, "there is no join to sample from both sides", "distinct"
            )
        return count

    def _planned(self, aggregate: Aggregate) -> DistinctCount:
        if self.query.sets is not None:
            return self._set(self.query.sets)
        columns = counted_columns(self.query, aggregate)
        forced = self.query.method == "join_distinct"
        by_keys = None if forced else self._of_keys(columns)
        if by_keys is not None:
            return by_keys
        first = aggregate.distinct[0].vertex
        vertices = range(len(self.query.graph.vertices))
        alone = [v for v in vertices if all(v in c.at for c in columns)]
        if alone:
            owner = min(alone, key=lambda v: (v not in self.grouped, v not in self.too_large, v != first))
            return self._one_sided(aggregate, columns, owner, forced)
        sides = next((p for p in combinations(vertices, 2) if all({*p} & {*c.at} for c in columns)), None)
        if sides is None:
            raise self._fault(aggregate, "values of more than two tables together cannot be counted")
        return self._two_sided(aggregate, columns, *sides)

    def _set(self, sets: SetLeaf | SetOperation) -> KeySet:
        if isinstance(sets, SetLeaf):
            types = tuple("bigint" if t in INTEGERS else t for t in sets.types)
            attribute = Attribute(sets.columns, types, "distinct")
            return self._level(set_tree(self.query), sets.vertex, attribute)
        return KeySets(sets.operator, self._set(sets.left), self._set(sets.right))

    def _of_keys(self, columns: Sequence[Counted]) -> DistinctCount | None:
        """Columns that are the key of a join class, no more and no less: the intersection of the sets of its keys."""
        values = {c.joined for c in columns}
        tree = tree_of(self.query.graph)
        for number, joined in enumerate(tree.classes):
            if values != set(self.query.graph.edges[joined.edges[0]].classes):
                continue
            owners = [v for v in joined.vertices if v not in self.only_folded]
            residual = self._folded_but({*owners} | self._apart())
            if set(residual.vertices) != set(owners):
                return None
            left = residual_tree(self.query.graph, residual)
            leaves = [
                self._level(left, v, class_attribute(self.query.graph, tree.classes[number], v))
                for v in owners
            ]
            found: KeySet = leaves[0]
            for leaf in leaves[1:]:
                found = KeySets("intersect", found, leaf)
            return found
        return None

    def _one_sided(
        self, aggregate: Aggregate, columns: Sequence[Counted], owner: int, forced: bool
    ) -> DistinctCount:
        graph = self.query.graph
        residual = self._folded_but({owner} | self._apart())
        if forced and len(residual.vertices) == 1 and len(graph.vertices) > 1:
            neighbour = next(f.sender for f in reversed(residual.folds) if f.receiver == owner)
            residual = self._folded_but({owner, neighbour})
        left = residual_tree(graph, residual)
        if residual.vertices == (owner,):
            if residual.folds:
                self.folded = self.folded or residual
            return self._level(left, owner, attribute_of(columns, owner, "distinct"))
        others = [v for v in residual.vertices if v != owner]
        if len(others) > 1:
            raise self._fault(
                aggregate, f"{self._names(others)} cannot be folded into {self._names([owner])}"
            )
        (other,) = others
        joined = left.edges[0].joined
        if key_classes(self.query, joined) <= {c.joined for c in columns}:
            return self._by_key(left, columns, owner, other, full=False)
        if other in self.too_large and not forced:
            raise self._fault(
                aggregate,
                f"the keys of {self._names([other])} take more than an exact message may, and values of one side "
                "cannot be counted without them",
            )
        return self._joined(left, columns, owner, other)

    def _two_sided(
        self, aggregate: Aggregate, columns: Sequence[Counted], one: int, other: int
    ) -> DistinctCount:
        residual = self._folded_but({one, other} | self._apart())
        if set(residual.vertices) != {one, other}:
            between = [v for v in residual.vertices if v not in (one, other)]
            raise self._fault(
                aggregate,
                f"values of {self._names([one, other])} cannot be counted with {self._names(between)} between "
                "or beside them",
            )
        left = residual_tree(self.query.graph, residual)
        if key_classes(self.query, left.edges[0].joined) <= {c.joined for c in columns}:
            return self._by_key(left, columns, one, other, full=True)
        return self._joined(left, columns, one, other)

    def _joined(self, left: ResidualTree, columns: Sequence[Counted], one: int, other: int) -> DistinctCount:
        mine = [c for c in columns if one in c.at]
        theirs = [c for c in columns if one not in c.at]
        a, c = attribute_of(mine, one, "distinct left"), attribute_of(theirs, other, "distinct right")
        return JoinedPairs(
            self._pairs(left, one, a, self._key(left, one)),
            self._pairs(left, other, c, self._key(left, other)),
            self._level(left, one, a),
            self._level(left, other, c) if theirs else None,
        )

    def _by_key(
        self, left: ResidualTree, columns: Sequence[Counted], one: int, other: int, full: bool
    ) -> DistinctCount:
        key = key_classes(self.query, left.edges[0].joined)
        beside = [c for c in columns if c.joined not in key]
        mine = [c for c in beside if one in c.at]
        theirs = [c for c in beside if one not in c.at]
        return PairsByKey(
            self._pairs(left, one, self._key(left, one), attribute_of(mine, one, "distinct left")),
            self._pairs(left, other, self._key(left, other), attribute_of(theirs, other, "distinct right")),
            full,
            None if beside else 1,
        )

    def _key(self, left: ResidualTree, vertex: int) -> Attribute:
        return left.edges[0].attribute(vertex)

    def _apart(self) -> set[int]:
        """Vertices that must not be folded."""
        return {*self.too_large, *self.grouped}

    def _folded_but(self, kept: Collection[int]) -> Residual:
        """The tree with every vertex folded that is not kept and not between two that are."""
        residual = whole(tree_of(self.query.graph))
        while len(residual.vertices) > 1:
            leaf = next((v for v in residual.leaves if v not in kept), None)
            if leaf is None:
                break
            near = [v for v in residual.members(residual.classes_of(leaf)[0]) if v in kept and v != leaf]
            residual = residual.without(leaf, near[0] if near else receiver_of(residual, leaf))
        return residual

    def _level(self, left: ResidualTree, vertex: int, attribute: Attribute) -> Part:
        return self._part(left, vertex, (attribute,), LEVEL, LEVELS, level_buckets(self.buckets))

    def _pairs(self, left: ResidualTree, vertex: int, sampled: Attribute, partner: Attribute) -> Part:
        values, pairs = sample_size(self.buckets)
        return self._part(left, vertex, (sampled, partner), PAIRS, values, pairs)

    def _part(
        self,
        left: ResidualTree,
        vertex: int,
        attributes: tuple[Attribute, ...],
        method: str,
        rows: int,
        buckets: int,
    ) -> Part:
        relation = self.query.graph.vertices[vertex]
        messages = left.messages_into(vertex, Term())
        synopsis = Synopsis(
            relation.table,
            relation.filter,
            attributes,
            Weight(),
            method,
            rows,
            buckets,
            self.sparse,
            messages=messages,
        )
        return Part(vertex, self.number(synopsis))

    def _names(self, vertices: Sequence[int]) -> str:
        return " and ".join(self.query.graph.vertices[v].alias for v in vertices)

    def _fault(self, aggregate: Aggregate, why: str) -> UnsupportedQuery:
        span = (aggregate.span.start, aggregate.span.end)
        if self.grouped:
            why += f"; the groups of {self._names(list(self.grouped))} are told apart"
        return UnsupportedQuery(why, CODE, self.query.sql, span, EXACT)


def level_buckets(buckets: int) -> int:
    """Buckets on each level of a level sketch, where other sketches have rows of `buckets` counters."""
    return max(16, buckets // 4)


def buckets_for(relative_error: float, confidence: float) -> int:
    """The `buckets` for which a level sketch of many values stays below an error with the given confidence."""
    from ..sketches.distinct.level import LevelSpec  # late: a plan without distinct values needs it not

    return 4 * LevelSpec.for_error(min(relative_error, 0.99), confidence).buckets


def sample_size(buckets: int) -> tuple[int, int]:
    """Sampled values, and pairs that a level gives back, of a pair sample beside rows of `buckets` counters."""
    return max(2, buckets // 64), max(16, buckets)


def set_tree(query: Query) -> ResidualTree:
    """The tree of a set expression, whose vertices are not joined."""
    return ResidualTree(query.graph, Residual(JoinTree(1, ()), tuple(range(len(query.graph.vertices)))), ())
