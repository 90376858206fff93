"""Predicted error of distinct pairs counted from samples of both sides of a join: their sizes, and what they miss.

Notes
-----
The errors are those of the estimator in `sketches.distinct.join_distinct`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, stdtrit

from ...sketches.distinct.pair_sample import PairSampleSpec
from .distinct import DistinctError, quantile, surely
from .joined_values import OFTEN, JoinedFigures, Side, distinct_keys, effective
from .values import Floats, Values

PAIR_ENTRY_BYTES = 24


LEAST_CHANCE = 0.02  # sizes of a sample that are less likely are left out


READ_AGAIN = 1.05  # pairs that a table gives back, over its capacity


MOST_OUTSIDE = 0.05


@dataclass(frozen=True, slots=True)
class Outcome:
    """A size that a sample of pairs may come to: with which chance, how many values, and whether that is all."""

    chance: float
    values: float
    complete: bool


def sample_outcomes(
    values: Values, pairs: Values, spec: PairSampleSpec, sparse: bool, tuples: float = math.inf
) -> list[Outcome]:
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
    tuples : float
        The most that there may be: no more pairs can be told apart.
    """
    everything = [Outcome(1.0, values.distinct, True)]
    if sparse and _map_fits(pairs, spec, tuples):
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


def _map_fits(pairs: Values, spec: PairSampleSpec, tuples: float) -> bool:
    """Whether an exact map of all pairs surely stays one: of one pair too many nothing but a small sample is left."""
    return PAIR_ENTRY_BYTES * surely(pairs.tuples, tuples) <= spec.most_bytes


def _chance_below(limit: float, mean: float, variance: float) -> float:
    """That a sum stays below a limit: normal, but certain where it is far from it."""
    if variance <= 0.0 or mean <= 0.0:
        return 1.0
    return float(ndtr((limit - mean) / math.sqrt(variance)))


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
    of_sides = list(zip(figures.values, figures.partners, specs, figures.most_tuples, strict=True))
    sides = [sample_outcomes(v, p, spec, sparse, most) for v, p, spec, most in of_sides]
    nbytes += sum(pair_bytes(v, p, spec, sparse, most) for v, p, spec, most in of_sides)
    entries = sum(s.entries for s in sizes)
    entries += sum(pair_entries(p, spec, sparse) for _, p, spec, _ in of_sides)
    if figures.share <= 0.0 or value < 1e-9:
        return DistinctError(0.0, math.inf, math.inf, nbytes, entries=entries)
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
        return DistinctError(value, math.inf, math.inf, nbytes, False, entries)
    error = math.sqrt(variance + sum(e * e for e in of_sizes)) if width else 0.0
    return DistinctError(value, error, width, nbytes, entries=entries)


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
    probability, complete, nbytes, entries = 1.0, True, 0.0, 0.0
    for side, degree in zip((one, other), degrees, strict=True):
        there = side.keys > 0.0
        keys = Values(side.keys[there], counts[there] * np.minimum(side.keys[there], 1.0))
        partners = Values(np.maximum(degree[there], 1e-9), keys.counts)
        outcomes = sample_outcomes(keys, partners, specs, sparse, side.most_tuples)
        nbytes += pair_bytes(keys, partners, specs, sparse, side.most_tuples)
        entries += pair_entries(partners, specs, sparse)
        if not all(o.complete for o in outcomes):
            complete = False
            size = sum(o.chance * (o.values if o.complete else min(o.values, specs.size)) for o in outcomes)
            probability = min(probability, size / max(keys.distinct, 1.0))
    if complete or value <= 0.0:
        unknown = 0.0 if complete else math.inf
        return DistinctError(value, unknown, unknown, nbytes, entries=entries)
    largest = float(most_of_key) if most_of_key is not None else _largest_seen(terms, counts, probability)
    chosen = terms <= largest
    spread = (1.0 - probability) / probability
    plain, usual = (float(counts[c] @ terms[c] ** 2) * spread for c in (terms > 0.0, chosen))
    seen = float(counts[chosen] @ terms[chosen])
    # A sample usually holds none of the terms that are larger: it errs by what they add.
    error = math.sqrt(min(plain, usual + (value - seen) ** 2)) / value
    above, z = largest / probability / seen, quantile(confidence)
    width = above + z * math.hypot(math.sqrt(usual) / seen, above)
    return DistinctError(value, error, width, nbytes, most_of_key is not None, entries)


def _values_of_key(side: Side, counts: Floats) -> Floats:
    """Expected distinct values of each key's tuples."""
    values = side.values
    if values.counts.size == 1 and values.counts[0] <= 1.0:
        return np.minimum(side.keys, 1.0)
    keys = Values(side.keys, counts)
    turned = Side(keys, values.weights, side.pairs)
    draws = effective(turned, values.counts)
    found = distinct_keys(np.maximum(draws.weights, 1e-3), values.weights, values.counts)
    return np.where(side.keys > 0.0, found, 0.0)


def _largest_seen(terms: Floats, counts: Floats, probability: float) -> float:
    """The largest term that a sample is more likely than not to hold."""
    order = np.argsort(-terms, kind="stable")
    expected = np.cumsum(counts[order] * (terms[order] > 0.0)) * probability
    at = int(np.searchsorted(expected, OFTEN))
    return float(terms[order][min(at, terms.size - 1)])


def pair_bytes(
    values: Values, pairs: Values, spec: PairSampleSpec, sparse: bool, tuples: float = math.inf
) -> float:
    """Bytes of a pair sample of at most so many tuples: its exact map, or the tables of levels that values reach."""
    if sparse and _map_fits(pairs, spec, tuples):
        return PAIR_ENTRY_BYTES * pairs.tuples
    reached = min(spec.levels, math.log2(max(values.distinct, 1.0)) + 1.3)
    return spec.most_bytes / spec.levels * max(reached, 1.0)


def pair_entries(pairs: Values, spec: PairSampleSpec, sparse: bool) -> float:
    """Entries of the exact map that a pair sample is, or begins as."""
    return min(pairs.tuples, spec.most_bytes / PAIR_ENTRY_BYTES) if sparse else 0.0
