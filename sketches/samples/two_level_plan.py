"""Choosing the dense keys of a join, and what to keep for the rest, before the data is read a second time.

The first pass names candidates: the heaviest keys of each table. With their exact counts in all tables, and
a few moments of the other keys from a pilot sample, the variance of every split of the space can be
computed: how many dense keys, and a key sample or a hash sketch for the rest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ..ranking import by_weight, least, least_of, rounded
from .key_sample import checked_batch, net_weights
from .known_keys import KnownKeys, join_terms
from .sample_regression import regress

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

ENTRY_BYTES = 16
TOTAL_BYTES = 8
MEDIAN_LOSS = math.pi / 2  # variance of the median of normal rows over that of their mean
LEAST_BUCKETS = 64


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """The heaviest keys of one table.

    Parameters
    ----------
    keys : ndarray of int64, shape (n,), ascending
    weights : ndarray of int64, shape (n,)
        Their net weights.
    largest_other : float
        No other key weighs more in absolute value; ``inf`` if that is not known, as after a pilot.
    """

    keys: Ints
    weights: Ints
    largest_other: float


def heaviest(keys: Ints, weights: Ints | None, count: int) -> Candidates:
    """The `count` keys of largest absolute net weight, and a bound on all others.

    Parameters
    ----------
    keys : ndarray of int64, shape (n,)
        Keys of all tuples of the table, or of a message that holds each key once.
    weights : ndarray of int64, shape (n,), optional
        Default: 1 each.
    count : int
        How many to take.
    """
    distinct, sums = net_weights(*checked_batch(keys, weights, 1))
    sizes = np.abs(sums[0].astype(np.float64))
    if distinct.size <= count:
        return Candidates(distinct, sums[0], 0.0)
    order = by_weight(sizes, count + 1)
    chosen = np.sort(order[:count])
    return Candidates(distinct[chosen], sums[0][chosen], float(sizes[order[count]]))


@dataclass(frozen=True, slots=True, eq=False)
class CandidateTable:
    """Candidates of all tables of a join on one key class, with their weights in every table.

    Parameters
    ----------
    keys : ndarray of int64, shape (n,), ascending
        The union of the tables' candidates.
    weights : ndarray of int64, shape (tables, n)
        Exact net weights, 0 where a key does not occur.
    largest_other : tuple of float
        For each table a bound on the weight of a key that is no candidate.
    """

    keys: Ints
    weights: Ints
    largest_other: tuple[float, ...]

    @property
    def products(self) -> Floats:
        """Contribution of each candidate to the join, float64, shape (n,)."""
        return np.asarray(np.prod(self.weights.astype(np.float64), axis=0))


@dataclass(frozen=True, slots=True)
class RestMoments:
    """Moments of the keys that are no candidates, summed over those keys.

    Parameters
    ----------
    distinct : tuple of float
        Number of such keys in each table.
    self_joins : tuple of float
        Sum of squared weights in each table.
    join : float
        Sum of the products of the weights.
    squared_products : float
        Sum of the squared products.
    squared_residuals : float
        What is left of it after regression on the weights, see `sample_regression`.
    slopes : tuple of float
        The fitted slope of each table's weights; zeros without a fit.
    """

    distinct: tuple[float, ...]
    self_joins: tuple[float, ...]
    join: float
    squared_products: float
    squared_residuals: float
    slopes: tuple[float, ...]


def rest_moments(pilots: Sequence[KnownKeys], candidates: Ints) -> RestMoments:
    """Estimate the moments of the rest from pilot samples of the keys.

    Parameters
    ----------
    pilots : sequence of KnownKeys
        What small key samples of the tables know of the weight in question, one column each.
    candidates : ndarray of int64, shape (n,)
        Keys to leave out.
    """
    distinct, self_joins, others = [], [], []
    for pilot in pilots:
        rest = ~np.isin(pilot.keys, candidates)
        weights = pilot.weights[0, rest].astype(np.float64)
        distinct.append(weights.size / pilot.probability)
        self_joins.append(float(np.sum(weights**2)) / pilot.probability)
        others.append(
            replace(
                pilot,
                keys=pilot.keys[rest],
                weights=pilot.weights[:, rest],
                certain=pilot.certain[rest],
                ranks=pilot.ranks[rest],
                totals=np.zeros(1),  # only the residuals are looked at
            )
        )
    terms = join_terms(others)
    squared = float(np.sum(terms.terms[0] ** 2 / terms.probabilities))
    fitted = regress(others, terms)
    residuals, slopes = squared, (0.0,) * len(others)
    if fitted and fitted[0].squares / fitted[0].probability < squared:
        residuals, slopes = fitted[0].squares / fitted[0].probability, fitted[0].slopes
    return RestMoments(tuple(distinct), tuple(self_joins), terms.total(), squared, residuals, slopes)


def sample_variance(squared_products: Floats, probability: Floats) -> Floats:
    """Variance of a key sample: ``(1 - p) / p * sum(c**2)`` over the contributions (or residuals) it may
    miss."""
    return squared_products * (1.0 - probability) / probability


def hash_variance(f2: Floats, g2: Floats, join: Floats, squared_products: Floats, words: Floats) -> Floats:
    """Variance of a hash sketch's estimate, the median of its rows.

    A row of m buckets has variance ``(F2 * G2 + J**2 - 2 * sum(f**2 * g**2)) / m``; the median over R
    near-normal rows has pi / 2 times the variance of their mean, so only the total number of words counts.
    """
    return MEDIAN_LOSS * (f2 * g2 + join**2 - 2.0 * squared_products) / words


@dataclass(frozen=True, slots=True, eq=False)
class TwoLevelPlan:
    """How to split the space of each table.

    Parameters
    ----------
    dense_keys : ndarray of int64, shape (d,), ascending
        Keys to count exactly in all tables.
    method : str
        "key sample" or "hash sketch", for the rest.
    capacity : int
        Entries of the key sample, or buckets in a row of the hash sketch.
    largest_product : float
        No other key contributes more than this in absolute value; see `sample_join.estimate_join`.
    variance : float
        Predicted variance of the estimate.
    alternatives : dict of str to float
        Predicted variance of each method at its own best number of dense keys.
    """

    dense_keys: Ints
    method: str
    capacity: int
    largest_product: float
    variance: float
    alternatives: dict[str, float]


def plan_two_level(
    candidates: CandidateTable, rest: RestMoments, budget_bytes: int, rows: int = 11
) -> TwoLevelPlan:
    """Choose the dense keys and the synopsis of the rest with the lowest predicted variance.

    Parameters
    ----------
    candidates : CandidateTable
        Exact counts of the candidates of all tables.
    rest : RestMoments
        Moments of the other keys.
    budget_bytes : int
        Bytes of each table's synopsis. A dense key takes 16, a sampled key 16, a counter and a total 8.
    rows : int
        Rows of a hash sketch.

    Returns
    -------
    TwoLevelPlan

    Raises
    ------
    ValueError
        If the budget holds neither a sampled key nor a hash sketch of 64 buckets.

    Notes
    -----
    For a sample the dense keys are those of the largest products, the only thing its variance knows; for a
    hash sketch (two tables) those of the largest share in either self-join size. Every number of dense keys
    is tried: O(n log n) time.
    """
    if budget_bytes < ENTRY_BYTES + TOTAL_BYTES:
        raise ValueError(
            f"{budget_bytes} bytes hold no sampled key; {ENTRY_BYTES + TOTAL_BYTES} is the least"
        )
    sample = _best_sample(candidates, rest, (budget_bytes - TOTAL_BYTES) // ENTRY_BYTES)
    plans = {sample.method: sample}
    if len(candidates.weights) == 2 and budget_bytes >= 8 * rows * LEAST_BUCKETS:
        sketch = _best_sketch(candidates, rest, budget_bytes, rows)
        plans[sketch.method] = sketch
    best = least_of(plans.values(), lambda plan: plan.variance)
    alternatives = {method: plan.variance for method, plan in plans.items()}
    return TwoLevelPlan(
        best.dense_keys, best.method, best.capacity, best.largest_product, best.variance, alternatives
    )


def gather_candidates(tables: Sequence[Candidates], weights: Ints, keys: Ints) -> CandidateTable:
    """Put the exact counts of all candidates in all tables together.

    Parameters
    ----------
    tables : sequence of Candidates
        What each table named.
    weights : ndarray of int64, shape (tables, n)
        Exact net weights of all candidates in all tables, counted in one filtered pass.
    keys : ndarray of int64, shape (n,), ascending
        The union of the candidates' keys, in the order of `weights`.
    """
    union = candidate_keys(tables)
    if not np.array_equal(union, keys) or weights.shape != (len(tables), union.size):
        raise ValueError(
            f"counts of all {union.size} candidates in {len(tables)} tables are needed, got {weights.shape}"
        )
    return CandidateTable(keys, weights, tuple(table.largest_other for table in tables))


def candidate_keys(tables: Sequence[Candidates]) -> Ints:
    """The union of the tables' candidates, ascending."""
    return np.unique(np.concatenate([table.keys for table in tables]))


def _best_sample(candidates: CandidateTable, rest: RestMoments, entries: int) -> TwoLevelPlan:
    squares = candidates.products**2
    order = by_weight(squares)
    # Keys that do not join need no entry: not as dense keys, and a sample loses nothing by drawing them.
    useful = int(np.count_nonzero(squares))
    counts = np.arange(max(min(useful, entries - 1), 0) + 1)
    probability = np.ones(counts.size)
    for present, distinct in zip(candidates.weights != 0, rest.distinct, strict=True):
        left = distinct + _left_over(present[order].astype(np.float64), counts)
        probability = np.minimum(probability, (entries - counts) / np.maximum(left, entries - counts))
    left_over = _left_over(squares[order], counts)
    # The dense keys are chosen as if nothing were regressed: a pilot knows the residuals too roughly for
    # that.
    best = least(sample_variance(rest.squared_products + left_over, probability))
    missed = candidates.products - np.array(rest.slopes) @ candidates.weights
    residuals = rest.squared_residuals + _left_over(missed[order] ** 2, counts[[best]])
    residuals = np.minimum(residuals, rest.squared_products + left_over[[best]])
    variance = float(sample_variance(residuals, probability[[best]])[0])
    return _plan(candidates, order, best, "key sample", entries - best, variance)


def _best_sketch(candidates: CandidateTable, rest: RestMoments, budget_bytes: int, rows: int) -> TwoLevelPlan:
    weights = candidates.weights.astype(np.float64)
    squares = weights**2
    totals = np.array(rest.self_joins)[:, np.newaxis] + squares.sum(axis=1, keepdims=True)
    order = by_weight(rounded(np.max(squares / np.maximum(totals, 1.0), axis=0)))
    most = min(order.size, (budget_bytes - 8 * rows * LEAST_BUCKETS) // ENTRY_BYTES)
    counts = np.arange(most + 1)
    buckets = (budget_bytes - ENTRY_BYTES * counts) // (8 * rows)
    f2, g2 = (rest.self_joins[t] + _left_over(squares[t][order], counts) for t in (0, 1))
    join = rest.join + _left_over(candidates.products[order], counts)
    squared = rest.squared_products + _left_over(candidates.products[order] ** 2, counts)
    variances = np.maximum(hash_variance(f2, g2, join, squared, (rows * buckets).astype(np.float64)), 0.0)
    best = least(variances)
    return _plan(candidates, order, best, "hash sketch", int(buckets[best]), float(variances[best]))


def _left_over(values: Floats, counts: Ints) -> Floats:
    """Sum of all values but the first `count`, for each count."""
    sums = np.concatenate([np.cumsum(values[::-1])[::-1], [0.0]])
    return sums[counts]


def _plan(
    candidates: CandidateTable,
    order: npt.NDArray[np.intp],
    dense: int,
    method: str,
    size: int,
    variance: float,
) -> TwoLevelPlan:
    dropped = np.abs(candidates.products[order[dense:]]).max(initial=0.0)
    others = math.prod(candidates.largest_other)
    keys = np.sort(candidates.keys[order[:dense]])
    return TwoLevelPlan(keys, method, size, max(float(dropped), others), variance, {method: variance})


@dataclass(frozen=True, slots=True, eq=False)
class TableSplit:
    """How one table alone splits its space between dense keys and a key sample.

    Parameters
    ----------
    dense_keys : ndarray of int64, shape (d,), ascending
    capacity : int
        Entries of the sample of the other keys.
    largest_other : float
        No key that is not dense weighs more.
    """

    dense_keys: Ints
    capacity: int
    largest_other: float


def split_by_itself(
    named: Candidates, distinct: float, self_join_size: float, budget_bytes: int
) -> TableSplit:
    """Choose the dense keys of one table of which nothing but itself is known, as on streams.

    Parameters
    ----------
    named : Candidates
        Its heaviest keys with their weights.
    distinct, self_join_size : float
        Number of its keys, and the sum of their squared weights.
    budget_bytes : int
        Bytes of its synopsis. A dense key takes 16, a sampled key 16, the total 8.

    Returns
    -------
    TableSplit
        With the least variance of the table's own total, as if it alone were sampled: a key is dense because it is
        heavy here. Without skew no key is.

    Raises
    ------
    ValueError
        If the budget holds no sampled key.
    """
    entries = (budget_bytes - TOTAL_BYTES) // ENTRY_BYTES
    if entries < 1:
        raise ValueError(
            f"{budget_bytes} bytes hold no sampled key; {ENTRY_BYTES + TOTAL_BYTES} is the least"
        )
    sizes = np.abs(named.weights.astype(np.float64))
    order = by_weight(sizes)
    counts = np.arange(min(order.size, entries - 1) + 1)
    taken = np.concatenate([[0.0], np.cumsum(sizes[order] ** 2)])[counts]
    keys = np.maximum(distinct - counts, entries - counts)
    variances = sample_variance(
        np.maximum(self_join_size - taken, 0.0), (entries - counts) / np.maximum(keys, 1.0)
    )
    best = least(variances)
    dropped = float(sizes[order[best:]].max(initial=0.0))
    return TableSplit(np.sort(named.keys[order[:best]]), entries - best, max(dropped, named.largest_other))
