"""A continuous view: its SELECT as a plan over streams, and its answer from the states of the streams.

Needs neither Spark nor the tables: schemas, types and sizes stand in the catalog since the view was created.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import StreamError, UnsupportedQuery
from ...optimizer.choose import choose, plan_within
from ...optimizer.fold import residual_tree
from ...optimizer.messages import Residual, receiver_of, tree_of, whole
from ...optimizer.methods import ANSWERED, DISTINCT, GROUPING
from ...optimizer.plan import Plan, Synopsis
from ...parser.join_graph import FEATURES, Query, Schema, TableSchema
from ...parser.resolve import resolve
from ...parser.statement import ApproximateSelect, parse_statement
from ...sketches.intervals.interval import Estimate, rows_for
from ..catalog.streams import Continuous, StoredStream, StoredView
from ..execution.partial_aggregate import sketch_plan
from ..materialized.definition import now
from ..queries.settings_of import settings_of
from ..results.answer import Answer
from ..results.columns import arrow_type
from ..results.estimator import SketchJoin
from ..results.expressions import Evaluator
from ..results.rows import Estimated
from ..results.skimmed import SkimmedJoin
from ..settings import Settings
from ..synopses import Built, Tally
from .dense_keys import BYTES, NONE, candidates, is_skimmed, may_be_skimmed
from .state import StreamState, events
from .view_plan import plan_from, plan_text, sized_as

# What a view may use beyond aggregates over one join tree.
KNOWN = (ANSWERED - GROUPING - DISTINCT) | {"HAVING", "ORDER BY", "LIMIT", "OFFSET"}
# What USING may say of two streams on one key.
METHODS = ("hash", "skimmed")
# What is read so far that it can be refused by its name.
_READ = frozenset(FEATURES) - {"cyclic join", "cross product"}


@dataclass(frozen=True, slots=True)
class PlannedView:
    """A view with its plan; the synopses of the plan are all of streams."""

    view: StoredView
    plan: Plan

    @property
    def query(self) -> Query:
        """The resolved SELECT, types known."""
        return self.plan.query

    def synopses_of(self, stream: str) -> tuple[Synopsis, ...]:
        """What it needs of a stream."""
        return tuple(s for s in self.plan.synopses if s.table.lower() == stream.lower())

    def asked_of(self, stream: str) -> tuple[Synopsis, ...]:
        """What every batch of a stream is to tell: what is needed, and the keys that may be dense in it."""
        own = self.synopses_of(stream)
        skimmed = is_skimmed(self.plan)
        return (*own, *(candidates(s) for s in own if skimmed and may_be_skimmed(s)))


def select_of(text: str, sql: str, span: tuple[int, int] | None = None) -> ApproximateSelect:
    """The SELECT of a view.

    Raises
    ------
    UnsupportedQuery
        If it is no SELECT to be estimated.
    StreamError
        ``SKIMQL_STREAM_UNSUPPORTED`` for a clause that views do not honour.
    """
    found = parse_statement(text)
    if not isinstance(found, ApproximateSelect):
        raise UnsupportedQuery(
            "a continuous view is of a SELECT APPROXIMATE",
            "SKIMQL_UNSUPPORTED_STATEMENT",
            sql,
            span,
            "AS SELECT APPROXIMATE COUNT(*) FROM ...",
        )
    asked = (
        ("ERROR WITHIN", found.accuracy.relative_error is not None),
        (f"USING {found.method}", found.method not in (None, *METHODS)),
        ("BEHAVIOR", found.accuracy.behavior is not None),
    )
    for word, refused in asked:
        if refused:
            raise unsupported(
                f"{word} in a continuous view", "SIZE 64 KB, CONFIDENCE 95%, USING hash or skimmed", sql, span
            )
    return found


def unsupported(what: str, hint: str, sql: str = "", span: tuple[int, int] | None = None) -> StreamError:
    """The refusal of what streams do not do in this version."""
    return StreamError(
        f"{what}: streams do not support this in this version", "SKIMQL_STREAM_UNSUPPORTED", sql, span, hint
    )


def folds_of(query: Query, streams: Collection[str], sql: str) -> tuple[tuple[int, int, int], ...]:
    """The exact messages of a query: every table that is no stream is folded into its neighbour, towards a stream.

    Raises
    ------
    StreamError
        If it reads no stream, or a table joins two of them.
    """
    graph = query.graph
    ours = {v for v, vertex in enumerate(graph.vertices) if vertex.table.lower() in streams}
    if not ours:
        raise StreamError(
            "the view reads no stream",
            "SKIMQL_NO_STREAM",
            sql,
            hint="SELECT APPROXIMATE over tables alone; CREATE STREAM ... for events",
        )
    residual = whole(tree_of(graph))
    while True:
        leaf = next((v for v in residual.leaves if v not in ours and len(residual.vertices) > 1), None)
        if leaf is None:
            break
        residual = residual.without(leaf, receiver_of(residual, leaf))
    between = [v for v in residual.vertices if v not in ours]
    if between:
        table = graph.vertices[between[0]].table
        raise unsupported(
            f"table {table} joins two streams on different keys", "a view of each stream with the table", sql
        )
    return tuple((f.sender, f.receiver, f.joined) for f in residual.folds)


def residual_of(query: Query, folds: Iterable[tuple[int, int, int]]) -> Residual:
    """What is left of the join after the exact messages."""
    residual = whole(tree_of(query.graph))
    for sender, receiver, _ in folds:
        residual = residual.without(sender, receiver)
    residual_tree(query.graph, residual)
    return residual


def define(
    name: str,
    text: str,
    known: Schema,
    found: Continuous,
    ours: Settings,
    typed: Callable[[Query], Query],
    options: Mapping[str, str],
    sql: str,
) -> PlannedView:
    """A new view, with all that its answers will need.

    Parameters
    ----------
    name, text : str
        `text` is its SELECT.
    known : Schema
        The tables that are no streams, by name.
    found : Continuous
        The streams, and the views that are there already.
    ours : Settings
        The session's.
    typed : callable
        Finds the types of a query's keys.
    options : mapping of str to str
        What WITH says.
    sql : str
        The statement, for errors.

    Raises
    ------
    SkimqlError
        If the SELECT cannot be resolved, or not be answered from streams.
    """
    select, streams = select_of(text, sql), found.streams
    settings = settings_of(ours, select)
    first = next(iter(streams.values()), None)
    query = resolve(select, _With(known, streams), ansi=first is None or first.ansi, known=_READ)
    beyond = next((f for f in query.features if f.name not in KNOWN), None)
    if beyond is not None:
        place = (beyond.span.start, beyond.span.end)
        raise unsupported(
            f"{beyond.name} in a continuous view", "aggregates over one join, without it", text, place
        )
    if query.empty:
        raise unsupported(f"a view that no event can be in ({query.empty})", "another WHERE", sql)
    tables = {v.table.lower(): v.table for v in query.graph.vertices}
    folds = folds_of(query, streams, sql)
    query = _in_classes(typed(query), _known_classes(found, name))
    own = tuple(streams[t].name for t in tables if t in streams)
    if len({(streams[s.lower()].ansi, streams[s.lower()].time_zone) for s in own}) > 1:
        raise unsupported(
            "streams of other ANSI modes or time zones in one view", "CREATE OR REPLACE STREAM", sql
        )
    rows = settings.rows or rows_for(settings.confidence)
    residual = residual_of(query, folds)

    def sized(buckets: int) -> Plan:
        return choose(query, settings.seed, rows, buckets, settings.sparse, residual)

    size = settings.size_bytes
    plan = sized(settings.buckets) if size is None else plan_within(sized, rows, size, sql)
    beside = BYTES * sum(may_be_skimmed(s) for s in plan.synopses)
    if size is not None and beside < size and is_skimmed(plan):
        within = plan_within(sized, rows, size - beside, sql)
        plan = within if is_skimmed(within) else plan
    if query.method == "skimmed" and not is_skimmed(plan):
        raise unsupported(
            "USING skimmed of other than two streams on one key, in sketches of 7 rows and 340 buckets or more",
            "the view without USING, or a larger SIZE",
            sql,
        )
    like = plan
    if size is None and not settings.by_hand and not folds:
        others = [v for v in found.views.values() if v.name.lower() != name.lower()]
        like = sized_as(plan, [s for v in others for s in planned(v, streams).plan.synopses])
    buckets = max((s.buckets for s in plan.synopses if s.attributes), default=settings.buckets)
    view = StoredView(
        name,
        text,
        dict(options),
        settings.seed,
        rows,
        buckets,
        settings.sparse,
        settings.confidence,
        folds,
        tuple(tuple(t for t in e.key_types if t is not None) for e in query.graph.edges),
        tuple(e.class_name for e in query.graph.edges),
        own,
        tuple(known[t] for low, t in tables.items() if low not in streams),
        now(),
        plan="" if like == plan else plan_text(like),
    )
    return PlannedView(view, like)


def planned(view: StoredView, streams: Mapping[str, StoredStream]) -> PlannedView:
    """The plan of a view as it was made when the view was created."""
    own = [streams[s.lower()] for s in view.streams]
    tables = (*view.tables, *(s.schema for s in own))
    sizes = (view.seed, view.rows, view.buckets, view.sparse)
    plan = _plan(view.select, tables, own[0].ansi, view.key_types, view.classes, view.folds, sizes, view.plan)
    return PlannedView(view, plan)


@lru_cache(maxsize=256)
def _plan(
    text: str,
    tables: tuple[TableSchema, ...],
    ansi: bool,
    key_types: tuple[tuple[str, ...], ...],
    classes: tuple[str, ...],
    folds: tuple[tuple[int, int, int], ...],
    sizes: tuple[int, int, int, bool],
    planned_with_others: str,
) -> Plan:
    known = _ByName({t.name.lower(): t for t in tables})
    query = resolve(select_of(text, text), known, ansi=ansi, known=KNOWN)
    edges = tuple(
        replace(edge, key_types=types, class_name=name)
        for edge, types, name in zip(query.graph.edges, key_types, classes, strict=True)
    )
    query = replace(query, graph=replace(query.graph, edges=edges))
    if planned_with_others:
        return plan_from(planned_with_others, query, sizes[0])
    return choose(query, *sizes, residual_of(query, folds))


# A stream with the keys by which it is joined, as they are compared.
_Keys = tuple[str, tuple[str, ...], tuple[str, ...]]


def _known_classes(found: Continuous, name: str) -> dict[_Keys, str]:
    """The join class that the views, but for the one of a name, have for the keys of streams."""
    known: dict[_Keys, str] = {}
    for _, view in sorted(found.views.items()):
        if view.name.lower() != name.lower():
            for synopsis in planned(view, found.streams).plan.synopses:
                for a in synopsis.attributes:
                    known.setdefault((synopsis.table.lower(), a.keys, a.key_types), a.class_name)
    return known


def _in_classes(query: Query, known: Mapping[_Keys, str]) -> Query:
    """The query with the join classes of others on the same keys, as far as none of its own has that name."""
    graph, edges = query.graph, list(query.graph.edges)
    for number, edge in enumerate(edges):
        types = tuple(t for t in edge.key_types if t is not None)
        for vertex, keys in ((edge.left, edge.left_keys), (edge.right, edge.right_keys)):
            name = known.get((graph.vertices[vertex].table.lower(), keys, types))
            if name is not None and all(e.class_name != name for e in edges if e is not edge):
                edges[number] = replace(edge, class_name=name)
                break
    return replace(query, graph=replace(graph, edges=tuple(edges)))


class _With(Mapping[str, TableSchema]):
    """Tables, and streams in front of them."""

    def __init__(self, tables: Schema, streams: Mapping[str, StoredStream]) -> None:
        self._tables, self._streams = tables, streams

    def __getitem__(self, name: str) -> TableSchema:
        stream = self._streams.get(name.lower())
        return self._tables[name] if stream is None else stream.schema

    def __iter__(self) -> Iterator[str]:
        yield from (s.name for s in self._streams.values())
        yield from self._tables

    def __len__(self) -> int:
        return sum(1 for _ in self)


class _ByName(dict[str, TableSchema]):
    """Tables by name, whatever its case."""

    def __getitem__(self, name: str) -> TableSchema:
        return super().__getitem__(name.lower())

    def __contains__(self, name: object) -> bool:
        return super().__contains__(str(name).lower())


def answer(planned_view: PlannedView, states: Mapping[str, StreamState], bounds: bool = True) -> Answer:
    """The answer of a view from the states of its streams, by lower-cased name: after a whole batch of each."""
    view, plan = planned_view.view, planned_view.plan
    joined = joined_of(planned_view, states)
    found = Estimated(plan.query, {(): Evaluator(plan, joined, view.confidence)}).answer()
    return replace(
        found,
        rows=tuple(tuple(map(_cell, row)) for row in found.rows),
        types=tuple(arrow_type(item.type) for item in plan.query.items),
        notes=(*_as_of(planned_view, states), *found.notes),
        method=method_of(joined),
        bounds=bounds,
    )


def method_of(joined: SketchJoin) -> str:
    """By what a view is answered."""
    return "skimmed" if isinstance(joined, SkimmedJoin) else joined.plan.method


def joined_of(planned_view: PlannedView, states: Mapping[str, StreamState]) -> SketchJoin:
    """The sketches of a view, ready to be asked: skimmed where keys are known that may be dense."""
    plan = planned_view.plan
    built = tuple(_built(s, plan, states[s.table.lower()]) for s in plan.synopses)
    deletions = any(states[s.lower()].tally(events(s)).negative for s in _names(plan))
    dense = _dense(plan, states) if is_skimmed(plan) else NONE
    if len(dense):
        return SkimmedJoin(plan, built, dense, deletions=deletions)
    return SketchJoin(plan, built, deletions=deletions)


def _dense(plan: Plan, states: Mapping[str, StreamState]) -> NDArray[np.int64]:
    """The keys that may be dense in any of the sketches."""
    found = (states[s.table.lower()].summary(s, plan.seed) for s in plan.synopses)
    return np.unique(np.concatenate([NONE, *(f.dense for f in found if f is not None)]))


def _names(plan: Plan) -> tuple[str, ...]:
    return tuple(dict.fromkeys(s.table for s in plan.synopses))


def _built(synopsis: Synopsis, plan: Plan, state: StreamState) -> Built:
    found = state.summary(synopsis, plan.seed)
    if found is None:
        return Built(sketch_plan(synopsis, plan.seed, "int64").empty(), Tally(), 1.0)
    return found.built


def _cell(cell: Any) -> Any:
    value: object = cell.value if isinstance(cell, Estimate) else None
    if isinstance(value, Fraction):
        return replace(cell, value=float(value), low=float(value), high=float(value))
    return cell


def _as_of(planned_view: PlannedView, states: Mapping[str, StreamState]) -> tuple[str, ...]:
    """Which events an answer has, one sentence each."""
    told, later = [], []
    for name in planned_view.view.streams:
        state = states[name.lower()]
        if state.batch is None:
            told.append(f"no batch of {name} yet")
            continue
        told.append(f"batch {state.batch} of {name} ({state.updated})")
        own = [state.summary(s, planned_view.plan.seed) for s in planned_view.synopses_of(name)]
        since = max((state.next_batch if s is None else s.since for s in own), default=0)
        if since > 0:
            later.append(f"it counts the events of {name} from batch {since} on: the view was created then")
    senders = {
        m.table: s.at
        for state in states.values()
        for m, s in state.messages.items()
        if any(m.table == t.name for t in planned_view.view.tables)
    }
    tables = [f"table {table} as of {at}" for table, at in sorted(senders.items())]
    return (f"as of {', '.join(told)}", *tables, *later)


def readers(found: Continuous, stream: str) -> tuple[PlannedView, ...]:
    """The views of a stream, planned."""
    return tuple(planned(v, found.streams) for v in found.readers(stream))
