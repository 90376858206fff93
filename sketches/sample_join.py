"""Joins, averages and distinct counts from coordinated samples of one key class.

Every table of the join offers what it knows as `KnownKeys`: keys that are certainly known (dense keys, or all
of them while nothing was dropped) and keys that are known because their hash is small. A key's contribution
is the product of its weights, known with the probability of its least known table; the estimate is the
Horvitz-Thompson sum of the known contributions. This covers plain samples, dense keys chosen jointly, and
dense keys chosen by each table alone in one formula: with separate dense sets it adds up the skimmed
sub-joins.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from .accumulate import EXACT_IN_FLOAT
from .gamma_interval import poisson_sum, ratio_interval, signed_gamma_interval
from .interval import Estimate, exact, note_useless

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

UNBOUNDED = "no bound on the weight of unseen keys: the largest sampled one stands in for it"
LINEARISED = "the largest sampled residual stands in for the largest unseen one"


@dataclass(frozen=True, slots=True, eq=False)
class KnownKeys:
    """What the synopsis of one table knows about a join class.

    Parameters
    ----------
    keys : ndarray of int64, shape (n,), ascending
        Keys with known weights.
    weights : ndarray of int64, shape (columns, n)
        Their exact net weights.
    certain : ndarray of bool, shape (n,)
        True where the key is known whatever its hash.
    probability : float
        Probability that any other key of the table is known. At 1 a key that is not listed has no tuples.
    unseen : ndarray of float64, shape (columns, 2)
        Smallest and largest weight of any key that is not certain; infinite without a bound.
    """

    keys: Ints
    weights: Ints
    certain: Bools
    probability: float
    unseen: Floats

    def column(self, index: int) -> KnownKeys:
        """The same knowledge of one column."""
        return KnownKeys(
            self.keys, self.weights[[index]], self.certain, self.probability, self.unseen[[index]]
        )

    def present(self) -> KnownKeys:
        """Weight 1 for every key with a non-zero weight in the first column: for counting keys."""
        ones = (self.weights[:1] != 0).astype(np.int64)
        return KnownKeys(self.keys, ones, self.certain, self.probability, np.array([[0.0, 1.0]]))


class SampledTable(Protocol):
    """A synopsis that can say what it knows: `KeySample`, or `TwoLevel` with a sample for the rest."""

    def known(self, columns: Sequence[str]) -> KnownKeys:
        """The known keys with the weights of these columns."""

    def check_joins(self, other: SampledTable) -> None:
        """Raise ValueError if the two were sampled by different hash functions."""


@dataclass(frozen=True, slots=True, eq=False)
class JoinTerms:
    """Contributions of the known keys to an acyclic join on one key class.

    Parameters
    ----------
    keys : ndarray of int64, shape (n,)
        Keys known in all tables.
    terms : ndarray of float64, shape (columns, n)
        Exact products of the tables' weights.
    probabilities : ndarray of float64, shape (n,)
        Probability with which each of them is known.
    unseen : ndarray of float64, shape (columns, 2)
        Smallest (at most 0) and largest (at least 0) contribution, divided by its probability, of a key that
        is not known in all tables.
    """

    keys: Ints
    terms: Floats
    probabilities: Floats
    unseen: Floats

    def total(self, column: int = 0) -> float:
        """The Horvitz-Thompson estimate of the join's total."""
        return float(np.sum(self.terms[column] / self.probabilities))

    def variance(self, column: int = 0) -> float:
        """The estimated variance of :meth:`total`."""
        scaled = self.terms[column] / self.probabilities
        return float(np.sum(scaled * scaled * (1.0 - self.probabilities)))


def join_terms(tables: Sequence[KnownKeys], largest_product: float = math.inf) -> JoinTerms:
    """Multiply the weights of the keys that all tables know.

    Parameters
    ----------
    tables : sequence of KnownKeys
        One or more tables with the same number of columns.
    largest_product : float
        Bound on the absolute contribution of any key that is not certain in all tables.

    Notes
    -----
    O(sum of the known keys) time after sorting. Products are float64: exact below 2**53.
    """
    first, *others = tables
    keys, terms = first.keys, first.weights.astype(np.float64)
    probabilities = np.where(first.certain, 1.0, first.probability)
    for table in others:
        keys, mine, theirs = np.intersect1d(keys, table.keys, assume_unique=True, return_indices=True)
        terms = terms[:, mine] * table.weights[:, theirs]
        probability = np.where(table.certain[theirs], 1.0, table.probability)
        probabilities = np.minimum(probabilities[mine], probability)
    largest = largest_product / min(table.probability for table in tables)
    return JoinTerms(keys, terms, probabilities, np.clip(_unseen_terms(tables, keys), -largest, largest))


def estimate_join(
    tables: Sequence[SampledTable],
    columns: Sequence[str] | None = None,
    confidence: float = 0.95,
    largest_product: float = math.inf,
) -> Estimate:
    """Size or weighted total of the join of all tables on their common key.

    Parameters
    ----------
    tables : sequence of SampledTable
        Synopses of the same key class, one for each table of the join; one alone gives its own total.
    columns : sequence of str, optional
        The weight column of each table: ``count``, or the factor that this table adds to a SUM of products.
        Default: ``count`` everywhere, the join size.
    confidence : float
        In (0, 1).
    largest_product : float
        Largest absolute contribution of a key that is not certain in all tables, known from the choice of the
        dense keys; it often bounds more tightly than the product of the tables' own bounds.

    Returns
    -------
    Estimate
        Exact while all tables keep all their keys. Otherwise certified if every table bounds the weights of
        its unseen keys; without such a bound the largest sampled contribution stands in for it.

    Raises
    ------
    ValueError
        If the tables were sampled by different hash functions or a column does not exist.
    """
    _check_all(tables)
    columns = ["count"] * len(tables) if columns is None else columns
    if len(columns) != len(tables):
        raise ValueError(f"{len(tables)} tables need as many weight columns, got {len(columns)}")
    known = [table.known([c]) for table, c in zip(tables, columns, strict=True)]
    return estimate_total(join_terms(known, largest_product), confidence)


def estimate_distinct(tables: Sequence[SampledTable], confidence: float = 0.95) -> Estimate:
    """Number of distinct keys that occur in all tables: COUNT(DISTINCT key) over their join.

    Parameters are those of :func:`estimate_join`. A key counts while its net ``count`` is not zero. No unseen
    key can count for more than one, so the interval is always certified.
    """
    _check_all(tables)
    return estimate_total(join_terms([table.known(["count"]).present() for table in tables]), confidence)


def estimate_average(
    tables: Sequence[SampledTable],
    numerator: Sequence[str],
    denominator: Sequence[str] | None = None,
    confidence: float = 0.95,
) -> Estimate:
    """AVG over the join: the ratio of two totals over the same sampled keys, whose errors cancel.

    Parameters
    ----------
    tables, confidence
        As in :func:`estimate_join`.
    numerator : sequence of str
        Weight column of each table in the SUM.
    denominator : sequence of str, optional
        Weight column of each table in the COUNT; default ``count`` everywhere. A ``COUNT(column)`` that skips
        NULLs is a column of its own.

    Returns
    -------
    Estimate
        Never certified unless exact: the interval is linearised and takes the largest sampled residual for
        the largest unseen one.

    Raises
    ------
    ValueError
        If no known key joins: the average of nothing is NULL.
    """
    _check_all(tables)
    denominator = ["count"] * len(tables) if denominator is None else denominator
    if not len(numerator) == len(denominator) == len(tables):
        raise ValueError(
            f"{len(tables)} tables need as many weight columns, got {numerator} and {denominator}"
        )
    pairs = zip(tables, numerator, denominator, strict=True)
    terms = join_terms([table.known([top, bottom]) for table, top, bottom in pairs])
    count = terms.total(1)
    if count == 0:
        raise ValueError("no sampled key joins, so there is no average to estimate; take a larger sample")
    average = terms.total(0) / count
    if _complete(terms):
        return exact(average)
    sampled = terms.probabilities < 1.0
    tops, bottoms, p = terms.terms[0][sampled], terms.terms[1][sampled], terms.probabilities[sampled]
    residuals = (tops - average * bottoms) / p
    largest = max(float(residuals.max(initial=0.0)), 0.0), max(float(-residuals.min(initial=0.0)), 0.0)
    low, high = ratio_interval(tops, bottoms, p, average, count, largest, confidence)
    return Estimate(average, low, high, confidence, False, "measured", (LINEARISED,))


def estimate_total(terms: JoinTerms, confidence: float, column: int = 0) -> Estimate:
    """Value and gamma interval of the total of one column of join terms.

    Notes
    -----
    Keys known with certainty have no variance and shift the interval. What the sampled keys contribute is a
    provable lower bound when no contribution can be negative.
    """
    values, sampled = terms.terms[column], terms.probabilities < 1.0
    certain = float(np.sum(values[~sampled]))
    if _complete(terms):
        return exact(int(certain) if abs(certain) < EXACT_IN_FLOAT else certain)
    drawn, p = values[sampled], terms.probabilities[sampled]
    lowest, highest = terms.unseen[column]
    certified = bool(np.isfinite(lowest) and np.isfinite(highest))
    scaled = drawn / p
    if not math.isfinite(highest):
        highest = float(scaled.max(initial=0.0))
    if not math.isfinite(lowest):
        lowest = float(scaled.min(initial=0.0))
    positive = poisson_sum(np.maximum(drawn, 0.0), p, highest)
    negative = poisson_sum(np.maximum(-drawn, 0.0), p, -lowest)
    low, high = signed_gamma_interval(positive, negative, confidence)
    if negative.value == 0.0 and lowest == 0.0:
        low = max(low, min(float(np.sum(drawn)), positive.value))
    value = certain + positive.value - negative.value
    ends = min(certain + low, value), max(certain + high, value)
    notes = () if certified else (UNBOUNDED,)
    return note_useless(Estimate(value, *ends, confidence, certified, "measured", notes))


def _complete(terms: JoinTerms) -> bool:
    """Nothing was left to chance: every key that could contribute is known."""
    return bool(np.all(terms.probabilities == 1.0)) and not np.any(terms.unseen)


def _check_all(tables: Sequence[SampledTable]) -> None:
    if not tables:
        raise ValueError("a join needs at least one table")
    for table in tables[1:]:
        table.check_joins(tables[0])


def _unseen_terms(tables: Sequence[KnownKeys], joined: Ints) -> Floats:
    """Extreme contributions, divided by their probability, of keys that some table does not know.

    Such a key is certain in some tables, where its weight is known, and unseen in the others, where its
    weight is bounded. A key that is certain nowhere is represented by one more entry at the end, unless some
    table knows all its keys.
    """
    certain = [table.keys if table.probability == 1.0 else table.keys[table.certain] for table in tables]
    keys = np.setdiff1d(np.unique(np.concatenate(certain)), joined, assume_unique=True)
    columns = tables[0].weights.shape[0]
    low = np.ones((columns, keys.size + 1))
    high = np.ones((columns, keys.size + 1))
    probability = np.ones(keys.size + 1)
    known_everywhere = np.ones(keys.size + 1, bool)
    for table, listed in zip(tables, certain, strict=True):
        weights = np.zeros((columns, keys.size + 1))
        known = np.full(keys.size + 1, table.probability == 1.0)
        held, at, source = np.intersect1d(keys, listed, assume_unique=True, return_indices=True)
        rows = np.searchsorted(table.keys, held)
        assert np.array_equal(listed[source], table.keys[rows]), "certain keys are among the known keys"
        weights[:, at] = table.weights[:, rows]
        known[at] = True
        lowest = np.where(known, weights, table.unseen[:, :1])
        highest = np.where(known, weights, table.unseen[:, 1:])
        low, high = _multiply_ranges(low, high, lowest, highest)
        probability = np.where(known, probability, np.minimum(probability, table.probability))
        known_everywhere &= known
    low[:, known_everywhere] = high[:, known_everywhere] = 0.0
    smallest = np.minimum((low / probability).min(axis=1), 0.0)
    largest = np.maximum((high / probability).max(axis=1), 0.0)
    return np.stack([smallest, largest], axis=1)


def _multiply_ranges(a_low: Floats, a_high: Floats, b_low: Floats, b_high: Floats) -> tuple[Floats, Floats]:
    """Range of a product of two numbers given their ranges; nothing times infinity is nothing."""
    products = np.stack([_times(a, b) for a in (a_low, a_high) for b in (b_low, b_high)])
    return products.min(axis=0), products.max(axis=0)


def _times(a: Floats, b: Floats) -> Floats:
    zero = (a == 0.0) | (b == 0.0)
    return np.where(zero, 0.0, np.where(zero, 1.0, a) * np.where(zero, 1.0, b))
