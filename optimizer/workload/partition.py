"""Sketch partitioning: splitting join domains so that the parts together vary less than the whole.

Where the skew of two relations lies in different places, sketching the places separately lowers the
variance; space then goes to the parts by their standard deviations. Parts are found from histograms alone.

References
----------
.. [1] A. Dobra, M. Garofalakis, J. Gehrke, R. Rastogi, "Processing Complex Aggregate Queries over Data
   Streams", SIGMOD 2002, Section 4: Theorem 4.1 (allocation), 4.2 (single joins, Theorems 4.3 and 4.4), 4.3
   (several joins, Theorem 4.6).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import ArrayLike

from ...sketches.ranking import least, rounded
from ..domain_partition import DomainPartition
from ..prediction.histograms import Floats, JoinStatistics, Keys, overlap, second_moment, shrinkage

LEAST_GAIN = 1.2  # below this predicted gain, histograms err more than partitioning wins
UNIFORM_PART = 0.5  # of the space, against histograms that misjudge where the variance lies


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """A partition of a list of elements: the part of each, and the objective sum of sqrt(A_l B_l)."""

    labels: Keys
    objective: float

    @property
    def count(self) -> int:
        """Number of parts."""
        return int(self.labels.max()) + 1 if len(self.labels) else 1


def binary_parts(first: ArrayLike, second: ArrayLike) -> Parts:
    """The best split in at most two parts ([1], Section 4.2.1), as `best_parts`; O(elements log elements)."""
    squares = _squares(first, second)
    order = _by_ratio(squares)
    sums = np.concatenate((np.zeros((2, 1)), np.cumsum(squares[:, order], axis=1)), axis=1)
    objective = np.sqrt(sums.prod(axis=0)) + np.sqrt((sums[:, -1:] - sums).clip(0).prod(axis=0))
    split = least(objective)
    labels = np.zeros(squares.shape[1], dtype=np.int64)
    if 0 < split < len(order):
        labels[order[split:]] = 1
    return Parts(labels, float(objective[split]))


def best_parts(first: ArrayLike, second: ArrayLike, most: int) -> Parts:
    """Partition a domain in at most `most` parts, minimising the sum over parts of sqrt(A_l B_l).

    Parameters
    ----------
    first, second : arrays of float64, shape (elements,)
        Sums of squared frequencies of either relation in each element: squared frequencies if elements are
        values, self-join sizes if they are histogram buckets. A_l and B_l are their sums over part l.
    most : int
        Greatest number of parts. (Exactly that many, as [1] has it, may be worse and does not exist where
        there are fewer elements.)

    Returns
    -------
    Parts
        Labels from 0 in order of the ratio first / second.

    Notes
    -----
    Optimal for this objective: parts are contiguous in the order of first / second ([1], Theorem 4.4);
    elements with second = 0 come last, those with neither go anywhere. It is not always optimal for the
    true variance, which the objective replaces by the product of self-join sizes. Dynamic programming,
    O(most elements^2) time, O(most elements) space.
    """
    return _all_parts(first, second, most)[-1]


def _all_parts(first: ArrayLike, second: ArrayLike, most: int) -> list[Parts]:
    """The best partitions in at most 1, 2, ... `most` parts, from one run of the dynamic program."""
    if most < 1:
        raise ValueError(f"a domain has at least one part, not {most}")
    squares = _squares(first, second)
    order = _by_ratio(squares)
    size = len(order)
    sums = np.concatenate((np.zeros((2, 1)), np.cumsum(squares[:, order], axis=1)), axis=1)
    best = np.full((most, size + 1), np.inf)  # best[v, u]: the first u elements in at most v + 1 parts
    cut = np.zeros((most, size + 1), dtype=np.int64)  # where the last of them begins
    best[:, 0] = 0.0
    for u in range(1, size + 1):
        last = np.sqrt((sums[:, u : u + 1] - sums[:, :u]).clip(0).prod(axis=0))
        best[0, u] = last[0]
        if most > 1:
            total = best[:-1, :u] + last
            cut[1:, u] = np.argmin(rounded(total), axis=1)
            best[1:, u] = np.take_along_axis(total, cut[1:, u, None], axis=1)[:, 0]
    return [_trace(order, squares.shape[1], cut, v, float(best[v, size])) for v in range(most)]


def _trace(order: Keys, elements: int, cut: Keys, v: int, objective: float) -> Parts:
    labels = np.zeros(elements, dtype=np.int64)
    ends, u = [], len(order)
    while u > 0:
        begin = int(cut[v, u]) if v > 0 else 0
        ends.append((begin, u))
        u, v = begin, v - 1
    for label, (begin, end) in enumerate(reversed(ends)):
        labels[order[begin:end]] = label
    return Parts(labels, objective)


def _squares(first: ArrayLike, second: ArrayLike) -> Floats:
    squares = np.array([first, second], dtype=np.float64)
    if squares.ndim != 2 or np.any(squares < 0) or not np.all(np.isfinite(squares)):
        raise ValueError("first and second are equally long lists of finite squares")
    return squares


def _by_ratio(squares: Floats) -> Keys:
    """Elements that occur at all, by first / second; stable, so ties keep the order of the domain."""
    present = np.flatnonzero(squares.any(axis=0))
    with np.errstate(divide="ignore", over="ignore"):
        ratio = squares[0, present] / squares[1, present]
    return present[np.argsort(rounded(ratio), kind="stable")]


def divide_parts(objectives: Sequence[Sequence[float]], most: int) -> tuple[int, ...]:
    """How many parts every join gets when their product is at most `most` ([1], Section 4.3).

    Parameters
    ----------
    objectives : sequence of sequences of float
        Q(j, m) for m = 1 .. `most`: the best objective of join j in at most m parts.
    most : int
        Bound on the product of the m_j.

    Returns
    -------
    tuple of int
        The m_j that minimise the product of the Q(j, m_j), which under attribute independence is the
        objective of the whole query up to a constant (Theorem 4.6).

    Notes
    -----
    M(u, v) = min over l of M(u - 1, l) Q(u, floor(v / l)). O(joins most^2).
    """
    best = [1.0] * (most + 1)
    choice: list[list[int]] = []
    for row in objectives:
        picks, values = [0] * (most + 1), [0.0] * (most + 1)
        for v in range(1, most + 1):
            picks[v] = min(range(1, v + 1), key=lambda left, v=v: best[left] * row[v // left - 1])  # type: ignore[misc]
            values[v] = best[picks[v]] * row[v // picks[v] - 1]
        best = values
        choice.append(picks)
    counts, v = [], most
    for picks in reversed(choice):
        counts.append(v // picks[v])
        v = picks[v]
    return tuple(reversed(counts))


def copies_for_error(variances: ArrayLike, epsilon: float, lower_bound: float) -> Floats:
    """Theorem 4.1: the fewest copies with which the sum over parts of Var / s_p is epsilon^2 L^2 / 8.

    s_p = 8 sqrt(Var_p) * (sum of sqrt(Var)) / (epsilon^2 L^2), where `lower_bound` L is at most the result.
    """
    roots = np.sqrt(np.asarray(variances, dtype=np.float64))
    return np.asarray(8 * roots * roots.sum() / (epsilon * lower_bound) ** 2)


def copies_for_budget(variances: ArrayLike, budget: float, uniform_part: float = 0.0) -> Floats:
    """Theorem 4.1 for a fixed number of copies: s_p in proportion to sqrt(Var_p).

    The variance is then (sum of sqrt(Var))^2 / budget. Departs from [1] with `uniform_part` > 0: that part
    of the budget is divided evenly, since variances guessed from coarse histograms are wrong for some parts.
    """
    roots = np.sqrt(np.asarray(variances, dtype=np.float64))
    even = np.full(len(roots), 1 / len(roots))
    own = roots / roots.sum() if roots.sum() > 0 else even
    return np.asarray(budget * ((1 - uniform_part) * own + uniform_part * even))


@dataclass(frozen=True, slots=True)
class QueryPartition:
    """A query's partition: one domain partition per join, and the part of the space of every cell.

    A cell is a combination of parts, one per join; cells are in C order (the last join varies fastest). A
    vertex keeps one sketch per cell, fed with the tuples whose join values lie in the cell. The query's
    estimate is the sum over cells. `predicted_gain` is the ratio of standard errors, without to with;
    optimistic where frequencies vary inside the buckets of the histograms.
    """

    domains: tuple[DomainPartition, ...]
    shares: tuple[float, ...]
    predicted_gain: float

    @property
    def cells(self) -> int:
        """Number of cells."""
        return len(self.shares)


def partition_query(
    joins: Sequence[JoinStatistics], most: int, least_gain: float = LEAST_GAIN
) -> QueryPartition | None:
    """Partition the domains of a query's joins in at most `most` cells, if that is worth it.

    Parameters
    ----------
    joins : sequence of JoinStatistics
        The joins of an acyclic query, with a histogram for both sides of each.
    most : int
        Greatest number of cells.
    least_gain : float
        Return None unless the predicted standard error is at least this many times smaller.

    Notes
    -----
    Elements of the dynamic program are the segments between bucket ends of the two histograms of a join.
    Departs from [1], which always partitions: coarse histograms see gains where the skews of the relations
    are aligned, and then partitioning costs up to 20 %; hence `LEAST_GAIN` and `UNIFORM_PART`.
    O(joins * (most segments^2 + most^2)).
    """
    cuts = [overlap(join.left_histogram, join.right_histogram) for join in joins]
    ways = [_all_parts(cut.squares[0], cut.squares[1], most) for cut in cuts]
    counts = divide_parts([[parts.objective for parts in row] for row in ways], most)
    chosen = [row[count - 1] for row, count in zip(ways, counts, strict=True)]
    scale = shrinkage(joins)
    moments, sizes = np.ones(1), np.ones(1)
    for cut, parts in zip(cuts, chosen, strict=True):
        inside = [parts.labels == label for label in range(parts.count)]
        moments = np.multiply.outer(moments, [second_moment(cut, rows) for rows in inside]).ravel()
        sizes = np.multiply.outer(sizes, [cut.products[rows].sum() for rows in inside]).ravel()
    variances = (moments * scale**2 - (sizes * scale) ** 2).clip(0)
    size = prod(float(cut.products.sum()) for cut in cuts) * scale
    whole = max(prod(second_moment(cut) for cut in cuts) * scale**2 - size**2, 0.0)
    shares = copies_for_budget(variances, 1.0, UNIFORM_PART)
    gain = float(np.sqrt(whole / np.sum(variances / shares))) if variances.any() else 1.0
    if len(shares) == 1 or gain < least_gain:
        return None
    domains = tuple(
        DomainPartition(*ranges_of(cut.lows, parts.labels)) for cut, parts in zip(cuts, chosen, strict=True)
    )
    return QueryPartition(domains, tuple(shares.tolist()), gain)


def ranges_of(lows: Keys, labels: Keys) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Neighbouring segments of one part become one range."""
    starts = np.flatnonzero(np.diff(labels, prepend=-1))
    return tuple(lows[starts].tolist()), tuple(labels[starts].tolist())
