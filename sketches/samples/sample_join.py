"""Joins, averages and distinct counts from coordinated samples of one key class.

The estimate is the Horvitz-Thompson sum of the contributions of the keys that all tables know (`known_keys`),
improved by the tables' exact totals where enough sampled keys join (`sample_regression`), between the ends
of a gamma interval.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from ..hashing.xi import Family
from ..intervals.gamma import fieller_interval, poisson_sum, ratio_interval, signed_gamma_interval
from ..intervals.interval import Estimate, clip, exact, note_useless
from ..intervals.rounding import overflown, root_sum_square, rounded, shown, slack_of, widened
from ..joins.accumulate import EXACT_IN_FLOAT
from .known_keys import Floats, JoinTerms, KnownKeys, join_terms
from .sample_regression import Regression, regress

TOO_FEW = "too few matching rows to tell"
UNBOUNDED = "no bound on the weight of unseen keys: the largest sampled one stands in for it"
# Up to this relative error of its denominator a ratio is taken to be linear in it: what is left out is its square.
LINEAR = 0.2

NO_SPREAD = 1e-9  # of what a key adds: rounding
OF_THE_WIDTH = 1e-3  # what rounding adds to an interval is told from there on
LINEARISED = "the heaviest unseen key is taken to be as far from the average as known keys typically are"


class SampledTable(Protocol):
    """A synopsis that can say what it knows: `KeySample`, or `TwoLevel` with a sample for the rest."""

    def known(self, columns: Sequence[str]) -> KnownKeys:
        """The known keys with the weights of these columns."""

    @property
    def hashing(self) -> tuple[Family, int]:
        """The hash family and the bits that decide which keys are sampled."""


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
    check_hashing(tables)
    columns = ["count"] * len(tables) if columns is None else columns
    if len(columns) != len(tables):
        raise ValueError(f"{len(tables)} tables need as many weight columns, got {len(columns)}")
    known = [table.known([c]) for table, c in zip(tables, columns, strict=True)]
    return estimate_terms(known, join_terms(known, largest_product), confidence)


def estimate_terms(known: Sequence[KnownKeys], terms: JoinTerms, confidence: float) -> Estimate:
    """Total of the first column of join terms, with the tables' known weights as control variates where they fit."""
    fitted = None if is_complete(terms) else regress(known, terms)
    return _regressed_total(terms, fitted[0], confidence) if fitted else estimate_total(terms, confidence)


def estimate_messages(
    first: SampledTable,
    products: Floats,
    column: str = "count",
    confidence: float = 0.95,
    largest_product: float = math.inf,
) -> Estimate:
    """Total of a join of which one table was sampled, and all others were read for the sampled keys only.

    Parameters
    ----------
    first : SampledTable
        Synopsis of the sampled table: `KeySample`, or `TwoLevel` with the dense keys counted beside it.
    products : ndarray of float64, shape (n,)
        For each key that `first` knows, in the order of its `known`, the exact product of its weight there and of
        the messages of all other tables: its contribution to the total.
    column : str
        Weight column of `first`.
    confidence : float
        In (0, 1).
    largest_product : float
        Largest absolute contribution of a key that `first` may not know.

    Returns
    -------
    Estimate
        As from :func:`estimate_join`, but only the first table's total can serve as a control variate: of the
        others nothing is known beyond the sampled keys. Exact if `first` knows all its keys.

    Raises
    ------
    ValueError
        If there are not as many products as known keys.
    """
    known = first.known([column])
    if products.shape != known.keys.shape:
        raise ValueError(f"{known.keys.size} known keys need as many products, got shape {products.shape}")
    complete = known.probability == 1.0
    probabilities = np.where(known.certain | complete, 1.0, known.probability)
    largest = 0.0 if complete else largest_product / known.probability
    lowest = -largest if np.any(products < 0.0) or np.any(known.weights < 0) else 0.0
    terms = JoinTerms(known.keys, products[np.newaxis], probabilities, np.array([[lowest, largest]]))
    return estimate_terms([known], terms, confidence)


def estimate_distinct(tables: Sequence[SampledTable], confidence: float = 0.95) -> Estimate:
    """Number of distinct keys that occur in all tables: COUNT(DISTINCT key) over their join.

    Parameters are those of :func:`estimate_join`. A key counts while its net ``count`` is not zero. No unseen
    key can count for more than one, so the interval is always certified.
    """
    check_hashing(tables)
    return estimate_total(join_terms([table.known(["count"]).present() for table in tables]), confidence)


def estimate_average(
    tables: Sequence[SampledTable],
    numerator: Sequence[str],
    denominator: Sequence[str] | None = None,
    confidence: float = 0.95,
    largest_product: float = math.inf,
) -> Estimate:
    """AVG over the join: the ratio of two totals over the same sampled keys, whose errors cancel.

    Parameters
    ----------
    tables, confidence
        As in :func:`estimate_join`.
    largest_product : float
        Largest absolute contribution to the denominator of a key that is not certain in all tables.
    numerator : sequence of str
        Weight column of each table in the SUM.
    denominator : sequence of str, optional
        Weight column of each table in the COUNT; default ``count`` everywhere. A ``COUNT(column)`` that skips
        NULLs is a column of its own.

    Returns
    -------
    Estimate
        Never certified unless exact: the interval is linearised, and the heaviest unseen key is taken to be
        as far from the average as known keys typically are. How many tuples it may have is known from the
        tables' bounds; without bounds the largest sampled residual stands in for the largest unseen one.

    Raises
    ------
    ValueError
        If no known key joins: the average of nothing is NULL.
    """
    check_hashing(tables)
    denominator = ["count"] * len(tables) if denominator is None else denominator
    if not len(numerator) == len(denominator) == len(tables):
        raise ValueError(
            f"{len(tables)} tables need as many weight columns, got {numerator} and {denominator}"
        )
    pairs = zip(tables, numerator, denominator, strict=True)
    known = [table.known([top, bottom]) for table, top, bottom in pairs]
    terms = join_terms(known)
    count = terms.total(1)
    if count == 0:
        raise ValueError("no sampled key joins, so there is no average to estimate; take a larger sample")
    if is_complete(terms):
        return shown(complete_ratio(terms))
    fitted = regress(known, terms)
    most = min(float(np.abs(terms.unseen[1]).max()), largest_product / min(t.probability for t in known))
    if fitted and fitted[1].value > 0:
        average = fitted[0].value / fitted[1].value
        found = _regressed_average(fitted, confidence, _distance(terms, average, most))
        return _with_slack(found, _slack(terms) / fitted[1].value)
    return _ratio(terms, confidence, most)


def estimate_ratio(terms: JoinTerms, confidence: float) -> Estimate:
    """The ratio of the first of two columns to the second: AVG = SUM / COUNT over the same sampled keys.

    Returns
    -------
    Estimate
        As `estimate_average`; NaN, unbounded, where too few sampled keys join to tell, and NaN, exact, where
        nothing joins.
    """
    if is_complete(terms):
        return shown(complete_ratio(terms))
    if _overflows(terms):
        return overflown(confidence, "measured")
    if terms.total(1) == 0:
        return Estimate(math.nan, -math.inf, math.inf, confidence, False, "measured", (TOO_FEW,))
    if np.isfinite(terms.unseen).all():
        return _bounded_ratio(terms, confidence)
    return _ratio(terms, confidence, float(np.abs(terms.unseen[1]).max()))


def _bounded_ratio(terms: JoinTerms, confidence: float) -> Estimate:
    """The ratio of two columns of both of which it is known what an unseen key can add.

    Certified where the denominator is known so well that the error of the ratio is linear in that of its parts.
    """
    count = terms.total(1)
    average = terms.total(0) / count
    (low, high), others = terms.unseen[0], average * terms.unseen[1]
    largest = max(float(high - others.min()), 0.0), max(float(others.max() - low), 0.0)
    sampled = terms.probabilities < 1.0
    tops, bottoms, p = terms.terms[0][sampled], terms.terms[1][sampled], terms.probabilities[sampled]
    linear = _is_linear(terms, confidence)
    interval = ratio_interval if linear else fieller_interval
    ends = interval(tops, bottoms, p, average, count, largest, confidence)
    notes = () if linear else (LINEARISED,)
    found = Estimate(average, *ends, confidence, linear, "measured", notes)
    return note_useless(_with_slack(found, _slack(terms) / abs(count)))


def _ratio(terms: JoinTerms, confidence: float, most: float) -> Estimate:
    """The ratio of two columns, where an unseen key weighs at most `most` in the second."""
    count = terms.total(1)
    average = terms.total(0) / count
    sampled = terms.probabilities < 1.0
    tops, bottoms, p = terms.terms[0][sampled], terms.terms[1][sampled], terms.probabilities[sampled]
    seen, unseen = (tops - average * bottoms) / p, _distance(terms, average, most)
    largest = max(unseen, float(seen.max(initial=0.0))), max(unseen, float(-seen.min(initial=0.0)))
    if max(largest) <= NO_SPREAD * float(np.abs(tops / p).max(initial=0.0)):
        # All that was drawn has one average, a single key for one: of how far others are from it that says nothing.
        return Estimate(average, -math.inf, math.inf, confidence, False, "measured", (LINEARISED, UNBOUNDED))
    interval = ratio_interval if _is_linear(terms, confidence) else fieller_interval
    low, high = interval(tops, bottoms, p, average, count, largest, confidence)
    found = Estimate(average, low, high, confidence, False, "measured", (LINEARISED,))
    return _with_slack(found, _slack(terms) / abs(count))


def _is_linear(terms: JoinTerms, confidence: float) -> bool:
    """Whether the denominator is known so well that the error of the ratio is linear in that of its parts."""
    around = estimate_total(terms, confidence, 1)
    return bool(max(around.high - around.value, around.value - around.low) <= LINEAR * abs(around.value))


def complete_total(terms: JoinTerms, column: int = 0, slack: float = 0.0) -> Estimate:
    """The total of all keys, as far as the doubles that it is computed in hold it: whole numbers up to 2^53 exactly.

    `slack` is how far the contributions together may be off for what was rounded before.
    """
    values = terms.terms[column]
    total, mass = float(np.sum(values)), float(np.abs(values).sum())
    whole = bool(np.all(values == np.rint(values)))
    if whole and not slack and mass < EXACT_IN_FLOAT:
        return exact(int(total))
    found = rounded(total, slack + slack_of(len(values), mass))
    # Whole numbers have all their digits or an interval, whatever part of them is lost.
    return found if slack or not whole else replace(found, notes=())


def complete_ratio(terms: JoinTerms, slack: float = 0.0) -> Estimate:
    """The ratio of the first of two columns to the second where all keys are known; NaN, exact, where nothing joins."""
    count = terms.total(1)
    if not count:
        return exact(math.nan)
    total = complete_total(terms, 0, slack)
    if total.exact:
        return exact(total.value / count)
    ends = sorted((total.low / count, total.high / count))
    return replace(total, value=total.value / count, low=ends[0], high=ends[1])


def estimate_total(terms: JoinTerms, confidence: float, column: int = 0) -> Estimate:
    """Value and gamma interval of the total of one column of join terms.

    Notes
    -----
    Keys known with certainty have no variance and shift the interval. What the sampled keys contribute is a
    provable lower bound when no contribution can be negative.
    """
    values, sampled = terms.terms[column], terms.probabilities < 1.0
    certain = float(np.sum(values[~sampled]))
    if is_complete(terms):
        return shown(complete_total(terms, column))
    if _overflows(terms):
        return overflown(confidence, "measured")
    drawn, p = values[sampled], terms.probabilities[sampled]
    lowest, highest = map(float, terms.unseen[column])
    certified = bool(np.isfinite(lowest) and np.isfinite(highest))
    if not certified and np.count_nonzero(drawn) <= 1:
        # Nothing bounds what was not drawn, and one key that was tells of no other.
        low, high = (certain + float(np.sum(drawn)) if lowest == 0.0 else -math.inf), math.inf
        value = certain + float(np.sum(drawn / p))
        return note_useless(
            Estimate(value, min(low, value), high, confidence, False, "measured", (UNBOUNDED,))
        )
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
    found = Estimate(value, *ends, confidence, certified, "measured", notes)
    return note_useless(_with_slack(found, _slack(terms, column)))


def _slack(terms: JoinTerms, column: int = 0) -> float:
    """How far rounding may move the total of a column whose keys are sampled: that of all its keys, by those met."""
    keys = float(np.sum(1.0 / terms.probabilities))
    return slack_of(keys, float(np.sum(np.abs(terms.terms[column]) / terms.probabilities)))


def _with_slack(estimate: Estimate, slack: float) -> Estimate:
    """The estimate, wider by what rounding may have moved it where that is not next to nothing beside its interval."""
    wide = slack > OF_THE_WIDTH * (estimate.high - estimate.low)
    return widened(estimate, slack) if wide else estimate


def _regressed_total(terms: JoinTerms, fitted: Regression, confidence: float) -> Estimate:
    """Value and interval of a regressed total; what is certain or sampled is a provable lower bound."""
    lowest, highest = terms.unseen[0]
    certified = bool(np.isfinite(lowest) and np.isfinite(highest))
    low, high = fitted.interval(confidence, max(highest, -lowest) if certified else _largest_seen(terms))
    notes = () if certified else (UNBOUNDED,)
    estimate = Estimate(fitted.value, low, high, confidence, certified, "measured", notes)
    if lowest == 0.0 and np.all(terms.terms[0] >= 0.0):
        estimate = clip(estimate, float(terms.terms[0].sum()))
    return note_useless(_with_slack(estimate, _slack(terms)))


def _regressed_average(fitted: list[Regression], confidence: float, largest: float) -> Estimate:
    """The ratio of two regressed totals; its residuals are those of the numerator less the denominator's."""
    top, bottom = fitted
    average = top.value / bottom.value
    leverages = np.maximum(top.leverages, bottom.leverages)
    rest = Regression(0.0, top.residuals - average * bottom.residuals, top.probability, leverages, ())
    low, high = rest.interval(confidence, largest)
    ends = average + (low - rest.value) / bottom.value, average + (high - rest.value) / bottom.value
    return Estimate(average, *ends, confidence, False, "measured", (LINEARISED,))


def _distance(terms: JoinTerms, average: float, most: float) -> float:
    """How far an unseen key with `most` tuples may pull, were it as far from the average as the furthest
    known.

    Zero without a bound on its tuples.
    """
    tops, bottoms = terms.terms
    joining = bottoms != 0.0
    if not math.isfinite(most) or not joining.any():
        return 0.0
    distances = tops[joining] / bottoms[joining] - average
    return most * root_sum_square(distances, 1.0 / distances.size)


def _largest_seen(terms: JoinTerms) -> float:
    """The largest absolute sampled contribution, divided by its probability."""
    sampled = terms.probabilities < 1.0
    return float(np.abs(terms.terms[0][sampled] / terms.probabilities[sampled]).max(initial=0.0))


def is_complete(terms: JoinTerms) -> bool:
    """Whether nothing was left to chance: every key that could contribute is known."""
    return bool(np.all(terms.probabilities == 1.0)) and not np.any(terms.unseen)


def _overflows(terms: JoinTerms) -> bool:
    """Whether the sampled contributions, over their probabilities, add up to more than a DOUBLE holds."""
    with np.errstate(over="ignore"):
        return not math.isfinite(float(np.sum(np.abs(terms.terms) / terms.probabilities)))


def check_hashing(tables: Sequence[SampledTable]) -> None:
    """Raise ValueError unless all tables were sampled by one hash function."""
    if not tables:
        raise ValueError("a join needs at least one table")
    mine = tables[0].hashing
    for theirs in (table.hashing for table in tables[1:]):
        if theirs != mine:
            raise ValueError(
                "samples by different hash functions cannot be joined: "
                f"{mine[0]} of {mine[1]} bits and {theirs[0]} of {theirs[1]} bits"
            )
