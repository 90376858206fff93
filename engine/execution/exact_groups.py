"""Exact aggregates of some groups of a query, run by Spark from the query's join graph.

For the groups whose estimate missed what was asked: the grouped table is filtered to them before anything is joined.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType

from ...optimizer.groups import grouped_vertices
from ...parser.join_graph import Factor, Query, Term
from ..sources.filters import filtered
from ..sources.keys import compared_text
from ..sources.tables import Frames
from .known_groups import ABSOLUTE, JOINED
from .partial_aggregate import group_column


def exact_frame(query: Query, frames: Frames, groups: Sequence[Sequence[int]]) -> DataFrame:
    """The sums of every aggregate's terms, a row for each of the groups that joins at all.

    Parameters
    ----------
    query : Query
        With every `key_types` of its edges known.
    frames : Frames
        Of the query's tables, the grouped ones with their `group_column`.
    groups : sequence of sequences of int
        The groups that are asked for, each as a number for every grouped vertex, ascending. Others may come along.

    Returns
    -------
    DataFrame
        The numbers of a group in ``g0``, ``g1`` and so on. Beside sums of doubles stand those of their absolute values,
        and how many tuples were joined.
    """
    factors = _factors(query)
    asked = dict(zip(grouped_vertices(query), zip(*groups, strict=True), strict=True))
    parts = [_vertex(query, frames, v, asked.get(v, ()), factors) for v in range(len(query.graph.vertices))]
    joined, inside = parts[0], {0}
    waiting = dict(enumerate(query.graph.edges))
    while waiting:
        # The graph is a tree: some waiting edge leads from what is joined to one more vertex.
        i, edge = next((i, e) for i, e in waiting.items() if (e.left in inside) != (e.right in inside))
        del waiting[i]
        keys = range(len(edge.key_types))
        on = [
            F.col(_key(edge.left, i, k)).eqNullSafe(F.col(_key(edge.right, i, k)))
            & F.col(_key(edge.left, i, k)).isNotNull()
            for k in keys
        ]
        new = edge.right if edge.left in inside else edge.left
        joined = joined.join(parts[new], reduce(lambda a, b: a & b, on))
        inside.add(new)
    sums = [
        F.sum(_product(term, factors)).alias(f"s{a}_{part}_{t}")
        for a, aggregate in enumerate(query.aggregates)
        for part, terms in (("total", aggregate.total), ("presence", aggregate.presence))
        for t, term in enumerate(terms)
    ]
    sums += [
        F.count_distinct(*(F.col(factors[f]) for f in aggregate.distinct)).alias(f"d{a}")
        for a, aggregate in enumerate(query.aggregates)
        if aggregate.distinct
    ]
    names = [F.col(_group(v)).alias(f"g{n}") for n, v in enumerate(asked)]
    found = joined.groupBy(*names).agg(*sums)
    doubles = {f.name for f in found.schema.fields if isinstance(f.dataType, DoubleType)}
    if not doubles:
        return found
    absolute = [
        F.sum(F.abs(_product(term, factors).cast("double"))).alias(f"s{a}_total_{t}{ABSOLUTE}")
        for a, aggregate in enumerate(query.aggregates)
        for t, term in enumerate(aggregate.total)
        if f"s{a}_total_{t}" in doubles
    ]
    return joined.groupBy(*names).agg(*sums, *absolute, F.count(F.lit(1)).alias(JOINED))


def _factors(query: Query) -> dict[Factor, str]:
    """A column name for every factor of the query."""
    found = dict.fromkeys(
        f
        for a in query.aggregates
        for f in (*(f for term in (*a.total, *a.presence) for f in term.factors), *a.distinct)
    )
    return {factor: f"f{n}" for n, factor in enumerate(found)}


def _vertex(
    query: Query, frames: Frames, vertex: int, numbers: Sequence[int], factors: Mapping[Factor, str]
) -> DataFrame:
    """The tuples of one vertex: its keys as they are compared, its factors, and the group number where grouped."""
    relation = query.graph.vertices[vertex]
    frame = filtered(frames.frame(relation.table), [relation.filter])
    columns: list[Column] = []
    if numbers:
        number = F.col(f"`{group_column(vertex)}`")
        frame = frame.where(number.isin(sorted(set(numbers))))
        columns.append(number.alias(_group(vertex)))
    for i in query.graph.edges_at(vertex):
        edge = query.graph.edges[i]
        for k, (key, kind) in enumerate(zip(edge.keys_of(vertex), edge.key_types, strict=True)):
            columns.append(F.expr(compared_text(key, str(kind))).alias(_key(vertex, i, k)))
    for factor, name in factors.items():
        if factor.vertex == vertex:
            value = F.expr(factor.expression)
            present = F.when(value.isNotNull(), 1).otherwise(0).cast("bigint")
            columns.append((present if factor.presence else value).alias(name))
    return frame.select(*columns or [F.lit(1).alias(f"one{vertex}")])


def _product(term: Term, factors: Mapping[Factor, str]) -> Column:
    """The product of a term's factors; NULL, which SUM skips, where one of them is."""
    if not term.factors:
        return F.lit(1).cast("bigint")
    return reduce(lambda a, b: a * b, (F.col(factors[f]) for f in term.factors))


def _group(vertex: int) -> str:
    return f"v{vertex}_group"


def _key(vertex: int, edge: int, key: int) -> str:
    return f"v{vertex}_e{edge}_k{key}"
