"""What a scan measures for each synopsis, in the form in which Spark itself aggregates it (the all-JVM route)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ...optimizer.plan import Plan
from ...sketches.hashing.xi import WORD_BITS
from ...sketches.joins.convolution import ConvolutionSpec
from ...sketches.joins.sparse import SparseFirstSketch
from ..synopses import Tally, check_mass
from .partial_aggregate import SketchPlan
from .scan import PreparedScan


@dataclass(frozen=True, slots=True)
class Measure:
    """The tuples and weights of one synopsis among the columns of a prepared scan.

    Attributes
    ----------
    synopsis : int
        Its number in the plan.
    sketch : SketchPlan
    keys : tuple of str
        BIGINT columns, NULL where a tuple joins nothing; none for a total.
    mask : str or None
        BOOLEAN column: whether a tuple counts; None for all.
    weight : str or None
        BIGINT or DOUBLE column, never NULL; None where every tuple weighs 1.
    presence : bool
        Whether the weight is 0 or 1.
    slack : str or None
        DOUBLE column: how far rounding may have moved the weight; None where it is as it stands in the data.
    """

    synopsis: int
    sketch: SketchPlan
    keys: tuple[str, ...]
    mask: str | None
    weight: str | None
    presence: bool
    slack: str | None = None

    @property
    def spec(self) -> ConvolutionSpec:
        """Of its counters."""
        spec = self.sketch.spec
        assert isinstance(spec, ConvolutionSpec), "the JVM makes linear sketches alone"
        return spec

    @property
    def counts(self) -> bool:
        """Whether it counts tuples."""
        return self.weight is None or self.presence

    @property
    def counted(self) -> Column | None:
        """Which tuples it counts (those of weight 1, if weights are 0 or 1); None for all."""
        parts = [] if self.mask is None else [F.col(self.mask)]
        if self.presence:
            parts.append(F.col(str(self.weight)) == 1)
        return reduce(lambda a, b: a & b, parts) if parts else None

    @property
    def value(self) -> Column:
        """The weight of a tuple, 0 where the tuple does not count."""
        if self.counts:
            return self.only_counted(F.lit(1).cast("bigint"))
        weight = F.col(str(self.weight))
        zero = F.lit(0.0) if self.spec.dtype == "float64" else F.lit(0).cast("bigint")
        return weight if self.mask is None else F.when(F.col(self.mask), weight).otherwise(zero)

    def only_counted(self, column: Column) -> Column:
        """A number where the tuple counts, else 0."""
        return column if self.counted is None else F.when(self.counted, column).otherwise(0)

    def tally_columns(self, prefix: str) -> list[Column]:
        """Aggregates ``{prefix}tuples`` and, by the kind of weight, ``present``, or ``mass`` and ``negative``."""
        within = F.lit(1) if self.mask is None else F.when(F.col(self.mask), 1).otherwise(0)
        columns = [F.sum(within.cast("bigint")).alias(f"{prefix}tuples")]
        if self.presence:
            columns.append(F.sum(self.value).alias(f"{prefix}present"))
        elif not self.counts:
            columns.append(F.sum(F.abs(self.value.cast("double"))).alias(f"{prefix}mass"))
            columns.append(F.sum(F.when(self.value < 0, 1).otherwise(0)).alias(f"{prefix}negative"))
        if self.slack is not None:
            columns.append(F.sum(self.only_counted(F.col(self.slack))).alias(f"{prefix}slack"))
        return columns


@dataclass(frozen=True, slots=True)
class Pass:
    """What a pass gave for one synopsis: its counters, their tally, and an estimate of the number of keys."""

    sketch: SparseFirstSketch[ConvolutionSpec]
    tally: Tally
    distinct: float


def measures_of(plan: Plan, prepared: PreparedScan) -> list[Measure]:
    """One measure for each synopsis of the scan, those by the same keys side by side."""
    measures = [
        Measure(
            synopsis,
            prepared.sketches[synopsis],
            feed.keys,
            feed.mask,
            weight,
            plan.synopses[synopsis].weight.presence and not plan.synopses[synopsis].messages,
            slack,
        )
        for feed in prepared.feeds
        for synopsis, weight, slack in zip(feed.synopses, feed.weights, feed.slacks, strict=True)
    ]
    order = list(dict.fromkeys(m.keys for m in measures))
    return sorted(measures, key=lambda m: order.index(m.keys))


def joining(keys: tuple[str, ...]) -> Column:
    """Whether no key is NULL."""
    return reduce(lambda a, b: a & b, (F.col(k).isNotNull() for k in keys))


def hash_word(seeds: list[int], keys: tuple[str, ...]) -> Column:
    """Exclusive or of ``xxhash64(seed, key)`` over the attributes, BIGINT."""
    hashed = [F.xxhash64(F.lit(seed).cast("bigint"), F.col(k)) for seed, k in zip(seeds, keys, strict=True)]
    return reduce(lambda a, b: a.bitwiseXOR(b), hashed)


def all_if_set(word: Column, bit: int) -> Column:
    """A BIGINT of ones where a bit of the word is set, 0 elsewhere."""
    return F.shiftright(F.shiftleft(word, WORD_BITS - 1 - bit), WORD_BITS - 1)


def only_joining(frame: DataFrame, keys: tuple[str, ...]) -> DataFrame:
    """The tuples with no NULL among these keys."""
    return frame.where(joining(keys)) if keys else frame


def tally_of(tuples: int, mass: float, negative: int, slack: float = 0.0) -> Tally:
    """A tally; ValueError where a weight is no finite number."""
    check_mass(mass)
    return Tally(tuples, mass, negative, slack)
