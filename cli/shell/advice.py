"""What would reach an error that was missed, in the planner's figures."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

MISSED = "wider than asked: \\size shows what more bytes would give, \\exact runs it exactly"


def reaching(candidates: Iterable[Any], taken: Any, error: float, confidence: float) -> str:
    """Which other candidates are predicted to reach an error, cheapest first, with their CPU."""
    able = sorted(
        (c for c in candidates if c is not taken and not c.refused and c.half_width(confidence) <= error),
        key=lambda c: c.cost.seconds,
    )
    exact = next((c for c in able if c.method == "exact_run"), None)
    other = next((c for c in able if c is not exact), None)
    told = (
        [f"{other.method}, about {max(other.cost.seconds, 0.1):.1f} s of CPU (USING {other.method})"]
        if other
        else []
    )
    told += [f"EXACT, about {max(exact.cost.seconds, 0.1):.1f} s of CPU (\\exact)"] if exact else []
    return f"wider than asked; within {100 * error:g} %: {', or '.join(told)}" if told else ""
