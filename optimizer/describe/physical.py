"""A physical plan as text: what is tried, what is aimed at, and what else there was."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...parser.diagram import Diagram
from ..physical import (
    ApartJoin,
    Attempt,
    Attempted,
    ExactRun,
    MaterializedJoin,
    Nothing,
    PhysicalPlan,
    Predicted,
    SampledQuery,
    SampleJoin,
)
from .operators import draw_operators, in_all, operator_dict, operator_lines
from .plan import describe, describe_apart


def describe_physical(plan: PhysicalPlan, now: float) -> str:
    """Lines for EXPLAIN; `now` are seconds since the epoch, for the age of statistics."""
    lines = [f"answer: {_attempt(plan)}{_aim(plan)}"]
    lines += [
        f"  groups of {g.table} by {', '.join(g.expressions)}, listed when the query runs"
        for g in plan.groups
    ]
    match plan.attempt:
        case MaterializedJoin(names=kept, missing=()):
            lines.append(describe(plan.attempt.plan, kept))
        case ExactRun() | Nothing():
            pass
        case SampledQuery():
            lines += _sampled_query(plan.attempt)
        case SampleJoin(enlarges=True):
            lines += _first_sample(plan, plan.attempt)
        case ApartJoin():
            lines.append(describe_apart(plan.attempt))
        case _ if plan.choice is None or plan.attempt.plan.sample is None:
            lines.append(describe(plan.attempt.plan))
    if plan.groups and not isinstance(plan.attempt, (ExactRun, Nothing, SampleJoin, SampledQuery, ApartJoin)):
        names = " and ".join(g.table for g in plan.groups)
        lines.append(f"  the synopses of {names} once for every group")
    if plan.choice is not None:
        # What answers from kept sketches loads nothing of the predictions.
        from .choice import describe_choice

        lines.append(describe_choice(plan.choice, plan.query.graph, plan.statistics, now))
    return "\n".join([*lines, *plan.notes])


def describe_attempts(attempts: Sequence[Attempted]) -> list[str]:
    """Lines for EXPLAIN ANALYZE: what was run, with what was predicted of it and what it gave."""
    if not attempts:
        return []
    lines = ["run:"]
    for number, own in enumerate(attempts, 1):
        lines.append(f"  {number}. {_name(own.attempt)}: {own.outcome}")
        if own.operators:
            lines += [f"     {line}" for line in [*([own.note] if own.note else []), *operator_lines(own)]]
            continue
        lines.append(f"     predicted {figures(own.attempt.predicted) or 'nothing'}")
        note = f"; {own.note}" if own.note else ""
        lines.append(f"     given {_given(own)}{note}")
    return lines


def physical_dict(plan: PhysicalPlan, attempts: Sequence[Attempted] = ()) -> dict[str, Any]:
    """The plan as JSON values: what is tried first, what is aimed at, all candidates; and what was run."""
    return {
        "error": plan.error,
        "confidence": plan.confidence,
        "behavior": plan.behavior,
        "groups": [{"table": g.table, "expressions": list(g.expressions)} for g in plan.groups],
        "attempt": {"method": plan.method, "what": _name(plan.attempt), **_predicted(plan.attempt.predicted)},
        "candidates": []
        if plan.choice is None
        else [
            {
                "what": c.name,
                "half_width": _known(c.half_width(plan.confidence)),
                "cpu_seconds": _known(c.cost.seconds),
                "bytes": _known(c.nbytes),
                "taken": c is plan.choice.taken,
                "refused": c.refused or None,
            }
            for c in plan.choice.candidates
        ],
        "run": [
            {
                "method": a.attempt.method,
                "what": _name(a.attempt),
                "outcome": a.outcome,
                "predicted": _predicted(a.attempt.predicted),
                "half_width": _known(a.half_width),
                "bytes": a.nbytes,
                "seconds": a.seconds,
                "note": a.note or None,
                "operators": [operator_dict(o) for o in a.operators],
                "in_all": operator_dict(in_all(a)),
            }
            for a in attempts
        ],
    }


def draw_physical(plan: PhysicalPlan, attempts: Sequence[Attempted], drawn: Diagram) -> None:
    """Add to a diagram the groups that are listed, what is tried first, and what was run with its operators."""
    drawn.box("plan", _attempt(plan))
    for number, group in enumerate(plan.groups):
        drawn.box(f"groups{number}", f"groups of {group.table} by {', '.join(group.expressions)}")
        drawn.line(f"groups{number}", "plan", arrow=True)
    before = "plan"
    for number, own in enumerate(attempts):
        drawn.box(f"run{number}", f"{_name(own.attempt)}: {own.outcome}", _given(own))
        drawn.line(before, f"run{number}", arrow=True)
        draw_operators(own.operators, f"run{number}", drawn)
        before = f"run{number}"


def figures(predicted: Predicted) -> str:
    """What is predicted, as far as anything is."""
    parts = []
    if not math.isnan(predicted.half_width):
        parts.append("exact" if not predicted.half_width else f"±{predicted.half_width:.2%}")
    if not math.isnan(predicted.nbytes):
        parts.append(f"{predicted.nbytes / 1024:,.0f} KB")
    if not math.isnan(predicted.seconds):
        parts.append(f"{predicted.seconds:.2g} CPU s")
    return ", ".join(parts)


def _attempt(plan: PhysicalPlan) -> str:
    told, attempt = figures(plan.attempt.predicted), plan.attempt
    name = _name(attempt)
    return f"{name}, predicted {told}" if told and not isinstance(attempt, (Nothing, ExactRun)) else name


def _name(attempt: Attempt) -> str:
    match attempt:
        case ExactRun():
            return "the exact run, by Spark"
        case Nothing():
            return f"known: {attempt.reason}"
        case MaterializedJoin():
            return f"from the catalog: {', '.join(attempt.names)}"
        case SampleJoin(plan=plan) if plan.sample is not None:
            return f"{attempt.method.replace('_', ' ')}, one in {1 / max(plan.sample.rate, 1e-12):,.0f} keys"
        case SampledQuery(rate=1.0):
            return "sampled query of all keys: the exact run, by Spark"
        case SampledQuery():
            return f"sampled query, one in {1 / attempt.rate:,.0f} keys"
    return attempt.method.replace("_", " ")


def _given(own: Attempted) -> str:
    wide = "exact" if not own.half_width else f"±{own.half_width:.2%}"
    told = "nothing" if math.isnan(own.half_width) else wide
    return f"{told}, {own.nbytes / 1024:,.0f} KB, {own.seconds:.2g} s"


def _predicted(predicted: Predicted) -> dict[str, float | None]:
    return {
        "half_width": _known(predicted.half_width),
        "cpu_seconds": _known(predicted.seconds),
        "bytes": _known(predicted.nbytes),
    }


def _known(figure: float) -> float | None:
    return float(figure) if math.isfinite(figure) else None


def _aim(plan: PhysicalPlan) -> str:
    return "" if plan.error is None else f"; aimed at ±{plan.error:.2g} at {plan.confidence:.4g} confidence"


def _sampled_query(attempt: SampledQuery) -> list[str]:
    lines = [f"  the keys {attempt.class_name} of {', '.join(attempt.tables)}"]
    if attempt.whole:
        lines.append(f"  read whole: {', '.join(attempt.whole)}")
    if attempt.dense:
        lines.append(f"  all tuples of {len(attempt.dense)} keys that many have, by a look at some")
    if attempt.rate == 1.0:
        return [*lines, *([f"  {attempt.why}"] if attempt.why else [])]
    if attempt.enlarges:
        lines.append(
            "  more keys where the interval misses the asked error and that costs less than the exact run"
        )
    return [*lines, "  Spark runs:", *(f"    {line}" for line in attempt.sql.splitlines())]


def _first_sample(plan: PhysicalPlan, attempt: SampleJoin) -> list[str]:
    kept = attempt.plan.sample
    assert kept is not None, "a sample join has a sample"
    lines = [
        f"  sample the keys {kept.class_name} of large tables, one in {1 / kept.rate:,.0f} at first",
        "  more where the interval misses the asked error; run exactly where that is cheaper than a sample that",
        "  would be enough",
    ]
    for vertex, tuples in zip(plan.query.graph.vertices, attempt.expected, strict=True):
        behind = "" if vertex.filter is None else " behind its filter"
        lines.append(f"  {vertex.alias}: {tuples:,.0f} tuples{behind}, by its files")
    for (member, _), most in zip(kept.members, kept.counted, strict=False):
        if math.isfinite(most):
            alias = plan.query.graph.vertices[attempt.plan.vertices[member]].alias
            lines.append(
                f"  {alias}: its files are in the order of the keys; those of more than {most:,.0f} are kept"
            )
    return lines
