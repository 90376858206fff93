"""The tuples that take part in a join, for a query with values that Spark cannot compute for all tuples.

In ANSI mode ``10 / a.x`` fails where x is 0. The user's own query computes it for joined tuples alone; a scan of ours
computes it for every tuple of its table. Where that fails, the tables are reduced to the tuples that join (the full
reducer of an acyclic join [1]_), and the scans are run once more: what fails then fails for the user as well.

References
----------
.. [1] P. Bernstein, D. Chiu, "Using semi-joins to solve relational queries", JACM 28(1), 1981.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ...errors import SkimqlError
from ...parser.join_graph import Factor, Query, Term
from ..sources.filters import cannot_fail, filtered
from ..sources.keys import compared_text
from ..sources.tables import Frames
from ..sources.weights import LEAVES_64_BITS

# SQLSTATE of data that an expression cannot take, and of raise_error.
_VALUE_FAULT = re.compile(r"SQLSTATE: (22\w{3}|P0001)")


def is_of_a_value(fault: BaseException) -> bool:
    """Whether Spark could not compute an expression for the values of some tuple."""
    told = str(fault.__cause__ if isinstance(fault, SkimqlError) and fault.__cause__ else fault)
    return bool(_VALUE_FAULT.search(told)) and LEAVES_64_BITS not in told


@dataclass(frozen=True, slots=True)
class Parts:
    """DataFrames by name: for each vertex of a query one of its own."""

    frames: Mapping[str, DataFrame]

    def frame(self, name: str) -> DataFrame:
        """The DataFrame of a vertex."""
        return self.frames[name]


def contributing(query: Query, tables: Frames) -> tuple[Query, Parts]:
    """The query over tables of the tuples that join, one for each vertex; what its factors are for no others.

    Parameters
    ----------
    query : Query
        Over one join tree, with every `key_types` of its edges known.
    tables : Frames
    """
    reducer = _Reducer(query, tables)
    names = [f"{v.alias} (what joins of {v.table}, {i})" for i, v in enumerate(query.graph.vertices)]
    vertices = tuple(
        replace(v, table=name, filter=None) for v, name in zip(query.graph.vertices, names, strict=True)
    )
    aggregates = tuple(
        replace(
            a,
            total=tuple(reducer.guarded(t) for t in a.total),
            presence=tuple(reducer.guarded(t) for t in a.presence),
        )
        for a in query.aggregates
    )
    frames = {name: reducer.joining(i) for i, name in enumerate(names)}
    return replace(query, graph=replace(query.graph, vertices=vertices), aggregates=aggregates), Parts(frames)


class _Reducer:
    """Reduces each vertex to what joins; columns tell for which tuples a factor counts at all."""

    def __init__(self, query: Query, tables: Frames) -> None:
        self._query, self._tables = query, tables
        self._marks: dict[tuple[int, Term], str] = {}

    def guarded(self, term: Term) -> Term:
        """The term; a factor that may fail is computed only where the tuple joins tuples that have all others.

        Of the others those count that cannot fail themselves: the conditions of FILTER and CASE, mostly.
        """
        if len(term.factors) < 2:
            return term
        return replace(term, factors=tuple(self._guarded(f, term) for f in term.factors))

    def _guarded(self, factor: Factor, term: Term) -> Factor:
        if cannot_fail(factor.expression):
            return factor
        others = Term(tuple(f for f in term.factors if f is not factor and cannot_fail(f.expression)))
        if not others.factors:
            return factor
        mark = self._marks.setdefault((factor.vertex, others), f"skimql mark {len(self._marks)}")
        return replace(factor, expression=f"CASE WHEN `{mark}` THEN {factor.expression} END")

    def joining(self, vertex: int) -> DataFrame:
        """The tuples of a vertex that join, with the marks that its factors ask for."""
        frame = self._filtered(vertex)
        for edge in self._query.graph.edges_at(vertex):
            frame = self._semi_joined(frame, vertex, edge, Term())
        for (marked, term), mark in self._marks.items():
            if marked == vertex:
                frame = self._marked(frame, vertex, term, mark)
        return frame

    def _filtered(self, vertex: int) -> DataFrame:
        relation = self._query.graph.vertices[vertex]
        return filtered(self._tables.frame(relation.table), [relation.filter])

    def _semi_joined(self, frame: DataFrame, vertex: int, edge: int, term: Term) -> DataFrame:
        sent = self._sent(vertex, edge, term)
        return frame.join(sent, self._equal(vertex, edge), "left_semi")

    def _marked(self, frame: DataFrame, vertex: int, term: Term, mark: str) -> DataFrame:
        there = []
        for edge in self._query.graph.edges_at(vertex):
            frame = frame.join(self._sent(vertex, edge, term), self._equal(vertex, edge), "left")
            there += [f"`{_key(edge, k)}`" for k in range(len(self._query.graph.edges[edge].key_types))]
        met = reduce(lambda a, b: a & b, (F.col(key).isNotNull() for key in there))
        return frame.withColumn(mark, met).drop(*(key.strip("`") for key in there))

    def _equal(self, vertex: int, edge: int) -> Column:
        joined = self._query.graph.edges[edge]
        return reduce(
            lambda a, b: a & b,
            (
                F.expr(compared_text(key, str(kind))) == F.col(f"`{_key(edge, k)}`")
                for k, (key, kind) in enumerate(zip(joined.keys_of(vertex), joined.key_types, strict=True))
            ),
        )

    def _sent(self, receiver: int, edge: int, term: Term) -> DataFrame:
        """The distinct keys of what lies behind an edge, of tuples for which the factors of a term are there."""
        joined = self._query.graph.edges[edge]
        sender = joined.left if joined.right == receiver else joined.right
        frame = self._filtered(sender)
        for other in self._query.graph.edges_at(sender):
            if other != edge:
                frame = self._semi_joined(frame, sender, other, term)
        keys = [
            F.expr(compared_text(key, str(kind))).alias(_key(edge, k))
            for k, (key, kind) in enumerate(zip(joined.keys_of(sender), joined.key_types, strict=True))
        ]
        factor = term.factor_of(sender)
        if factor is None:
            return frame.select(*keys).distinct()
        # As an aggregate: a filter would be asked before the joins, of tuples that do not join.
        present = F.max(F.expr(f"CASE WHEN ({factor.expression}) IS NOT NULL THEN 1 END"))
        found = frame.groupBy(*keys).agg(present.alias("skimql present"))
        return found.where(F.col("`skimql present`") == 1).drop("skimql present")


def _key(edge: int, key: int) -> str:
    return f"skimql key {edge} {key}"
