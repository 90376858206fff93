"""Query weights W_Q as exact integers, so that comparisons of levels are exact."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import isfinite, lcm

NEGLIGIBLE = 1e-6  # what a weight of zero counts as, relative to the largest


def integer_weights(weights: Sequence[float] | None, queries: int) -> tuple[int, ...]:
    """Positive integers in exactly the proportions of `weights`; all 1 if there are none.

    A weight of 0 (an answer that is exact anyway) is raised to a millionth of the largest, so that its
    sketches still get some space.

    Raises
    ------
    ValueError
        If their number differs from `queries`, or one is negative or not finite.
    """
    if weights is None:
        return (1,) * queries
    if len(weights) != queries:
        raise ValueError(f"{len(weights)} weights for {queries} queries")
    if not all(isfinite(weight) and weight >= 0 for weight in weights):
        raise ValueError(f"weights must be finite and not negative, not {list(weights)}")
    least = NEGLIGIBLE * max(weights, default=0.0)
    exact = [Fraction(max(weight, least)) if least else Fraction(1) for weight in weights]
    unit = lcm(*(fraction.denominator for fraction in exact))
    return tuple(int(fraction * unit) for fraction in exact)
