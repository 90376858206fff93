"""One pass over a table for a kept sketch of any kind: all weights, all groups, insertions and deletions.

Python workers keep the synopses of their tuples and send their arrays, and the driver adds them up. Integer
counters are the same bits whatever the partitions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...errors import DataError, UnsupportedQuery
from ...optimizer.plan import Weight
from ...optimizer.route import TABULATION
from ...sketches.hashing.xi import Family, derive_seed, make_family
from ..catalog.form import Groups, Head
from ..catalog.kinds.kind import Size
from ..catalog.kinds.registry import KINDS
from ..catalog.texts import as_text, has_texts
from ..execution.partial_aggregate import PARTIAL_SCHEMA, arrays_in, cut, sent_row, tally_in
from ..spark.worker import in_worker
from ..synopses import Built, Tally

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from ..sources.weights import WeightColumn
    from ..spark.jobs import ProgressListener

# The number of a tuple's group, as it travels.
GROUP = "group"
GROUP_WAY_OUT = "GROUP BY an expression of another type: CAST(... AS STRING)"


# The synopses of one group, and a tally for each weight.
Parts = tuple[list[Any], list[Tally]]


class Weighing(Protocol):
    """A weight as a backend computes it."""

    @property
    def dtype(self) -> str:
        """int64 or float64."""

    @property
    def counts(self) -> bool:
        """Whether every tuple weighs 1."""


@dataclass(frozen=True, slots=True)
class Source:
    """The tuples that a sketch takes: a DataFrame, which of them, and how often each counts (None: once)."""

    name: str
    frame: DataFrame
    condition: str | None = None
    times: str | None = None


@dataclass(frozen=True, slots=True)
class Work:
    """What a worker does: columns of its batches, and the synopses that they feed."""

    method: str
    sizes: tuple[Size, ...]
    keys: tuple[str, ...]
    weights: tuple[str | None, ...]
    grouped: bool
    dense: NDArray[np.int64] | None = None

    def empty(self) -> Parts:
        """The synopses of a group without tuples, and a tally for each weight."""
        kind = KINDS[self.method]
        return [kind.empty(size, self.dense) for size in self.sizes], [Tally() for _ in self.weights]


def families_of(seed: int, classes: Iterable[str]) -> tuple[Family, ...]:
    """The hash families of join classes, as every sketch of a seed has them."""
    return tuple(make_family(TABULATION, derive_seed(seed, name)) for name in classes)


def built_on(
    spark: SparkSession,
    sql: str,
    head: Head,
    source: Source,
    most_groups: int,
    listener: ProgressListener | None = None,
    dense: NDArray[np.int64] | None = None,
) -> tuple[Groups | None, tuple[Built, ...]]:
    """The synopses of a head over a source: its groups, and for each a synopsis for each weight.

    Parameters
    ----------
    spark : SparkSession
    sql : str
        The statement, for errors.
    head : Head
        With types, families and sizes known.
    source : Source
        Its condition is the filter of the head, and what the statement asks beside.
    most_groups : int
    listener : ProgressListener, optional
    dense : ndarray of int64, optional
        The keys that a sketch of two levels counts exactly.

    Raises
    ------
    DataError
        If Spark fails on a value, or a counter overflows.
    UnsupportedQuery
        ``SKIMQL_WEIGHT_TYPE`` for a weight of a type that the kind does not keep; if Spark refuses an expression.
    BudgetExceeded
        If there are more groups than `most_groups`.
    """
    from ..execution.build import MOST_SENT_BYTES
    from ..sources.files import partitions
    from ..spark.arrow_batches import large_batches
    from ..spark.jobs import run_job
    from ..spark.session import SPARK_FAULTS
    from ..spark.shipping import ship

    weights = weights_of(source, head.weights, sql)
    refuse_doubles(head, weights, sql)
    groups, frame = _grouped(spark, sql, head, source, most_groups, listener)
    work = work_of(head, weights, dense)
    state = sum(head.kind.most_bytes(s) for s in work.sizes) * (1 if groups is None else len(groups.values))
    sent = partitions(source.frame)
    ship(spark)
    try:
        rows = _columns(frame, head, source, weights).mapInArrow(in_worker(task(work)), PARTIAL_SCHEMA)
        if state * sent > MOST_SENT_BYTES:
            rows = rows.repartition(math.isqrt(sent)).mapInArrow(in_worker(merging(work)), PARTIAL_SCHEMA)
        with large_batches(spark):
            table = run_job(spark, f"scan {source.name}", rows.toArrow, listener)
        wholes = added(work, table.to_pylist())
    except (*SPARK_FAULTS, OverflowError, ValueError) as fault:
        from ..execution.explanation import explanation

        raise explanation(fault, sql, source.name, head.attributes) from fault
    return groups, finished(work, groups, wholes, [w.scale for w in weights])


def work_of(head: Head, weights: Sequence[Weighing], dense: NDArray[np.int64] | None) -> Work:
    """What a worker does for a head, with columns of these weights."""
    sizes = tuple(
        replace(head.size(replace(m, dtype=w.dtype)), limit_bytes=None if head.limit_bytes else 0)
        for m, w in zip(head.measures[: head.synopses], weights, strict=False)
    )
    keys = tuple(f"key{n}" for n in range(len(head.attributes)))
    names = tuple(None if w.counts else f"weight{n}" for n, w in enumerate(weights))
    return Work(head.method, sizes, keys, names, head.groups is not None, dense)


def finished(
    work: Work, groups: Groups | None, wholes: Mapping[int, Parts], scales: Sequence[float]
) -> tuple[Built, ...]:
    """The synopses of each group, one for each weight, from what tasks sent."""
    kind, built = KINDS[work.method], []
    for group in range(1 if groups is None else len(groups.values)):
        synopses, tallies = wholes.get(group) or work.empty()
        for number, (tally, scale) in enumerate(zip(tallies, scales, strict=True)):
            built.append(Built(synopses[0 if kind.joint else number], tally, scale))
    return tuple(built)


def weights_of(source: Source, weights: Sequence[Weight], sql: str) -> list[WeightColumn]:
    """The weight of a tuple in each measure, times how often it counts."""
    from ..sources.weights import WeightColumn, product, weight_column

    factors = [] if source.times is None else [WeightColumn(_times(source, sql), "int64")]
    return [product([weight_column(source.frame, w, sql), *factors]) for w in weights]


def task(work: Work) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for `mapInArrow`: the synopses of every batch, sent as rows of `PARTIAL_SCHEMA`."""

    def partials(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found: dict[int, Parts] = {}
        for batch in batches:
            tuples = _joining(batch, work)
            parts = cut(tuples, tuples.column(GROUP).to_numpy()) if work.grouped else [(0, tuples)]
            for group, own in parts:
                if own.num_rows:
                    if group not in found:
                        found[group] = work.empty()
                    _update(work, found[group], own)
        yield from _rows(work, found)

    return partials


def merging(work: Work) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for `mapInArrow` over what tasks sent: their synopses added up."""

    def merged(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from _rows(work, added(work, (row for batch in batches for row in batch.to_pylist())))

    return merged


def _joining(batch: pa.RecordBatch, work: Work) -> pa.RecordBatch:
    """The tuples that count: those with a key, and with a group where there are groups."""
    import pyarrow.compute as pc

    for name in (*work.keys, *([GROUP] if work.grouped else [])):
        if batch.column(name).null_count:
            batch = batch.filter(pc.is_valid(batch.column(name)))
    return batch


def _update(work: Work, found: Parts, tuples: pa.RecordBatch) -> None:
    synopses, tallies = found
    keys = [tuples.column(name).to_numpy() for name in work.keys]
    # A total has no keys that would tell how many tuples there are.
    ones = None if keys else np.ones(tuples.num_rows, np.int64)
    weights = [ones if name is None else tuples.column(name).to_numpy() for name in work.weights]
    KINDS[work.method].update(synopses, keys, weights)
    times = weights[0]
    counted = tuples.num_rows if times is None else _total(times)
    for tally, weight in zip(tallies, weights, strict=True):
        if weight is None:
            tally.add(Tally(counted, float(tuples.num_rows), 0))
        else:
            mass = float(np.abs(weight.astype(np.float64)).sum())
            tally.add(Tally(counted, mass, int((weight < 0).sum())))


def _total(times: NDArray[Any]) -> int:
    """How often tuples count together; OverflowError if that leaves int64."""
    total = int(times.sum())
    # What has wrapped around is off by a multiple of 2**64.
    if abs(float(times.sum(dtype=np.float64)) - total) > 2.0**63:
        raise OverflowError("the number of tuples leaves int64")
    return total


def _rows(work: Work, found: dict[int, Parts]) -> Iterator[pa.RecordBatch]:
    kind = KINDS[work.method]
    for group, (synopses, tallies) in found.items():
        for number, tally in enumerate(tallies):
            arrays = kind.arrays(synopses[number]) if number < len(synopses) else {}
            yield sent_row(group * len(tallies) + number, tally, arrays)


def added(work: Work, rows: Iterable[dict[str, Any]]) -> dict[int, Parts]:
    """The synopses of each group from the rows that tasks sent."""
    kind = KINDS[work.method]
    found: dict[int, Parts] = {}
    for row in rows:
        group, number = divmod(row["synopsis"], len(work.weights))
        if group not in found:
            found[group] = work.empty()
        synopses, tallies = found[group]
        tallies[number].add(tally_in(row))
        if number < len(synopses):
            synopses[number].merge(kind.restored(work.sizes[number], arrays_in(row)))
    return found


def _columns(frame: DataFrame, head: Head, source: Source, weights: Sequence[WeightColumn]) -> DataFrame:
    """What travels to the workers, of the tuples that the source takes."""
    from pyspark.sql import functions as F

    from ..execution.partial_aggregate import group_column
    from ..sources.filters import filtered
    from ..sources.keys import key_column

    materialized = filtered(frame, [source.condition])
    columns = [key_column(a).alias(f"key{n}") for n, a in enumerate(head.attributes)]
    columns += [w.column.alias(f"weight{n}") for n, w in enumerate(weights) if w.column is not None]
    if head.groups is not None:
        columns.append(F.col(f"`{group_column(0)}`").alias(GROUP))
    # Where only tuples are counted no column is needed, but rows must travel.
    return materialized.select(*(columns or [F.lit(1).alias("one")]))


def _grouped(
    spark: SparkSession,
    sql: str,
    head: Head,
    source: Source,
    most_groups: int,
    listener: ProgressListener | None,
) -> tuple[Groups | None, DataFrame]:
    """The groups of a source, and its tuples with the number of their group."""
    if head.groups is None:
        return None, source.frame
    from ..execution.grouping import Statement, numbered
    from .definition import OneFrame

    expressions = head.groups.expressions
    statement = Statement(sql, (0, len(sql)), GROUP_WAY_OUT, "GROUP BY something coarser")
    listed = numbered(
        spark,
        OneFrame(source.name, source.frame),
        source.name,
        [source.condition],
        expressions,
        expressions,
        most_groups,
        statement,
        listener,
    )
    return as_groups(expressions, listed.types, listed.values, sql), listed.joined(source.frame)


def as_groups(
    expressions: tuple[str, ...], types: tuple[str, ...], values: Sequence[tuple[Any, ...]], sql: str
) -> Groups:
    """Groups as the catalog keeps them.

    Raises
    ------
    UnsupportedQuery
        ``SKIMQL_GROUP_TYPE`` for values that it does not keep.
    """
    for name, kind in zip(expressions, types, strict=True):
        if not has_texts(kind):
            raise UnsupportedQuery(
                f"values of {name}, of type {kind}, are not kept",
                "SKIMQL_GROUP_TYPE",
                sql,
                hint=GROUP_WAY_OUT,
            )
    try:
        texts = tuple(tuple(as_text(v, k) for v, k in zip(row, types, strict=True)) for row in values)
    except ValueError as fault:
        raise UnsupportedQuery(str(fault), "SKIMQL_GROUP_TYPE", sql, hint=GROUP_WAY_OUT) from fault
    return Groups(expressions, types, texts, ())


def _times(source: Source, sql: str) -> str:
    """How often each tuple counts, as BIGINT; a NULL as not at all."""
    from ..spark.session import SPARK_FAULTS, first_line

    try:
        kind = source.frame.selectExpr(f"({source.times})").schema.fields[0].dataType.simpleString()
    except SPARK_FAULTS as fault:
        raise UnsupportedQuery(
            f"Spark refuses the weight {source.times}: {first_line(fault)}", "SKIMQL_BAD_ARGUMENT", sql
        ) from fault
    if kind not in ("tinyint", "smallint", "int", "bigint"):
        raise UnsupportedQuery(
            f"the weight {source.times} is of type {kind}: a tuple counts a whole number of times",
            "SKIMQL_WEIGHT_TYPE",
            sql,
            hint="WEIGHT CAST(... AS BIGINT)",
        )
    return f"coalesce(CAST(({source.times}) AS BIGINT), 0L)"


def refuse_doubles(head: Head, weights: Sequence[Weighing], sql: str) -> None:
    """Refuse weights of a type that the kind does not keep."""
    way_out = "FOR SUM(CAST(... AS DECIMAL(18,2))), or USING hash"
    if head.made_by == "cache":
        way_out = "SUM(CAST(... AS DECIMAL(18,2))), or another method"
    for weight, column in zip(head.weights, weights, strict=True):
        if column.dtype != "int64" and not head.kind.doubles:
            raise UnsupportedQuery(
                f"a {head.method} sketch keeps integers and decimals of up to 18 digits, and"
                f" {weight.expression} is neither",
                "SKIMQL_WEIGHT_TYPE",
                sql,
                hint=way_out,
            )


def merged(old: Sequence[Built], new: Sequence[Built], head: Head, sql: str) -> tuple[Built, ...]:
    """The synopses of both together, as new values; of one kind, size and grouping.

    Raises
    ------
    DataError
        If they are of other types or dense keys, or a sum leaves 64 bits.
    ValueError
        If absolute weights add up to more than a DOUBLE holds.
    """
    joint = head.kind.joint
    found: list[Built] = []
    for number, (mine, theirs) in enumerate(zip(old, new, strict=True)):
        if mine.scale != theirs.scale or mine.sketch.spec != theirs.sketch.spec:
            raise DataError(
                f"the summed values are not of the type of those in sketch {head.name}",
                "SKIMQL_OTHER_TYPE",
                sql,
                hint="a view that casts them",
            )
        tally = replace(mine.tally)
        try:
            tally.add(theirs.tally)
        except OverflowError as fault:
            raise _overflow(head, sql) from fault
        if joint and number % len(head.measures):
            found.append(Built(found[-1].sketch, tally, mine.scale))
            continue
        sketch: Any = mine.sketch.copy()
        try:
            sketch.merge(theirs.sketch)
        except OverflowError as fault:
            raise _overflow(head, sql) from fault
        found.append(Built(sketch, tally, mine.scale))
    return tuple(found)


def _overflow(head: Head, sql: str) -> DataError:
    return DataError(f"a sum in sketch {head.name} leaves 64 bits", "SKIMQL_OVERFLOW", sql)


def aligned(
    groups: Groups | None, built: Sequence[Built], values: Sequence[tuple[str | None, ...]], head: Head
) -> tuple[Built, ...]:
    """The synopses of some groups in the order of `values`; of groups that are not there those of no tuples."""
    if groups is None:
        return tuple(built)
    each = len(head.measures)
    at = {v: n * each for n, v in enumerate(groups.values)}
    found: list[Built] = []
    for value in values:
        if value in at:
            found += built[at[value] : at[value] + each]
        else:
            found += _nothing(head, built)
    return tuple(found)


def _nothing(head: Head, like: Sequence[Built]) -> list[Built]:
    """The synopses of a group without tuples."""
    dense = like[0].sketch.dense_keys if like and hasattr(like[0].sketch, "dense_keys") else None
    limit = None if head.limit_bytes else 0
    synopses = [
        head.kind.empty(replace(head.size(m), limit_bytes=limit), dense)
        for m in head.measures[: head.synopses]
    ]
    return [
        Built(synopses[0 if head.kind.joint else n], Tally(), m.scale) for n, m in enumerate(head.measures)
    ]
