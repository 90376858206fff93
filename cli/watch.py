"""`skimql watch`: what a continuous view has, again and again: values, their intervals, how they went, and the rate.

Reads the states in the catalog: no JVM is started, and nothing that runs is slowed.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from .. import Session, SkimqlError
from .request import Request

DONE, FAILED = 0, 1
_KEPT = 40
_BARS = "▁▂▃▄▅▆▇█"
_BAND = 24


@dataclass
class Watched:
    """What a view has had: values of each column, and how many events there were when."""

    values: dict[str, deque[float]] = field(default_factory=dict)
    events: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=_KEPT))

    def add(self, row: dict[str, Any], events: int, at: float) -> None:
        """One refresh."""
        self.events.append((at, events))
        for name in names_of(row):
            if row[name] is not None:
                self.values.setdefault(name, deque(maxlen=_KEPT)).append(float(row[name]))

    @property
    def rate(self) -> float:
        """Events a second over what is kept."""
        (first, before), (last, now) = self.events[0], self.events[-1]
        return 0.0 if last <= first else (now - before) / (last - first)


def names_of(row: dict[str, Any]) -> list[str]:
    """The columns of a row that have an interval."""
    return [n for n in row if f"{n}_low" in row]


def sparkline(values: deque[float]) -> str:
    """Values as a line of bars, from the least to the largest of them."""
    low, high = min(values), max(values)
    steps = len(_BARS) - 1
    return "".join(_BARS[round((v - low) / (high - low) * steps) if high > low else 0] for v in values)


def band(value: float, low: float | None, high: float | None) -> str:
    """Where a value lies in its interval; empty where that has no ends."""
    if low is None or high is None or not high > low:
        return ""
    at = min(_BAND - 1, max(0, round((value - low) / (high - low) * (_BAND - 1))))
    return f"├{'─' * at}●{'─' * (_BAND - 1 - at)}┤"


def line_of(row: dict[str, Any], rate: float) -> str:
    """One refresh as one line."""
    parts = []
    for name in names_of(row):
        low, high = row[f"{name}_low"], row[f"{name}_high"]
        parts.append(f"{name} {_number(row[name])} [{_number(low)}, {_number(high)}]")
    return f"{time.strftime('%H:%M:%S')}  {'  '.join(parts)}  {rate:,.0f} events/s"


def watch(request: Request, view: str, seconds: float, times: int | None) -> int:
    """Show a view every so many seconds, so many times or until interrupted; the exit code."""
    if request.catalog is None:
        print("error: which catalog? skimql watch VIEW --catalog DIR", file=sys.stderr)
        return 2
    session = Session(catalog=request.catalog)
    quoted = "`" + view.replace("`", "``") + "`"
    seen, console = Watched(), Console()

    def looked() -> tuple[dict[str, Any], str]:
        given = session.answer(f"SELECT * FROM {quoted}")
        rows = given.records()
        told = next(r for r in session.answer("SHOW QUERIES").records() if r["query"].lower() == view.lower())
        row = rows[0] if rows else {}
        seen.add(row, told["events"], time.monotonic())
        of = f", the first of {len(rows):,} rows" if len(rows) > 1 else ""
        return row, f"{told['query']}: {told['state']}, {told['events']:,} events, batch {told['batch']}{of}"

    try:
        if not console.is_terminal:
            return _repeated(lambda: print(line_of(looked()[0], seen.rate), flush=True), seconds, times)
        with Live(console=console, auto_refresh=False) as live:
            return _repeated(lambda: live.update(_table(*looked(), seen), refresh=True), seconds, times)
    except SkimqlError as fault:
        print(fault, file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        return DONE


def _repeated(show: Callable[[], None], seconds: float, times: int | None) -> int:
    shown = 0
    while True:
        show()
        shown += 1
        if times is not None and shown >= times:
            return DONE
        time.sleep(seconds)


def _table(row: dict[str, Any], title: str, seen: Watched) -> Table:
    table = Table(
        "", "value", "interval", "", "so far", title=Text(title), caption=f"{seen.rate:,.0f} events/s"
    )
    for name in names_of(row):
        low, high, value = row[f"{name}_low"], row[f"{name}_high"], row[name]
        so_far = sparkline(seen.values[name]) if seen.values.get(name) else ""
        ends = f"{_number(low)} to {_number(high)}"
        shown = "" if value is None else band(float(value), low, high)
        table.add_row(Text(name), _number(value), ends, shown, so_far)
    return table


def _number(value: Any) -> str:
    return "NULL" if value is None else f"{value:,}" if isinstance(value, int) else f"{float(value):,.6g}"
