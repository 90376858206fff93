"""What synopses know of the keys of one join class, and the contributions of the keys they know together.

Every table of a join offers what it knows as `KnownKeys`: keys that are certainly known (dense keys, or all
of them while nothing was dropped) and keys that are known because their hash is small. A key's contribution
is the product of its weights, known with the probability of its least known table. This covers plain
samples, dense keys chosen jointly, and dense keys chosen by each table alone in one formula: with separate
dense sets it lists the skimmed sub-joins.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ..intervals.rounding import root_sum_square
from ..joins.accumulate import distinct

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class KnownKeys:
    """What the synopsis of one table knows about a join class.

    Parameters
    ----------
    keys : ndarray of int64, shape (n,), ascending
        Keys with known weights.
    weights : ndarray of int64 or float64, shape (columns, n)
        Their exact net weights.
    certain : ndarray of bool, shape (n,)
        True where the key is known whatever its hash.
    probability : float
        Probability that any other key of the table is known. At 1 a key that is not listed has no tuples.
    unseen : ndarray of float64, shape (columns, 2)
        Smallest and largest weight of any key that is not certain; infinite without a bound.
    ranks : ndarray of float64, shape (n,)
        The keys' hashes as fractions of all hashes: a key that is not certain is known if its rank is below
        the probability.
    totals : ndarray of float64, shape (columns,)
        Exact total weight of the whole table, known and unknown keys; NaN where it is not kept.
    """

    keys: Ints
    weights: Ints | Floats
    certain: Bools
    probability: float
    unseen: Floats
    ranks: Floats
    totals: Floats

    def present(self) -> KnownKeys:
        """Weight 1 for every key with a non-zero weight in the first column: for counting keys."""
        ones = (self.weights[:1] != 0).astype(np.int64)
        return replace(self, weights=ones, unseen=np.array([[0.0, 1.0]]), totals=np.array([np.nan]))


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
        deviation = self.deviation(column)
        return deviation * deviation

    def deviation(self, column: int = 0) -> float:
        """The root of the estimated variance of :meth:`total`."""
        return root_sum_square(self.terms[column] / self.probabilities, 1.0 - self.probabilities)


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


def combined(terms: JoinTerms, coefficients: Sequence[Floats]) -> JoinTerms:
    """Linear combinations of the columns: one new column for each list of coefficients."""
    weights = np.array(coefficients, np.float64).reshape(len(coefficients), len(terms.terms))
    low, high = terms.unseen.T
    ends = [products(weights, np.broadcast_to(end, weights.shape)) for end in (low, high)]
    unseen = np.stack([np.minimum(*ends).sum(axis=1), np.maximum(*ends).sum(axis=1)], axis=1)
    return replace(terms, terms=np.einsum("nc,ck->nk", weights, terms.terms), unseen=unseen)


def with_certain(sampled: JoinTerms, certain: JoinTerms, keys: Ints) -> JoinTerms:
    """What a sample knows, with some keys known for certain in the place of what the sample knew of them.

    Parameters
    ----------
    sampled : JoinTerms
    certain : JoinTerms
        Of no other keys than `keys`; one of them that is missing adds nothing.
    keys : ndarray of int64, shape (n,)
    """
    rest = ~np.isin(sampled.keys, keys)
    merged = np.concatenate([sampled.keys[rest], certain.keys])
    order = np.argsort(merged, kind="stable")
    return JoinTerms(
        merged[order],
        np.concatenate([sampled.terms[:, rest], certain.terms], axis=1)[:, order],
        np.concatenate([sampled.probabilities[rest], np.ones(certain.keys.size)])[order],
        sampled.unseen,
    )


def _unseen_terms(tables: Sequence[KnownKeys], joined: Ints) -> Floats:
    """Extreme contributions, divided by their probability, of keys that some table does not know.

    Such a key is certain in some tables, where its weight is known, and unseen in the others, where its
    weight is bounded. A key that is certain nowhere is represented by one more entry at the end, unless some
    table knows all its keys.
    """
    certain = [table.keys if table.probability == 1.0 else table.keys[table.certain] for table in tables]
    keys = np.setdiff1d(distinct(np.concatenate(certain)), joined, assume_unique=True)
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
        low, high = product_range(low, high, lowest, highest)
        probability = np.where(known, probability, np.minimum(probability, table.probability))
        known_everywhere &= known
    low[:, known_everywhere] = high[:, known_everywhere] = 0.0
    smallest = np.minimum((low / probability).min(axis=1), 0.0)
    largest = np.maximum((high / probability).max(axis=1), 0.0)
    return np.stack([smallest, largest], axis=1)


def product_range(a_low: Floats, a_high: Floats, b_low: Floats, b_high: Floats) -> tuple[Floats, Floats]:
    """Range of a product of two numbers given their ranges; nothing times infinity is nothing."""
    ends = np.stack([products(a, b) for a in (a_low, a_high) for b in (b_low, b_high)])
    return ends.min(axis=0), ends.max(axis=0)


def products(a: Floats, b: Floats | float) -> Floats:
    """Products of which nothing times infinity is nothing."""
    zero = (a == 0.0) | (b == 0.0)
    with np.errstate(over="ignore"):
        return np.where(zero, 0.0, np.where(zero, 1.0, a) * np.where(zero, 1.0, b))
