"""As of when an answer of a view is: the columns that say it, and how fast the events come in."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from ..sources.python_values import python_values, zoned
from .planned import PlannedView
from .state import Clock, StreamState

Column = tuple[str, pa.DataType, Any]


def as_of_columns(planned: PlannedView, states: Mapping[str, StreamState], zone: str) -> tuple[Column, ...]:
    """What stands behind the columns of a view, of the states of its streams by lower-cased name; times in a zone.

    When the newest batch came in, and its number (of several streams text, each with its own); of a view with windows
    the newest event that all streams have come to; of one with tables when the first of them was read.
    """
    kind = zoned(pa.timestamp("us", "UTC"), zone)
    own = [(name, states[name.lower()]) for name in planned.view.streams]
    came = [s.updated for _, s in own if s.batch is not None]
    found: list[Column] = [("as_of", kind, _moment(max(came), kind) if came else None)]
    if len(own) == 1:
        found.append(("as_of_batch", pa.int64(), own[0][1].batch))
    else:
        told = ", ".join(f"{name} {'none' if s.batch is None else s.batch}" for name, s in own)
        found.append(("as_of_batch", pa.string(), told))
    if planned.windows:
        of_event = pa.timestamp("us") if planned.zone is None else kind
        newest = newest_event(planned, states)
        values = [None] if newest is None else _values([newest], of_event)
        found.append(("as_of_event", of_event, values[0]))
    if planned.view.tables:
        tables = {t.name for t in planned.view.tables}
        read = [s.at for _, state in own for m, s in state.messages.items() if m.table in tables]
        found.append(("as_of_tables", kind, _moment(min(read), kind) if read else None))
    return tuple(found)


def newest_event(planned: PlannedView, states: Mapping[str, StreamState]) -> int | None:
    """The newest event of a view with windows, of several streams the earliest, in microseconds; None before any."""
    latest = [states[name].clocks.get(w, Clock()).latest for name, w in planned.windows.items()]
    return None if None in latest else min((n for n in latest if n is not None), default=None)


def lag(planned: PlannedView, states: Mapping[str, StreamState]) -> float | None:
    """Seconds since the newest event of a view with windows, of others since the last batch; None before any."""
    newest = newest_event(planned, states) if planned.zone is not None else None
    if newest is not None:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=newest)
    else:
        came = [s.updated for s in states.values() if s.batch is not None]
        if not came:
            return None
        moment = datetime.fromisoformat(max(came))
    return round((datetime.now(UTC) - moment).total_seconds(), 3)


def rate(more: int, before: StreamState, now: StreamState) -> float | None:
    """Events a second between two batches with so many more in the second; None where no time is between them."""
    if before.batch is None or now.batch is None:
        return None
    passed = datetime.fromisoformat(now.updated) - datetime.fromisoformat(before.updated)
    seconds = passed.total_seconds()
    return round(more / seconds, 3) if seconds > 0 else None


def _moment(text: str, kind: pa.DataType) -> Any:
    """A time in ISO 8601 as a value of an Arrow type."""
    passed = datetime.fromisoformat(text) - datetime(1970, 1, 1, tzinfo=UTC)
    return _values([passed // timedelta(microseconds=1)], kind)[0]


def _values(micros: list[int], kind: pa.DataType) -> list[Any]:
    return python_values(pa.chunked_array([pa.array(micros, pa.int64()).cast(kind)]))
