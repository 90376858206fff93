"""The answer of a view from the states of its streams; needs neither Spark nor the tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...optimizer.methods import KEY_SAMPLE, SAMPLE_SKETCH
from ...optimizer.plan import Message, Plan, Synopsis
from ...sketches.intervals.interval import Estimate
from ..results.answer import Answer, with_target
from ..results.columns import arrow_type
from ..results.estimator import Joined, SketchJoin
from ..results.expressions import Evaluator
from ..results.rows import Estimated
from ..results.skimmed import SkimmedJoin
from ..synopses import Built
from .beside import sketch_beside
from .cell_answer import answer_by_cell
from .cells import WHOLE
from .dense_keys import NONE
from .planned import PlannedView, nothing
from .state import Sender, StreamState, events


def answer(planned_view: PlannedView, states: Mapping[str, StreamState], bounds: bool = True) -> Answer:
    """The answer of a view from the states of its streams, by lower-cased name: after a whole batch of each."""
    view, plan = planned_view.view, planned_view.plan
    if planned_view.told_apart:
        deletions = any(states[s.lower()].tally(events(s)).negative for s in _names(plan))
        found, method = answer_by_cell(planned_view, states, deletions=deletions), plan.method
    else:
        joined = joined_of(planned_view, states)
        found = Estimated(plan.query, {(): Evaluator(plan, joined, view.confidence)}).answer()
        found = replace(found, types=tuple(arrow_type(item.type) for item in plan.query.items))
        method = method_of(plan, joined)
    if planned_view.error is not None:
        found = with_target(found, planned_view.error)
    return replace(
        found,
        rows=tuple(tuple(map(_cell, row)) for row in found.rows),
        notes=(*_as_of(planned_view, states), *found.notes, *_unseen(plan, found)),
        method=method,
        bounds=bounds,
    )


def _unseen(plan: Plan, found: Answer) -> tuple[str, ...]:
    """What an interval of samples does not know, said beside it."""
    estimates = [c for row in found.rows for c in row if isinstance(c, Estimate)]
    if plan.method not in (KEY_SAMPLE, SAMPLE_SKETCH) or all(e.certified for e in estimates):
        return ()
    beside = " and does not stand out of the sketches beside them," if plan.method == KEY_SAMPLE else ""
    return (
        "the interval is measured on the keys that are kept: if one of the others weighs much more than these,"
        f"{beside} it is too narrow (USING hash: sketches give one that holds)",
    )


def method_of(plan: Plan, joined: Joined) -> str:
    """By what a view is answered."""
    return "skimmed" if isinstance(joined, SkimmedJoin) else plan.method


def joined_of(planned_view: PlannedView, states: Mapping[str, StreamState]) -> Joined:
    """The sketches of a view, ready to be asked: skimmed where keys are known that may be dense."""
    plan = planned_view.plan
    built = tuple(_built(s, plan, states[s.table.lower()]) for s in plan.synopses)
    if plan.method == SAMPLE_SKETCH:
        from .sample_sketch import sample_sketch_of
        from .views import residual_of

        return sample_sketch_of(plan, residual_of(plan.query, planned_view.view.folds), built)
    if plan.method == KEY_SAMPLE:
        # Late: an answer from hash sketches does without.
        from .checked_samples import checked_join
        from .sampled import StreamSamples, sampled_weights

        besides = [s for own in plan.synopses if (s := sketch_beside(own)) is not None]
        pairs = zip(plan.synopses, besides, strict=True)
        if any(_since(own, plan, states) != _since(other, plan, states) for own, other in pairs):
            # An earlier SkimQL made the samples, without sketches: these would miss what the samples have.
            return StreamSamples(sampled_weights(plan, built))
        beside = [_built(s, plan, states[s.table.lower()]) for s in besides]
        return checked_join(plan, built, beside, _dense(besides, plan, states))
    deletions = any(states[s.lower()].tally(events(s)).negative for s in _names(plan))
    dense = _dense(plan.synopses, plan, states) if planned_view.skimmed else NONE
    if len(dense):
        return SkimmedJoin(plan, built, dense, deletions=deletions)
    return SketchJoin(plan, built, deletions=deletions)


def _dense(sketches: Sequence[Synopsis], plan: Plan, states: Mapping[str, StreamState]) -> NDArray[np.int64]:
    """The keys that may be dense in any of the sketches."""
    found = (states[s.table.lower()].summary(s, plan.seed) for s in sketches)
    return np.unique(np.concatenate([NONE, *(f.dense for f in found if f is not None)]))


def _names(plan: Plan) -> tuple[str, ...]:
    return tuple(dict.fromkeys(s.table for s in plan.synopses))


def _since(synopsis: Synopsis, plan: Plan, states: Mapping[str, StreamState]) -> int | None:
    """The first batch that is in a synopsis; None where nothing has been read."""
    found = states[synopsis.table.lower()].summary(synopsis, plan.seed)
    return None if found is None else found.since


def _built(synopsis: Synopsis, plan: Plan, state: StreamState) -> Built:
    found = state.summary(synopsis, plan.seed)
    return nothing(synopsis, plan.seed) if found is None else found.built


def _cell(cell: Any) -> Any:
    value: object = cell.value if isinstance(cell, Estimate) else None
    if isinstance(value, Fraction):
        return replace(cell, value=float(value), low=float(value), high=float(value))
    return cell


def _as_of(planned_view: PlannedView, states: Mapping[str, StreamState]) -> tuple[str, ...]:
    """Which events an answer has, one sentence each."""
    told, later = [], []
    for name in planned_view.view.streams:
        state = states[name.lower()]
        if state.batch is None:
            told.append(f"no batch of {name} yet")
            continue
        told.append(f"batch {state.batch} of {name} ({state.updated})")
        own = [state.summary(s, planned_view.plan.seed) for s in planned_view.synopses_of(name)]
        cells = [state.cells(n, planned_view.plan.seed) for n in planned_view.needs_of(name) if n[1] != WHOLE]
        since = max((state.next_batch if s is None else s.since for s in (*own, *cells)), default=0)
        if since > 0:
            later.append(f"it counts the events of {name} from batch {since} on: the view was created then")
    senders: dict[str, str] = {}
    for name in planned_view.view.streams:
        state = states[name.lower()]
        for m, s in state.messages.items():
            if any(m.table == t.name for t in planned_view.view.tables):
                senders[m.table] = f"{s.at}{_joined_before(m, s, name, state)}"
    tables = [f"table {table} as of {at}" for table, at in sorted(senders.items())]
    return (f"as of {', '.join(told)}", *tables, *later)


def _joined_before(message: Message, sender: Sender, stream: str, state: StreamState) -> str:
    """That earlier events were joined with another content of a table, where they were."""
    joined = [s.since for y, s in state.summaries.items() if message in y.messages]
    if min(joined, default=sender.since) >= sender.since:
        return ""
    return f" from batch {sender.since} of {stream} on; the events before were joined with it as it was then"
