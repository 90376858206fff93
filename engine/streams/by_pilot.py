"""A view's method where its bytes are given: what errs least, as its first events let expect.

Streams on several keys are joined by convolution sketches or by sample x sketch, three streams or more on one key by
key samples or by hash sketches. The keys of the first events are counted exactly. What samples err follows from these
counts; of convolution sketches, whose rows have heavy tails, some are made of them and asked for their intervals. More
keys come than the first events have: another method than that of the rule has to be better in a quarter of the bytes
too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from ...optimizer.choose import choose
from ...optimizer.fold import residual_tree
from ...optimizer.messages import Residual
from ...optimizer.methods import KEY_SAMPLE, SAMPLE_SKETCH
from ...optimizer.plan import Plan, PlannedTerm, Synopsis
from ...sketches.ranking import by_weight
from ...sketches.samples.packed import entry_bytes
from ..execution.partial_aggregate import MOST_HEAVY, sketch_plan
from ..results.estimator import SketchJoin
from ..synopses import Built
from .by_error import ROOM, contributions_of, pilot_plan, unexplained, weights_of
from .planned import CHOSEN, EXPECTED, SPLIT, WHY, PlannedView
from .predicted import half_width
from .sample_sketch import Split, classes_of, sampled_classes, split_by, with_sample_sketch
from .sampled import with_key_samples

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
LESS = 4  # the part of the bytes in which a method has to be better as well
TRIALS = 3  # sketches that are made of the pilot, for the median of their half-widths
BEYOND_SHARES = (0.03, 0.06, 0.12, 0.25, 0.4, 0.6)
MAP_BYTES = 16  # of a key in an exact map
SIGMAS = 3.0  # from which on a key stands out of the sketch beside a sample
CONVOLUTION = "convolution"


def is_open(shown: PlannedView, residual: Residual) -> bool:
    """Whether it can be told from first events how a view is to be answered."""
    query = shown.query
    if shown.error is not None or shown.told_apart or query.counts_distinct or query.sets is not None:
        return False
    if len(residual.classes) > 1:
        # A view that has the sketches of others stays with these.
        return query.method == SAMPLE_SKETCH or (query.method is None and not shown.view.plan)
    return query.method is None and shown.plan.method == KEY_SAMPLE and len(shown.plan.vertices) > 2


def maps_of(shown: PlannedView, residual: Residual) -> Plan:
    """The plan whose synopses are maps of all keys of the first events."""
    if len(residual.classes) > 1:
        return pilot_plan(with_sample_sketch(_sketches(shown.plan, residual), residual, 1, 2))
    return pilot_plan(with_key_samples(shown.plan, residual, 1, 2))


def settings_by_least_error(
    shown: PlannedView, residual: Residual, plan: Plan, built: Mapping[Synopsis, Built]
) -> dict[str, str]:
    """What the settings of a view get to say of its method; nothing where the rule stays.

    Parameters
    ----------
    shown : PlannedView
        That `is_open`.
    residual : Residual
    plan : Plan
        That of `maps_of`.
    built : mapping of Synopsis to Built
        Its synopses, of the first events.
    """
    pilot = Pilot(shown, residual, plan, [built[s] for s in plan.synopses])
    if not pilot.tells:
        return {}
    return _of_several_keys(pilot) if len(residual.classes) > 1 else _of_one_key(pilot)


@dataclass(frozen=True)
class Pilot:
    """The first events of the streams of a view.

    Attributes
    ----------
    shown : PlannedView
    residual : Residual
    plan : Plan
        Of maps; `built` are its synopses, in its order.
    """

    shown: PlannedView
    residual: Residual
    plan: Plan
    built: Sequence[Built]

    @property
    def tells(self) -> bool:
        """Whether all keys were counted, and something joins."""
        return all(m is not None for m in self._exact) and bool(self.sums)

    @property
    def nbytes(self) -> int:
        """Bytes that the view may take."""
        synopses = _sketches(self.shown.plan, self.residual).synopses
        each = 8 * self.shown.view.rows * self.shown.view.buckets
        return sum(each for s in synopses if s.attributes)

    @cached_property
    def maps(self) -> list[tuple[list[Ints], Floats]]:
        """Keys, an array for each attribute, and their weights."""
        return [([c.astype(np.int64) for c in m.columns], m.weights.astype(np.float64)) for m in self._exact]

    @cached_property
    def sums(self) -> list[tuple[int, Sequence[PlannedTerm], float]]:
        """Sums that are not 0 in the pilot: their number among those of a plan, terms, and value."""
        linear = pilot_plan(_sketches(self.shown.plan, self.residual))
        known, found = SketchJoin(linear, self._made(linear, 1)), []
        for number, (terms, same) in enumerate(zip(sums_of(self.plan), sums_of(linear), strict=True)):
            value = known.known(same) if same else None
            if value:
                found.append((number, terms, abs(float(value))))
        return found

    def factor(self, term: PlannedTerm) -> float:
        """What the product of a term is multiplied by."""
        return abs(term.coefficient) / math.prod(self.built[i].scale for i in term.synopses)

    def sketched(self, part: int) -> float:
        """The relative half-width that linear sketches are to be expected of, in a part of the bytes."""
        view = self.shown.view
        plan = _sketches(self.shown.plan, self.residual, view.rows, max(2, view.buckets // part))
        seen = []
        for trial in range(TRIALS):
            joined = SketchJoin(plan, self._made(plan, trial + 1), deletions=True)
            widths = []
            every = sums_of(plan)
            for number, _, value in self.sums:
                found = joined.total(every[number], self.shown.view.confidence)
                widths.append((found.high - found.low) / 2.0 / value)
            seen.append(max(widths))
        return float(np.median(seen))

    @cached_property
    def _exact(self) -> list[Any]:
        return [b.linear.exact for b in self.built]

    @cached_property
    def _columns(self) -> list[tuple[int, ...]]:
        """For each vertex of the plan, and each edge at it, which attribute of its map the edge joins."""
        tree = residual_tree(self.plan.query.graph, self.residual)
        if len(self.residual.classes) == 1:
            return [(0,) * len(tree.edges_at(v)) for v in self.plan.vertices]
        first = sampled_classes(self.residual)[0]
        orders = {v: classes_of(self.residual, v, first) for v in self.plan.vertices}
        return [
            tuple(orders[v].index(tree.edges[e].joined) for e in tree.edges_at(v)) for v in self.plan.vertices
        ]

    def _made(self, plan: Plan, seed: int) -> list[Built]:
        """Sketches of a plan of linear sketches, with an attribute for each edge, of the pilot."""
        found: dict[int, Built] = {}
        for mine, theirs in zip(self.plan.terms, plan.terms, strict=True):
            for place, (i, j) in enumerate(zip(mine.synopses, theirs.synopses, strict=True)):
                if j in found:
                    continue
                exact, synopsis = self._exact[i], plan.synopses[j]
                sketch: Any = sketch_plan(synopsis, seed, exact.weights.dtype.name).empty()
                columns = exact.columns
                sketch.update([columns[c] for c in self._columns[place]], exact.weights)
                found[j] = Built(sketch, self.built[i].tally, self.built[i].scale)
        return [found[j] for j in range(len(plan.synopses))]


def _of_several_keys(pilot: Pilot) -> dict[str, str]:
    splits = [
        split for joined in sampled_classes(pilot.residual) for split in _splits(pilot, joined, pilot.nbytes)
    ]
    best = min(splits, key=lambda split: _sampled_width(pilot, split, LESS))
    width = _sampled_width(pilot, best, 1)
    names = pilot.residual.tree.classes[best.joined].name
    told = f"sample_sketch of class {names} +-{width:.2%}"
    if pilot.shown.query.method == SAMPLE_SKETCH:
        return {SPLIT: best.text(), WHY: f"from a pilot of the first events: {told} predicted"}
    ours = width, _sampled_width(pilot, best, LESS)
    theirs = [pilot.sketched(part) for part in (1, LESS)]
    taken = SAMPLE_SKETCH if ours[0] <= theirs[0] and ours[1] < theirs[1] else CONVOLUTION
    why = {WHY: _why(f"{told}, convolution +-{theirs[0]:.2%}", ours[1], theirs[1], taken)}
    if taken == SAMPLE_SKETCH:
        return {**why, CHOSEN: SAMPLE_SKETCH, SPLIT: best.text()}
    return {**why, **_expected(theirs[0])}


def _of_one_key(pilot: Pilot) -> dict[str, str]:
    ours = [_key_sample_width(pilot, part) for part in (1, LESS)]
    theirs = [pilot.sketched(part) for part in (1, LESS)]
    taken = "hash" if theirs[0] <= ours[0] and theirs[1] < ours[1] else KEY_SAMPLE
    told = f"key_sample +-{ours[0]:.2%}, hash +-{theirs[0]:.2%}"
    expected = _expected(theirs[0]) if taken == "hash" else {}
    return {WHY: _why(told, ours[1], theirs[1], taken), CHOSEN: taken, **expected}


def _expected(width: float) -> dict[str, str]:
    """What is told to be expected; nothing of sketches that are maps of the first events still."""
    return {EXPECTED: repr(width)} if width else {}


def _why(told: str, ours: float, theirs: float, taken: str) -> str:
    less = f"in a quarter of the bytes {ours:.2%} and {theirs:.2%}"
    return f"from a pilot of the first events: {told} predicted, {less}; {taken} is taken"


def _splits(pilot: Pilot, joined: int, nbytes: int) -> Iterator[Split]:
    """Ways to divide the bytes: those of samples so that all keep keys with one probability."""
    plan, members = pilot.plan, pilot.residual.members(joined)
    each = _per_vertex(plan)
    full = [
        max(
            _entry_bytes(pilot, i, n, joined) if v in members else MAP_BYTES * len(pilot.maps[i][1])
            for i in own
        )
        for n, (v, own) in enumerate(zip(plan.vertices, each, strict=True))
    ]
    outside = [v not in members for v in plan.vertices]
    sketches = sum(len(own) for own, out in zip(each, outside, strict=True) if out)
    sampled = sum(f * len(own) for f, own, out in zip(full, each, outside, strict=True) if not out)
    for share in BEYOND_SHARES:
        beyond = [
            min(share * nbytes / max(sketches, 1), ROOM * f) if out else 0.0
            for f, out in zip(full, outside, strict=True)
        ]
        left = nbytes - sum(b * len(own) for b, own in zip(beyond, each, strict=True))
        shares = [b if out else left * f / sampled for b, f, out in zip(beyond, full, outside, strict=True)]
        yield split_by(plan, joined, shares, nbytes)
        if not sketches:
            return


def _sampled_width(pilot: Pilot, split: Split, part: int) -> float:
    """The relative half-width that sample x sketch is to be expected of, in a part of the bytes."""
    confidence, found = pilot.shown.view.confidence, []
    quantile = -float(ndtri((1.0 - confidence) / 2.0))
    for _, terms, value in pilot.sums:
        width = 0.0
        for term in terms:
            sampling, noise, buckets = _variances(pilot, term, split, part)
            rows = pilot.shown.view.rows
            collisions = half_width(noise * buckets, rows, buckets, confidence) if noise else 0.0
            width += pilot.factor(term) * math.hypot(quantile * math.sqrt(sampling), collisions)
        found.append(width / value)
    return max(found)


def _variances(pilot: Pilot, term: PlannedTerm, split: Split, part: int) -> tuple[float, float, int]:
    """Of the drawing of keys, and of a row by collisions; buckets of a row."""
    residual, plan, joined = pilot.residual, pilot.plan, split.joined
    first, members = sampled_classes(residual)[0], residual.members(joined)
    place = {v: n for n, v in enumerate(plan.vertices)}
    p, fewest = 1.0, 1 << 26
    noise, weights = {}, {}
    for v in plan.vertices:
        i, nbytes = term.synopses[place[v]], split.nbytes[place[v]] / part
        keys, weights[v] = pilot.maps[i]
        if v in members:
            p = min(p, nbytes / (ROOM * max(_entry_bytes(pilot, i, place[v], joined), 1)))
            continue
        buckets = max(2, int(nbytes / (8 * pilot.shown.view.rows)))
        exact = ROOM * MAP_BYTES * len(keys[0]) <= nbytes
        noise[v] = 0.0 if exact else float(weights[v] @ weights[v]) / buckets
        fewest = min(fewest, fewest if exact else buckets)

    def column(v: int, c: int) -> Ints:
        return pilot.maps[term.synopses[place[v]]][0][classes_of(residual, v, first).index(c)]

    every = np.unique(np.concatenate([column(v, joined) for v in members]))
    at = {v: np.searchsorted(every, column(v, joined)) for v in members}
    asked = {
        v: [(t, c) for c in residual.classes_of(v) if c != joined for t in residual.members(c) if t != v]
        for v in members
    }
    points = {
        (v, t): _looked_up(column(t, c), weights[t], column(v, c)) for v in members for t, c in asked[v]
    }
    of_key = {}
    for v in members:
        each = weights[v] * math.prod((points[v, t] for t, _ in asked[v]), start=np.float64(1.0))
        of_key[v] = np.bincount(at[v], each, len(every))
    everything = math.prod(of_key.values(), start=np.ones(len(every)))
    odds = (1.0 - p) / p
    sampling, collisions = odds * float(everything @ everything), 0.0
    for v in members:
        others = math.prod((of_key[u] for u in members if u != v), start=np.ones(len(every)))[at[v]]
        for t, c in asked[v]:
            if not noise[t]:
                continue
            asking = weights[v] * others
            for u, _ in asked[v]:
                if u != t:
                    asking = asking * np.sqrt(np.square(points[v, u]) + noise[u])
            _, number = np.unique(column(v, c), return_inverse=True)
            together = np.bincount(number, asking)
            collisions += noise[t] * float(together @ together + odds * (asking @ asking))
    return sampling, collisions, fewest


def _key_sample_width(pilot: Pilot, part: int) -> float:
    """The relative half-width that key samples are to be expected of, in a part of the bytes.

    Keys that stand out of the sketch of some stream are known as that weighs them.
    """
    built = dict(zip(pilot.plan.synopses, pilot.built, strict=True))
    weights = weights_of(pilot.plan, pilot.built)
    sample = next(s for s in pilot.shown.plan.synopses if s.method == KEY_SAMPLE)
    keys, rows, confidence = max(1, sample.buckets // part), sample.rows, pilot.shown.view.confidence
    p = min(1.0, *(keys / (ROOM * max(int(np.count_nonzero(w)), 1)) for w in weights))
    counters = max(2, keys // rows)
    parts = [_dense(w, counters) for w in weights]
    dense = np.logical_or.reduce([d for d, _ in parts])
    errors = [math.pi / 2.0 / rows * rest / counters for _, rest in parts]
    quantile, found = -float(ndtri((1.0 - confidence) / 2.0)), []
    for _, terms, value in pilot.sums:
        adds = np.where(dense, 0.0, contributions_of(terms, weights, pilot.plan, built))
        width = math.sqrt(
            (1.0 - p) / p * unexplained(terms, adds, [np.where(dense, 0.0, w) for w in weights])
        )
        for term in terms:
            of_sketches = 0.0
            for place, i in enumerate(term.synopses):
                others = [weights[j][dense] for n, j in enumerate(term.synopses) if n != place]
                product = math.prod(others, start=np.float64(1.0))
                of_sketches += (1.0 - p) * errors[i] * float(np.sum(np.square(product)))
            width += pilot.factor(term) * math.sqrt(of_sketches)
        found.append(quantile * width / value)
    return max(found)


def _dense(weights: Floats, counters: int) -> tuple[NDArray[np.bool_], float]:
    """The keys that stand out of a sketch of so many counters a row, and the self-join size of the others."""
    heaviest = by_weight(weights, MOST_HEAVY)
    found = np.zeros(len(weights), bool)
    while True:
        rest = float(np.square(weights[~found]).sum())
        new = heaviest[np.abs(weights[heaviest]) > SIGMAS * math.sqrt(rest / counters)]
        if found[new].all():
            return found, rest
        found[new] = True


def _entry_bytes(pilot: Pilot, synopsis: int, place: int, joined: int) -> int:
    """Bytes of all entries of a stream as a sample of a class holds them."""
    columns, weights = pilot.maps[synopsis]
    if not len(weights):
        return 1
    vertex = pilot.plan.vertices[place]
    first = classes_of(pilot.residual, vertex, sampled_classes(pilot.residual)[0])
    ordered = [columns[first.index(c)] for c in classes_of(pilot.residual, vertex, joined)]
    spans = [int(c.max()) - int(c.min()) for c in ordered]
    return entry_bytes(len(weights), [*spans, int(weights.max() - weights.min())])


def _looked_up(keys: Ints, weights: Floats, wanted: Ints) -> Floats:
    order = np.argsort(keys, kind="stable")
    if not len(keys):
        return np.zeros(len(wanted))
    at = np.minimum(np.searchsorted(keys[order], wanted), len(keys) - 1)
    return np.where(keys[order][at] == wanted, weights[order][at], 0.0)


def _sketches(plan: Plan, residual: Residual, rows: int = 1, buckets: int = 2) -> Plan:
    """The plan of the same view by linear sketches."""
    return choose(plan.query, plan.seed, rows, buckets, True, residual)


def sums_of(plan: Plan) -> list[Sequence[PlannedTerm]]:
    """Numerators and presence counts of all aggregates."""
    return [terms for a in plan.aggregates for terms in (a.total, a.presence)]


def _per_vertex(plan: Plan) -> list[set[int]]:
    """The synopses that stand for each vertex."""
    return [{t.synopses[n] for t in plan.terms} for n in range(len(plan.vertices))]
