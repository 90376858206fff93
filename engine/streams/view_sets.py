"""CREATE CONTINUOUS VIEWS: many views whose sketches are shared and sized together.

Planned as `CREATE SKETCHES` is (EDBT 2004: CoalesceJoinGraphs, ComputeSpace), on what is known before the first event:
the queries alone, or with PARTITION INTO the events that are there by then. Views that no sketches of joins answer
(COUNT(DISTINCT), key samples, a table beside several streams) are planned one by one, in an equal share of the bytes;
synopses that they have in common are kept once all the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from ...errors import BudgetExceeded, SkimqlError, UnsupportedQuery
from ...optimizer.combinations import check_aggregates
from ...optimizer.describe.workload import describe_workload
from ...optimizer.methods import KEY_SAMPLE, SAMPLE_SKETCH
from ...optimizer.plan import Synopsis, most_bytes
from ...optimizer.workload.declared import DeclaredQueries
from ...optimizer.workload.partition import LEAST_GAIN
from ...parser.join_graph import Query, Schema
from ...parser.statement import ApproximateSelect, parse_statement
from ...parser.syntax import CreateContinuousViews, Part
from ..catalog.streams import Continuous, StoredSet
from ..materialized.declared import plan_workload_of
from ..materialized.definition import now
from ..materialized.names import place_of
from ..settings import Settings
from .beside import bytes_of_keys
from .dense_keys import BYTES, is_skimmed, may_be_skimmed
from .domains import (
    NO_GAIN,
    NOTHING,
    FirstEvents,
    Pilot,
    first_events_of,
    maps_of,
    named_by_domain,
    told,
)
from .planned import PlannedView
from .refusals import unsupported
from .view_plan import own_plan, plan_text
from .views import define

# Of the squared error, for fewer rows: each costs time for every event.
MORE_ERROR = 0.1
_SELECT = re.compile(r"\s*SELECT\b", re.IGNORECASE)
_PARTS = re.compile(r"\bPARTITION\s+INTO\s+\d+", re.IGNORECASE)
_OUR_WORD = " APPROXIMATE"
# What a member of a set has no words of its own for: the set says it for all.
_FOR_ALL = {
    "size": "SIZE",
    "confidence": "CONFIDENCE",
    "options": "OPTIONS",
    "seed": "SEED",
    "error_within": "ERROR WITHIN",
}


@dataclass(frozen=True, slots=True)
class PlannedSet:
    """A set of views with their plans."""

    stored: StoredSet
    views: tuple[PlannedView, ...]


def define_set(
    statement: CreateContinuousViews,
    known: Schema,
    found: Continuous,
    ours: Settings,
    typed: Callable[[Query], Query],
    options: Mapping[str, str],
    pilot: Pilot,
) -> PlannedSet:
    """A new set of views, planned together; the arguments are those of `views.define`, and what reads first events.

    Raises
    ------
    SkimqlError
        With carets that point into the statement: if a SELECT cannot be answered from streams, a name stands twice, or
        the space is too small; as `pilot`, which is asked for PARTITION INTO alone.
    """
    sql = statement.sql
    _refuse_twice(statement)

    def member(number: int, size: int | None) -> PlannedView:
        own = replace(ours, size_bytes=size)
        return _member(statement, statement.members[number], known, found, own, typed, options)

    members = [member(n, None) for n in range(len(statement.members))]
    _refuse_parts(statement, members)
    apart = [n for n, m in enumerate(members) if _is_apart(m)]
    together = [n for n, m in enumerate(members) if n not in apart and len(m.plan.vertices) > 1]
    share = statement.size_bytes // max(1, len(apart) + len(together))
    try:
        members = [member(n, share) if n in apart else m for n, m in enumerate(members)]
    except BudgetExceeded as fault:
        enough = max(_enough(partial(member, n), share) for n in apart)
        raise BudgetExceeded(
            f"{fault.message}, which is the share of one of {len(apart) + len(together)} views",
            sql=sql,
            span=fault.span,
            hint=f"SIZE {enough * (len(apart) + len(together))}",
        ) from fault
    taken = _bytes([members[n] for n in apart])
    statement = replace(statement, size_bytes=statement.size_bytes - taken)
    stages = f"continuous views {statement.name.text}"
    if together:
        # The sketches of a group are those of all, with fewer events.
        queries = [replace(members[n].query, groups=()) for n in together]
        told_apart = any(m.told_apart for m in members)
        known_as = [members[n].view.name for n in together]
        declared, stages = _together(statement, known_as, queries, ours, pilot, skims=not told_apart)
        for n, plan in zip(together, declared.plans, strict=True):
            own = replace(own_plan(plan), query=members[n].query)
            view = replace(members[n].view, plan=plan_text(own))
            members[n] = replace(members[n], view=view, plan=own)
    if apart:
        names = ", ".join(members[n].view.name for n in apart)
        stages += f"\nplanned one by one, in {share:,} bytes each, {taken:,} together: {names}"
    elif not together:
        stages += ": no query needs a sketch, all are exact"
    if statement.partitions > 1 and not together:
        stages += "\nPARTITION INTO: no view reads sketches that would have parts"
    return PlannedSet(StoredSet(statement.name.text, stages, now()), tuple(members))


def _together(
    statement: CreateContinuousViews,
    names: Sequence[str],
    queries: Sequence[Query],
    ours: Settings,
    pilot: Pilot,
    *,
    skims: bool,
) -> tuple[DeclaredQueries, str]:
    """The plans of several views, and what each stage of planning them changed."""

    def sized(parts: int, first: FirstEvents, whole: Collection[int]) -> DeclaredQueries:
        """With room for the keys beside sketches that are skimmed."""

        def within(size: int) -> DeclaredQueries:
            own = replace(statement, partitions=parts, size_bytes=size)
            known = first.statistics, whole, MORE_ERROR
            return plan_workload_of(own, queries, ours.seed, ours.sparse, *known)

        declared = within(statement.size_bytes)
        skimmed = [p for p in map(own_plan, declared.plans) if skims and is_skimmed(p)]
        beside = BYTES * len({s for p in skimmed for s in p.synopses})
        return within(statement.size_bytes - beside) if beside else declared

    if statement.partitions == 1:
        declared = sized(1, NOTHING, ())
        return declared, describe_workload(statement.name.text, declared, [])
    try:
        first = first_events_of(queries, pilot(maps_of(queries, ours.seed)))
    except SkimqlError as fault:
        place = fault.span or _clause(statement)
        raise type(fault)(fault.message, fault.code, statement.sql, place, fault.hint) from fault
    before, after = (
        list(map(own_plan, sized(n, first, first.whole).plans)) for n in (1, statement.partitions)
    )
    pairs = [n for n, p in enumerate(after) if p.partitions and len(p.vertices) == 2]
    worse = (n for n in pairs if first.gain(before[n], after[n]) < LEAST_GAIN)
    whole = {**first.whole, **dict.fromkeys(worse, NO_GAIN)}
    declared = named_by_domain(sized(statement.partitions, first, whole))
    stages = describe_workload(statement.name.text, declared, first.relations)
    lines = told(statement.partitions, declared, {names[n]: why for n, why in sorted(whole.items())})
    return declared, "\n".join([stages, *lines])


def _refuse_parts(statement: CreateContinuousViews, members: Sequence[PlannedView]) -> None:
    """Refuse PARTITION INTO beside windows and groups, whose sketches are told apart already."""
    for view in members if statement.partitions > 1 else ():
        if view.told_apart:
            what = "windows" if view.windows else f"GROUP BY in {view.view.name}"
            way_out = "the statement without PARTITION INTO, or these views in another one"
            raise unsupported(f"PARTITION INTO beside {what}", way_out, statement.sql, _clause(statement))


def _clause(statement: CreateContinuousViews) -> tuple[int, int]:
    """Where PARTITION INTO stands, the last clause."""
    found = [m.span() for m in _PARTS.finditer(statement.sql)]
    return found[-1] if found else place_of(statement.name)


def _refuse_twice(statement: CreateContinuousViews) -> None:
    seen = {statement.name.text.lower()}
    for name, _ in statement.members:
        if name.text.lower() in seen:
            raise UnsupportedQuery(
                f"{name.text} stands twice in this statement",
                "SKIMQL_NAME_TAKEN",
                statement.sql,
                place_of(name),
                "another name for the set, or for one of the views",
            )
        seen.add(name.text.lower())


def _member(
    statement: CreateContinuousViews,
    member: tuple[Part, Part],
    known: Schema,
    found: Continuous,
    ours: Settings,
    typed: Callable[[Query], Query],
    options: Mapping[str, str],
) -> PlannedView:
    """One view, planned by itself."""
    name, part = member
    text, inserted = _approximate(part.text)
    try:
        _refuse_own_words(statement, part, text)
        alone = define(name.text, text, known, found, ours, typed, options, statement.sql)
        check_aggregates(alone.query)
    except SkimqlError as fault:
        start, end = place_of(part)
        span = fault.span
        if span is not None and fault.sql != statement.sql:
            moved = [start + p - (len(_OUR_WORD) if p >= inserted else 0) for p in span]
            span = (max(start, moved[0]), min(max(moved), end))
        raise type(fault)(
            fault.message, fault.code, statement.sql, span or (start, end), fault.hint
        ) from fault
    return replace(alone, view=replace(alone.view, set=statement.name.text))


def _is_apart(view: PlannedView) -> bool:
    """Whether its synopses are none that are planned with those of other queries."""
    several = len(view.plan.vertices) > 1
    sampled = view.query.method in (KEY_SAMPLE, SAMPLE_SKETCH)
    return view.query.counts_distinct or sampled or (several and bool(view.view.folds))


def _enough(sized: Callable[[int], PlannedView], share: int) -> int:
    """The least of `share` doubled again and again that a view can be planned in."""
    while True:
        with suppress(BudgetExceeded):
            sized(share)
            return share
        share *= 2


def _bytes(views: Iterable[PlannedView]) -> int:
    """The bytes of all synopses that views read, what is equal once; totals are in no SIZE."""
    found: dict[Synopsis, int] = {}
    for view in views:
        for s in view.plan.synopses:
            if s.method == KEY_SAMPLE:
                found[s] = bytes_of_keys(s.buckets)
            elif s.attributes:
                beside = BYTES if view.skimmed and may_be_skimmed(s) else 0
                found[s] = max(found.get(s, 0), most_bytes(s) + beside)
    return sum(found.values())


def _approximate(text: str) -> tuple[str, int]:
    """A SELECT as one of ours, and where our word was put into it: the members of a set need not say it."""
    found = _SELECT.match(text)
    if found is None or isinstance(parse_statement(text), ApproximateSelect):
        return text, len(text) + len(_OUR_WORD)
    return text[: found.end()] + _OUR_WORD + text[found.end() :], found.end()


def _refuse_own_words(statement: CreateContinuousViews, part: Part, text: str) -> None:
    select = parse_statement(text)
    if isinstance(select, ApproximateSelect):
        word = next((w for clause, w in _FOR_ALL.items() if clause in select.clause_spans), None)
        if word is not None:
            raise UnsupportedQuery(
                f"the views of {statement.name.text} have no {word} of their own",
                "SKIMQL_CLAUSE",
                statement.sql,
                place_of(part),
                "SIZE and MINIMIZE behind the queries, for all of them; leave it out here",
            )
