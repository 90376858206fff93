"""Predicted error of distinct counts, from figures alone: level sketches, set expressions, samples of pairs.

Each prediction has the relative standard error of the estimate and the half-width that its interval will have, the
larger side, at a confidence. Where the exact map holds everything both are 0.

Notes
-----
The errors are those of the estimators in `sketches.distinct`: `occupancy`, `set_expression`, `join_distinct`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri, stdtrit

from ...sketches.distinct.level import LevelSpec
from ...sketches.distinct.occupancy import TERNARY_INFORMATION, Occupancy, level_probabilities
from ...sketches.distinct.pair_sample import PairSampleSpec
from .values import Values
from .variance import Predicted

Floats = npt.NDArray[np.float64]

LEVEL_ENTRY_BYTES = 16  # of an exact map: key and weight
PAIR_ENTRY_BYTES = 24
SINGLES_PER_BUCKET = 1 / math.log(2)
SIMULATED = 1024  # values of each side whose partners are drawn
MOST_DRAWN = 256  # tuples of a value beyond which its partners are told by mean and variance
LEAST_CHANCE = 0.02  # sizes of a sample that are less likely are left out
OFTEN = math.log(2.0)  # expected number from which a sample holds something more often than not
READ_AGAIN = 1.05  # pairs that a table gives back, over its capacity
MOST_OUTSIDE = 0.05


@dataclass(frozen=True, slots=True)
class DistinctError:
    """What is predicted of one COUNT(DISTINCT).

    Parameters
    ----------
    value : float
        The count.
    error : float
        Relative standard error; infinite where nothing could be told.
    width : float
        Half-width of the interval over the value, the larger side, at the confidence asked.
    nbytes : float
        Of its synopses.
    certified : bool
        Whether the interval will be certified.
    """

    value: float
    error: float
    width: float
    nbytes: float
    certified: bool = True

    @property
    def predicted(self) -> Predicted:
        """As other candidates have it."""
        return Predicted(self.value, (self.error * self.value) ** 2)


def quantile(confidence: float) -> float:
    """Of the standard normal distribution, two-sided."""
    return float(ndtri((1 + confidence) / 2))


def level_error(values: float, spec: LevelSpec, sparse: bool, confidence: float) -> DistinctError:
    """A level sketch of so many distinct values."""
    dense = 8.0 * spec.words
    if sparse and LEVEL_ENTRY_BYTES * values <= dense:
        return DistinctError(values, 0.0, 0.0, LEVEL_ENTRY_BYTES * values)
    error = _level_deviation(values, spec)
    return DistinctError(values, error, math.expm1(quantile(confidence) * error), dense)


def _level_deviation(values: float, spec: LevelSpec) -> float:
    """Relative standard error: a fixed number of values varies less than a Poisson number."""
    if values < 1.0:
        return 0.0
    if values > 1e4 * spec.buckets:
        return 1.0 / math.sqrt(TERNARY_INFORMATION * spec.buckets)
    zero = np.zeros(spec.levels, np.int64)
    empty = np.full(spec.levels, spec.buckets, np.int64)
    known = Occupancy(level_probabilities(spec.levels), empty, zero, zero, zero).information(values)
    return math.sqrt(max(1.0 / known - 1.0 / values, 0.0)) if known > 0.0 else math.inf


def sets_error(
    value: float, union: float, sides: list[DistinctError], spec: LevelSpec, confidence: float
) -> DistinctError:
    """A set expression of `value` values among the `union` of its streams, each in a level sketch."""
    nbytes = sum(s.nbytes for s in sides)
    if all(s.error == 0.0 for s in sides):
        return DistinctError(value, 0.0, 0.0, nbytes)
    whole = _level_deviation(union, spec)
    share = min(value / union, 1.0) if union else 0.0
    witnesses = min(SINGLES_PER_BUCKET * spec.buckets, union)
    if share * witnesses < 1.0:
        return DistinctError(value, math.inf, math.inf, nbytes)
    unseen = math.sqrt(max(1.0 - witnesses / union, 0.0))
    part = math.sqrt((1.0 - share) / (witnesses * share)) * unseen
    error, z = math.hypot(part, whole), quantile(confidence)
    # The exact interval of a proportion reaches further up than down, by about (z^2 + 2) / 3 witnesses.
    above = z * part + (z * z + 2.0) / 3.0 / (share * witnesses) * unseen**2
    return DistinctError(value, error, math.hypot(above, math.expm1(z * whole)), nbytes)


@dataclass(frozen=True, slots=True)
class Outcome:
    """A size that a sample of pairs may come to: with which chance, how many values, and whether that is all."""

    chance: float
    values: float
    complete: bool


def sample_outcomes(values: Values, pairs: Values, spec: PairSampleSpec, sparse: bool) -> list[Outcome]:
    """How many values `PairSample.draw` will give.

    Parameters
    ----------
    values : Values
        Of the sampled attribute.
    pairs : Values
        The same values, with their distinct partners as weights.
    spec : PairSampleSpec
    sparse : bool
        Whether the sample starts as an exact map.
    """
    everything = [Outcome(1.0, values.distinct, True)]
    if sparse and PAIR_ENTRY_BYTES * pairs.tuples <= spec.most_bytes:
        return everything
    distinct = values.distinct
    if distinct <= 0.0:
        return everything
    mean = pairs.tuples / distinct
    square = float(pairs.counts @ pairs.weights**2) / distinct
    room = READ_AGAIN * spec.capacity + 12.0
    outcomes, going, read = [], 1.0, 0.0
    for level in reversed(range(spec.levels)):
        here = distinct * math.ldexp(1.0, -min(level + 1, spec.levels - 1))
        fits = _chance_below(room, here * mean, here * square)
        outcomes.append(Outcome(going * (1.0 - fits), read, False))
        going, read = going * fits, read + here
        if level:
            # Hashes are independent: about Poisson many values are on the levels read so far.
            more = 1.0 - _chance_below(spec.size + 0.5, read, read)
            outcomes.append(Outcome(going * more, max(read, spec.size + 1.0), False))
            going *= 1.0 - more
    outcomes.append(Outcome(going, distinct, True))
    likely = [o for o in outcomes if o.chance >= LEAST_CHANCE]
    total = sum(o.chance for o in likely)
    return [Outcome(o.chance / total, min(o.values, distinct), o.complete) for o in likely]


def _chance_below(limit: float, mean: float, variance: float) -> float:
    """That a sum stays below a limit: normal, but certain where it is far from it."""
    if variance <= 0.0 or mean <= 0.0:
        return 1.0
    return float(ndtr((limit - mean) / math.sqrt(variance)))


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """One relation of two that join: the values that are counted, and its tuples by join key.

    Parameters
    ----------
    values : Values
        Of the counted attribute, with their tuples; those without partners over *other* classes are left out.
    keys : ndarray of float64, shape (n,)
        Tuples of each join key, in cells that both sides share.
    pairs : float, optional
        Known number of distinct (value, key).
    """

    values: Values
    keys: Floats
    pairs: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Shares:
    """A figure of each value, over its mean, by descending figure; and what part of all values it stands for."""

    figures: Floats
    parts: Floats

    @classmethod
    def of(cls, figures: Floats, weights: Floats) -> Shares:
        """From figures and how many values each stands for."""
        order = np.argsort(-figures, kind="stable")
        mean = float(figures @ weights)
        total = float(weights.sum())
        if mean <= 0.0:
            return cls(np.zeros(1), np.ones(1))
        return cls(figures[order] * (total / mean), weights[order] / total)

    @property
    def variance(self) -> float:
        """Squared coefficient of variation."""
        return float(self.parts @ (self.figures - 1.0) ** 2)

    def typical(self, size: float) -> tuple[float, float]:
        """Variance and mean of what a sample of so many values usually holds: without the largest, if rarer."""
        rare = np.cumsum(self.parts) * size <= OFTEN
        left = float(self.parts[~rare].sum())
        if left <= 0.0:
            return 0.0, 0.0
        mean = float(self.parts[~rare] @ self.figures[~rare])
        square = float(self.parts[~rare] @ self.figures[~rare] ** 2)
        return max(square / left - (mean / left) ** 2, 0.0), mean


@dataclass(frozen=True, slots=True, eq=False)
class JoinedFigures:
    """What decides about pairs counted from samples of both sides.

    Parameters
    ----------
    share : float
        Share of all (a, c) that join.
    rows, columns : Shares
        The share of c that join an a, over the a; and the other way round.
    partners : tuple of Values
        Of each side the values, with their distinct join keys as weights.
    values : tuple of Values
        Of each side, with their tuples.
    """

    share: float
    rows: Shares
    columns: Shares
    partners: tuple[Values, Values]
    values: tuple[Values, Values]

    @property
    def cell(self) -> float:
        """Squared variation of a single pair that neither its row nor its column explains."""
        spread = self.rows.variance + self.columns.variance
        return max((1.0 - self.share) / self.share - spread, 0.0)


def joined_figures(one: Side, other: Side, counts: Floats) -> JoinedFigures:
    """Join two sides of which the values and the keys are known, each by itself: in a table they are independent.

    Parameters
    ----------
    one, other : Side
    counts : ndarray of float64, shape (n,)
        How many keys each cell stands for.

    Notes
    -----
    The keys of some values of each side are drawn, by a generator of its own seed; whether they join a value of the
    other side is then a matter of how many tuples that has.
    """
    sides = [(side, _effective(side, counts)) for side in (one, other)]
    shares = []
    for (own, mine), (theirs, yours) in (sides, sides[::-1]):
        met, weights = _met(mine, own.keys, theirs.keys, counts)
        missed = np.power(1.0 - met[:, np.newaxis], yours.weights[np.newaxis, :])
        joining = 1.0 - missed @ yours.counts / max(yours.distinct, 1e-300)
        mean = float(weights @ joining / weights.sum()) if weights.size else 0.0
        shares.append((mean, Shares.of(joining, weights)))
    partners = [Values(_distinct_keys(d.weights, side.keys, counts), d.counts) for side, d in sides]
    (share, rows), (_, columns) = shares
    return JoinedFigures(share, rows, columns, (partners[0], partners[1]), (one.values, other.values))


def _effective(side: Side, counts: Floats) -> Values:
    """The values with as many independent draws of a key as make the known number of distinct pairs."""
    if side.pairs is None or side.values.tuples <= 0.0:
        return side.values
    weights = side.values.weights
    for _ in range(8):
        found = float(side.values.counts @ _distinct_keys(weights, side.keys, counts))
        if not found or abs(found - side.pairs) <= 0.02 * side.pairs:
            break
        weights = np.maximum(weights * side.pairs / found, 1.0)
    return Values(weights, side.values.counts)


def _distinct_keys(draws: Floats, keys: Floats, counts: Floats) -> Floats:
    """Expected distinct keys among so many independent draws, shape of `draws`."""
    total = float(counts @ keys)
    if total <= 0.0 or not draws.size:
        return np.zeros(draws.size)
    grid = np.geomspace(max(min(float(draws.min()), 1.0), 1e-3), max(float(draws.max()), 2.0), 48)
    missed = np.exp(np.outer(grid, np.log1p(-np.minimum(keys / total, 1.0 - 1e-12))))
    found = (1.0 - missed) @ counts
    at = np.log(np.maximum(draws, grid[0]))
    return np.asarray(np.exp(np.interp(at, np.log(grid), np.log(np.maximum(found, 1e-300)))))


def _met(values: Values, keys: Floats, others: Floats, counts: Floats) -> tuple[Floats, Floats]:
    """For drawn values the share of the other side's tuples whose key they have, and what each value stands for."""
    rng = np.random.default_rng(0)
    total, theirs = float(counts @ keys), float(counts @ others)
    if total <= 0.0 or theirs <= 0.0 or not values.counts.size:
        return np.empty(0), np.empty(0)
    each = others / theirs
    repeats = np.clip(np.rint(SIMULATED * values.counts / values.distinct), 2, None).astype(np.int64)
    repeats = np.where(values.weights > MOST_DRAWN, np.minimum(repeats, 8), repeats)
    at = np.repeat(np.arange(repeats.size), repeats)
    weights = (values.counts / repeats)[at]
    size = np.floor(values.weights[at] + rng.random(at.size))
    few = size <= MOST_DRAWN
    met = np.zeros(at.size)
    owners = np.repeat(np.flatnonzero(few), size[few].astype(np.int64))
    cells = np.searchsorted(np.cumsum(counts * keys), rng.random(owners.size) * total).clip(0, keys.size - 1)
    which = np.floor(rng.random(owners.size) * np.maximum(counts[cells], 1.0)).astype(np.int64)
    order = np.lexsort((which, cells, owners))
    owners, cells, which = owners[order], cells[order], which[order]
    fresh = np.ones(owners.size, bool)
    fresh[1:] = (np.diff(owners) != 0) | (np.diff(cells) != 0) | (np.diff(which) != 0)
    met += np.bincount(owners[fresh], each[cells[fresh]], at.size)
    many = np.unique(at[~few])
    for stratum in many:
        has = -np.expm1(values.weights[stratum] * np.log1p(-np.minimum(keys / total, 1.0 - 1e-12)))
        mean, spread = float(counts @ (has * each)), float(counts @ (has * (1.0 - has) * each**2))
        own = ~few & (at == stratum)
        met[own] = rng.normal(mean, math.sqrt(spread), int(own.sum()))
    return np.clip(met, 0.0, 1.0), weights


def joined_error(
    figures: JoinedFigures,
    specs: tuple[PairSampleSpec, PairSampleSpec],
    sizes: tuple[DistinctError, DistinctError],
    sparse: bool,
    confidence: float,
) -> DistinctError:
    """Pairs counted from samples of both sides; `sizes` are the predicted distinct counts of each side.

    Notes
    -----
    The squared relative error is that of the two-way layout, rows / k_a + columns / k_c + cell / (k_a k_c) over the
    squared share, each with what a sample without replacement leaves, plus those of both sizes.
    """
    value = figures.share * sizes[0].value * sizes[1].value
    nbytes = sum(s.nbytes for s in sizes)
    sides = [
        sample_outcomes(v, p, spec, sparse)
        for v, p, spec in zip(figures.values, figures.partners, specs, strict=True)
    ]
    nbytes += sum(
        pair_bytes(v, p, spec, sparse)
        for v, p, spec in zip(figures.values, figures.partners, specs, strict=True)
    )
    if figures.share <= 0.0 or value < 1e-9:
        return DistinctError(0.0, math.inf, math.inf, nbytes)
    variance = width = outside = 0.0
    of_sizes = [0.0 if all(o.complete for o in own) else s.error for own, s in zip(sides, sizes, strict=True)]
    for a in sides[0]:
        for c in sides[1]:
            chance = a.chance * c.chance
            if a.complete and c.complete:
                continue
            sampled = [o.values for o in (a, c) if not o.complete]
            if min(sampled) < 2.0:
                outside += chance
                continue
            left = [
                1.0 - o.values / max(v.distinct, o.values)
                for o, v in zip((a, c), figures.values, strict=True)
            ]
            typical = [
                side.typical(o.values) if rest > 0.0 else (0.0, 1.0)
                for side, o, rest in zip((figures.rows, figures.columns), (a, c), left, strict=True)
            ]
            if min(mean for _, mean in typical) <= 0.0:
                # A sample usually holds nothing that joins.
                outside += chance
                continue
            chance_of_pair = figures.cell / (a.values * c.values) * (1.0 - (1.0 - left[0]) * (1.0 - left[1]))
            plain, own, seen = chance_of_pair, chance_of_pair, 1.0
            for side, o, rest, (spread, mean) in zip(
                (figures.rows, figures.columns), (a, c), left, typical, strict=True
            ):
                plain += side.variance / o.values * rest
                own += (spread / mean**2 if mean else side.variance) / o.values * rest
                seen *= mean
            # A sample usually holds none of what is rarer than it is large: it errs by what that adds.
            variance += chance * min(plain, own * seen**2 + (1.0 - seen) ** 2)
            reach = float(stdtrit(max(min(sampled) - 1.0, 1.0), (1 + confidence) / 2)) * math.sqrt(own)
            unseen = 1.0 - ((1.0 - confidence) / 2) ** (1.0 / min(sampled))
            unseen = min(unseen, max(r for o, r in zip((a, c), left, strict=True) if not o.complete))
            missed = math.log1p((1.0 - figures.share) * unseen / figures.share)
            rise = max(reach, missed)
            width += chance * math.expm1(
                min(math.hypot(rise, *(quantile(confidence) * e for e in of_sizes)), 700.0)
            )
    if outside > MOST_OUTSIDE:
        return DistinctError(value, math.inf, math.inf, nbytes, False)
    error = math.sqrt(variance + sum(e * e for e in of_sizes)) if width else 0.0
    return DistinctError(value, error, width, nbytes)


def by_key_error(
    one: Side,
    other: Side,
    counts: Floats,
    full: bool,
    specs: PairSampleSpec,
    sparse: bool,
    confidence: float,
    most_of_key: int | None = None,
) -> DistinctError:
    """Pairs or triples with the join key among them, counted from samples of both sides by that key.

    `Side.values` are those beside the key; of one constant value where there are none.
    """
    degrees = [_values_of_key(side, counts) for side in (one, other)]
    terms = np.where(other.keys > 0.0, degrees[0], 0.0) * np.minimum(other.keys, 1.0)
    if full:
        terms = terms * np.maximum(degrees[1], 0.0)
    value = float(counts @ terms)
    probability, complete, nbytes = 1.0, True, 0.0
    for side, degree in zip((one, other), degrees, strict=True):
        there = side.keys > 0.0
        keys = Values(side.keys[there], counts[there] * np.minimum(side.keys[there], 1.0))
        partners = Values(np.maximum(degree[there], 1e-9), keys.counts)
        outcomes = sample_outcomes(keys, partners, specs, sparse)
        nbytes += pair_bytes(keys, partners, specs, sparse)
        if not all(o.complete for o in outcomes):
            complete = False
            size = sum(o.chance * (o.values if o.complete else min(o.values, specs.size)) for o in outcomes)
            probability = min(probability, size / max(keys.distinct, 1.0))
    if complete or value <= 0.0:
        return DistinctError(value, 0.0 if complete else math.inf, 0.0 if complete else math.inf, nbytes)
    largest = float(most_of_key) if most_of_key is not None else _largest_seen(terms, counts, probability)
    chosen = terms <= largest
    spread = (1.0 - probability) / probability
    plain, usual = (float(counts[c] @ terms[c] ** 2) * spread for c in (terms > 0.0, chosen))
    seen = float(counts[chosen] @ terms[chosen])
    # A sample usually holds none of the terms that are larger: it errs by what they add.
    error = math.sqrt(min(plain, usual + (value - seen) ** 2)) / value
    above, z = largest / probability / seen, quantile(confidence)
    width = above + z * math.hypot(math.sqrt(usual) / seen, above)
    return DistinctError(value, error, width, nbytes, most_of_key is not None)


def _values_of_key(side: Side, counts: Floats) -> Floats:
    """Expected distinct values of each key's tuples."""
    values = side.values
    if values.counts.size == 1 and values.counts[0] <= 1.0:
        return np.minimum(side.keys, 1.0)
    keys = Values(side.keys, counts)
    turned = Side(keys, values.weights, side.pairs)
    draws = _effective(turned, values.counts)
    found = _distinct_keys(np.maximum(draws.weights, 1e-3), values.weights, values.counts)
    return np.where(side.keys > 0.0, found, 0.0)


def _largest_seen(terms: Floats, counts: Floats, probability: float) -> float:
    """The largest term that a sample is more likely than not to hold."""
    order = np.argsort(-terms, kind="stable")
    expected = np.cumsum(counts[order] * (terms[order] > 0.0)) * probability
    at = int(np.searchsorted(expected, OFTEN))
    return float(terms[order][min(at, terms.size - 1)])


def pair_bytes(values: Values, pairs: Values, spec: PairSampleSpec, sparse: bool) -> float:
    """Bytes of a pair sample: its exact map, or the tables of the levels that values reach."""
    exact = PAIR_ENTRY_BYTES * pairs.tuples
    if sparse and exact <= spec.most_bytes:
        return exact
    reached = min(spec.levels, math.log2(max(values.distinct, 1.0)) + 1.3)
    return spec.most_bytes / spec.levels * max(reached, 1.0)
