"""What Spark computes in one pass over a table: the columns that travel to Python, and which sketch each feeds.

Spark prunes, filters, casts and fingerprints; only BIGINT, DOUBLE and mask columns travel.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ..errors import UnsupportedQuery
from ..optimizer.plan import Attribute, Plan, Scan, Synopsis, Weight
from ..sketches.convolution import ConvolutionSpec
from ..sketches.xi import derive_seed, make_family
from .keys import key_column
from .partial import Feed, SketchPlan
from .spark import SPARK_FAULTS, first_line

FAMILY = "tabulation"

# The column with the number of a tuple's group, which a grouped query adds to the table whose tuples it groups.
GROUP_COLUMN = "skimql group"

# The longest DECIMAL whose unscaled value always fits a BIGINT.
LONGEST_INTEGER_DECIMAL = 18


@dataclass(frozen=True, slots=True)
class PreparedScan:
    """One pass, ready to run.

    Attributes
    ----------
    columns : DataFrame
        What travels to the workers.
    feeds : tuple of Feed
        How each batch of `columns` feeds the sketches.
    sketches : mapping of int to SketchPlan
        The sketch of each synopsis of the scan, by its number in the plan.
    scales : mapping of int to float
        The factor that made a synopsis's weights integers; 1 but for DECIMAL.
    """

    columns: DataFrame
    feeds: tuple[Feed, ...]
    sketches: dict[int, SketchPlan]
    scales: dict[int, float]


@dataclass(frozen=True, slots=True)
class _WeightColumn:
    """A weight as Spark computes it: no column where every tuple counts 1."""

    column: Column | None
    dtype: str
    scale: float = 1.0


def prepare(plan: Plan, scan: Scan, frame: DataFrame) -> PreparedScan:
    """The pass over `frame` that feeds every synopsis of `scan`.

    Raises
    ------
    UnsupportedQuery
        If Spark cannot sum an argument of SUM or AVG.
    """
    synopses = {i: plan.synopses[i] for i in scan.synopses}
    weights = {w: _weight(plan, frame, w) for w in dict.fromkeys(s.weight for s in synopses.values())}
    filters = list(dict.fromkeys(s.filter for s in synopses.values()))
    # With one filter for all, Spark filters; with several, a tuple travels if any keeps it, with a mask for each.
    masked = len(filters) > 1
    columns: dict[tuple[str, object], Column] = {}
    # By virtual relation and attributes; in each, the synopses of every group, or of all tuples under None.
    relations: dict[tuple[str | None, tuple[Attribute, ...], bool], dict[int | None, list[int]]] = {}
    for i, synopsis in synopses.items():
        grouped = synopsis.group is not None
        if grouped:
            columns["group", None] = F.col(f"`{GROUP_COLUMN}`")
        relation = relations.setdefault((synopsis.filter, synopsis.attributes, grouped), {})
        relation.setdefault(synopsis.group, []).append(i)
        if masked and synopsis.filter is not None:
            columns["mask", synopsis.filter] = F.coalesce(F.expr(synopsis.filter), F.lit(False))
        for attribute in synopsis.attributes:
            columns["key", attribute] = key_column(attribute)
        column = weights[synopsis.weight].column
        if column is not None:
            columns["weight", synopsis.weight] = column
    names: dict[tuple[str, object], str] = {what: f"c{n}" for n, what in enumerate(columns)}
    feeds = []
    for (predicate, attributes, grouped), members in relations.items():
        one = next(iter(members.values()))
        feeds.append(
            Feed(
                names.get(("mask", predicate)),
                tuple(names["key", a] for a in attributes),
                tuple(names.get(("weight", synopses[i].weight)) for i in one),
                () if grouped else tuple(one),
                names["group", None] if grouped else None,
                tuple(tuple(members[g]) for g in range(len(members))) if grouped else (),
            )
        )
    if None not in filters:
        frame = frame.where(reduce(lambda a, b: a | b, (F.expr(f) for f in filters if f is not None)))
    # Where only tuples are counted no column is needed, but rows must travel.
    sent = [c.alias(names[what]) for what, c in columns.items()] or [F.lit(1).cast("bigint").alias("c0")]
    return PreparedScan(
        frame.select(*sent),
        tuple(feeds),
        {i: sketch_plan(s, plan.seed, weights[s.weight].dtype) for i, s in synopses.items()},
        {i: weights[s.weight].scale for i, s in synopses.items()},
    )


def sketch_plan(synopsis: Synopsis, seed: int, dtype: str) -> SketchPlan:
    """The sketch of a planned synopsis: one family per attribute, given by the seed and the join class."""
    families = tuple(make_family(FAMILY, derive_seed(seed, a.class_name)) for a in synopsis.attributes)
    return SketchPlan(ConvolutionSpec(families, synopsis.rows, synopsis.buckets, dtype), synopsis.sparse)


def _weight(plan: Plan, frame: DataFrame, weight: Weight) -> _WeightColumn:
    """A weight as BIGINT (integers; DECIMAL times a power of ten) or DOUBLE, a NULL as 0."""
    if weight.expression is None:
        return _WeightColumn(None, "int64")
    value = F.expr(weight.expression)
    if weight.presence:
        return _WeightColumn(F.when(value.isNotNull(), 1).otherwise(0).cast("bigint"), "int64")
    try:
        # Spark's own SUM decides what can be summed, and as what.
        total_type = frame.select(F.sum(value)).schema.fields[0].dataType.simpleString()
        own_type = frame.select(value).schema.fields[0].dataType.simpleString()
    except SPARK_FAULTS as fault:
        raise UnsupportedQuery(
            f"Spark refuses to sum {weight.expression}: {first_line(fault)}",
            "SKIMQL_BAD_ARGUMENT",
            plan.query.sql,
        ) from fault
    if total_type == "bigint":
        return _WeightColumn(F.coalesce(value.cast("bigint"), F.lit(0)), "int64")
    if own_type.startswith("decimal("):
        precision, scale = (int(n) for n in own_type[8:-1].split(","))
        if precision <= LONGEST_INTEGER_DECIMAL:
            unscaled = (value * F.lit(Decimal(10**scale))).cast("bigint")
            return _WeightColumn(F.coalesce(unscaled, F.lit(0)), "int64", float(10**scale))
    elif total_type != "double":
        raise UnsupportedQuery(
            f"the sum of {weight.expression} is of type {total_type}, which is no number",
            "SKIMQL_BAD_ARGUMENT",
            plan.query.sql,
        )
    return _WeightColumn(F.coalesce(value.cast("double"), F.lit(0.0)), "float64")
