"""Exact aggregates of a query from its join graph: messages of whole integers, groups carried with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...optimizer.plan import Plan
from ...parser.join_graph import Edge, Factor, Query, SetLeaf, SetOperation, Term
from ...parser.result_types import digits
from ...sketches.intervals.interval import Estimate, exact
from ...sketches.joins.accumulate import integer_sums
from ..execution.known_groups import ABSOLUTE, JOINED, known_of
from .build import explained
from .casts import cast, unscaled, whole_unscaled
from .expressions import evaluate, passing
from .groups import numbered, ranks, values_at
from .keys import compared
from .tables import MemoryTables
from .values import Value, is_decimal, is_integer, not_known

Ints = npt.NDArray[np.int64]
Numbers = npt.NDArray[Any]  # int64, float64, or objects: integers of any size
SMALL = float(1 << 62)
LONGEST_LONG = 18  # digits


@dataclass(frozen=True, slots=True)
class ExactGroup:
    """The values of the GROUP BY expressions, and every aggregate of the query."""

    values: tuple[Any, ...]
    aggregates: tuple[Estimate, ...]


def exact_groups(query: Query, tables: MemoryTables) -> tuple[ExactGroup, ...]:
    """The aggregates of every group that joins anything, in the order of the groups; of an ungrouped query, of all.

    Parameters
    ----------
    query : Query
        With every `key_types` of its edges known.
    tables : MemoryTables

    Raises
    ------
    UnsupportedQuery
        If an expression is not known in memory, or the graph is no tree.
    DataError
        If a value cannot be computed.
    """
    if query.sets is not None:
        with explained(Plan(query, 0, (), (), (), (), ()), "a set"):
            return (ExactGroup((), (exact(_Sets(query, tables).count()),)),)
    if len(query.graph.edges) != len(query.graph.vertices) - 1:
        raise not_known("a query that joins no tree")
    names = " and ".join(dict.fromkeys(v.table for v in query.graph.vertices))
    with explained(Plan(query, 0, (), (), (), (), ()), names):
        groups = () if query.empty else _Run(query, tables).groups()
    if not groups and not query.groups:
        return (ExactGroup((), known_of(query, None)),)
    return tuple(ExactGroup(values, known_of(query, row)) for values, row in groups)


@dataclass(frozen=True, slots=True)
class _Rows:
    """Joined tuples, or sums of them: the key towards the parent, what is carried along, a weight for each term."""

    keys: Ints
    carried: dict[tuple[str, int], Ints]
    weights: list[Numbers]


class _Run:
    def __init__(self, query: Query, tables: MemoryTables) -> None:
        self.query, self.tables, self.graph = query, tables, query.graph
        self.tuples = [self._tuples(v) for v in range(len(self.graph.vertices))]
        asked = [
            (f"s{a}_{part}_{t}", term)
            for a, aggregate in enumerate(query.aggregates)
            for part, terms in (("total", aggregate.total), ("presence", aggregate.presence))
            for t, term in enumerate(terms)
        ]
        self.names = dict(asked)
        self.terms: list[Term] = list(dict.fromkeys((Term(), *(Term(t.factors) for _, t in asked))))
        self.scales: dict[Factor, int] = {}
        weights = [self._weights(v) for v in range(len(self.graph.vertices))]
        doubles = {
            t for t, *w in zip(self.terms, *weights, strict=True) if any(x.dtype == np.float64 for x in w)
        }
        # Behind the sums those of absolute values, for the terms that are sums of doubles.
        self.absolute = {
            term: len(self.terms) + n for n, term in enumerate(t for t in self.terms if t in doubles)
        }
        places = [self.terms.index(t) for t in self.absolute]
        self.weights = [w + [np.abs(w[p].astype(np.float64)) for p in places] for w in weights]
        self.distinct: list[Factor] = list(dict.fromkeys(f for a in query.aggregates for f in a.distinct))
        self.grouped = [self._evaluated(g.vertex, g.expression) for g in query.groups]

    def groups(self) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
        """The values of every group and its sums by name, as `known_of` reads them."""
        root = self._summed(0, None)
        group_columns = [root.carried["group", n] for n in range(len(self.grouped))]
        which, first = numbered(group_columns, len(root.keys))
        totals = [_sums(w, which, len(first)) for w in root.weights]
        distinct = [self._distinct(n, root, which, len(first)) for n in range(len(self.query.aggregates))]
        values = self._group_values([c[first] for c in group_columns], len(first))
        return [(values[g], self._row(totals, distinct, g)) for g in range(len(first))]

    def _row(self, totals: Sequence[Numbers], distinct: Sequence[Ints | None], group: int) -> dict[str, Any]:
        row: dict[str, Any] = {}
        for name, term in self.names.items():
            total = totals[self.terms.index(Term(term.factors))][group]
            scale = sum(self.scales[f] for f in term.factors)
            if isinstance(total, (float, np.floating)):
                row[name] = float(total) / 10.0**scale
                row[name + ABSOLUTE] = float(totals[self.absolute[Term(term.factors)]][group]) / 10.0**scale
            else:
                row[name] = Fraction(int(total), 10**scale) if scale else int(total)
        row[JOINED] = int(totals[0][group])
        row |= {f"d{a}": int(counts[group]) for a, counts in enumerate(distinct) if counts is not None}
        return row

    def _distinct(self, aggregate: int, root: _Rows, which: Ints, groups: int) -> Ints | None:
        asked = self.query.aggregates[aggregate].distinct
        if not asked:
            return None
        columns = [root.carried["distinct", self.distinct.index(f)] for f in asked]
        known = np.all([c > 0 for c in columns], axis=0)
        _, first = numbered([which[known], *(c[known] for c in columns)], int(known.sum()))
        return np.bincount(which[known][first], minlength=groups).astype(np.int64)

    def _group_values(self, columns: Sequence[Ints], groups: int) -> tuple[tuple[Any, ...], ...]:
        if not columns:
            return ((),) * groups
        found = []
        for value, wanted in zip(self.grouped, columns, strict=True):
            distinct, first = np.unique(ranks(value), return_index=True)
            rows = first[np.searchsorted(distinct, wanted)]
            found.append([v for (v,) in values_at([value], rows, self.tables.zone)])
        return tuple(zip(*found, strict=True))

    def _tuples(self, vertex: int) -> pa.Table:
        own = self.graph.vertices[vertex]
        table = self.tables.table(own.table)
        rows = passing(own.filter, table, self.tables.zone)
        return table if rows is None else table.filter(rows)

    def _evaluated(self, vertex: int, expression: str) -> Value:
        return evaluate(expression, self.tuples[vertex], self.tables.zone)

    def _summed(self, vertex: int, above: int | None) -> _Rows:
        """The join of a vertex with everything below it, summed by the key of the edge above and what is carried."""
        rows = self._own(vertex)
        places = np.arange(len(rows.keys))
        for number in self.graph.edges_at(vertex):
            if number == above:
                continue
            edge = self.graph.edges[number]
            below = self._summed(edge.right if vertex == edge.left else edge.left, number)
            left, right = _pairs(self._codes(edge, vertex)[places], below.keys)
            rows = _Rows(
                rows.keys[left],
                {k: v[left] for k, v in rows.carried.items()}
                | {k: v[right] for k, v in below.carried.items()},
                [_times(a[left], b[right]) for a, b in zip(rows.weights, below.weights, strict=True)],
            )
            places = places[left]
        keys = np.zeros(len(places), np.int64)
        if above is not None:
            keys = self._codes(self.graph.edges[above], vertex)[places]
        known = keys >= 0
        columns = [keys[known], *(c[known] for c in rows.carried.values())]
        which, first = numbered(columns, int(known.sum()))
        return _Rows(
            columns[0][first],
            {k: c[known][first] for k, c in rows.carried.items()},
            [_sums(w[known], which, len(first)) for w in rows.weights],
        )

    def _own(self, vertex: int) -> _Rows:
        count = self.tuples[vertex].num_rows
        carried = {
            ("group", n): ranks(self.grouped[n])
            for n, g in enumerate(self.query.groups)
            if g.vertex == vertex
        }
        carried |= {
            ("distinct", n): ranks(self._evaluated(vertex, f.expression))
            for n, f in enumerate(self.distinct)
            if f.vertex == vertex
        }
        return _Rows(np.zeros(count, np.int64), carried, self.weights[vertex])

    def _weights(self, vertex: int) -> list[Numbers]:
        """What every tuple of a vertex adds to each term."""
        count = self.tuples[vertex].num_rows
        return [self._weight(t.factor_of(vertex), count) for t in self.terms]

    def _weight(self, factor: Factor | None, count: int) -> Numbers:
        if factor is None:
            return np.ones(count, np.int64)
        value = self._evaluated(factor.vertex, factor.expression)
        self.scales[factor] = 0
        if factor.presence:
            present: Numbers = value.data.is_valid().to_numpy(zero_copy_only=False).astype(np.int64)
            return present
        if is_integer(value.kind):
            return _simple(cast(value, "bigint").data, 0)
        if is_decimal(value.kind):
            precision, scale = digits(value.kind)
            self.scales[factor] = scale
            if precision <= LONGEST_LONG:
                return _simple(unscaled(value.data), 0)
            return np.array([n or 0 for n in whole_unscaled(value.data)], object)
        return _simple(cast(value, "double").data, 0.0)

    def _codes(self, edge: Edge, vertex: int) -> Ints:
        """Equal numbers where the keys of an edge's two sides are equal, -1 where any part is NULL."""
        sides = (edge.left, edge.right)
        counts = [self.tuples[v].num_rows for v in sides]
        columns, known = [], np.ones(sum(counts), bool)
        for k, kind in enumerate(edge.key_types):
            parts = [
                compared(self._evaluated(v, edge.keys_of(v)[k]), str(kind), self.tables.zone) for v in sides
            ]
            found = ranks(Value(parts[0].kind, pa.concat_arrays([p.data for p in parts])))
            known &= found > 0
            columns.append(found)
        which, _ = numbered(columns, sum(counts))
        codes = np.where(known, which, -1)
        return codes[: counts[0]] if vertex == edge.left else codes[counts[0] :]


class _Sets:
    """The sets of a set expression, as numbers of the combinations of values in them."""

    def __init__(self, query: Query, tables: MemoryTables) -> None:
        assert query.sets is not None, "a set expression"
        self._sets = query.sets
        self._leaves = _leaves_of(query.sets)
        parts = [self._columns(query, tables, leaf) for leaf in self._leaves]
        counts = [len(columns[0]) for columns in parts]
        together = [
            ranks(Value(columns[0].kind, pa.concat_arrays([c.data for c in columns])))
            for columns in zip(*parts, strict=True)
        ]
        which, first = numbered(together, sum(counts))
        # A combination with a NULL is not counted, though it may be in a set.
        self._known = np.all([column[first] > 0 for column in together], axis=0)
        ends = np.cumsum(counts)
        self._members = [np.unique(which[end - count : end]) for count, end in zip(counts, ends, strict=True)]

    def count(self) -> int:
        """How many elements are counted."""
        return int(self._known[self._of(self._sets)].sum())

    def _of(self, part: SetLeaf | SetOperation) -> Ints:
        if isinstance(part, SetLeaf):
            return self._members[self._leaves.index(part)]
        left, right = self._of(part.left), self._of(part.right)
        match part.operator:
            case "union":
                return np.union1d(left, right)
            case "intersect":
                return np.intersect1d(left, right)
        return np.setdiff1d(left, right)

    def _columns(self, query: Query, tables: MemoryTables, leaf: SetLeaf) -> list[Value]:
        own = query.graph.vertices[leaf.vertex]
        table = tables.table(own.table)
        rows = passing(own.filter, table, tables.zone)
        table = table if rows is None else table.filter(rows)
        kinds = ("bigint" if is_integer(kind) else kind for kind in leaf.types)
        pairs = zip(leaf.columns, kinds, strict=True)
        return [compared(evaluate(c, table, tables.zone), kind, tables.zone) for c, kind in pairs]


def _leaves_of(part: SetLeaf | SetOperation) -> list[SetLeaf]:
    return [part] if isinstance(part, SetLeaf) else [*_leaves_of(part.left), *_leaves_of(part.right)]


def _pairs(left: Ints, right: Ints) -> tuple[Ints, Ints]:
    """The places of all pairs of equal keys; -1 equals nothing."""
    order = np.argsort(right, kind="stable")
    ordered = right[order]
    starts, ends = np.searchsorted(ordered, left), np.searchsorted(ordered, left, side="right")
    counts = np.where(left < 0, 0, ends - starts)
    first = np.repeat(np.arange(len(left)), counts)
    within = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    return first, order[np.repeat(starts, counts) + within]


def _times(a: Numbers, b: Numbers) -> Numbers:
    if a.dtype == b.dtype == np.int64 and _largest(a) * _largest(b) < SMALL:
        kind: type = np.int64
    else:
        # Integers of any size; what meets a double is one.
        kind = np.float64 if np.float64 in (a.dtype, b.dtype) else object
    found: Numbers = a.astype(kind) * b.astype(kind)
    return found


def _sums(weights: Numbers, which: Ints, count: int) -> Numbers:
    if weights.dtype == np.float64:
        return np.bincount(which, weights, count)
    if weights.dtype == np.int64 and _largest(weights) * len(weights) < SMALL:
        return integer_sums(which, weights, count)
    found = np.zeros(count, object)
    np.add.at(found, which, weights.astype(object))
    return found


def _largest(weights: Numbers) -> float:
    return float(np.abs(weights.astype(np.float64)).max(initial=0.0))


def _simple(data: pa.Array, zero: float) -> Numbers:
    filled: Numbers = data.fill_null(zero).to_numpy(zero_copy_only=False)
    return filled
