"""From a pilot's counts to figures: tuples, distinct keys, self-join sizes, heavy keys, histograms."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from ...sketches.ranking import by_weight
from ...sketches.samples.known_keys import KnownKeys
from ...sketches.samples.sampled_hash import HASH_BITS
from ...sketches.samples.two_level_plan import Candidates, heaviest
from .histograms import Histogram, equi_depth
from .pilot_counts import PILOT_FAMILY, Counts, Pilot
from .relation import AttributeStatistics, RelationStatistics, RowSample

# Heavy keys listed, buckets of a histogram.
MOST_HEAVY = 1024
BUCKETS = 100

# A key of a row sample is heavy if it occurs so often, and so many standard deviations above an even spread.
LEAST_COUNT = 8
DEVIATIONS = 5.0

# With so many sampled keys their number tells that of all keys to 10 %, with so few to 25 %.
ENOUGH_KEYS, FEW_KEYS = 100, 16

# With fewer sampled tuples a relation is looked at again, at higher rates.
ENOUGH_TUPLES = 1000

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


def most_tuples(pilot: Pilot) -> float:
    """A number of tuples that the relation exceeds with probability below 1e-4."""
    seen = pilot.row_samples[-1].tuples
    return (seen + 4.0 * math.sqrt(seen + 1.0) + 8.0) / pilot.rates.tuples


def relation_statistics(
    pilot: Pilot, attributes: int, scanned: float | None, gathered_at: float
) -> RelationStatistics:
    """The figures of a relation.

    Parameters
    ----------
    pilot : Pilot
    attributes : int
        Number of its join attributes.
    scanned : float, optional
        Tuples of the table before the filter, where they are known.
    gathered_at : float
        Seconds since the epoch.

    Notes
    -----
    All weights are of all tuples: `row_fraction` is 1. Where everything was counted they are exact. Else
    the pilot's key sample has exact weights; those of heavy keys that are not in it are scaled up from the row
    sample, and so is the number of tuples.
    """
    whole = pilot.rates.tuples == 1.0
    tuples = pilot.row_samples[-1].tuples / pilot.rates.tuples
    columns = [
        _attribute(keys, rows, pilot, tuples)
        for keys, rows in zip(pilot.key_samples, pilot.row_samples, strict=True)
    ]
    return RelationStatistics(
        tuples=tuples,
        attributes=tuple(columns[:attributes]),
        scanned=scanned,
        joint_self_join_size=columns[-1].self_join_size if attributes > 1 else None,
        joint_distinct=columns[-1].distinct if attributes > 1 else None,
        source="exact" if whole else "pilot",
        gathered_at=gathered_at,
    )


def _attribute(sampled: Counts, rows: Counts, pilot: Pilot, tuples: float) -> AttributeStatistics:
    whole = pilot.rates.tuples == 1.0
    known = _known(sampled, pilot.rates.keys, tuples)
    if whole:
        weights = sampled.counts.astype(np.float64)
        return AttributeStatistics(
            float(sampled.keys.size),
            float(weights @ weights),
            heaviest(sampled.keys, sampled.counts, MOST_HEAVY),
            equi_depth(sampled.keys, sampled.counts, BUCKETS),
            known,
        )
    heavy, squares = _heavy(sampled, rows, pilot.rates.tuples)
    others = sampled.counts[~np.isin(sampled.keys, heavy.keys)].astype(np.float64)
    distinct = _distinct(heavy.keys.size, others.size / pilot.rates.keys, others.size, rows)
    distinct = min(max(distinct, float(rows.keys.size)), max(tuples, float(rows.keys.size)))
    f2 = squares + float(others @ others) / pilot.rates.keys
    histogram = _histogram(sampled, rows, pilot, distinct)
    seen = RowSample(rows.keys, rows.counts, pilot.rates.tuples)
    return AttributeStatistics(distinct, f2, heavy, histogram, known, seen)


def _known(sampled: Counts, probability: float, tuples: float) -> KnownKeys:
    hashes = PILOT_FAMILY.values(sampled.keys, 1, HASH_BITS)[0]
    certain = np.full(sampled.keys.size, probability == 1.0)
    most = 0.0 if probability == 1.0 else math.inf
    return KnownKeys(
        sampled.keys,
        sampled.counts[np.newaxis, :],
        certain,
        probability,
        np.array([[0.0, most]]),
        hashes / float(1 << HASH_BITS),
        np.array([tuples]),
    )


def _heavy(sampled: Counts, rows: Counts, share: float) -> tuple[Candidates, float]:
    """Keys that stand out in the row sample, with their weights, and an unbiased sum of their squares."""
    mean = rows.tuples / max(rows.keys.size, 1)
    least = max(LEAST_COUNT, mean + DEVIATIONS * math.sqrt(mean))
    # Where all keys are frequent, all of them are known well.
    if mean >= LEAST_COUNT and rows.keys.size <= MOST_HEAVY:
        least = LEAST_COUNT
    chosen = np.flatnonzero(rows.counts >= least)
    chosen = np.sort(chosen[by_weight(rows.counts[chosen], MOST_HEAVY)])
    keys, seen = rows.keys[chosen], rows.counts[chosen].astype(np.float64)
    weights = np.rint(seen / share).astype(np.int64)
    # Tuples are drawn independently: E[s (s - 1) + q s] = q^2 w^2 with s of w drawn at rate q.
    squares = (seen * (seen - 1.0) + share * seen) / share**2
    exact, at, source = np.intersect1d(keys, sampled.keys, assume_unique=True, return_indices=True)
    assert np.array_equal(exact, keys[at]), "keys are distinct"
    weights[at] = sampled.counts[source]
    squares[at] = sampled.counts[source].astype(np.float64) ** 2
    return Candidates(keys, weights, math.inf), float(squares.sum())


def _distinct(heavy: int, others: float, sampled: int, rows: Counts) -> float:
    """Distinct keys: from the key sample where it holds enough, else from the coverage of the row sample.

    The latter is Chao's estimate d + f1 (f1 - 1) / (2 (f2 + 1)) (A. Chao, Scand. J. Statist. 1984), good where
    few keys were seen once and else a lower bound.
    """
    once, twice = (int(np.count_nonzero(rows.counts == n)) for n in (1, 2))
    covered = 1.0 - once / max(rows.tuples, 1)
    if sampled >= ENOUGH_KEYS and covered < 0.999:
        return heavy + others
    chao = rows.keys.size + once * (once - 1) / (2.0 * (twice + 1))
    return max(chao, heavy + others) if sampled >= FEW_KEYS and covered < 0.999 else chao


def _histogram(sampled: Counts, rows: Counts, pilot: Pilot, distinct: float) -> Histogram:
    """Equi-depth buckets of the row sample; distinct keys by the key sample, scaled to their known number."""
    drawn = equi_depth(rows.keys, rows.counts, BUCKETS)
    if not len(drawn.lows):
        return drawn
    edges = np.append(drawn.lows[1:], np.iinfo(np.int64).max)
    at = np.clip(np.searchsorted(edges, sampled.keys, side="right"), 0, len(edges) - 1)
    found = np.bincount(at, minlength=len(edges)) / pilot.rates.keys
    least, counts = drawn.distinct, drawn.counts / pilot.rates.tuples
    widths = (drawn.highs.astype(np.float64) - drawn.lows.astype(np.float64)) + 1.0
    most = np.maximum(np.minimum(widths, counts), least)
    values: Floats = np.clip(found, least, most)
    extra = values - least
    if extra.sum() > 0:
        values = np.clip(least + extra * max(distinct - least.sum(), 0.0) / extra.sum(), least, most)
    return Histogram(drawn.lows, drawn.highs, counts, values)
