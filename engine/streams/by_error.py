"""A view's method and size for an asked error: what is predicted from its first events.

The pilot counts the keys of the events that are there already. Two streams are then joined by hash sketches, skimmed
where these are large enough, or by key samples, three or more on one key by key samples: whichever takes least.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from ...errors import AccuracyNotReached, StreamError
from ...optimizer.methods import KEY_SAMPLE
from ...optimizer.plan import BYTES_PER_COUNTER, Plan, PlannedTerm, Synopsis
from ...sketches.intervals.interval import rows_for
from ...sketches.joins.skim import LEAST_BUCKETS, LEAST_ROWS, ROUNDS
from ...sketches.ranking import by_weight
from ...sketches.samples.sample_regression import MOST_REMAINING
from ..catalog.streams import StoredStream
from ..execution.partial_aggregate import MOST_HEAVY
from ..synopses import Built
from .beside import bytes_of_keys
from .dense_keys import BYTES
from .planned import CHOSEN, WHY, PlannedView
from .predicted import half_width
from .views import planned

Floats = NDArray[np.float64]
# A pilot that has more keys than this many bytes hold is counted by the hash of its keys.
PILOT_BUCKETS = 1 << 21
# Fewer keys say too little of how unequal the keys are, and of the interval.
LEAST_KEYS = 128
ROOM = 1.2  # more keys come than the pilot has seen
OF_MANY = (
    "three streams or more on one key: key_sample is taken, as sketches err more the more streams there are"
)
STANDS_OUT = 1.5  # standard deviations of a counter, from which on the median of rows tells a key from noise


@dataclass(frozen=True, slots=True)
class Way:
    """One way to answer: sizes in rows and buckets (a key sample's as `keys_in` reads them), and what it takes."""

    method: str
    rows: int
    buckets: int
    nbytes: int


def pilot_plan(plan: Plan) -> Plan:
    """A plan of key samples as one of maps of all keys."""
    return replace(
        plan,
        synopses=tuple(
            replace(s, method="hash", rows=1, buckets=PILOT_BUCKETS, sparse=True) for s in plan.synopses
        ),
    )


def chosen(
    plan: Plan, built: Mapping[Synopsis, Built], target: float, confidence: float, most_bytes: int
) -> tuple[Way, str]:
    """The cheapest way that is predicted to reach an error, and what was weighed, for people.

    Parameters
    ----------
    plan : Plan
        That of `pilot_plan`; it may say USING.
    built : mapping of Synopsis to Built
        Its synopses of the pilot.
    target, confidence : float
        The relative error that is asked for.
    most_bytes : int
        That all synopses may take together.

    Raises
    ------
    StreamError
        ``SKIMQL_NO_PILOT`` if nothing joins in the pilot.
    AccuracyNotReached
        If no way is predicted to reach it.
    """
    weights = weights_of(plan, [built[s] for s in plan.synopses])
    sums = [
        (terms, contributions)
        for a in plan.aggregates
        for terms in (a.total, a.presence)
        for contributions in [contributions_of(terms, weights, plan, built)]
        if terms
    ]
    if not any(np.any(c) for _, c in sums):
        raise no_pilot("nothing joins in the events that are there")
    wanted = [(terms, c, target * abs(float(c.sum()))) for terms, c in sums if np.any(c)]
    ways = [
        way
        for method in ("hash", KEY_SAMPLE)
        if plan.query.method in (None, method) or (plan.query.method, method) == ("skimmed", "hash")
        for way in [_sized(method, plan, weights, wanted, confidence, most_bytes)]
        if way is not None
    ]
    asked = f"for {target:.3g} at {confidence:.3g}"
    if not ways:
        raise AccuracyNotReached(
            f"no method is predicted to reach {target:.3g} with {most_bytes:,} bytes",
            hint="a larger error, a larger skimql.max_bytes, or SIZE instead of it",
        )
    best = min(ways, key=lambda w: w.nbytes)
    told = ", ".join(f"{w.method} {w.nbytes:,} bytes" for w in ways)
    return best, f"{asked}, from a pilot of the first events: {told} predicted; {best.method} is taken"


def by_way(shown: PlannedView, way: Way, why: str, streams: Mapping[str, StoredStream]) -> PlannedView:
    """A view that is answered in a way."""
    settings = {**shown.view.settings, CHOSEN: way.method, WHY: why}
    view = replace(shown.view, settings=settings, rows=way.rows, buckets=way.buckets, plan="")
    return planned(view, streams)


def of_many_streams(shown: PlannedView, streams: Mapping[str, StoredStream]) -> PlannedView:
    """The view by key samples where it joins three streams or more on one key and says nothing else; else as it is.

    The variance of sketches is a product of the self-join sizes of all streams, that of samples is not.
    """
    query = shown.query
    said = query.method is not None or shown.error is not None or shown.told_apart
    if said or query.counts_distinct or len(shown.plan.vertices) < 3:
        return shown
    view = shown.view
    found = by_way(shown, Way(KEY_SAMPLE, view.rows, view.buckets, 0), OF_MANY, streams)
    return found if all(s.method == KEY_SAMPLE for s in found.plan.synopses) else shown


def no_pilot(
    why: str,
    clause: str = "ERROR WITHIN",
    hint: str = "SIZE 64 KB instead, or the view once the events are there",
) -> StreamError:
    """The refusal of a clause for which nothing can be planned."""
    return StreamError(
        f"{clause} is planned from the first events of every stream: {why}", "SKIMQL_NO_PILOT", hint=hint
    )


def weights_of(plan: Plan, built: Sequence[Built]) -> list[Floats]:
    """What every key weighs in each synopsis of a pilot, keys in one order; of counters what every counter has."""
    kept: list[Any] = [b.sketch for b in built]
    if any(s.exact is None for s in kept):
        return [s.dense().counters[0].astype(np.float64) for s in kept]
    keys = np.unique(np.concatenate([s.exact.columns[0] for s in kept]))
    found = []
    for sketch in kept:
        own = np.zeros(len(keys))
        own[np.searchsorted(keys, sketch.exact.columns[0])] = sketch.exact.weights
        found.append(own)
    return found


def contributions_of(
    terms: Sequence[PlannedTerm], weights: Sequence[Floats], plan: Plan, built: Mapping[Synopsis, Built]
) -> Floats:
    """What every key adds to a sum."""
    total = np.zeros(len(weights[0]))
    for term in terms:
        scale = math.prod(built[plan.synopses[i]].scale for i in term.synopses)
        total += term.coefficient / scale * np.prod([weights[i] for i in term.synopses], axis=0)
    return total


_Wanted = Sequence[tuple[Sequence[PlannedTerm], Floats, float]]


def _sized(
    method: str, plan: Plan, weights: Sequence[Floats], wanted: _Wanted, confidence: float, most_bytes: int
) -> Way | None:
    if method == KEY_SAMPLE:
        return _key_sample(weights, wanted, confidence, most_bytes)
    if len(plan.vertices) != 2 or any(len(terms) != 1 for terms, _, _ in wanted):
        return None
    rows = rows_for(confidence)
    skims = plan.query.method != "hash" and rows >= LEAST_ROWS
    most = most_bytes // (BYTES_PER_COUNTER * rows * len(plan.synopses))
    fits = 2
    if plan.query.method == "skimmed":
        fits = LEAST_BUCKETS
    while fits <= most and not _reached(rows, fits, weights, wanted, confidence, skims):
        fits *= 2
    if fits > most:
        return None
    low = fits // 2
    while fits - low > max(1, fits // 64):
        middle = (low + fits) // 2
        within = _reached(rows, middle, weights, wanted, confidence, skims)
        low, fits = (low, middle) if within else (middle, fits)
    fits = max(fits, LEAST_BUCKETS if plan.query.method == "skimmed" else 2)
    beside = BYTES if skims and fits >= LEAST_BUCKETS else 0
    nbytes = len(plan.synopses) * (BYTES_PER_COUNTER * rows * fits + beside)
    return Way("skimmed" if beside else "hash", rows, fits, nbytes)


def _reached(
    rows: int, buckets: int, weights: Sequence[Floats], wanted: _Wanted, confidence: float, skims: bool
) -> bool:
    """Whether two hash sketches of a size are predicted to reach the wanted half-widths."""
    for (term,), contributions, most in wanted:
        left, right = (weights[i] for i in term.synopses)
        factor = _factor(contributions, left * right)
        parts = [self_join_sizes(w, buckets, skims and buckets >= LEAST_BUCKETS) for w in (left, right)]
        (f, d), (g, e) = parts
        if factor * half_width(f * g + d * g + e * f, rows, buckets, confidence) > most:
            return False
    return True


def _factor(contributions: Floats, products: Floats) -> float:
    at = int(np.argmax(np.abs(products)))
    return abs(contributions[at] / products[at]) if products[at] else 0.0


def self_join_sizes(weights: Floats, buckets: int, skims: bool) -> tuple[float, float]:
    """The self-join sizes of what is left in a hash sketch, and of the keys that are taken out of it.

    `weights` are of all keys, ascending; without `skims` none is taken out.
    """
    whole = float(weights @ weights)
    if not skims:
        return whole, 0.0
    heaviest = weights[by_weight(weights, MOST_HEAVY)]
    taken = 0.0
    for _ in range(ROUNDS):
        dense = heaviest[np.abs(heaviest) > STANDS_OUT * math.sqrt(max(whole - taken, 0.0) / buckets)]
        taken = float(dense @ dense)
    return max(whole - taken, 0.0), taken


def _key_sample(weights: Sequence[Floats], wanted: _Wanted, confidence: float, most_bytes: int) -> Way | None:
    """The keys whose contributions, drawn with one probability, vary as little as is wanted."""
    quantile = -float(ndtri((1.0 - confidence) / 2.0))
    share = 0.0
    for terms, contributions, most in wanted:
        squares = quantile**2 * unexplained(terms, contributions, weights)
        share = max(share, squares / (squares + most**2) if most else 1.0)
    distinct = max(int(np.count_nonzero(w)) for w in weights)
    keys = max(LEAST_KEYS, math.ceil(ROOM * share * distinct))
    rows, each = rows_for(confidence), bytes_of_keys(keys)
    if len(weights) * each > most_bytes:
        return None
    return Way(KEY_SAMPLE, rows, math.ceil(each / (BYTES_PER_COUNTER * rows)), len(weights) * each)


def unexplained(terms: Sequence[PlannedTerm], contributions: Floats, weights: Sequence[Floats]) -> float:
    """The squares of what keys add, as far as the streams' exact totals do not tell it (see `sample_regression`)."""
    squares = float(contributions @ contributions)
    if len(terms) != 1:
        return squares
    known = np.stack([weights[i] for i in dict.fromkeys(terms[0].synopses)], axis=1)
    slopes, *_ = np.linalg.lstsq(known, contributions, rcond=None)
    rest = contributions - known @ slopes
    left = float(rest @ rest)
    return left if left <= MOST_REMAINING * squares else squares
