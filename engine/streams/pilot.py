"""The first events of the streams of a view, counted by their keys before the view runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import SkimqlError, StreamError
from ...optimizer.plan import Plan, Scan, Synopsis
from ..catalog.streams import StoredStream
from ..synopses import Built
from .by_error import by_way, chosen, no_pilot, pilot_plan
from .by_pilot import is_open, maps_of, settings_by_least_error
from .past import first_events
from .planned import PlannedView
from .sampled import with_key_samples
from .spark_builder import SparkBuilder
from .state import times_of
from .views import planned, residual_of

if TYPE_CHECKING:
    from ..context import Context

# Of each stream, about as much as one batch.
PILOT_BYTES = 32 << 20


def for_error(
    context: Context,
    shown: PlannedView,
    streams: Mapping[str, StoredStream],
    sql: str,
    place: tuple[int, int],
) -> PlannedView:
    """The view with the method and the size that its error takes; as it is where it is exact in any case.

    Raises
    ------
    SkimqlError
        As `pilot_of` and `by_error.chosen`, with the place in the statement.
    """
    if shown.error is None or len(shown.plan.vertices) < 2:
        return shown
    view, most = shown.view, context.settings.max_bytes
    plan = pilot_plan(with_key_samples(shown.plan, residual_of(shown.query, view.folds), 1, 2))
    try:
        built = pilot_of(context, plan, [streams[s.lower()] for s in view.streams])
        way, why = chosen(plan, built, shown.error, view.confidence, most)
    except SkimqlError as fault:
        raise type(fault)(fault.message, fault.code, sql, fault.span or place, fault.hint) from fault
    return by_way(shown, way, why, streams)


def of_least_error(context: Context, shown: PlannedView, streams: Mapping[str, StoredStream]) -> PlannedView:
    """The view by the method that its first events let expect to err least; as it is where they tell nothing."""
    if len(shown.plan.vertices) < 3:
        return shown
    view = shown.view
    residual = residual_of(shown.query, view.folds)
    if not is_open(shown, residual):
        return shown
    plan = maps_of(shown, residual)
    try:
        built = pilot_of(context, plan, [streams[s.lower()] for s in view.streams])
        settings = settings_by_least_error(shown, residual, plan, built)
    except (SkimqlError, OverflowError):
        return shown  # what is wrong with the events stops the stream, if it is there still
    if not settings:
        return shown
    return planned(replace(view, settings={**view.settings, **settings}), streams)


def pilot_of(
    context: Context,
    plan: Plan,
    streams: Sequence[StoredStream],
    refused: Callable[[str], StreamError] = no_pilot,
) -> dict[Synopsis, Built]:
    """The synopses of a plan of maps, of the first events of every stream; one job a stream.

    Raises
    ------
    StreamError
        ``SKIMQL_NO_PILOT`` where a stream has none that can be read beforehand, as `refused` says it.
    """
    from ..spark.shipping import ship

    ship(context.spark)
    found: dict[Synopsis, Built] = {}
    for stream in streams:
        frame = first_events(context.spark, stream, PILOT_BYTES)
        if frame is None:
            raise refused(f"{stream.name} is no local folder with files in it")
        own = tuple(s for s in plan.synopses if s.table.lower() == stream.name.lower())
        scan = Scan(stream.name, tuple(range(len(own))))
        part = Plan(plan.query, plan.seed, own, (scan,), (), (), ())
        builder = SparkBuilder(context.spark, context.tables, Path())
        builder.warm(part)
        built, _ = builder.build(frame, part, times_of(stream, own), ())
        found.update(zip(own, built, strict=True))
    return found
