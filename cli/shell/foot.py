"""The line under a result: by what it came, in how many bytes, what was read, how old that is, how long it took."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from ... import Answer, Estimate

_AS_OF = re.compile(r"as of (\d{4}-\d\d-\d\dT[\d:.]+Z?)")


def foot(
    answer: Answer, read: Mapping[str, float | None], wall: float, cpu: float, now: datetime | None = None
) -> str:
    """What stands under a result of tables; nothing under a text.

    Parameters
    ----------
    answer : Answer
    read : mapping of str to float or None
        The tables of which something was read, with their tuples as far as that is known.
    wall, cpu : float
        Seconds of the statement, and of this process meanwhile.
    now : datetime, optional
        For the age of kept sketches.
    """
    times = f"{_seconds(wall)}, {_seconds(cpu)} of CPU here"
    if answer.is_text or not answer.names:
        return ""
    if not answer.attempts:
        rows = len(answer.rows)
        return f"{rows:,} row{'' if rows == 1 else 's'}; {times}" if rows or answer.exact else times
    own = answer.attempts[-1]
    parts = [_certainty(answer), _method(answer), *_read(answer, read), *_age(answer, now)]
    if any(not c.certified for row in answer.rows for c in row if isinstance(c, Estimate)):
        parts.append("not certified")
    if own.nbytes:
        parts[1] = f"{parts[1]}, {_bytes(own.nbytes)}".lstrip(", ")
    return "; ".join([*filter(None, parts), times])


def _certainty(answer: Answer) -> str:
    cells = [c for row in answer.rows for c in row if isinstance(c, Estimate) and not c.exact]
    if answer.exact or not cells:
        return "exact"
    return " and ".join(f"{100 * c:g} %" for c in sorted({c.confidence for c in cells})) + " interval"


def _method(answer: Answer) -> str:
    method = answer.method.replace("_", " ")
    if method == "exact run":
        return "run by Spark"
    plan = answer.plan
    sizes = {(s.rows, s.buckets) for s in plan.synopses if s.attributes} if plan and not plan.sample else ()
    told = f" {' and '.join(f'{r} x {b:,}' for r, b in sorted(sizes))}" if 0 < len(sizes) < 3 else ""
    return f"{method}{told}"


def _read(answer: Answer, read: Mapping[str, float | None]) -> Iterator[str]:
    """The tuples that were read, and their share of the tables."""
    if not read:
        # Of an exact run it may not be known what was read.
        yield from ["no scan"] if tables_read(answer) == [] else []
        return
    operators = list(_all(answer.attempts[-1].operators))
    total = sum(n or 0.0 for n in read.values()) if None not in read.values() else None
    sampled = [
        o for o in operators if o.kind == "sample" and o.actual is not None and o.actual.rows is not None
    ]
    if sampled:
        kept = sum(float(o.actual.rows or 0) for o in sampled if o.actual is not None)
        share = f" of {total:,.0f} ({_percent(kept / total)})" if total else ""
        yield f"{kept:,.0f}{share} tuples kept"
    elif total:
        yield f"{total:,.0f} tuples read, all there are"


def tables_read(answer: Answer) -> list[str] | None:
    """The tables of which something was read for an answer; None where the plan does not tell."""
    if not answer.attempts:
        return []
    kinds = {o.kind for o in _all(answer.attempts[-1].operators)}
    if "load" in kinds and not kinds & {"scan", "sample"}:
        return []
    own: Any = answer.attempts[-1].attempt
    plan = answer.plan or getattr(own, "plan", None)
    query = getattr(plan, "query", None)
    return sorted({v.table for v in query.graph.vertices}) if query is not None else None


def _age(answer: Answer, now: datetime | None) -> Iterator[str]:
    stamps = [s for note in answer.notes for s in _AS_OF.findall(note)]
    if not stamps:
        return
    then = min(datetime.fromisoformat(s.replace("Z", "+00:00")) for s in stamps)
    then = then if then.tzinfo else then.replace(tzinfo=UTC)
    yield f"built {age_text(((now or datetime.now(UTC)) - then).total_seconds())} ago"


def age_text(seconds: float) -> str:
    """``40 s``, ``3 min``, ``26 h``, ``5 days``."""
    for size, most, unit in ((1, 90, "s"), (60, 90, "min"), (3600, 48, "h")):
        if seconds / size < most:
            return f"{max(seconds, 0) / size:.0f} {unit}"
    return f"{seconds / 86400:,.0f} days"


def _all(operators: Any) -> Iterator[Any]:
    for one in operators:
        yield one
        yield from _all(one.inputs)


def _percent(share: float) -> str:
    return f"{100 * min(share, 1.0):.2g} %"


def _bytes(number: float) -> str:
    return f"{number / 1024:,.0f} KB" if number >= 1024 else f"{number:,.0f} B"


def _seconds(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.0f} s"
