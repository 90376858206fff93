"""An estimate that stands on the screen while a better one is made, and what is said of it where it is taken."""

from __future__ import annotations

import math
from dataclasses import replace

from ... import Answer
from .results import Screen, shown

# Lines of the terminal that are not for the estimate.
BESIDE = 4
LEAST_LINES = 3


def so_far(answer: Answer, screen: Screen, lines: int) -> str:
    """The estimate as it stands above the waiting line of a terminal of so many lines: at most as high as that."""
    room = max(lines - BESIDE, LEAST_LINES)
    table = shown(answer, replace(screen, width=screen.width - 1, theme=None)).splitlines()
    if len(table) > room:
        table = [*table[: room - 1], f"... {len(table) - room + 1:,} more lines"]
    return "\n".join([*table, f"so far {reached(answer)}; Ctrl-C takes this"])


def reached(answer: Answer) -> str:
    """How far an answer is from its aim."""
    wide = answer.attempts[-1].half_width if answer.attempts else math.inf
    told = f"±{100 * wide:.2g} %" if math.isfinite(wide) else "without a bound"
    if answer.target == "unknown":
        return f"{told}, not certified"
    return f"{told}, wider than asked"


def taken(answer: Answer) -> Answer:
    """An estimate that is taken before its aim is reached, and says so."""
    note = f"stopped: this is the estimate so far, {reached(answer)}; its interval holds"
    return replace(answer, notes=(*answer.notes, note))
