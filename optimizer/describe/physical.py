"""A physical plan as text: what is tried, what is aimed at, and what else there was."""

from __future__ import annotations

import math

from ..physical import ExactRun, MaterializedJoin, Nothing, PhysicalPlan, Predicted, SampleJoin
from .choice import describe_choice
from .plan import describe


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
        case SampleJoin(enlarges=True):
            lines += _first_sample(plan, plan.attempt)
        case _ if plan.choice is None or plan.attempt.plan.sample is None:
            lines.append(describe(plan.attempt.plan))
    if plan.groups and not isinstance(plan.attempt, (ExactRun, Nothing, SampleJoin)):
        names = " and ".join(g.table for g in plan.groups)
        lines.append(f"  the synopses of {names} once for every group")
    if plan.choice is not None:
        lines.append(describe_choice(plan.choice, plan.query.graph, plan.statistics, now))
    return "\n".join([*lines, *plan.notes])


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
    attempt = plan.attempt
    match attempt:
        case ExactRun():
            name = "the exact run, by Spark"
        case Nothing():
            name = f"known: {attempt.reason}"
        case MaterializedJoin():
            name = f"from the catalog: {', '.join(attempt.names)}"
        case _:
            name = attempt.method.replace("_", " ")
    told = figures(attempt.predicted)
    return f"{name}, predicted {told}" if told and not isinstance(attempt, (Nothing, ExactRun)) else name


def _aim(plan: PhysicalPlan) -> str:
    return "" if plan.error is None else f"; aimed at ±{plan.error:.2g} at {plan.confidence:.4g} confidence"


def _first_sample(plan: PhysicalPlan, attempt: SampleJoin) -> list[str]:
    kept = attempt.plan.sample
    assert kept is not None, "a sample join has a sample"
    lines = [
        f"  sample the keys {kept.class_name} of large tables, one in {1 / kept.rate:,.0f} at first",
        "  more where a filter keeps little, which a glance at it tells when the query runs, and where the",
        "  interval misses the asked error; run exactly where that is cheaper than a sample that would be enough",
    ]
    for vertex, tuples in zip(plan.query.graph.vertices, attempt.expected, strict=True):
        lines.append(f"  {vertex.alias}: {tuples:,.0f} tuples by its files")
    return lines
