"""What one pass over a table gives: a sketch, and what is known exactly of the tuples in it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from ..errors import DataError
from ..sketches.joins.sparse import SparseFirstSketch

if TYPE_CHECKING:
    from ..sketches.distinct.sparse_level import SparseLevelSketch
    from ..sketches.distinct.sparse_pairs import SparsePairSample

# A sketch of join keys; one of distinct values; one of pairs of values.
Sketch: TypeAlias = "SparseFirstSketch[Any] | SparseLevelSketch | SparsePairSample"


# What is said of values that are NaN, or infinite.
NOT_FINITE = "not finite"
# What counts tuples is a 64-bit integer, in files and on its way.
MOST_TUPLES = (1 << 63) - 1


@dataclass(slots=True)
class Tally:
    """What is known exactly of the tuples that a sketch has seen.

    `tuples` counts them, `mass` is the sum of their absolute weights, `negative` how many weigh less than 0, and
    `slack` how far rounding may have moved the sum of the weights themselves, where sums of doubles are in them.
    """

    tuples: int = 0
    mass: float = 0.0
    negative: int = 0
    slack: float = 0.0

    def add(self, other: Tally) -> None:
        """Add the tuples of another part of the data.

        Raises
        ------
        ValueError
            If their mass leaves the range of DOUBLE.
        OverflowError
            If their number leaves int64.
        """
        self.tuples += other.tuples
        if not -MOST_TUPLES <= self.tuples <= MOST_TUPLES:
            raise OverflowError("the number of tuples leaves int64")
        self.mass += other.mass
        self.negative += other.negative
        self.slack += other.slack
        check_mass(self.mass)


def check_mass(mass: float) -> None:
    """Raise ValueError unless absolute weights add up within the range of DOUBLE: else sums depend on their order."""
    if mass != mass or mass == math.inf:
        raise ValueError(
            "weights that are not finite, or whose absolute values add up to more than a DOUBLE holds"
        )


def not_finite(sql: str, table: str, said: str) -> DataError:
    """The error for a NaN or an infinity among the values that a table adds, as Spark adds them."""
    return DataError(
        f"a sum over {table} has what no synopsis adds up: {said}",
        "SKIMQL_NOT_FINITE",
        sql,
        hint="EXACT SELECT ..., which gives NaN or Infinity, or WHERE without such values",
    )


@dataclass(frozen=True, slots=True)
class Built:
    """A finished sketch, its tally, and the factor that made its weights integers (1 but for DECIMAL).

    `updates` are the tuples that were added or taken out, where that is more than the tally's tuples.
    """

    sketch: Sketch
    tally: Tally
    scale: float
    updates: float = 0.0

    @property
    def additions(self) -> float:
        """How many numbers were added up."""
        return max(float(self.tally.tuples), self.updates)

    @property
    def linear(self) -> SparseFirstSketch[Any]:
        """The sketch, which must be one of join keys; dense keys beside its counters are put into these."""
        plain = getattr(self.sketch, "plain", None)
        found = self.sketch if plain is None else plain()
        assert isinstance(found, SparseFirstSketch), "a sketch of distinct values has no join to estimate"
        return found
