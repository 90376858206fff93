"""A plan as text: its scans in order, and the synopses that each feeds."""

from __future__ import annotations

from collections.abc import Sequence

from ..methods import LEVEL, PAIRS
from ..physical import ApartJoin
from ..plan import Attribute, Message, Plan, Synopsis, Weight, most_bytes
from ..route import sentence


def describe(plan: Plan, kept: Sequence[str] = ()) -> str:
    """One line per scan and per synopsis, with the most bytes that each can take; `kept` names kept sketches."""
    scans = (
        count(len(plan.scans), "scan") if not kept else f"no scan, from the kept sketches {', '.join(kept)}"
    )
    lines = [f"plan: {scans}; {count(len(plan.synopses), 'synopsis', 'synopses')}, seed {plan.seed}"]
    for scan in plan.scans:
        lines.append(f"  {'of' if kept else 'scan'} {scan.table}")
        lines += [f"    {i}: {_synopsis(plan.synopses[i])}" for i in scan.synopses]
    if not kept and any(s.attributes for s in plan.synopses):
        lines.append(f"  sketches {sentence(plan)}")
    total = sum(most_bytes(s) for s in plan.synopses)
    lines.append(f"  at most {total / 1024:,.0f} KB of counters")
    return "\n".join(lines)


def describe_apart(attempt: ApartJoin) -> str:
    """One line per scan and synopsis of what is built of each table by itself."""
    lines = [
        f"plan: {count(len(attempt.synopses), 'scan')} of each table by itself, seed {attempt.plan.seed}"
    ]
    for own in attempt.synopses:
        sizes = dict(own.parameters)
        if own.method in ("key_sample", "two_level", "sample_sketch"):
            size = f"of {own.buckets:,} {'entries' if own.method == 'sample_sketch' else 'keys'}"
        else:
            size = f"{own.rows} x {own.buckets:,}"
        size += f" and {count(sizes['dense'], 'dense key')}" if sizes.get("dense") else ""
        classes = ", ".join(a.class_name for a in own.attributes) or "no key"
        text = (
            f"  scan {own.table}: {own.method} {size} by {classes}; {', '.join(map(_measured, own.weights))}"
        )
        text += f" where {own.filter}" if own.filter else ""
        lines.append(text + (f", for each group by {', '.join(own.groups)}" if own.groups else ""))
    return "\n".join([*lines, *(["  kept in the catalog"] if attempt.keeps else [])])


def count(number: int, one: str, several: str = "") -> str:
    """``1 scan``, ``2 scans``."""
    return f"{number:,} {one if number == 1 else several or one + 's'}"


def _synopsis(synopsis: Synopsis) -> str:
    measured = _measured(synopsis.weight)
    classes = ", ".join(a.class_name for a in synopsis.attributes)
    if synopsis.method == LEVEL:
        text = f"level sketch {synopsis.rows} x {synopsis.buckets:,} of distinct {_columns(synopsis.attributes[0])}"
    elif synopsis.method == PAIRS:
        sampled, partners = map(_columns, synopsis.attributes)
        text = f"sample of {synopsis.rows:,} distinct {sampled} with all their {partners}"
    elif not synopsis.attributes:
        text = f"total of {measured}"
    else:
        text = f"{synopsis.method} {synopsis.rows} x {synopsis.buckets:,} of {measured} by {classes}"
    if synopsis.attributes and synopsis.sparse:
        text += ", exact map first"
    text += f" where {synopsis.filter}" if synopsis.filter else ""
    return text + "".join(f", {_message(m)}" for m in synopsis.messages)


def _measured(weight: Weight) -> str:
    if weight.expression is None:
        return "tuples"
    return f"tuples where {weight.expression} is not NULL" if weight.presence else weight.expression


def _columns(attribute: Attribute) -> str:
    return f"({', '.join(attribute.keys)})"


def _message(message: Message) -> str:
    where = f" where {message.filter}" if message.filter else ""
    inner = "".join(f", {_message(m)}" for m in message.messages)
    return f"with an exact message from {message.table} by {message.sender.class_name}{where}{inner}"
