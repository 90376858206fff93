"""How many distinct tuples a join has after projection, from samples of both sides.

``SELECT COUNT(DISTINCT a, c) FROM R(a, b) JOIN S(b, c)``: sample R by a and S by c, each with its full sets
of b; the share of sampled (a, c) that have a common b, times |A| |C|. With b in the projection, R and S are
sampled by b with the same hash function, and a sampled b's distinct partners are counted.

References
----------
.. [1] S. Ganguly, M. Garofalakis, A. Kumar, R. Rastogi, "Join-Distinct Aggregate Estimation over Update
   Streams", PODS 2005: the problem (Section 2.1), one-sided and full projections and predicates (Section 5).
.. [2] S. R. Searle, G. Casella, C. E. McCulloch, "Variance Components", 1992, Section 4.4: the two-way
layout.

Notes
-----
Departs from [1]: its own estimators are in `jd_sketch` and `linear_jd`. Two samples of 64 values have a
tenth of their error.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from ..intervals.gamma import gamma_interval, poisson_sum
from ..intervals.interval import Estimate, clip, exact, uncertified
from .count_signature import Ints
from .pair_sample import Drawn, PairSampleSpec

Matrix = NDArray[np.bool_]
Predicate = Callable[[Ints, Ints], NDArray[np.bool_]]

BLOCK_CELLS = 1 << 24
# Cells of a matrix of sampled values that is looked at as a whole; of a side that is all there fewer values are taken.
MOST_CELLS = 1 << 26
# Triples (a, b, c) that are told apart at a time, and the most of them: where there are more, samples do.
BLOCK_TRIPLES, MOST_TRIPLES = 1 << 22, 1 << 28
# Steps of a matrix product in the time in which one pair of a partner is marked; of more pairs all are marked at once.
PAIR_COST, MANY_PAIRS = 400.0, 1024
TOO_SMALL = "fewer than two values could be read from a sample: it needs more capacity"
MOST_MISSED = 0.25  # of the logarithm: about a quarter of the answer
HUBS = "the interval leaves room for a few values outside the samples that have far more or fewer partners"
NO_BOUND = "nothing bounds the partners of values outside the sample"


class ReadableSample(Protocol):
    """A `PairSample` or `SparsePairSample`."""

    @property
    def spec(self) -> PairSampleSpec:
        """Size and hash functions."""

    def draw(self) -> Drawn:
        """Read the sample."""


def join_distinct(
    r_by_a: ReadableSample,
    s_by_c: ReadableSample,
    size_a: Estimate,
    size_c: Estimate,
    confidence: float = 0.95,
    predicate: Predicate | None = None,
) -> Estimate:
    """Number of distinct (a, c) in the join of R(a, b) and S(b, c) on b.

    Parameters
    ----------
    r_by_a, s_by_c : PairSample or SparsePairSample
        R sampled by a with its b as partners, S sampled by c with its b. Different families.
    size_a, size_c : Estimate
        Numbers of distinct a in R and c in S, say of a `LevelSketch`; ignored where a sample is complete.
    confidence : float
        In (0, 1).
    predicate : callable, optional
        Takes arrays of a and c, int64 of shape (n,), and returns which pairs count; all by default.

    Returns
    -------
    Estimate
        Exact if both samples are complete. Otherwise relative errors of the share (two-way analysis of
        variance [2], Student's t) and of both sizes in quadrature, on a logarithmic scale. The interval leaves room for
        what the samples may have missed, a few values that join with everything or with nothing; a note says so
        where that is more than a quarter of the answer.

    Notes
    -----
    Time O(k_a k_c + pairs); of complete samples O(triples log triples), by blocks, and where these are too many they
    are sampled as well. The relative error is about sqrt(cv_a^2 / k_a + cv_c^2 / k_c) with cv the
    coefficients of variation of the number of join partners over the a and over the c, plus a term for
    chance of 1 / hits.
    """
    _check_families(r_by_a, s_by_c, same=False)
    r, s = r_by_a.draw(), s_by_c.draw()
    size_a, size_c = _size_of(r, size_a), _size_of(s, size_c)
    if predicate is None and r.complete and s.complete:
        number = number_of_pairs(r, s)
        if number is not None:
            return exact(number)
    r, s = _within_bounds(r, s)
    joined = joining_pairs(r, s)
    if predicate is not None:
        joined = _restrict(joined, r.values, s.values, predicate)
    hits = int(joined.sum())
    sampled = [len(drawn.values) for drawn in (r, s) if not drawn.complete]
    if not sampled or any(drawn.complete and not len(drawn.values) for drawn in (r, s)):
        return exact(hits)
    product = size_a.high * size_c.high
    if min(sampled) < 2:
        unknown = Estimate(float(hits), float(hits), max(product, float(hits)), confidence, True, "measured")
        return uncertified(unknown, TOO_SMALL)
    unseen = _most_without_hits(min(sampled), confidence)
    if hits == 0:
        return Estimate(0.0, 0.0, unseen * product, confidence, True, "measured")
    share, reach = _share(joined, size_a.value, size_c.value, confidence)
    # Values that both samples may have missed: so many join with everything, or with nothing.
    outside = [1.0 - len(d.values) / n.high for d, n in ((r, size_a), (s, size_c)) if not d.complete]
    unseen = min(unseen, max(outside))
    missed = math.log1p((1.0 - share) * unseen / share), -math.log1p(-unseen)
    fall, rise = max(reach, missed[1]), max(reach, missed[0])
    parts = ((size_a.value, size_a.low, size_a.high), (size_c.value, size_c.low, size_c.high))
    below = math.hypot(fall, *(math.log(value / low) for value, low, _ in parts))
    above = math.hypot(rise, *(math.log(high / value) for value, _, high in parts))
    value = share * size_a.value * size_c.value
    found = Estimate(value, value * math.exp(-below), value * math.exp(above), confidence, True, "measured")
    found = clip(found, float(hits), max(product, float(hits)))
    if max(missed) > max(reach, MOST_MISSED):
        found = replace(found, notes=(*found.notes, HUBS))
    if size_a.certified and size_c.certified:
        return found
    return uncertified(found, *size_a.notes, *size_c.notes)


def join_distinct_with_key(
    r_by_b: ReadableSample,
    s_by_b: ReadableSample,
    confidence: float = 0.95,
    full: bool = False,
    largest_term: float | None = None,
    *,
    bounded: bool = True,
) -> Estimate:
    """Number of distinct (a, b), or (a, b, c), in the join of R(a, b) and S(b, c) on b.

    Parameters
    ----------
    r_by_b, s_by_b : PairSample or SparsePairSample
        R sampled by b with its a as partners, S sampled by b with its c, of the same spec.
    confidence : float
        In (0, 1).
    full : bool
        Whether c is projected as well; the one-sided projection is the number of distinct tuples of R that
        join.
    largest_term : float, optional
        The most distinct tuples that one b can contribute: its number of a, or of pairs (a, c).
    bounded : bool
        Whether none contributes more; otherwise that is what is known, and the answer is not certified.

    Returns
    -------
    Estimate
        Exact if both samples are complete; otherwise with the gamma interval of a Poisson sum. Without
        `largest_term` the largest term seen stands for the largest unseen, and the answer is not certified.

    Notes
    -----
    A b is sampled if its hash is below the smaller bound of the two samples, which given all other b does not
    depend on it, so the sum over the sampled b divided by the probability is unbiased. The relative error is
    about sqrt((1 + cv^2) / k) with k sampled b that join and cv the coefficient of variation of their terms.
    """
    _check_families(r_by_b, s_by_b, same=True)
    drawn = [(sample.draw(), sample.spec.size) for sample in (r_by_b, s_by_b)]
    # Of a side that is all there nothing is left out.
    r, s = (d if d.complete else d.smallest(size) for d, size in drawn)
    bound = min(r.bound, s.bound)
    r, s = r.below(bound), s.below(bound)
    _, in_r, in_s = np.intersect1d(r.values, s.values, assume_unique=True, return_indices=True)
    terms = r.degrees()[in_r].astype(np.float64)
    if full:
        terms *= s.degrees()[in_s]
    if r.complete:
        return exact(int(terms.sum()))
    if r.probability == 0.0:
        unknown = Estimate(0.0, 0.0, math.inf, confidence, True, "measured")
        return uncertified(unknown, TOO_SMALL)
    seen = float(terms.max()) if len(terms) else math.inf
    largest = (
        seen
        if largest_term is None
        else largest_term
        if bounded
        else max(largest_term, terms.max(initial=0.0))
    )
    total = poisson_sum(terms, r.probability, largest / r.probability)
    low, high = gamma_interval(total, confidence)
    found = Estimate(total.value, max(low, float(terms.sum())), high, confidence, True, "measured")
    return found if bounded and largest_term is not None else uncertified(found, NO_BOUND)


def _size_of(drawn: Drawn, size: Estimate) -> Estimate:
    """Number of distinct values of a stream, at least those in its sample."""
    return exact(len(drawn.values)) if drawn.complete else clip(size, float(len(drawn.values)))


def _within_bounds(r: Drawn, s: Drawn) -> tuple[Drawn, Drawn]:
    """Both sides, of those that are all there fewer values where their matrix would have too many cells."""
    if len(r.values) * len(s.values) <= MOST_CELLS:
        return r, s
    root = math.isqrt(MOST_CELLS)
    each = [root if d.complete else min(len(d.values), root) for d in (r, s)]
    most = [max(MOST_CELLS // max(other, 1), root) for other in each[::-1]]
    kept = [d.smallest(m) if d.complete else d for d, m in zip((r, s), most, strict=True)]
    return kept[0], kept[1]


def number_of_pairs(r: Drawn, s: Drawn) -> int | None:
    """How many (a, c) have a partner in common, without a matrix; None where partners in common are too many."""
    shared = np.intersect1d(r.partners, s.partners)
    owners, starts = _by_partner(s, shared)
    known = np.isin(r.partners, shared)
    mine, at = r.owners[known], np.searchsorted(shared, r.partners[known])
    each = np.diff(starts)[at]
    # What has one partner meets each c by it alone.
    alone = np.bincount(mine, minlength=len(r.values))[mine] == 1
    found = int(each[alone].sum())
    mine, at, each = mine[~alone], at[~alone], each[~alone]
    if each.sum() > MOST_TRIPLES:
        return None
    blocks = np.cumsum(each) // BLOCK_TRIPLES
    ends = np.flatnonzero(np.diff(mine, append=-1))  # an a is told apart as a whole
    cuts = ends[np.flatnonzero(np.diff(blocks[ends], append=-1))] + 1
    for first, last in pairwise([0, *cuts.tolist()]):
        number = each[first:last]
        within = np.arange(number.sum()) - np.repeat(np.cumsum(number) - number, number)
        met = owners[np.repeat(starts[at[first:last]], number) + within]
        pairs = np.repeat(mine[first:last], number) * len(s.values) + met
        found += len(np.unique(pairs))
    return found


def joining_pairs(r: Drawn, s: Drawn) -> Matrix:
    """Which sampled values have a partner in common; shape (values of r, values of s)."""
    shared = np.intersect1d(r.partners, s.partners)
    out = np.zeros((len(r.values), len(s.values)), np.bool_)
    sides = [_by_partner(drawn, shared) for drawn in (r, s)]
    pairs = float(np.prod([np.diff(starts).astype(np.float64) for _, starts in sides], axis=0).sum())
    if pairs * PAIR_COST < float(out.size) * len(shared):
        _set_pairs(out, *sides)
        return out
    left, right = (_incidence(drawn, shared) for drawn in (r, s))
    step = max(1, BLOCK_CELLS // max(1, len(shared)))
    for start in range(0, len(out), step):
        out[start : start + step] = left(start, step) @ right(0, len(s.values)).T > 0
    return out


def _by_partner(drawn: Drawn, shared: Ints) -> tuple[Ints, Ints]:
    """The values that each shared partner has, one partner's behind another's, and where those of each start."""
    known = np.isin(drawn.partners, shared)
    column = np.searchsorted(shared, drawn.partners[known])
    order = np.argsort(column, kind="stable")
    return drawn.owners[known][order], np.searchsorted(column[order], np.arange(len(shared) + 1))


def _set_pairs(out: Matrix, left: tuple[Ints, Ints], right: tuple[Ints, Ints]) -> None:
    """Mark the pairs of values of each shared partner: of many at once, of few in one step for all partners."""
    (a, a_starts), (c, c_starts) = left, right
    a_each, c_each = np.diff(a_starts), np.diff(c_starts)
    many = a_each * c_each > MANY_PAIRS
    for n in np.flatnonzero(many):
        out[np.ix_(a[a_starts[n] : a_starts[n + 1]], c[c_starts[n] : c_starts[n + 1]])] = True
    few = np.flatnonzero(~many)
    step = max(1, BLOCK_CELLS // (8 * MANY_PAIRS))
    for start in range(0, len(few), step):
        part = few[start : start + step]
        number = a_each[part] * c_each[part]
        which = np.repeat(np.arange(len(part)), number)
        within = np.arange(len(which)) - np.repeat(np.cumsum(number) - number, number)
        of_a, of_c = np.divmod(within, c_each[part][which])
        out[a[a_starts[part][which] + of_a], c[c_starts[part][which] + of_c]] = True


def _incidence(drawn: Drawn, shared: Ints) -> Callable[[int, int], NDArray[np.float32]]:
    """A function giving rows of the value-by-partner matrix, columns limited to `shared` partners."""
    column = np.searchsorted(shared, drawn.partners)
    known = np.isin(drawn.partners, shared)
    owners, column = drawn.owners[known], column[known]

    def rows(start: int, count: int) -> NDArray[np.float32]:
        count = min(count, len(drawn.values) - start)
        matrix = np.zeros((count, len(shared)), np.float32)
        inside = (owners >= start) & (owners < start + count)
        matrix[owners[inside] - start, column[inside]] = 1
        return matrix

    return rows


def _restrict(joined: Matrix, a: Ints, c: Ints, predicate: Predicate) -> Matrix:
    at_a, at_c = np.nonzero(joined)
    out = np.zeros_like(joined)
    out[at_a, at_c] = predicate(a[at_a], c[at_c])
    return out


def _share(joined: Matrix, size_a: float, size_c: float, confidence: float) -> tuple[float, float]:
    """Share of ones in a random submatrix, and how far its logarithm may be off.

    Rows and columns are samples without replacement from `size_a` and `size_c`; the variance components of
    rows, columns and single cells are estimated by the two-way analysis of variance [2]. A side that is all
    there, as the sizes tell, has none of its own and may be a single row.
    """
    ones = joined.astype(np.float64)
    rows, columns = ones.shape
    share = float(ones.mean())
    row_left, column_left = max(1 - rows / size_a, 0.0), max(1 - columns / size_c, 0.0)
    partial = [n for n, left in ((rows, row_left), (columns, column_left)) if left > 0]
    by_row, by_column = ones.mean(axis=1), ones.mean(axis=0)
    if row_left == 0:
        variance = float(by_column.var(ddof=1)) / columns * column_left
    elif column_left == 0:
        variance = float(by_row.var(ddof=1)) / rows * row_left
    else:
        rest = ones - by_row[:, None] - by_column[None, :] + share
        cell = float((rest**2).sum()) / ((rows - 1) * (columns - 1))
        row = max(float(by_row.var(ddof=1)) - cell / columns, 0.0)
        column = max(float(by_column.var(ddof=1)) - cell / rows, 0.0)
        variance = row / rows * row_left + column / columns * column_left
        variance += cell / (rows * columns) * (1 - rows * columns / (size_a * size_c))
    if not partial:
        return share, 0.0
    quantile = float(stdtrit(min(partial) - 1, (1 + confidence) / 2))
    return share, quantile * math.sqrt(variance) / share


def _most_without_hits(sampled: int, confidence: float) -> float:
    """The largest share of ones that leaves a sample without any with probability (1 - confidence) / 2.

    The worst case is that a few of the values sampled from hold all of them. The same for zeros.
    """
    return float(1 - ((1 - confidence) / 2) ** (1 / sampled))


def _check_families(one: ReadableSample, other: ReadableSample, same: bool) -> None:
    if same and one.spec != other.spec:
        raise ValueError(
            f"both sides are sampled by the join key alike, not with {one.spec} and {other.spec}"
        )
    if not same and one.spec.family == other.spec.family:
        raise ValueError(
            f"projected attributes are sampled with independent families, not both with {one.spec.family}; "
            "derive one for each"
        )
