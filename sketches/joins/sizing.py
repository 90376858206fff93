"""From an error and a confidence to a size, and back.

Two answers to the same question. *Guaranteed*: Chebyshev's inequality for a row, an exact binomial for the
median; holds for every data set, and is several times too large for most. *Predicted*: the standard error of
a median of nearly normal rows; what to plan with. Skewed data do better than predicted (their rows are
heavy-tailed, which the median forgives). Both start from the variance of one atomic sketch, see `moments`.

References
----------
.. [1] A. Dobra, M. Garofalakis, J. Gehrke, R. Rastogi, "Processing complex aggregate queries over data
   streams", SIGMOD 2002, Theorem 3.1 and section 4.1: s1 = 2^(2n+3) prod SJ / (epsilon L)^2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.special import bdtr, bdtrc, ndtri

from ..intervals.interval import LEAST_ROWS, order_rank, rows_for

CHEBYSHEV = 8.0  # [1]: a row misses with a chance of at most 1/8
MEDIAN_LOSS = math.sqrt(math.pi / 2)  # standard error of a median of normal values over that of their mean
MOST_ROWS = 10_001


@dataclass(frozen=True, slots=True)
class Size:
    """Rows of the median x counters in a row: rows x buckets of a hash sketch, s2 x s1 of an AGMS sketch."""

    rows: int
    columns: int

    def __post_init__(self) -> None:
        if self.rows < 1 or self.columns < 1:
            raise ValueError(f"a sketch has at least one row and column, not {self.rows} x {self.columns}")

    @property
    def words(self) -> int:
        """Counters in all."""
        return self.rows * self.columns

    @property
    def nbytes(self) -> int:
        """Bytes of the counters."""
        return 8 * self.words


def guaranteed_rows(confidence: float, miss: float = 1 / CHEBYSHEV) -> int:
    """Smallest odd number of rows whose median misses with a chance of at most 1 - confidence.

    Parameters
    ----------
    confidence : float
        In (0, 1).
    miss : float
        Chance that a single row misses, below 1/2.

    Notes
    -----
    Departs from [1]: the exact binomial tail instead of Chernoff's bound, about half as many rows.
    """
    _check_confidence(confidence)
    if not 0 < miss < 0.5:
        raise ValueError(f"a row has to miss in less than half of all cases, not in {miss}")
    for rows in range(1, MOST_ROWS, 2):
        if bdtrc(rows // 2, rows, miss) <= 1 - confidence:
            return rows
    raise ValueError(f"a confidence of {confidence} takes more than {MOST_ROWS} rows")


def guaranteed_size(variance: float, answer: float, relative_error: float, confidence: float) -> Size:
    """A size that keeps the error with the confidence, for every data set of this variance.

    Parameters
    ----------
    variance : float
        Of one atomic sketch: `moments.join_variance`, or an upper bound such as `moments.theorem_2_bound`,
        which makes this Theorem 3.1 of [1].
    answer : float
        The aggregate, or a positive lower bound on its size.
    relative_error : float
        At most this fraction of `answer`.
    confidence : float
        In (0, 1).
    """
    target = _check_target(variance, answer, relative_error)
    columns = max(1, math.ceil(CHEBYSHEV * variance / target**2))
    return Size(guaranteed_rows(confidence), columns)


def guaranteed_error(variance: float, answer: float, size: Size, confidence: float) -> float:
    """The relative error that `size` keeps with the confidence, for every data set of this variance.

    The largest chance of a row's miss that the median of ``size.rows`` forgives, put into Chebyshev's
    inequality; infinite where the rows do not reach the confidence at all.
    """
    _check_confidence(confidence)
    rows = size.rows if size.rows % 2 else size.rows - 1
    low, high = 0.0, 0.5
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if bdtrc(rows // 2, rows, middle) <= 1 - confidence else (low, middle)
    if low == 0.0:
        return math.inf
    return math.sqrt(variance / (size.columns * low)) / abs(answer) if answer else math.inf


def predicted_size(
    variance: float, answer: float, relative_error: float, confidence: float, rows: int | None = None
) -> Size:
    """The size whose error is predicted to stay within the target with the confidence.

    Parameters
    ----------
    variance, answer, relative_error, confidence
        As for `guaranteed_size`, with the best guess in place of bounds.
    rows : int, optional
        By default what a certified interval of that confidence takes, 11 or more.
    """
    target = _check_target(variance, answer, relative_error)
    rows = rows_for(confidence) if rows is None else rows
    quantile = _quantile(confidence)
    columns = math.ceil((quantile * MEDIAN_LOSS) ** 2 * variance / (rows * target**2))
    return Size(rows, max(1, columns))


def predicted_error(variance: float, answer: float, size: Size, confidence: float) -> float:
    """The relative error predicted to be kept with the confidence; inverts `predicted_size`."""
    if answer == 0:
        return math.inf
    spread = math.sqrt(variance / (size.columns * size.rows))
    return _quantile(confidence) * MEDIAN_LOSS * spread / abs(answer)


def predicted_half_width(variance: float, size: Size, confidence: float) -> float:
    """Half the expected length of the interval that `interval.median_interval` will give, on nearly normal
    rows.

    Wider than the error: the interval's ends are order statistics of few rows, and cover more than asked.
    """
    k = max(1, order_rank(size.rows, confidence))
    # Expected order statistic of normal values, by Blom's approximation.
    place = (size.rows + 1 - k - 0.375) / (size.rows + 0.25)
    return float(ndtri(place)) * math.sqrt(variance / size.columns)


def frequency_size(second_moment: float, error: float, confidence: float) -> Size:
    """A hash sketch whose median frequency of a given key is off by `error` at most, guaranteed.

    Parameters
    ----------
    second_moment : float
        F2, the sum of squared frequencies.
    error : float
        In units of weight.
    """
    if error <= 0:
        raise ValueError(f"an error is positive, not {error}")
    columns = max(2, math.ceil(CHEBYSHEV * second_moment / error**2))
    return Size(max(LEAST_ROWS, guaranteed_rows(confidence)), columns)


def frequency_error(second_moment: float, size: Size, confidence: float) -> float:
    """The error of a median frequency that `size` keeps with the confidence; inverts `frequency_size`."""
    return guaranteed_error(second_moment, 1.0, size, confidence)


def confidence_of(size: Size, variance: float, answer: float, relative_error: float) -> float:
    """The confidence with which `size` keeps the error, guaranteed; 0 where Chebyshev says nothing."""
    target = _check_target(variance, answer, relative_error)
    miss = min(1.0, variance / (size.columns * target**2))
    rows = size.rows if size.rows % 2 else size.rows - 1
    return float(bdtr(rows // 2, rows, miss)) if miss < 0.5 else 0.0


def _quantile(confidence: float) -> float:
    _check_confidence(confidence)
    return float(ndtri((1 + confidence) / 2))


def _check_confidence(confidence: float) -> None:
    if not 0 < confidence < 1:
        raise ValueError(f"a confidence lies between 0 and 1, not at {confidence}")


def _check_target(variance: float, answer: float, relative_error: float) -> float:
    if variance < 0:
        raise ValueError(f"a variance is not negative: {variance}")
    if answer == 0:
        raise ValueError("no size gives a relative error of an answer of zero")
    if relative_error <= 0:
        raise ValueError(f"a relative error is positive, not {relative_error}")
    return abs(answer) * relative_error
