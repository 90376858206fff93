"""Sizes and predicted error of sample x sketch: one class sampled in all its tables, the tables beyond as sketches.

Two errors add up. *Sampling*: ``(1 - p) / p * sum(c**2)`` over the keys left to chance. *Sketches*: a point estimate
has the variance ``F2 / buckets`` in each row, times the squared weight of the entry that asks; that counts ``1 / p``
times, since the sampled entries stand for all, and more where entries of several sampled keys ask for one key. Each
sketch takes a part of the bytes, as an exact map if that holds all its keys; the rest is for the sample.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from ...sketches.ranking import by_weight, least_of, rounded
from ...sketches.samples.packed import entry_bytes
from ...sketches.samples.sample_regression import LEAST_JOINED
from ...sketches.samples.two_level_plan import ENTRY_BYTES, LEAST_BUCKETS, TOTAL_BYTES
from ..messages import Residual
from .figures import Figures
from .relation import Attribute
from .samples import NO_DENSE, Beyond, Ints, SamplePlan
from .variance import Predicted, is_dense, sample_variance

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

COUNTER_BYTES = 8
CENTRE_LOSS = math.pi / 3  # variance of the centre of normal rows over that of their mean
ROOM = 1.05  # of an exact map whose number of keys is an estimate
SHARES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
DENSE_SHARES = (0.0, 0.25, 0.5)
LUMPS = 64  # keys of a hub that take the most entries each, looked at one by one
LEAST_KEPT = 0.1  # of the probability that smaller keys are kept with
MOST_SKETCHED = 2  # tables of the sampled class for which a sketch is tried in the place of a sample
ROUNDS = 3
PROBABILITIES = np.geomspace(1e-9, 1.0, 145)  # of a sampled key, whose bytes are looked up
ANY_SPAN = (1 << 64) - 1
SUM_BYTES = 8  # of a weight that is no number of tuples, in a sample
SUM_SPAN = (1 << 32) - 1  # of such weights in a map
SOME_WEIGHT = 255  # of a key where none is known to be heavy


def sample_sketch(
    figures: Figures,
    residual: Residual,
    joined: int,
    budget_bytes: float,
    rows: int = 11,
    columns: int = 1,
) -> SamplePlan:
    """The best split of the bytes between a sample of one class and sketches of the tables beyond.

    Parameters
    ----------
    figures : Figures
    residual : Residual
        A tree of several classes without folds.
    joined : int
        The class to sample.
    budget_bytes : float
    rows : int
        Of every sketch.
    columns : int
        Weights of an entry; those beside the number of tuples take 8 bytes.

    Raises
    ------
    ValueError
        If the bytes are too few, or a table beyond leads on to more classes.
    """
    members = residual.members(joined)
    classes = {v: residual.classes_of(v) for v in residual.vertices}
    hubs = [v for v in members if len(classes[v]) > 1]
    reached = {o for v in hubs for o in classes[v]}
    for v in residual.vertices:
        if v not in members and (len(classes[v]) > 1 or classes[v][0] not in reached):
            raise ValueError(f"table {v} is beyond a table beyond the sampled ones")
    single = [v for v in members if v not in hubs]
    moments = {
        (v, o): _moments(figures, residual, v, o, joined) for v in hubs for o in classes[v] if o != joined
    }
    found: list[SamplePlan] = []
    for number in range(min(len(single), MOST_SKETCHED) + 1):
        for sketched in combinations(single, number):
            for share in DENSE_SHARES:
                model = _Model(
                    figures, joined, classes, moments, sketched, share, budget_bytes, rows, columns
                )
                if share and not model.has_dense:
                    continue
                plan = model.best()
                if plan is not None:
                    found.append(plan)
    if not found:
        name = figures.tree.classes[joined].name
        raise ValueError(f"{budget_bytes:,.0f} bytes hold no sample of class {name} beside sketches")
    return least_of(found, lambda plan: plan.predicted.variance)


@dataclass(frozen=True, slots=True, eq=False)
class SizedSketch:
    """A sketch of some size: variance of its point estimates in a row, 0 where it is exact."""

    noise: float
    nbytes: float
    buckets: int
    dense: int


class _Model:
    """Variance as a function of the bytes of each sketch, for given tables that are sampled and dense keys."""

    def __init__(
        self,
        figures: Figures,
        joined: int,
        classes: Mapping[int, tuple[int, ...]],
        moments: Mapping[tuple[int, int], _Moments],
        sketched: Sequence[int],
        dense_share: float,
        budget_bytes: float,
        rows: int,
        columns: int,
    ) -> None:
        self.figures, self.joined, self.classes, self.rows = figures, joined, classes, rows
        self.columns = columns
        self.budget = budget_bytes
        self.sampled = [v for v, own in classes.items() if joined in own and v not in sketched]
        self.hubs = [v for v in self.sampled if len(classes[v]) > 1]
        self.moments = moments
        self.sources = [(v, joined) for v in sketched] + [
            place for m in moments.values() for place in m.sources
        ]
        self.spans = {v: _spans(figures, v, joined, classes[v]) for v in self.sampled}
        self.dense = [
            self._dense_keys(v, dense_share * budget_bytes / len(self.sampled)) for v in self.sampled
        ]
        self.has_dense = any(keys.size for keys, _ in self.dense)
        self.entries = [
            max(self._entries(v) - n, 0.0) for v, (_, n) in zip(self.sampled, self.dense, strict=True)
        ]
        self.fixed = float(TOTAL_BYTES * len(self.sampled))
        for v, (keys, entries) in zip(self.sampled, self.dense, strict=True):
            self.fixed += 8 * keys.size + self._packed(v, entries)
        self.sizes = np.array([sum(self._sampled_bytes(p)) for p in PROBABILITIES])
        self._sums()

    def best(self) -> SamplePlan | None:
        """The plan of least variance, by one sketch's bytes after the other."""
        options = [self._options(v, o) for v, o in self.sources]
        if not all(options):
            return None
        chosen = [0] * len(options)  # the smallest of each

        def cost(choice: Sequence[int]) -> float:
            return self._variance([o[i] for o, i in zip(options, choice, strict=True)])[0]

        for _ in range(ROUNDS):
            before = list(chosen)
            for place, own in enumerate(options):
                tried = [[*chosen[:place], i, *chosen[place + 1 :]] for i in range(len(own))]
                chosen = least_of(tried, cost)
            if chosen == before:
                break
        sketches = [o[i] for o, i in zip(options, chosen, strict=True)]
        variance, p = self._variance(sketches)
        return self._plan(sketches, variance, p) if math.isfinite(variance) else None

    def _plan(self, sketches: Sequence[SizedSketch], variance: float, p: float) -> SamplePlan:
        figures = self.figures
        left = self.budget - self.fixed - sum(s.nbytes for s in sketches)
        sizes = self._sampled_bytes(p)
        # All that is left is room: of a table that is predicted to fit, what is known of its keys may say too little.
        share = left / max(sum(sizes), 1.0)
        capacities = tuple(
            max(1, min(math.ceil(n), int(share * size / self._entry_bytes(v))))
            for v, n, size in zip(self.sampled, self.entries, sizes, strict=True)
        )
        beyond = tuple(
            Beyond(v, o, s.buckets, self._heaviest(v, o, s.dense), int(s.nbytes))
            for (v, o), s in zip(self.sources, sketches, strict=True)
        )
        if not any(s.noise for s in sketches):
            variance *= self._unexplained(p)
        common = self.dense[0][0]
        for keys, _ in self.dense[1:]:
            common = np.intersect1d(common, keys)
        unseen = figures.largest_unseen(self.joined, common) if p < 1.0 else 0.0
        held = sum(s.nbytes for s in sketches) + self.fixed + min(sum(sizes), left)
        return SamplePlan(
            self.joined,
            tuple(keys for keys, _ in self.dense),
            capacities,
            tuple(figures.heaviest(v, self.joined) for v in self.sampled),
            unseen,
            p,
            held,
            Predicted(figures.total, variance, unseen / p),
            vertices=tuple(self.sampled),
            beyond=beyond,
        )

    def _packed(self, vertex: int, entries: float) -> float:
        """Bytes of so many entries of a table as a sample holds them."""
        count = math.ceil(entries)
        return float(entry_bytes(count, self.spans[vertex]) + SUM_BYTES * (self.columns - 1) * count)

    def _entry_bytes(self, vertex: int) -> int:
        """Bytes of an entry in words."""
        return 8 * (len(self.classes[vertex]) + self.columns)

    def _sampled_bytes(self, p: float) -> list[float]:
        """Bytes of each table's entries with a hash below a probability."""
        return [self._packed(v, p * n) for v, n in zip(self.sampled, self.entries, strict=True)]

    def _entries(self, vertex: int) -> float:
        """Distinct combinations of a table's keys."""
        relation = self.figures.relations[vertex]
        distinct = max(self.figures.attribute(vertex, o).distinct for o in self.classes[vertex])
        if vertex not in self.hubs:
            return distinct
        even = relation.tuples**2 / max(relation.joint_self_join_size, 1.0)
        return min(max(distinct, even), max(relation.tuples, 1.0))

    def _dense_keys(self, vertex: int, budget_bytes: float) -> tuple[Ints, float]:
        """A table's own heaviest keys that so many bytes hold, and their entries; none where all weigh the same."""
        own = self.figures.attribute(vertex, self.joined)
        weights = np.abs(own.heavy.weights.astype(np.float64))
        order = by_weight(weights)
        order = order[weights[order] > 2.0 * self.figures.relations[vertex].tuples / max(own.distinct, 1.0)]
        hub = len(self.classes[vertex]) > 1
        each = weights[order] if hub else np.ones(order.size)
        total = float(each.sum())
        size = self._packed(vertex, total) / max(total, 1.0) * each + 8
        count = int(np.searchsorted(np.cumsum(size), budget_bytes, side="right"))
        return np.sort(own.heavy.keys[order[:count]]), float(each[:count].sum())

    def _heaviest(self, vertex: int, joined: int, count: int) -> Ints:
        heavy = self.figures.attribute(vertex, joined).heavy
        if not count:
            return NO_DENSE
        return np.sort(heavy.keys[by_weight(np.abs(heavy.weights.astype(np.float64)), count)])

    def _options(self, vertex: int, joined: int) -> list[SizedSketch]:
        """Sketches of growing size of one table, up to an exact map."""
        own = self.figures.attribute(vertex, joined)
        room = 1.0 if self.figures.relations[vertex].source == "exact" else ROOM
        keys = math.ceil(room * max(own.distinct, 1.0))
        weights = _weights_span(own, room) if self.columns == 1 else SUM_SPAN
        whole = entry_bytes(keys, (_span(own), weights))
        least = COUNTER_BYTES * self.rows * LEAST_BUCKETS
        sizes = sorted({max(share * self.budget, least) for share in SHARES})
        found = [sized_sketch(own, size, self.rows) for size in sizes if size < min(whole, self.budget)]
        if whole < self.budget:
            buckets = max(LEAST_BUCKETS, whole // (COUNTER_BYTES * self.rows))
            found.append(SizedSketch(0.0, whole, buckets, 0))
        return found

    def _variance(self, sketches: Sequence[SizedSketch]) -> tuple[float, float]:
        """Variance, and the probability with which a key is sampled."""
        left = self.budget - self.fixed - sum(s.nbytes for s in sketches)
        if left < self.sizes[0] or left < sum(map(self._entry_bytes, self.sampled)):
            return math.inf, 0.0
        p = float(np.interp(left, self.sizes, PROBABILITIES))
        noise = {source: s.noise for source, s in zip(self.sources, sketches, strict=True)}
        extra = [noise[v, self.joined] for v, o in self.sources if o == self.joined]
        within = 0.0
        for hub in self.hubs:
            noisy, of_keys, same = 1.0, 1.0, 0.0
            beyond = {o: m for (h, o), m in self.moments.items() if h == hub}
            for o, moments in beyond.items():
                square = moments.square([noise[source] for source in moments.sources])
                others = math.prod(m.mean**2 for c, m in beyond.items() if c != o)
                same += moments.repeated * (square - moments.of_keys) * others
                noisy, of_keys = noisy * square, of_keys * moments.of_keys
            extra.append(max(noisy - of_keys, 0.0))
            within += same
        kept, sampling = self._sampling(p)
        collisions = within
        for subset, certain in self._certain.items():
            if subset:
                collisions += (certain + self._rest[subset] / kept) * math.prod(extra[i] for i in subset)
        return sampling + CENTRE_LOSS / self.rows * collisions, p

    def _unexplained(self, p: float) -> float:
        """Share of the variance that regression on the tables' totals leaves, where all beyond is exact.

        None of it is taken off where few keys make up the variance: whether they are sampled decides about the fit.
        """
        parts, members = (
            self.figures.contributions(self.joined),
            self.figures.tree.classes[self.joined].vertices,
        )
        certain = np.ones((len(members), parts.cells.counts.size), bool)
        for v, (keys, _) in zip(self.sampled, self.dense, strict=True):
            certain[members.index(v)] = is_dense(parts, keys) | (p == 1.0)
        left = parts.squares[~certain.all(axis=0)]
        counts = parts.cells.counts[~certain.all(axis=0)]
        decisive = float(counts @ left) ** 2 / max(float(counts @ left**2), 1e-300)
        if p * decisive < LEAST_JOINED * len(members):
            return 1.0
        sampled = [v in self.sampled for v in members]
        return sample_variance(parts, certain, [p if own else 1.0 for own in sampled], sampled)[1]

    def _sampling(self, p: float) -> tuple[float, float]:
        """With which probability a key is kept, and the expected squared error that comes of it.

        Where the keys of a hub take many entries each, which of them are drawn makes the threshold vary. One with s of
        the C entries is kept only if the others below its hash leave room: with p (1 - s / C), never if it is larger.
        """
        if p == 1.0:
            return p, 0.0
        kept = p / (1.0 + (1.0 - p) * self._spread / p)
        fits = self._lumps < p
        chance = kept * np.maximum(1.0 - self._lumps[fits] / p, LEAST_KEPT)
        found = (1.0 - kept) / kept * self._small + float(self._squares[fits] @ ((1.0 - chance) / chance))
        return kept, found + float(self._means[~fits].sum()) ** 2

    def _sums(self) -> None:
        """Sums over the cells of the sampled class that the variance is made of, for each set of noisy factors."""
        figures, joined = self.figures, self.joined
        parts = figures.contributions(joined)
        cells, members = parts.cells, figures.tree.classes[joined].vertices
        common = np.ones(cells.counts.size)
        noisy: list[tuple[Floats, Floats]] = []
        ones = np.ones(cells.counts.size)
        for v in self.sampled:
            place = members.index(v)
            part = figures.received(v, joined)
            base = cells.squares[place] * part.mean**2 + cells.weights[place] * max(
                part.square - part.mean**2, 0.0
            )
            if v not in self.hubs:
                common = common * base
        for v, o in self.sources:
            if o == joined:
                noisy.append((cells.squares[members.index(v)], ones))
        for v in self.hubs:
            place = members.index(v)
            part, relation = figures.received(v, joined), figures.relations[v]
            spread = max(part.square - part.mean**2, 0.0)
            base = cells.squares[place] * part.mean**2 + cells.weights[place] * spread
            lumps = max(relation.joint_self_join_size / max(relation.tuples, 1.0), 1.0)
            noisy.append((base, cells.weights[place] * lumps))
        dense: Bools = cells.heavy.copy()
        for keys, _ in self.dense:
            dense &= np.isin(cells.keys, keys)
        self._rest: dict[tuple[int, ...], float] = {}
        self._certain: dict[tuple[int, ...], float] = {}
        for size in range(len(noisy) + 1):
            for subset in combinations(range(len(noisy)), size):
                product = cells.counts * common
                for i, (base, gain) in enumerate(noisy):
                    product = product * (gain if i in subset else base)
                self._certain[subset] = float(product[dense].sum())
                self._rest[subset] = float(product[~dense].sum())
                if not subset:
                    everything = product.copy()
        shares = np.zeros(cells.counts.size)
        self._spread = 0.0
        for v, entries in zip(self.sampled, self.entries, strict=True):
            if v in self.hubs and entries:
                share = cells.weights[members.index(v)] / entries
                shares = np.maximum(shares, share)
                self._spread = max(self._spread, float(cells.counts[~dense] @ share[~dense] ** 2))
        shares[dense], everything[dense] = 0.0, 0.0
        top = by_weight(rounded(shares), LUMPS)
        self._lumps, self._squares, self._means = (
            shares[top],
            everything[top],
            (cells.counts * parts.means)[top],
        )
        self._small = self._rest[()] - float(self._squares.sum())


def _spans(figures: Figures, vertex: int, joined: int, classes: Sequence[int]) -> list[int]:
    """How far the keys of a table's entries lie apart, those of the sampled class first, and their weights."""
    own = [figures.attribute(vertex, o) for o in (joined, *(o for o in classes if o != joined))]
    # An entry weighs no more than the heaviest key of any of its attributes.
    return [*(_span(a) for a in own), min(_weights_span(a) for a in own)]


def _weights_span(own: Attribute, room: float = 1.0) -> int:
    """How far the least and the largest weight of a key lie apart; those of tuples' numbers start at 1."""
    heaviest = float(np.abs(own.heavy.weights).max(initial=0.0))
    return max(int(room * room * heaviest) - 1, 0) if heaviest else SOME_WEIGHT


def _span(own: Attribute) -> int:
    """How far the least and the largest key lie apart; as far as can be where only some heavy keys are known."""
    found = [own.heavy.keys]
    if own.pilot is not None:
        found.append(own.pilot.keys)
    if own.histogram is not None:
        found += [own.histogram.lows, own.histogram.highs]
    keys = np.concatenate(found)
    known = len(found) > 1 or keys.size >= own.distinct
    return int(keys.max()) - int(keys.min()) if keys.size and known else ANY_SPAN


@dataclass(frozen=True, slots=True, eq=False)
class _Moments:
    """What a hub's tuples receive over one class from the tables beyond.

    `squares` has the mean square of the product of some of them, by the places of those that are left out; `repeated`
    is the squared weight of pairs of entries, of different sampled keys, that ask for one key.
    """

    sources: tuple[tuple[int, int], ...]
    squares: dict[tuple[int, ...], float]
    mean: float
    repeated: float

    @property
    def of_keys(self) -> float:
        """Mean square without noise."""
        return self.squares[()]

    def square(self, noise: Sequence[float]) -> float:
        """Mean square of the product of the point estimates."""
        return sum(value * math.prod(noise[i] for i in left_out) for left_out, value in self.squares.items())


def _moments(figures: Figures, residual: Residual, hub: int, joined: int, sampled: int) -> _Moments:
    cells, members = figures.cells(joined), figures.tree.classes[joined].vertices
    tables = [v for v in residual.members(joined) if v != hub]
    weights = cells.counts * cells.weights[members.index(hub)]
    tuples = max(float(weights.sum()), 1e-300)
    squares = {}
    for size in range(len(tables) + 1):
        for left_out in combinations(range(len(tables)), size):
            product = weights
            for i, v in enumerate(tables):
                if i not in left_out:
                    product = product * cells.squares[members.index(v)]
            squares[left_out] = float(product.sum()) / tuples
    inside, relation = figures.over(hub, sampled), figures.relations[hub]
    repeats = max(figures.attribute(hub, joined).self_join_size - relation.joint_self_join_size, 0.0)
    sources = tuple((v, joined) for v in tables)
    return _Moments(sources, squares, figures.over(hub, joined).mean, repeats * inside.mean**2)


def sized_sketch(own: Attribute, size: float, rows: int) -> SizedSketch:
    """A hash sketch in so many bytes, with as many of the table's own heaviest keys beside it as make it best."""
    weights = np.sort(np.abs(own.heavy.weights.astype(np.float64)))[::-1]
    taken = np.concatenate([[0.0], np.cumsum(weights**2)])
    counts = np.unique(np.linspace(0, weights.size, 17).astype(np.int64))
    buckets = (size - ENTRY_BYTES * counts) // (COUNTER_BYTES * rows)
    counts, buckets = counts[buckets >= LEAST_BUCKETS], buckets[buckets >= LEAST_BUCKETS]
    noise = np.maximum(own.self_join_size - taken[counts], 0.0) / buckets
    best = int(np.argmin(noise))
    held = COUNTER_BYTES * rows * int(buckets[best]) + ENTRY_BYTES * int(counts[best])
    return SizedSketch(float(noise[best]), held, int(buckets[best]), int(counts[best]))
