"""One pass per source table feeds every sketch of a plan.

Spark prunes, filters, casts and fingerprints; Python workers get 64-bit integers in Arrow batches, keep one
partial sketch per task and send its counters back; the driver adds them up. Integer counters are the same bits
whatever the number and order of the partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from ..errors import DataError, EnvironmentFault, SkimqlError, UnsupportedQuery
from ..optimizer.plan import Attribute, Plan, Scan, Synopsis, Weight
from ..sketches.convolution import ConvolutionSketch, ConvolutionSpec, update_many
from ..sketches.xi import Family, derive_seed, make_family
from .jobs import ProgressListener, run_job
from .keys import key_column
from .spark import SPARK_FAULTS, first_line
from .tables import Tables

FAMILY = "tabulation"

# The longest DECIMAL whose unscaled value always fits a BIGINT.
LONGEST_INTEGER_DECIMAL = 18

# What a task sends back: one row per partial sketch, its counters as little-endian bytes.
PARTIAL_SCHEMA = "synopsis INT, tuples BIGINT, mass DOUBLE, negative BIGINT, counters BINARY"
_ARROW_PARTIAL = pa.schema(
    [
        ("synopsis", pa.int32()),
        ("tuples", pa.int64()),
        ("mass", pa.float64()),
        ("negative", pa.int64()),
        ("counters", pa.binary()),
    ]
)


@dataclass(slots=True)
class Tally:
    """What is known exactly of the tuples that a sketch has seen.

    `tuples` counts them, `mass` is the sum of their absolute weights, `negative` how many weigh less than 0.
    """

    tuples: int = 0
    mass: float = 0.0
    negative: int = 0

    def add(self, other: Tally) -> None:
        """Add the tuples of another part of the data."""
        self.tuples += other.tuples
        self.mass += other.mass
        self.negative += other.negative


@dataclass(frozen=True, slots=True)
class Built:
    """A finished sketch, its tally, and the factor that made its weights integers (1 but for DECIMAL)."""

    sketch: ConvolutionSketch
    tally: Tally
    scale: float


@dataclass(frozen=True, slots=True)
class _Feed:
    """How a batch feeds the sketches of one virtual relation with one set of attributes: column names."""

    mask: str | None
    keys: tuple[str, ...]
    weights: tuple[str | None, ...]
    synopses: tuple[int, ...]


def build(
    spark: SparkSession, plan: Plan, tables: Tables, listener: ProgressListener | None = None
) -> tuple[Built, ...]:
    """Every sketch of the plan, one scan per table.

    Raises
    ------
    DataError
        If Spark fails on a value (a cast in ANSI mode, say) or a weight is not finite.
    UnsupportedQuery
        If Spark refuses an expression, or an argument of SUM is no number.
    """
    built: dict[int, Built] = {}
    for scan in plan.scans:
        built.update(_run_scan(spark, plan, scan, tables, listener))
    return tuple(built[i] for i in range(len(plan.synopses)))


def sketch_spec(synopsis: Synopsis, seed: int, dtype: str) -> ConvolutionSpec:
    """The sketch of a planned synopsis: one family per attribute, given by the seed and the join class."""
    return ConvolutionSpec(
        tuple(_family(a, seed) for a in synopsis.attributes), synopsis.rows, synopsis.buckets, dtype
    )


def _family(attribute: Attribute, seed: int) -> Family:
    return make_family(FAMILY, derive_seed(seed, attribute.class_name))


def _run_scan(
    spark: SparkSession, plan: Plan, scan: Scan, tables: Tables, listener: ProgressListener | None
) -> dict[int, Built]:
    frame = tables.frame(scan.table)
    weights = {
        w: _weight_column(plan, frame, w)
        for w in dict.fromkeys(plan.synopses[i].weight for i in scan.synopses)
    }
    specs = {
        i: sketch_spec(plan.synopses[i], plan.seed, weights[plan.synopses[i].weight].dtype)
        for i in scan.synopses
    }
    try:
        columns, feeds = _columns(frame, plan, scan, weights)
        partials = columns.mapInArrow(_partial_maker(specs, feeds), PARTIAL_SCHEMA)
        sent = run_job(spark, f"scan {scan.table}", partials.toArrow, listener)
    except SPARK_FAULTS as fault:
        raise _explained(fault, plan, scan) from fault
    built = {
        i: Built(ConvolutionSketch(spec), Tally(), weights[plan.synopses[i].weight].scale)
        for i, spec in specs.items()
    }
    for row in sent.to_pylist():
        whole = built[row["synopsis"]]
        try:
            whole.sketch.merge(_part(row, whole.sketch.spec))
        except OverflowError as fault:
            raise _explained(fault, plan, scan) from fault
        whole.tally.add(Tally(row["tuples"], row["mass"], row["negative"]))
    return built


@dataclass(frozen=True, slots=True)
class _WeightColumn:
    """A weight as Spark computes it: no column where every tuple counts 1."""

    column: Column | None
    dtype: str
    scale: float = 1.0


def _weight_column(plan: Plan, frame: DataFrame, weight: Weight) -> _WeightColumn:
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
        return _WeightColumn(_or_zero(value.cast("bigint")), "int64")
    if own_type.startswith("decimal("):
        precision, scale = (int(n) for n in own_type[8:-1].split(","))
        if precision <= LONGEST_INTEGER_DECIMAL:
            unscaled = (value * F.lit(Decimal(10**scale))).cast("bigint")
            return _WeightColumn(_or_zero(unscaled), "int64", float(10**scale))
    elif total_type != "double":
        raise UnsupportedQuery(
            f"the sum of {weight.expression} is of type {total_type}, which is no number",
            "SKIMQL_BAD_ARGUMENT",
            plan.query.sql,
        )
    return _WeightColumn(_or_zero(value.cast("double")), "float64")


def _or_zero(value: Column) -> Column:
    return F.coalesce(value, F.lit(0))


def _columns(
    frame: DataFrame, plan: Plan, scan: Scan, weights: dict[Weight, _WeightColumn]
) -> tuple[DataFrame, tuple[_Feed, ...]]:
    """The columns that travel to Python, and how they feed the sketches.

    One filter for all: Spark filters before anything is computed. Several: a row travels if any filter keeps
    it, with one mask per virtual relation.
    """
    synopses = {i: plan.synopses[i] for i in scan.synopses}
    filters = list(dict.fromkeys(s.filter for s in synopses.values()))
    shared_filter = len(filters) == 1
    chosen: dict[str, Column] = {}
    names: dict[object, str] = {}

    def name_of(what: object, column: Callable[[], Column]) -> str:
        if what not in names:
            names[what] = f"c{len(names)}"
            chosen[names[what]] = column().alias(names[what])
        return names[what]

    groups: dict[tuple[str | None, tuple[Attribute, ...]], list[int]] = {}
    for i, synopsis in synopses.items():
        groups.setdefault((synopsis.filter, synopsis.attributes), []).append(i)
    feeds = []
    for (predicate, attributes), members in groups.items():
        mask = None
        if not shared_filter and predicate is not None:
            kept = F.coalesce(F.expr(predicate), F.lit(False))
            mask = name_of(("mask", predicate), lambda kept=kept: kept)  # type: ignore[misc]
        keys = tuple(name_of(a, lambda a=a: key_column(a)) for a in attributes)  # type: ignore[misc]
        fed = []
        for i in members:
            weight = synopses[i].weight
            column = weights[weight].column
            fed.append(None if column is None else name_of(weight, lambda c=column: c))  # type: ignore[misc]
        feeds.append(_Feed(mask, keys, tuple(fed), tuple(members)))
    predicates = [F.expr(f) for f in filters if f is not None]
    if len(predicates) == len(filters):
        frame = frame.where(reduce(lambda a, b: a | b, predicates))
    # A single total over COUNT(*) needs no column at all, but rows must still travel.
    return frame.select(*chosen.values() or [F.lit(1).cast("bigint").alias("c0")]), tuple(feeds)


def _partial_maker(
    specs: dict[int, ConvolutionSpec], feeds: tuple[_Feed, ...]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function that a task runs: Arrow batches in, the counters of its partial sketches out."""

    def partials(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        parts = {i: (ConvolutionSketch(spec), Tally()) for i, spec in specs.items()}
        for batch in batches:
            for feed in feeds:
                _update(batch, feed, [parts[i] for i in feed.synopses])
        for i, (sketch, tally) in parts.items():
            if tally.tuples:
                counters = sketch.counters.astype(sketch.counters.dtype.newbyteorder("<")).tobytes()
                row = [i, tally.tuples, tally.mass, tally.negative, counters]
                yield pa.RecordBatch.from_pydict(
                    {f.name: [v] for f, v in zip(_ARROW_PARTIAL, row, strict=True)}, schema=_ARROW_PARTIAL
                )

    return partials


def _update(batch: pa.RecordBatch, feed: _Feed, parts: list[tuple[ConvolutionSketch, Tally]]) -> None:
    """Add one batch to the sketches of one virtual relation; tuples with a NULL key never join."""
    kept: pa.BooleanArray | None = batch.column(feed.mask) if feed.mask else None
    for name in feed.keys:
        column = batch.column(name)
        if column.null_count:
            kept = column.is_valid() if kept is None else pc.and_(kept, column.is_valid())
    if kept is not None:
        batch = batch.filter(kept)
    if batch.num_rows == 0:
        return
    keys = [batch.column(name).to_numpy() for name in feed.keys]
    # A total has no keys to tell how many tuples there are.
    ones = None if keys else np.ones(batch.num_rows, dtype=np.int64)
    weights = [ones if name is None else batch.column(name).to_numpy() for name in feed.weights]
    update_many([sketch for sketch, _ in parts], keys, weights)
    for (_, tally), weight in zip(parts, weights, strict=True):
        tally.add(_tally(batch.num_rows, weight))


def _tally(tuples: int, weights: np.ndarray | None) -> Tally:
    if weights is None:
        return Tally(tuples, float(tuples), 0)
    return Tally(tuples, float(np.abs(weights.astype(np.float64)).sum()), int((weights < 0).sum()))


def _part(row: dict[str, Any], spec: ConvolutionSpec) -> ConvolutionSketch:
    """The partial sketch in one row of what the tasks sent."""
    counters = np.frombuffer(row["counters"], np.dtype(spec.dtype).newbyteorder("<"))
    state = {"counters": counters.astype(spec.dtype).reshape(spec.shape)}
    return ConvolutionSketch.from_state(spec, state)


def _explained(fault: Exception, plan: Plan, scan: Scan) -> SkimqlError:
    """Spark's complaint with the table, the keys, and what to install where a worker lacks a library."""
    text = str(fault)
    if "ModuleNotFoundError" in text:
        missing = text.split("No module named", 1)[-1].strip().splitlines()[0].strip(" '\"")
        return EnvironmentFault(
            f"a Spark worker's Python lacks {missing}",
            "SKIMQL_WORKER_PYTHON",
            hint="start Spark with PYSPARK_PYTHON set to the Python that runs SkimQL; see skimql doctor",
        )
    if isinstance(fault, OverflowError) or "\nOverflowError: " in text:
        return DataError(
            f"a sum over {scan.table} leaves 64 bits",
            "SKIMQL_OVERFLOW",
            plan.query.sql,
            hint="SUM(CAST(... AS DOUBLE))",
        )
    # An error that our own code raised in a worker stands on a line of its own at the end of a traceback.
    own = [x.split(": ", 1)[1] for x in text.splitlines() if x.startswith("ValueError: ")]
    said = own[-1] if own else first_line(fault)
    keys = {
        f"{key} as {kind}"
        for i in scan.synopses
        for a in plan.synopses[i].attributes
        for key, kind in zip(a.keys, a.key_types, strict=True)
    }
    compared = f"; its join keys: {', '.join(sorted(keys))}" if keys else ""
    return DataError(f"scan of {scan.table} failed: {said}{compared}", "SKIMQL_SCAN_FAILED", plan.query.sql)
