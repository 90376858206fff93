"""What a statement's BEHAVIOR does where the asked error is missed after the last attempt."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ...errors import AccuracyNotReached
from ...parser.join_graph import Query
from ...parser.statement import ApproximateSelect
from ..results.answer import Answer
from ..results.rows import Estimated, GroupNumbers, groups_text
from ..settings import Settings
from .settings_of import span_of

if TYPE_CHECKING:
    from ...sketches.intervals.interval import Estimate

PARTLY = "partial_run_on_base_table"


def runs_in_full(settings: Settings, query: Query) -> bool:
    """Whether the whole query is run exactly; with groups `PARTLY` has run those that missed."""
    return settings.behavior == "run_on_full_table" or (settings.behavior == PARTLY and not query.groups)


def with_exact_groups(
    answer: Answer,
    estimated: Estimated,
    error: float | None,
    run: Callable[[Sequence[GroupNumbers]], Mapping[GroupNumbers, Sequence[Estimate]]],
    notes: tuple[str, ...],
) -> Answer:
    """An answer of which some groups are run exactly: those that miss the asked error, and those at the edge of LIMIT.

    Parameters
    ----------
    answer : Answer
        Of the last attempt.
    estimated : Estimated
        What it is of.
    error : float or None
        The asked one.
    run : callable
        Gives the exact aggregates of some groups.
    notes : tuple of str
        What is told of the attempts so far.
    """
    missed = () if error is None else estimated.missed(error)
    why = (
        "the asked error was missed" if missed else "LIMIT could not tell which of them belong to the answer"
    )
    groups = list(dict.fromkeys((*missed, *estimated.at_edge())))
    if not groups:
        return answer
    started = time.perf_counter()
    known = run(groups)
    note = f"{groups_text(len(groups))} run exactly, since {why}"
    found = estimated.with_known(known).answer()
    seconds = {**answer.seconds, "exact": time.perf_counter() - started}
    return replace(found, seconds=seconds, notes=(*notes, note, *found.notes))


def missed_fault(select: ApproximateSelect, notes: Sequence[str], *, ran: bool) -> AccuracyNotReached:
    """The refusal of an answer that misses the error; `notes` say how far, and `ran` whether it was run exactly."""
    return AccuracyNotReached(
        next(iter(notes), "groups that the sample has not met may be there"),
        sql=select.sql,
        span=span_of(select.clause_spans, "error_within"),
        hint="the sum of CAST(... AS DECIMAL(38, 6)), whose digits no order of adding decides"
        if ran
        else "more buckets: OPTIONS (buckets = ...), or BEHAVIOR 'run_on_full_table'",
    )
