"""Computed bounds for seeded trials: how many misses a correct estimator may show."""

from __future__ import annotations

from scipy.special import bdtr, bdtrc

FALSE_FAIL = 1e-6  # chance that a correct program fails one statistical test, before its seeds were fixed


def most_misses(trials, p, false_fail=FALSE_FAIL):
    """Smallest c with P[Binomial(trials, p) > c] <= false_fail."""
    return next(c for c in range(trials + 1) if bdtrc(c, trials, p) <= false_fail)


def fewest_hits(trials, p, false_fail=FALSE_FAIL):
    """Largest c with P[Binomial(trials, p) < c] <= false_fail."""
    return trials - most_misses(trials, 1 - p, false_fail)


def median_miss(rows, p):
    """Chance that the median of an odd number of independent rows misses, each row missing with chance p."""
    assert rows % 2, "an even number of rows has no middle row"
    return float(bdtrc(rows // 2, rows, p))


def order_statistic_miss(rows, k):
    """Chance that the median of the rows' distribution is outside [k-th smallest, k-th largest row]."""
    return float(2 * bdtr(k - 1, rows, 0.5))
