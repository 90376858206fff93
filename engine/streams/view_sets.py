"""CREATE CONTINUOUS VIEWS: many views whose sketches are shared and sized together.

Planned as `CREATE SKETCHES` is (EDBT 2004: CoalesceJoinGraphs, ComputeSpace), on what is known before the first event:
the queries alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from ...errors import SkimqlError, UnsupportedQuery
from ...optimizer.combinations import check_aggregates
from ...optimizer.describe.workload import describe_workload
from ...optimizer.methods import KEY_SAMPLE
from ...parser.join_graph import Query, Schema
from ...parser.statement import ApproximateSelect, parse_statement
from ...parser.syntax import CreateContinuousViews, Part
from ..catalog.streams import Continuous, StoredSet
from ..materialized.declared import plan_workload_of
from ..materialized.definition import now
from ..materialized.names import place_of
from ..settings import Settings
from .dense_keys import BYTES, is_skimmed
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
    alone = replace(ours, size_bytes=None)
    members = [_member(statement, m, known, found, alone, typed, options) for m in statement.members]
    together = [n for n, m in enumerate(members) if len(m.plan.vertices) > 1]
    for n in together:
        if members[n].view.folds:
            raise unsupported(
                f"a table beside several streams in a set of views ({members[n].view.name})",
                f"CREATE CONTINUOUS VIEW {members[n].view.name} AS {members[n].view.select}, by itself",
                sql,
                place_of(statement.members[n][1]),
            )
    stages = f"continuous views {statement.name.text}: no query needs a sketch, all are exact"
    if together:
        # The sketches of a group are those of all, with fewer events.
        queries = [replace(members[n].query, groups=()) for n in together]
        declared = plan_workload_of(statement, queries, ours.seed, ours.sparse, {})
        # The keys that may be dense stand beside the sketches that are skimmed.
        apart = any(m.told_apart for m in members)
        skimmed = [] if apart else [p for p in map(own_plan, declared.plans) if is_skimmed(p)]
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
        _refuse_alone(statement, alone)
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


def _refuse_alone(statement: CreateContinuousViews, view: PlannedView) -> None:
    """Refuse a view whose synopses cannot be planned with those of others."""
    known = (
        ("COUNT(DISTINCT)", view.query.counts_distinct),
        (f"USING {KEY_SAMPLE}", view.query.method == KEY_SAMPLE),
    )
    for what, found in known:
        if found:
            name = view.view.name
            raise unsupported(
                f"{what} in a set of views ({name})",
                f"CREATE CONTINUOUS VIEW {name} AS ..., by itself",
                statement.sql,
            )


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
