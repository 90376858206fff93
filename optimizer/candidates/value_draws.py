"""Which tuples a sample of keys draws for their values, where a few of them may carry a sum.

See `sketches.samples.dual_frame`. What tuples below `least` add is bounded by the number of a key's tuples, what one
above adds by `unit` and its partners: each a part of the asked error. Where none is far from the mean none is drawn.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...parser.join_graph import Query
from ..plan import ValueDraw
from .tuple_draws import MOST_PART, PART, TupleDraws

Floats = npt.NDArray[np.float64]

# An asked error e is met with about so many drawn tuples over e^2, whatever the values: a half-width of 1.96 over their
# root, a quarter of what is asked, which adds little to what sampled keys leave to chance in an average.
NEEDED = 64.0
LEAST_DRAWN, MOST_DRAWN = 256.0, 200_000.0

# Values whose largest is so many times the mean, or less, may be bounded by more draws of tuples whatever their values.
MOST_DEAR = 16.0

# Of values up to this, and of its inverse, products of two have squares.
MOST_SQUARED = 1e75

# So many values of those that have been looked at say nothing of the mean.
OUTSTANDING = 8


@dataclass(frozen=True, slots=True, eq=False)
class Summed:
    """An expression of one vertex that is summed.

    Attributes
    ----------
    vertex : int
    expression : str
    values : ndarray of float64, shape (n,)
        Those of some tuples behind the filter, NaN for NULL; empty where none have been looked at.
    low, high : float
        Between which all values are that are not NULL; infinite where nothing tells.
    alone : bool
        Whether a term is of this expression and no other; tuples are drawn for those alone.
    """

    vertex: int
    expression: str
    values: Floats
    low: float = -math.inf
    high: float = math.inf
    alone: bool = True

    @property
    def largest(self) -> float:
        """That no absolute value exceeds; infinite where nothing tells."""
        return max(-self.low, self.high)

    @property
    def has_squares(self) -> bool:
        """Whether moments of the values, and of products of two such, are numbers that a DOUBLE has."""
        known = [
            float(self.sizes.max(initial=0.0)),
            *(abs(e) for e in (self.low, self.high) if math.isfinite(e)),
        ]
        return all(not e or 1.0 / MOST_SQUARED <= e <= MOST_SQUARED for e in (known[0], max(known)))

    @property
    def sizes(self) -> Floats:
        """The absolute values, 0 for NULL."""
        return np.abs(np.nan_to_num(self.values, nan=0.0))

    @property
    def mean(self) -> float:
        """The mean of the values that have been looked at, but for the few largest; NaN without any.

        A mean that one large value makes is none to plan by: with a smaller one more tuples are drawn.
        """
        usual = np.sort(self.sizes)[: max(self.values.size - OUTSTANDING, 1)]
        return float(usual.mean()) if usual.size else math.nan

    @property
    def times_mean(self) -> float:
        """How many times the mean the largest is, at least 1; infinite where nothing tells."""
        return max(self.largest / self.mean, 1.0) if self.mean > 0.0 else math.inf

    def drawn(self, draw: ValueDraw, tuples: float) -> float:
        """So many tuples are expected to be drawn of so many."""
        sizes = self.sizes
        chances = np.where(sizes >= draw.least, np.minimum(sizes, draw.unit) / draw.unit, 0.0)
        return tuples * float(chances.mean()) if chances.size else 0.0


def expressions_of(query: Query) -> tuple[tuple[int, str, bool], ...]:
    """The expressions, each of one vertex, that a query sums over its join, and whether one alone makes a term."""
    found: dict[tuple[int, str], bool] = {}
    for aggregate in query.aggregates:
        for term in aggregate.total:
            values = [f for f in term.factors if not f.presence]
            for f in values:
                key = f.vertex, f.expression
                found[key] = found.get(key, False) or len(values) == 1
    return tuple((vertex, expression, alone) for (vertex, expression), alone in found.items())


def times_means(summed: Sequence[Summed]) -> tuple[list[float], float]:
    """How many times the mean the largest values of sums of one expression are, and the largest product of several.

    Without those that nothing tells, for which tuples are drawn by their values; 1 of the product then.
    """
    dear = [s.times_mean for s in summed if s.alone and math.isfinite(s.times_mean)]
    product = math.prod(s.times_mean for s in summed if not s.alone)
    return dear, product if math.isfinite(product) else 1.0


def value_draws(
    summed: Sequence[Summed],
    members: Sequence[int],
    tuples: Sequence[float],
    left: float,
    error: float,
    rate: float,
    draws: TupleDraws,
) -> list[tuple[Summed, ValueDraw]]:
    """The draws for the expressions whose largest value makes the bound on unseen keys too wide.

    Parameters
    ----------
    summed : sequence of Summed
    members : sequence of int
        The vertices of the sampled class; expressions of others have no draw.
    tuples : sequence of float
        Of each member, behind its filter.
    left : float
        Tuples of the join.
    error : float
        The asked relative error.
    rate : float
        Share of the keys that is sampled.
    draws : TupleDraws
        The tuples that are drawn whatever their values.
    """
    most = draws.largest(rate)
    found = []
    for one in summed:
        if not one.alone or one.vertex not in members or not one.mean > 0.0 or not math.isfinite(most):
            continue
        room = error * left * one.mean
        if most * one.largest <= MOST_PART * room:
            continue
        member = list(members).index(one.vertex)
        mass = tuples[member] * one.mean
        bounded = 2.0 * PART * room / max(draws.largest_beside(member), 1.0)
        accurate = mass / min(max(NEEDED / error**2, LEAST_DRAWN), MOST_DRAWN)
        unit = max(min(bounded, accurate), mass / MOST_DRAWN)
        if unit < sys.float_info.min:
            continue
        few, many = (
            ValueDraw(member, one.expression, min(part * room / most, unit), unit)
            for part in (MOST_PART, MOST_PART / 2.0)
        )
        # What is drawn at all has the other tables asked for its keys: then a tighter bound costs little more.
        found.append((one, few if one.drawn(few, tuples[member]) < 1.0 else many))
    return found


def is_bounded(summed: Sequence[Summed], members: Sequence[int], draws: Sequence[ValueDraw]) -> bool:
    """Whether something bounds what an unseen key adds to each sum: else an interval is never certified.

    Parameters
    ----------
    summed : sequence of Summed
    members : sequence of int
        The vertices of the sampled class.
    draws : sequence of ValueDraw
        What is drawn for its value.
    """
    drawn = {(members[d.member], d.expression) for d in draws}
    return all(math.isfinite(s.largest) or (s.alone and (s.vertex, s.expression) in drawn) for s in summed)
