"""CREATE CONTINUOUS VIEWS: many views whose sketches are shared and sized together.

Planned as `CREATE SKETCHES` is (EDBT 2004: CoalesceJoinGraphs, ComputeSpace), on what is known before the first event:
the queries alone. Views that no sketches of joins answer (COUNT(DISTINCT), key samples, a table beside several streams)
are planned one by one, in an equal share of the bytes; synopses that they have in common are kept once all the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from ...errors import BudgetExceeded, SkimqlError, UnsupportedQuery
from ...optimizer.combinations import check_aggregates
from ...optimizer.describe.workload import describe_workload
from ...optimizer.methods import KEY_SAMPLE
from ...optimizer.plan import Synopsis, most_bytes
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
from .planned import PlannedView
from .refusals import unsupported
from .view_plan import own_plan, plan_text
from .views import define

_SELECT = re.compile(r"\s*SELECT\b", re.IGNORECASE)
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
) -> PlannedSet:
    """A new set of views, planned together; the arguments are those of `views.define`.

    Raises
    ------
    SkimqlError
        With carets that point into the statement: if a SELECT cannot be answered from streams, a name stands twice, or
        the space is too small.
    """
    sql = statement.sql
    if statement.partitions > 1:
        raise unsupported(
            "PARTITION INTO: the domains of events that are yet to come are not known",
            "the statement without PARTITION INTO",
            sql,
            place_of(statement.name),
        )
    _refuse_twice(statement)

    def member(number: int, size: int | None) -> PlannedView:
        own = replace(ours, size_bytes=size)
        return _member(statement, statement.members[number], known, found, own, typed, options)

    members = [member(n, None) for n in range(len(statement.members))]
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
        declared = plan_workload_of(statement, queries, ours.seed, ours.sparse, {})
        # The keys that may be dense stand beside the sketches that are skimmed.
        told_apart = any(m.told_apart for m in members)
        skimmed = [] if told_apart else [p for p in map(own_plan, declared.plans) if is_skimmed(p)]
        read = {s for p in skimmed for s in p.synopses}
        beside = BYTES * len(read)
        if beside:
            smaller = replace(statement, size_bytes=statement.size_bytes - beside)
            declared = plan_workload_of(smaller, queries, ours.seed, ours.sparse, {})
        for n, plan in zip(together, declared.plans, strict=True):
            own = replace(own_plan(plan), query=members[n].query)
            view = replace(members[n].view, plan=plan_text(own))
            members[n] = replace(members[n], view=view, plan=own)
        stages = describe_workload(statement.name.text, declared, [])
    if apart:
        names = ", ".join(members[n].view.name for n in apart)
        stages += f"\nplanned one by one, in {share:,} bytes each, {taken:,} together: {names}"
    elif not together:
        stages += ": no query needs a sketch, all are exact"
    return PlannedSet(StoredSet(statement.name.text, stages, now()), tuple(members))


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
    return (
        view.query.counts_distinct or view.query.method == KEY_SAMPLE or (several and bool(view.view.folds))
    )


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
