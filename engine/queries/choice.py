"""The choice among all candidates, by statistics: the one that meets what is asked, else the best that can be had."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from ...errors import AccuracyNotReached, BudgetExceeded, UnsupportedQuery
from ...optimizer.candidates.candidate import NoMethod
from ...optimizer.candidates.enumerate import choose_method
from ...optimizer.choose import plan_of
from ...optimizer.combinations import route_fault
from ...optimizer.messages import tree_of
from ...optimizer.methods import METHODS, is_linear
from ...optimizer.route import obstacle
from .request import Request

if TYPE_CHECKING:
    from ...optimizer.candidates.candidate import Choice
    from ...optimizer.objective import Objective
    from ...optimizer.prediction.relation import RelationStatistics

# Of what is kept where the asked error is out of reach.
BEST_EFFORT_BYTES = 16 << 20


def choose_candidate(
    request: Request, statistics: tuple[RelationStatistics, ...], fold_bytes: int, groups: Mapping[int, int]
) -> Choice:
    """Put the candidates side by side and take the cheapest that is predicted to give what is asked.

    Parameters
    ----------
    request : Request
    statistics : tuple of RelationStatistics
        One for each vertex.
    fold_bytes : int
        Most bytes of an exact message.
    groups : mapping of int to int
        How many groups each grouped vertex has.

    Raises
    ------
    UnsupportedQuery
        If a forced method does not apply.
    BudgetExceeded
        If the asked size is too small for any method.
    AccuracyNotReached
        If nothing is predicted to meet the asked error, and running exactly is no candidate.
    """
    objective, unmade = request.objective(fold_bytes, groups), ""
    try:
        while True:
            choice = choose_method(tree_of(request.query.graph), statistics, objective)
            reason = _unmade(request, choice)
            if not reason:
                return choice
            # What no JVM makes is none of the candidates any more.
            unmade = unmade or reason
            others = tuple(m for m in objective.methods if m != choice.taken.method)
            objective = replace(objective, methods=others)
    except NoMethod as fault:
        if unmade:
            raise route_fault(request.query.sql, unmade) from fault
        best = _best_effort(request, fault, statistics, objective)
        if best is not None:
            return best
        forced = request.select.method
        own = [c for c in fault.candidates if forced is not None and c.method == request.forced]
        if forced is not None and not own:
            code, hint = "SKIMQL_UNKNOWN_METHOD", "another method, or no USING"
            why = f"{forced} cannot answer this: it is {METHODS[forced].what}"
            raise UnsupportedQuery(why, code, request.query.sql, hint=hint) from fault
        told = own or fault.candidates[:4]
        reasons = "; ".join(dict.fromkeys(f"{c.name}: {c.refused}" for c in told))
        if forced == "exact" and request.settings.size_bytes is None:
            why = f"exact messages alone do not do: {'; '.join(dict.fromkeys(c.refused for c in told))}"
            hint = "a larger skimql.fold_bytes, or EXACT SELECT ..."
            raise UnsupportedQuery(why, "SKIMQL_UNKNOWN_METHOD", request.query.sql, hint=hint) from fault
        if request.settings.size_bytes is not None:
            raise BudgetExceeded(
                f"{request.settings.size_bytes:,} bytes are too few: {reasons}",
                sql=request.query.sql,
                hint="a larger SIZE",
            ) from fault
        raise AccuracyNotReached(
            f"no method is predicted to meet the asked error: {reasons}",
            sql=request.query.sql,
            hint="OPTIONS (cache = false)"
            if request.settings.cache
            else "a larger skimql.max_bytes or skimql.max_exact_seconds, or EXACT SELECT ...",
        ) from fault


def _unmade(request: Request, choice: Choice) -> str:
    """Why the JVM cannot make the sketches of a choice, where it is to; empty otherwise."""
    taken = choice.taken
    if request.settings.route != "jvm" or taken.method == "exact_run" or taken.sample is not None:
        return ""
    return obstacle(plan_of(request.query, choice, request.settings.seed, request.settings.sparse)) or ""


def _best_effort(
    request: Request, fault: NoMethod, statistics: tuple[RelationStatistics, ...], objective: Objective
) -> Choice | None:
    """The least predicted error where nothing meets the asked one and the exact run would not end."""

    exact = next((c for c in fault.candidates if c.method == "exact_run"), None)
    hopeless = not request.may_run or (exact is not None and bool(exact.refused))
    forced = request.select.method
    if not hopeless or objective.size_bytes is not None or (forced is not None and not is_linear(forced)):
        return None
    size = min(request.settings.max_bytes, BEST_EFFORT_BYTES)
    try:
        choice = choose_method(
            tree_of(request.query.graph),
            statistics,
            replace(objective, relative_error=None, size_bytes=size),
        )
    except NoMethod as nothing:
        if forced is not None:
            return None
        told = exact.refused if exact is not None else "is not asked for"
        raise BudgetExceeded(
            f"an exact run {told}, and no sketch fits: {nothing}",
            sql=request.query.sql,
            hint="a larger skimql.max_bytes",
        ) from nothing
    return replace(choice, candidates=(*choice.candidates, *([] if exact is None else [exact])))
