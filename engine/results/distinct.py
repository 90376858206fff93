"""COUNT(DISTINCT ...): the types of what is counted, the estimate from finished synopses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ...errors import UnsupportedQuery
from ...optimizer.distinct_count import DistinctCount, JoinedPairs, KeySet, KeySets, PairsByKey, Part
from ...optimizer.fold import INTEGERS
from ...parser.join_graph import Aggregate, Query, SetLeaf, SetOperation
from ...parser.types import common_type
from ...sketches.distinct.join_distinct import join_distinct, join_distinct_with_key
from ...sketches.distinct.set_expression import Difference, Expression, Intersection, Stream, Union, estimate
from ...sketches.distinct.sparse_level import SparseLevelSketch
from ...sketches.distinct.sparse_pairs import SparsePairSample
from ...sketches.intervals.interval import Estimate, exact
from ..sources.keys import KnownTypes, expression_type
from ..sources.tables import Tables
from ..synopses import Sketch

_SETS: dict[str, Callable[[Expression, Expression], Expression]] = {
    "union": Union,
    "intersect": Intersection,
    "except": Difference,
}


def count_distinct(count: DistinctCount, sketches: Sequence[Sketch], confidence: float) -> Estimate:
    """The number of distinct values from the finished synopses of a plan.

    Parameters
    ----------
    count : DistinctCount
    sketches : sequence of Sketch
        By their numbers in the plan.
    confidence : float
        In (0, 1).
    """
    match count:
        case Part():
            return _level(sketches, count).estimate(confidence)
        case KeySets():
            levels = {str(p): _level(sketches, p) for p in _leaves(count)}
            return estimate(_expression(count), levels, confidence)
        case JoinedPairs():
            left, right = _pairs(sketches, count.left), _pairs(sketches, count.right)
            size_left = _level(sketches, count.left_values).estimate(confidence)
            size_right = exact(1)
            if count.right_values is not None:
                size_right = _level(sketches, count.right_values).estimate(confidence)
            return join_distinct(left, right, size_left, size_right, confidence)
        case PairsByKey():
            left, right = _pairs(sketches, count.left), _pairs(sketches, count.right)
            return join_distinct_with_key(
                left, right, confidence, count.full, count.most_of_key, bounded=count.bounded
            )


def with_counted_types(query: Query, tables: Tables | None, types: KnownTypes | None = None) -> Query:
    """The query with the Spark type of every counted column known: among `types`, or asked of Spark.

    Raises
    ------
    UnsupportedQuery
        ``SKIMQL_DISTINCT_TYPE``, for a value of which Spark alone knows what it is equal to: text under a collation,
        an array, a struct; ``SKIMQL_BAD_KEY``, if Spark refuses the expression.
    """
    vertices = query.graph.vertices

    def type_of(vertex: int, expression: str, aggregate: Aggregate) -> str:
        span = (aggregate.span.start, aggregate.span.end)
        table = vertices[vertex].table
        found = None if types is None else types.get((table.lower(), expression))
        if found is None:
            assert tables is not None, "some source of types is given"
            found = expression_type(tables, table, expression, query.sql, span, "counted value")
        known = common_type(found, found, ansi=True)
        if known.type is None:
            message = f"values of {expression} cannot be told apart: they are of type {found}"
            hint = "CAST it to a plain type, or EXACT SELECT ..."
            raise UnsupportedQuery(message, "SKIMQL_DISTINCT_TYPE", query.sql, span, hint)
        # A column that is always NULL has no type of its own.
        return "string" if known.type == "void" else known.type

    def typed(aggregate: Aggregate) -> Aggregate:
        return replace(
            aggregate, types=tuple(type_of(f.vertex, f.expression, aggregate) for f in aggregate.distinct)
        )

    query = replace(query, aggregates=tuple(typed(a) for a in query.aggregates))
    if query.sets is None:
        return query
    (aggregate,) = query.aggregates
    sets = _with_types(query.sets, lambda v, expression: type_of(v, expression, aggregate))
    _check_types(query, aggregate, sets)
    return replace(query, sets=sets)


def _level(sketches: Sequence[Sketch], part: Part) -> SparseLevelSketch:
    sketch = sketches[part.synopsis]
    assert isinstance(sketch, SparseLevelSketch), f"synopsis {part.synopsis} is no level sketch"
    return sketch


def _pairs(sketches: Sequence[Sketch], part: Part) -> SparsePairSample:
    sketch = sketches[part.synopsis]
    assert isinstance(sketch, SparsePairSample), f"synopsis {part.synopsis} is no pair sample"
    return sketch


def _leaves(sets: KeySet) -> list[Part]:
    return [sets] if isinstance(sets, Part) else [*_leaves(sets.left), *_leaves(sets.right)]


def _expression(sets: KeySet) -> Expression:
    if isinstance(sets, Part):
        return Stream(str(sets))
    return _SETS[sets.operator](_expression(sets.left), _expression(sets.right))


def _with_types(sets: SetLeaf | SetOperation, type_of: Callable[[int, str], str]) -> SetLeaf | SetOperation:
    if isinstance(sets, SetLeaf):
        return replace(sets, types=tuple(type_of(sets.vertex, c) for c in sets.columns))
    return replace(sets, left=_with_types(sets.left, type_of), right=_with_types(sets.right, type_of))


def _check_types(query: Query, aggregate: Aggregate, sets: SetLeaf | SetOperation) -> None:
    """Sets of different types would be cast by Spark's own rules for set operations."""
    found: dict[tuple[str, ...], None] = {}

    def visit(part: SetLeaf | SetOperation) -> None:
        if isinstance(part, SetLeaf):
            found.setdefault(tuple("integer" if t in INTEGERS else t for t in part.types))
        else:
            visit(part.left)
            visit(part.right)

    visit(sets)
    if len(found) > 1:
        shown = " and ".join(", ".join(types) for types in found)
        message = f"the sets have values of different types ({shown})"
        span = (aggregate.span.start, aggregate.span.end)
        raise UnsupportedQuery(message, "SKIMQL_KEY_TYPES", query.sql, span, "CAST both to one type")
