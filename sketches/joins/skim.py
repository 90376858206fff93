"""Skimming: taking the dense values out of a sketch before it is multiplied.

The error of a join estimate grows with the self-join sizes, which a few frequent values dominate. Their
frequencies can be read from the sketch itself, well enough to subtract them; what is left, the residual, is
multiplied with a much smaller error, and the dense values are multiplied exactly (see `skim_join`).

References
----------
.. [1] S. Ganguly, M. Garofalakis, R. Rastogi, US 2006/0143170, "Processing data-stream join aggregates using
   skimmed sketches": procedure SKIMDENSE (Table 2) and paragraphs [0041], [0049]-[0058].
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..hashing.xi import as_keys, derive_seed
from .convolution import ConvolutionSketch

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

LEAST_ROWS = 7
LEAST_BUCKETS = 340  # 4,096 words in 11 rows have 372: measured, skimming pays there; at 204 it may do harm
SAFE_SIGMAS = 8.0
ROUNDS = 3
_BLOCK = 1 << 14


@dataclass(frozen=True, slots=True, eq=False)
class Skimmed:
    """A relation as dense tuples plus the sketch of everything else.

    Parameters
    ----------
    keys : tuple of ndarray of int64, each of shape (n,)
        Join values of the dense tuples, one array for each attribute of the sketch; distinct tuples.
    weights : ndarray of int64, shape (n,)
        Weights that were taken out.
    residual : ConvolutionSketch
        The sketch of the relation minus the dense tuples.
    """

    keys: tuple[Ints, ...]
    weights: Ints
    residual: ConvolutionSketch


def frequencies(sketch: ConvolutionSketch, keys: Sequence[Ints]) -> Floats:
    """Estimated total weight of each key tuple: the median over the rows.

    Parameters
    ----------
    sketch : ConvolutionSketch
        With one attribute or more.
    keys : sequence of ndarray of int64, shape (n,)
        One array for each attribute.

    Returns
    -------
    ndarray of float64, shape (n,)
        Half of the rows are off by more than about ``0.7 * sqrt(F2 / buckets)`` where collisions are near
        normal; the median by far less often.

    Notes
    -----
    O(n * rows) time, in blocks.
    """
    signed = _signed_counters(sketch)
    out = np.empty(len(keys[0]))
    for start in range(0, out.size, _BLOCK):
        slots = sketch.spec.slots([k[start : start + _BLOCK] for k in keys])
        out[start : start + _BLOCK] = _median(np.take_along_axis(signed, slots, axis=1))
    return out


def phantom_threshold(sketch: ConvolutionSketch, candidates: int) -> float:
    """The largest estimate among as many keys as there are candidates, none of which is in the data.

    Phantom keys have a random bucket and sign in each row, so their estimates are pure collision noise of
    this very sketch, however far from normal. A candidate above the largest of them is dense; about one false
    dense value is left.

    Parameters
    ----------
    sketch : ConvolutionSketch
    candidates : int
        How many keys are going to be tested.

    Returns
    -------
    float
        At least 0. Determined by the sketch's family and counters.

    Notes
    -----
    Departs from [1]_, whose threshold Theta(n / buckets) knows nothing of the data's skew and lets false
    values through in small sketches. O(candidates * rows) time.
    """
    rows, buckets = sketch.counters.shape
    rng = np.random.default_rng(derive_seed(sketch.spec.families[0].seed, "phantom keys"))
    signed = _signed_counters(sketch)
    largest = 0.0
    for start in range(0, candidates, _BLOCK):
        count = min(_BLOCK, candidates - start)
        slots = rng.integers(0, 2 * buckets, (rows, count))
        largest = max(largest, float(_median(np.take_along_axis(signed, slots, axis=1)).max()))
    return largest


def counter_sigma(sketch: ConvolutionSketch) -> float:
    """Standard deviation of the collision noise of a counter, ``sqrt(F2 / buckets)``, F2 from the sketch."""
    self_join = float(np.median(np.sum(sketch.counters.astype(np.float64) ** 2, axis=1)))
    return math.sqrt(self_join / sketch.counters.shape[1])


def safe_threshold(sketch: ConvolutionSketch) -> float:
    """Eight standard deviations of a counter: for candidates that cannot be counted beforehand.

    Cautious: it takes out fewer values than `phantom_threshold` and gains less, but lets no false one
    through.
    """
    return SAFE_SIGMAS * counter_sigma(sketch)


def can_skim(sketch: ConvolutionSketch) -> bool:
    """Whether the sketch has the rows and buckets below which false dense values do harm."""
    rows, buckets = sketch.counters.shape
    return bool(rows >= LEAST_ROWS and buckets >= LEAST_BUCKETS)


def skim(
    sketch: ConvolutionSketch,
    candidates: Sequence[Ints],
    threshold: float | None = None,
    rounds: int = ROUNDS,
) -> Skimmed:
    """Take the dense candidates out of a sketch.

    Parameters
    ----------
    sketch : ConvolutionSketch
        Left as it is; the residual is a copy.
    candidates : sequence of ndarray of int64, shape (n,)
        Distinct key tuples to test, one array for each attribute: the whole of a small domain, or what
        `dyadic.DyadicSketch.dense_candidates` found in a large one.
    threshold : float, optional
        Estimates of at least this absolute size are dense. Default: above the `phantom_threshold` of what is
        left in each round.
    rounds : int
        How often to read the residual again, at least 1.

    Returns
    -------
    Skimmed
        Without dense tuples if the sketch is too small to skim by default (`can_skim`).

    Notes
    -----
    Procedure SKIMDENSE of [1]_ with another threshold. Departs from [1]_ in two more ways. What the first
    round left behind is read again: with the heaviest values gone collisions weigh less, so the weights of
    dense values are corrected and further values rise above the (lower) noise; measured, three rounds halve
    the error of one. And estimates below minus the threshold are dense too, for negative net weights.
    """
    if rounds < 1:
        raise ValueError(f"skimming takes at least one round, not {rounds}")
    columns = [as_keys(c) for c in candidates]
    weights = np.zeros(len(columns[0]), np.int64)
    residual = sketch.copy()
    if weights.size and (threshold is not None or can_skim(sketch)):
        for _ in range(rounds):
            limit = threshold
            if limit is None:
                # Above the largest phantom: in a sparse sketch noise is a small integer, and ties are many.
                limit = np.nextafter(phantom_threshold(residual, weights.size), np.inf)
            estimates = frequencies(residual, columns)
            taken = (weights != 0) | (np.abs(estimates) >= limit)
            change = np.where(taken, np.rint(estimates), 0.0).astype(np.int64)
            moved = np.flatnonzero(change)
            residual.update([c[moved] for c in columns], -change[moved])
            weights += change
    dense = np.flatnonzero(weights)
    return Skimmed(tuple(c[dense] for c in columns), weights[dense], residual)


def _signed_counters(sketch: ConvolutionSketch) -> Floats:
    """What a key in slot ``2 * bucket + negative`` reads from each row: float64, shape (rows, 2 *
    buckets)."""
    counters = sketch.counters.astype(np.float64)
    return np.stack([counters, -counters], axis=2).reshape(counters.shape[0], -1)


def _median(rows: Floats) -> Floats:
    """Median over the first axis; `np.median` without its copies."""
    count = rows.shape[0]
    middle = count // 2
    if count % 2:
        return np.asarray(np.partition(rows, middle, axis=0)[middle])
    parts = np.partition(rows, (middle - 1, middle), axis=0)
    return np.asarray((parts[middle - 1] + parts[middle]) / 2)
