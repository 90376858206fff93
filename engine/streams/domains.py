"""PARTITION INTO over streams: the domains of join keys are split as the first events of the streams say.

A part is a set of ranges of 64-bit keys, and the ranges cover all of them: whatever key comes, known to the pilot or
not, inserted or deleted, it belongs to one part. Keys that stand out in the pilot are ranges by themselves. Which
parts there are is fixed when the views are created; events of other keys than the first ones make sketches that gain
less, and half of the space is divided evenly against that, but no wrong ones.

References
----------
.. [1] A. Dobra, M. Garofalakis, J. Gehrke, R. Rastogi, SIGMOD 2002, Section 4.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import StreamError
from ...optimizer.domain_partition import DomainPartition
from ...optimizer.plan import Attribute, Plan, Scan, Synopsis, Weight
from ...optimizer.prediction.histograms import Histogram, equi_depth
from ...optimizer.prediction.relation import RelationStatistics
from ...optimizer.workload.declared import DeclaredQueries
from ...optimizer.workload.plan import Column
from ...optimizer.workload.share import Attribute as JoinColumn
from ...optimizer.workload.share import VirtualRelation
from ...parser.join_graph import Edge, Query
from ...sketches.joins.estimate import JoinTerm, sum_estimate
from ...sketches.joins.skim import skim
from ...sketches.joins.skim_join import skimmed_join
from ...sketches.ranking import by_weight
from ..catalog.file import canonical
from ..execution.partial_aggregate import MOST_HEAVY, sketch_plan
from ..synopses import Built
from .by_error import PILOT_BUCKETS, no_pilot, self_join_sizes
from .dense_keys import is_skimmed

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
# The synopses of a plan of maps, of the first events of every stream in it.
Pilot = Callable[[Plan], Mapping[Synopsis, Built]]

MOST_ALONE = 256  # keys of a class that are ranges by themselves
LEAST_EVENTS = 30  # of such a key: of fewer the pilot says little
RANGES = 64
# What a range without any key of the pilot weighs: it goes where keys are that are as frequent on both sides.
UNSEEN = 1e-6
TRIALS = 12
_JOINED = [(0, 1, 0, 0)]
SMALLEST, GREATEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max

NO_GAIN = "as tried on the first events, parts do not lower its error by a factor of 1.2"
NOTHING_JOINS = "nothing joins in the first events"
TOO_MANY_KEYS = "the first events have too many keys to count them one by one"


@dataclass(frozen=True, slots=True, eq=False)
class ColumnWeights:
    """The keys of a column, ascending, how much each weighs absolutely, and how many weighs what an event does."""

    keys: Ints
    weights: Floats
    event: float

    def inside(self, synopsis: Synopsis, domains: Mapping[str, DomainPartition]) -> ColumnWeights:
        """The keys in the part of a synopsis of one attribute."""
        if not synopsis.cell or not domains:
            return self
        domain = domains[synopsis.attributes[0].class_name]
        own = domain.part_of(self.keys) == synopsis.cell[0]
        return replace(self, keys=self.keys[own], weights=self.weights[own])


@dataclass(frozen=True, slots=True)
class FirstEvents:
    """What a pilot says of the join keys of several queries.

    Attributes
    ----------
    statistics : mapping of (VirtualRelation, JoinColumn) to Histogram
    relations : tuple of RelationStatistics
        The same for people.
    whole : mapping of int to str
        The queries of which nothing can be said, by number, and why.
    weights : mapping of (VirtualRelation, JoinColumn) to ColumnWeights
        The keys themselves.
    """

    statistics: Mapping[Column, Histogram]
    relations: tuple[RelationStatistics, ...]
    whole: Mapping[int, str]
    weights: Mapping[Column, ColumnWeights]

    def gain(self, before: Plan, after: Plan) -> float:
        """By what factor a COUNT from two hash sketches errs less in parts, `after`, than from whole ones, `before`.

        The lesser of what their variances and `TRIALS` trials on the keys of the pilot say: of keys that are frequent
        in both streams the median of the rows errs much less than its variance says, in parts or not. The plans are of
        a query of which something is known.
        """
        tried = [self._tried(p) for p in (before, after)]
        predicted = [self._predicted(p) for p in (before, after)]
        return min(b / a if a else 1.0 for b, a in (tried, predicted))

    def _predicted(self, plan: Plan) -> float:
        """The predicted standard error of a row, in some unit.

        The variance is the sum over parts of ``(F2(f) F2(g) + F2(d) F2(g) + F2(e) F2(f)) / (rows buckets)``, d and e
        being the keys that stand out: skimming takes them out, and without it two of them rarely share a bucket, of
        which the median of the rows takes no note.
        """
        variance = 0.0
        for sketches, columns in self._cells(plan):
            (f, d), (g, e) = (self_join_sizes(c.weights, sketches[0].buckets, True) for c in columns)
            variance += (f * g + d * g + e * f) / (sketches[0].rows * sketches[0].buckets)
        return math.sqrt(variance)

    def _tried(self, plan: Plan) -> float:
        """The root mean square error of sketches of the first events."""
        (_, whole), *_ = self._cells(replace(plan, partitions=()))
        left, right = whole
        _, own, other = np.intersect1d(left.keys, right.keys, assume_unique=True, return_indices=True)
        truth = float(left.weights[own] @ right.weights[other])
        found = [_estimate(self._cells(plan), is_skimmed(plan), seed) for seed in range(TRIALS)]
        return math.sqrt(float(np.mean(np.square(np.array(found) - truth))))

    def _cells(self, plan: Plan) -> list[tuple[list[Synopsis], list[ColumnWeights]]]:
        """The sketches that are joined with each other, part by part, counting, and the keys of each."""
        (edge,), domains = plan.query.graph.edges, dict(plan.partitions)
        columns = dict(zip((edge.left, edge.right), _ends(plan.query, edge), strict=True))
        terms = {tuple(plan.synopses[i].cell for i in t.synopses): t for t in plan.aggregates[0].total}
        found = []
        for term in terms.values():
            sketches = [plan.synopses[i] for i in term.synopses]
            rows = min(s.rows for s in sketches)
            bare = [replace(s, rows=rows, weight=Weight(), sparse=False) for s in sketches]
            known = [self.weights[columns[v]] for v in plan.vertices]
            found.append((bare, [w.inside(s, domains) for w, s in zip(known, sketches, strict=True)]))
        return found


NOTHING = FirstEvents({}, (), {}, {})


def no_first_events(why: str) -> StreamError:
    """The refusal of parts for which nothing is known."""
    return no_pilot(
        why, "PARTITION INTO", "the statement without PARTITION INTO, or once the events are there"
    )


def maps_of(queries: Sequence[Query], seed: int) -> Plan:
    """What the pilot counts: the keys of every join column, one map each."""
    found = tuple(dict.fromkeys(_map_of(c) for q in queries for e in q.graph.edges for c in _ends(q, e)))
    tables = dict.fromkeys(s.table for s in found)
    scans = tuple(Scan(t, tuple(i for i, s in enumerate(found) if s.table == t)) for t in tables)
    return Plan(queries[0], seed, found, scans, (), (), ())


def first_events_of(queries: Sequence[Query], built: Mapping[Synopsis, Built]) -> FirstEvents:
    """What the maps of the pilot say; `built` are those of `maps_of` for the same queries."""
    found = {_column_of(s): _weights(b) for s, b in built.items()}
    weights = {c: w for c, w in found.items() if w is not None}
    statistics: dict[Column, Histogram] = {}
    for own in _classes(queries):
        known = {c: weights[c] for c in own if c in weights}
        starts = _starts(list(known.values()))
        statistics |= {c: _histogram(w, starts) for c, w in known.items()}
    now = time.time()
    relations = {
        (c[0].table, c[0].filter): RelationStatistics(
            float(built[_map_of(c)].tally.tuples), source="pilot", gathered_at=now
        )
        for c in found
    }
    whole = {n: why for n, q in enumerate(queries) if (why := _nothing_known(q, weights)) is not None}
    return FirstEvents(statistics, tuple(relations.values()), whole, weights)


def named_by_domain(declared: DeclaredQueries) -> DeclaredQueries:
    """The queries with their partitioned classes named after the parts.

    A state has its sketches by what they are of: those of other parts are others, though the set has the same name.
    """
    names = {name: f"{name}/{_digest(domain)}" for name, domain in declared.plans[0].partitions}

    def attribute(own: Attribute) -> Attribute:
        return replace(own, class_name=names.get(own.class_name, own.class_name))

    synopses = tuple(
        replace(s, attributes=tuple(map(attribute, s.attributes))) for s in declared.plans[0].synopses
    )
    partitions = tuple((names[name], domain) for name, domain in declared.plans[0].partitions)
    plans = tuple(replace(p, synopses=synopses, partitions=partitions) for p in declared.plans)
    return replace(declared, plans=plans)


def told(most: int, declared: DeclaredQueries, whole: Mapping[str, str]) -> Iterator[str]:
    """What came of PARTITION INTO, for people, a line each; `whole` has views that are not partitioned, and why."""
    yield f"PARTITION INTO {most}, planned from the first events: " + (
        f"{len(declared.plans[0].partitions)} of the domains in parts, later keys in that whose range they are in"
        if declared.plans[0].partitions
        else "no domain is in parts, as no predicted error would be lower by a factor of 1.2"
    )
    for name, why in whole.items():
        yield f"  {name} whole: {why}"


def _digest(domain: DomainPartition) -> str:
    return hashlib.sha256(canonical([list(domain.lows), list(domain.labels)])).hexdigest()[:16]


def _ends(query: Query, edge: Edge) -> tuple[Column, Column]:
    """The columns of an edge."""

    def column(v: int) -> Column:
        vertex = query.graph.vertices[v]
        return VirtualRelation(vertex.table, vertex.filter), JoinColumn(edge.keys_of(v), edge.key_types)

    return column(edge.left), column(edge.right)


def _map_of(column: Column) -> Synopsis:
    relation, joined = column
    attribute = Attribute(joined.keys, tuple(t or "" for t in joined.types), "pilot")
    return Synopsis(relation.table, relation.filter, (attribute,), Weight(), "hash", 1, PILOT_BUCKETS)


def _column_of(synopsis: Synopsis) -> Column:
    (attribute,) = synopsis.attributes
    relation = VirtualRelation(synopsis.table, synopsis.filter)
    return relation, JoinColumn(attribute.keys, attribute.key_types)


def _weights(built: Built) -> ColumnWeights | None:
    """None where there were too many keys."""
    sketch: Any = built.sketch
    if sketch.exact is None:
        return None
    event = built.tally.mass / built.tally.tuples if built.tally.mass else 1.0
    weights = np.abs(sketch.exact.weights.astype(np.float64))
    return ColumnWeights(sketch.exact.columns[0], weights, event)


def _classes(queries: Iterable[Query]) -> list[set[Column]]:
    """The columns that joins connect."""
    found: list[set[Column]] = []
    for query in queries:
        for edge in query.graph.edges:
            ends = set(_ends(query, edge))
            found = [*(own for own in found if not own & ends), ends.union(*(o for o in found if o & ends))]
    return found


def _starts(columns: Sequence[ColumnWeights]) -> Ints:
    """Where the ranges of a class begin: the smallest key first, keys that stand out in any column alone."""
    keys = np.unique(np.concatenate([np.empty(0, np.int64), *(c.keys for c in columns)]))
    shares, alone = np.zeros(len(keys)), np.zeros(len(keys), bool)
    for column in columns:
        at = np.searchsorted(keys, column.keys)
        shares[at] = np.maximum(shares[at], column.weights / max(column.weights.sum(), 1e-300))
        alone[at] |= column.weights >= LEAST_EVENTS * column.event
    heaviest = by_weight(np.where(alone, shares, 0.0), MOST_ALONE)
    heavy = keys[heaviest][alone[heaviest]]
    light = ~np.isin(keys, heavy)
    ranges = equi_depth(keys[light], shares[light], RANGES).lows
    return np.unique(np.concatenate([[SMALLEST], heavy, heavy[heavy < GREATEST] + 1, ranges]))


def _histogram(column: ColumnWeights, starts: Ints) -> Histogram:
    """A column in the ranges of its class."""
    at = np.searchsorted(starts, column.keys, side="right") - 1
    counts = np.bincount(at, column.weights, len(starts))
    distinct = np.bincount(at, minlength=len(starts)).astype(np.float64)
    nothing = max(UNSEEN * float(counts.sum()), UNSEEN)
    ends = np.append(starts[1:] - 1, GREATEST)
    return Histogram(starts, ends, np.where(distinct > 0, counts, nothing), np.maximum(distinct, 1.0))


def _estimate(
    cells: Sequence[tuple[Sequence[Synopsis], Sequence[ColumnWeights]]], skims: bool, seed: int
) -> float:
    """A COUNT from sketches of a seed."""
    terms: list[JoinTerm] = []
    for synopses, columns in cells:
        made: dict[Synopsis, Any] = {}  # one sketch for both sides of a self-join
        for s, column in zip(synopses, columns, strict=True):
            made[s] = sketch_plan(s, seed, "int64").empty()
            made[s].update([column.keys], column.weights.astype(np.int64))
        if skims:
            heaviest = [c.keys[by_weight(c.weights, MOST_HEAVY)] for c in columns]
            dense = np.unique(np.concatenate(heaviest))
            apart = {s: skim(sketch.dense(), [dense]) for s, sketch in made.items()}
            return skimmed_join([apart[s] for s in synopses], _JOINED).value
        terms.append(JoinTerm(tuple(made[s] for s in synopses)))
    return sum_estimate(terms, _JOINED).value


def _nothing_known(query: Query, weights: Mapping[Column, ColumnWeights]) -> str | None:
    for edge in query.graph.edges:
        if any(c not in weights for c in _ends(query, edge)):
            return TOO_MANY_KEYS
        left, right = (weights[c] for c in _ends(query, edge))
        if not len(np.intersect1d(left.keys, right.keys, assume_unique=True)):
            return NOTHING_JOINS
    return None
