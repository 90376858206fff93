"""A plan as text: its scans in order, and the synopses that each feeds."""

from __future__ import annotations

from .plan import BYTES_PER_COUNTER, Plan, Synopsis
from .route import sentence


def describe(plan: Plan) -> str:
    """One line per scan and per synopsis, with the most bytes that each can take."""
    lines = [f"plan: {len(plan.scans)} scans, {len(plan.synopses)} synopses, seed {plan.seed}"]
    for scan in plan.scans:
        lines.append(f"  scan {scan.table}")
        lines += [f"    {i}: {_synopsis(plan.synopses[i])}" for i in scan.synopses]
    if any(s.attributes for s in plan.synopses):
        lines.append(f"  sketches {sentence(plan)}")
    total = sum(_most_bytes(s) for s in plan.synopses)
    lines.append(f"  at most {total / 1024:,.0f} KB of counters")
    return "\n".join(lines)


def _synopsis(synopsis: Synopsis) -> str:
    weight = synopsis.weight
    measured = "tuples" if weight.expression is None else weight.expression
    if weight.presence:
        measured = f"tuples where {measured} is not NULL"
    classes = ", ".join(a.class_name for a in synopsis.attributes)
    if not synopsis.attributes:
        text = f"total of {measured}"
    else:
        text = f"{synopsis.method} {synopsis.rows} x {synopsis.buckets:,} of {measured} by {classes}"
        if synopsis.sparse:
            text += ", exact map first"
    return text + (f" where {synopsis.filter}" if synopsis.filter else "")


def _most_bytes(synopsis: Synopsis) -> int:
    counters = synopsis.rows * synopsis.buckets if synopsis.attributes else 1
    return BYTES_PER_COUNTER * counters
