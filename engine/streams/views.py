"""A continuous view: its SELECT as a plan over streams, and its answer from the states of the streams.

Needs neither Spark nor the tables: schemas, types and sizes stand in the catalog since the view was created.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache

from ...errors import StreamError, UnsupportedQuery
from ...optimizer.choose import choose, plan_within
from ...optimizer.fold import residual_tree
from ...optimizer.messages import Residual, receiver_of, tree_of, whole
from ...optimizer.methods import ANSWERED, KEY_SAMPLE, SAMPLE_SKETCH
from ...optimizer.plan import Plan
from ...parser.join_graph import FEATURES, Query, Schema, TableSchema
from ...parser.resolve import resolve
from ...parser.statement import ApproximateSelect, parse_statement
from ...sketches.intervals.interval import rows_for
from ..catalog.streams import Continuous, StoredStream, StoredView
from ..materialized.definition import now
from ..queries.settings_of import settings_of
from ..results.rows import with_count
from ..settings import Settings
from .dense_keys import BYTES, is_skimmed, may_be_skimmed
from .planned import (
    CHOSEN,
    COUNTED_TYPES,
    ERROR,
    GROUP_TYPES,
    MOST_GROUPS,
    SPLIT,
    PlannedView,
    counted_types,
    with_group_types,
)
from .refusals import refuse_error, refuse_group_types, refuse_groups, unsupported
from .view_plan import plan_from, plan_text, sized_as
from .windows import Windows, windows_of, zone_of

# What a view may use beyond aggregates over one join tree.
KNOWN = ANSWERED - {"GROUP BY over several tables"}
# What USING may say.
METHODS = ("hash", "skimmed", KEY_SAMPLE, SAMPLE_SKETCH)
# What is read so far that it can be refused by its name.
_READ = frozenset(FEATURES) - {"cyclic join", "cross product"}


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
        (f"USING {found.method}", found.method not in (None, *METHODS)),
        ("BEHAVIOR", found.accuracy.behavior is not None),
    )
    for word, refused in asked:
        if refused:
            raise unsupported(
                f"{word} in a continuous view",
                f"SIZE 64 KB, CONFIDENCE 95%, USING {', '.join(METHODS)}",
                sql,
                span,
            )
    return found


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
        Finds the types of a query's keys and groups.
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
    refuse_groups(query, streams, text)
    query = with_count(query)
    folds = () if query.sets is not None else folds_of(query, streams, sql)
    query = _in_classes(typed(query), _known_classes(found, name))
    refuse_group_types(query, text)
    own = tuple(streams[t].name for t in tables if t in streams)
    if len({(streams[s.lower()].ansi, streams[s.lower()].time_zone) for s in own}) > 1:
        raise unsupported(
            "streams of other ANSI modes or time zones in one view", "CREATE OR REPLACE STREAM", sql
        )
    rows = settings.rows or rows_for(settings.confidence)
    target = select.accuracy.relative_error
    if target is not None:
        refuse_error(query, select, options, settings, text)

    tried: list[int] = []

    def sized(buckets: int) -> Plan:
        tried.append(buckets)
        return _chosen(query, own, folds, (settings.seed, rows, buckets, settings.sparse))

    size = settings.size_bytes
    try:
        plan = sized(settings.buckets) if size is None else plan_within(sized, rows, size, sql)
    except UnsupportedQuery as fault:
        if fault.code != "SKIMQL_DISTINCT_JOIN":
            raise
        raise unsupported(
            "this COUNT(DISTINCT) over streams that are joined",
            "COUNT(DISTINCT) of the join key, of values of two streams, or of one stream by itself",
            text,
            fault.span,
        ) from fault
    alone = next((s.table for s in plan.synopses if s.table.lower() not in streams), None)
    if alone is not None:
        raise unsupported(
            f"COUNT(DISTINCT) of values of table {alone}", "COUNT(DISTINCT) of columns of a stream", sql
        )
    # Totals have no size: views share them whatever theirs is.
    buckets = tried[-1] if any(s.attributes for s in plan.synopses) else settings.buckets
    windows = _windows(options, (streams[s.lower()] for s in own), sql)
    told_apart = bool(windows or query.groups)
    beside = BYTES * sum(may_be_skimmed(s) for s in plan.synopses)
    if size is not None and beside < size and is_skimmed(plan) and not told_apart:
        smaller = plan_within(sized, rows, size - beside, sql)
        if is_skimmed(smaller):
            plan, buckets = smaller, tried[-1]
    if query.method == "skimmed" and (told_apart or not is_skimmed(plan)):
        raise unsupported(
            "USING skimmed of other than two streams on one key, in sketches of 7 rows and 340 buckets or more,"
            " without windows and groups",
            "the view without USING, or a larger SIZE",
            sql,
        )
    if target is not None and query.sets is None and len(residual_of(query, folds).classes) > 1:
        raise unsupported("ERROR WITHIN over streams that are joined on several keys", "SIZE 64 KB", text)
    if query.method == KEY_SAMPLE and (told_apart or all(s.method != KEY_SAMPLE for s in plan.synopses)):
        raise unsupported(
            "USING key_sample of other than streams that are joined on one key, without windows and groups",
            "the view without USING",
            sql,
        )
    sketched = any(s.method == SAMPLE_SKETCH for s in plan.synopses)
    if query.method == SAMPLE_SKETCH and (told_apart or not sketched):
        raise unsupported(
            "USING sample_sketch of other than streams that are joined on several keys, each of them at most one stream"
            " away from one of the keys, without windows and groups",
            "the view without USING",
            sql,
        )
    like = plan
    shares = not (folds or told_apart or query.counts_distinct) and not sketched
    if size is None and shares and not settings.by_hand:
        others = [planned(v, streams) for v in found.views.values() if v.name.lower() != name.lower()]
        like = sized_as(plan, [s for v in others for n in v.view.streams for s in v.synopses_of(n)])
    view = StoredView(
        name,
        text,
        {
            **options,
            **_stored_types(query, settings.max_groups),
            **({} if target is None else {ERROR: repr(target)}),
        },
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
    return PlannedView(view, like, windows, zone_of(windows, [streams[s.lower()] for s in own], sql))


def planned(view: StoredView, streams: Mapping[str, StoredStream]) -> PlannedView:
    """The plan of a view as it was made when the view was created."""
    own = [streams[s.lower()] for s in view.streams]
    tables = (*view.tables, *(s.schema for s in own))
    sizes = (view.seed, view.rows, view.buckets, view.sparse)
    types = tuple(json.loads(view.settings.get(GROUP_TYPES, "[]")))
    counted = tuple((t, e, k) for t, e, k in json.loads(view.settings.get(COUNTED_TYPES, "[]")))
    known = (view.key_types, types, counted)
    chosen = (*sizes, view.settings.get(CHOSEN), view.settings.get(SPLIT))
    plan = _plan(
        view.select, tables, own[0].ansi, *known, view.classes, view.folds, view.streams, chosen, view.plan
    )
    windows = _windows(view.settings, own)
    return PlannedView(view, plan, windows, zone_of(windows, own))


def _stored_types(query: Query, most: int) -> dict[str, str]:
    """What a stored view says of its groups, and of the values that it counts."""
    counted = counted_types(query)
    found = {COUNTED_TYPES: json.dumps(counted)} if counted else {}
    if not query.groups:
        return found
    return {**found, MOST_GROUPS: str(most), GROUP_TYPES: json.dumps([g.type for g in query.groups])}


def _windows(
    settings: Mapping[str, str], streams: Iterable[StoredStream], sql: str = ""
) -> dict[str, Windows]:
    found = {s.name.lower(): windows_of(settings, s, sql) for s in streams}
    return {name: w for name, w in found.items() if w is not None}


@lru_cache(maxsize=256)
def _plan(
    text: str,
    tables: tuple[TableSchema, ...],
    ansi: bool,
    key_types: tuple[tuple[str, ...], ...],
    group_types: tuple[str, ...],
    counted: tuple[tuple[str, str, str], ...],
    classes: tuple[str, ...],
    folds: tuple[tuple[int, int, int], ...],
    streams: tuple[str, ...],
    sizes: tuple[int, int, int, bool, str | None, str | None],
    planned_with_others: str,
) -> Plan:
    known = _ByName({t.name.lower(): t for t in tables})
    query = resolve(select_of(text, text), known, ansi=ansi, known=KNOWN)
    query = with_count(with_group_types(query, group_types))
    if query.counts_distinct:
        from ..results.distinct import with_counted_types  # late: an answer from hash sketches does without

        query = with_counted_types(query, None, {(table, e): t for table, e, t in counted})
    edges = tuple(
        replace(edge, key_types=types, class_name=name)
        for edge, types, name in zip(query.graph.edges, key_types, classes, strict=True)
    )
    query = replace(query, graph=replace(query.graph, edges=edges))
    if planned_with_others:
        return plan_from(planned_with_others, query, sizes[0])
    return _chosen(query, streams, folds, sizes[:4], *sizes[4:])


def _chosen(
    query: Query,
    streams: Collection[str],
    folds: Iterable[tuple[int, int, int]],
    sizes: tuple[int, int, int, bool],
    method: str | None = None,
    split: str | None = None,
) -> Plan:
    """The plan of a view, by a method where one was chosen: streams have synopses, tables are messages."""
    residual = residual_of(query, folds) if query.sets is None else None
    names = {s.lower() for s in streams}
    vertices = range(len(query.graph.vertices))
    ours = [v for v in vertices if query.graph.vertices[v].table.lower() in names]
    tables = [v for v in vertices if v not in ours]
    plan = choose(query, *sizes, residual, too_large=ours, only_folded=tables)
    by = method or query.method
    if by not in (KEY_SAMPLE, SAMPLE_SKETCH) or residual is None:
        return plan
    # Late: an answer from hash sketches does without.
    if by == KEY_SAMPLE:
        from .sampled import with_key_samples

        return with_key_samples(plan, residual, sizes[1], sizes[2])
    from .sample_sketch import Split, with_sample_sketch

    return with_sample_sketch(plan, residual, sizes[1], sizes[2], None if split is None else Split.of(split))


# A stream with the keys by which it is joined, as they are compared.
_Keys = tuple[str, tuple[str, ...], tuple[str, ...]]


def _known_classes(found: Continuous, name: str) -> dict[_Keys, str]:
    """The join class that the views, but for the one of a name, have for the keys of streams."""
    known: dict[_Keys, str] = {}
    for _, view in sorted(found.views.items()):
        if view.name.lower() != name.lower():
            for synopsis in planned(view, found.streams).plan.synopses:
                for a in () if synopsis.distinct else synopsis.attributes:
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


def readers(found: Continuous, stream: str) -> tuple[PlannedView, ...]:
    """The views of a stream, planned."""
    return tuple(planned(v, found.streams) for v in found.readers(stream))
