"""What one Spark task does: Arrow batches of 64-bit integers in, its partial sketches out, as rows.

Runs in Spark's Python workers; nothing here needs Spark itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...errors import UnsupportedQuery
from ...optimizer.distinct_count import LEVELS
from ...optimizer.domain_partition import DomainPartition
from ...optimizer.methods import KEY_SAMPLE, LEVEL, PAIRS
from ...optimizer.plan import Synopsis
from ...sketches.distinct.level import LevelSpec
from ...sketches.distinct.pair_sample import PairSampleSpec
from ...sketches.distinct.sparse_level import SparseLevelSketch
from ...sketches.distinct.sparse_pairs import SparsePairSample
from ...sketches.hashing.xi import derive_seed, make_family
from ...sketches.joins.accumulate import Weights
from ...sketches.joins.agms import AgmsSpec
from ...sketches.joins.convolution import ConvolutionSpec
from ...sketches.joins.heavy_keys import METHOD as HEAVY_KEYS
from ...sketches.joins.heavy_keys import HeavyKeys, HeavyKeysSpec
from ...sketches.joins.sparse import SparseFirstSketch, update_sparse_first
from ...sketches.samples.key_sample import BatchSample, KeySampleSpec
from ..synopses import Sketch, Tally

# One row per partial sketch: the arrays of its state by name, as little-endian bytes, and the CPU seconds that its task
# took since the row before.
PARTIAL_SCHEMA = (
    "synopsis INT, tuples BIGINT, mass DOUBLE, negative BIGINT, slack DOUBLE, cpu DOUBLE, "
    "arrays ARRAY<STRUCT<name: STRING, dtype: STRING, shape: ARRAY<BIGINT>, data: BINARY>>"
)


# The longest DECIMAL that is summed as an integer.
LONGEST_INTEGER_DECIMAL = 18

# Keys of a stream's hash sketch that may be dense: 8 bytes each.
MOST_HEAVY = 256


def group_column(vertex: int) -> str:
    """The column with the number of a tuple's group, which a query that groups a vertex adds to the vertex's table."""
    return f"skimql group {vertex}"


_ARROW_SCHEMA = pa.schema(
    [
        ("synopsis", pa.int32()),
        ("tuples", pa.int64()),
        ("mass", pa.float64()),
        ("negative", pa.int64()),
        ("slack", pa.float64()),
        ("cpu", pa.float64()),
        (
            "arrays",
            pa.list_(
                pa.struct(
                    [
                        ("name", pa.string()),
                        ("dtype", pa.string()),
                        ("shape", pa.list_(pa.int64())),
                        ("data", pa.binary()),
                    ]
                )
            ),
        ),
    ]
)


@dataclass(frozen=True, slots=True)
class SketchPlan:
    """One sketch to build: its spec, and whether it may start as an exact map."""

    spec: ConvolutionSpec | AgmsSpec | LevelSpec | PairSampleSpec | HeavyKeysSpec | KeySampleSpec
    sparse: bool = True

    def empty(self) -> Sketch:
        """A sketch of no tuples."""
        match self.spec:
            case LevelSpec():
                return SparseLevelSketch(self.spec, self._limit)
            case PairSampleSpec():
                return SparsePairSample(self.spec, self._limit)
            case HeavyKeysSpec():
                return _known(self.spec.empty())
            case KeySampleSpec():
                return _known(BatchSample(self.spec))
            case _:
                return SparseFirstSketch(self.spec, self._limit)

    def restored(self, state: Mapping[str, NDArray[Any]]) -> Sketch:
        """The sketch of that state."""
        match self.spec:
            case LevelSpec():
                return SparseLevelSketch.from_state(self.spec, state, self._limit)
            case PairSampleSpec():
                return SparsePairSample.from_state(self.spec, state, self._limit)
            case HeavyKeysSpec():
                return _known(HeavyKeys.from_state(self.spec, state))
            case KeySampleSpec():
                return _known(BatchSample.from_state(self.spec, state))
            case _:
                return SparseFirstSketch.from_state(self.spec, state, self._limit)

    @property
    def _limit(self) -> int | None:
        return None if self.sparse else 0


def _known(sketch: Any) -> Sketch:
    """What is no sketch of the others' kind: candidates for dense keys, which are never kept, and key samples."""
    kept: Sketch = sketch
    return kept


@dataclass(frozen=True, slots=True)
class Feed:
    """How a batch feeds the sketches of one virtual relation with one set of attributes.

    `mask` (BOOLEAN), `keys` (BIGINT, one per attribute) and `weights` (BIGINT or DOUBLE, one per synopsis) are
    column names; None stands for every tuple, and for a weight of 1. With `group` (BIGINT, the name of a column of
    group numbers) the sketches differ from group to group: `members` has them by group number, `synopses` none.
    With `partitions` (one for each key, None where its domain is whole) they differ from cell to cell, by its number
    in C order over the parts. `slacks` (DOUBLE, one per synopsis) say how far rounding may have moved the weights;
    None, or none at all, where these are as they stand in the data.
    """

    mask: str | None
    keys: tuple[str, ...]
    weights: tuple[str | None, ...]
    synopses: tuple[int, ...]
    group: str | None = None
    members: tuple[tuple[int, ...], ...] = ()
    partitions: tuple[DomainPartition | None, ...] = ()
    slacks: tuple[str | None, ...] = ()


@dataclass(frozen=True, slots=True)
class Partial:
    """A sketch of some of the tuples, and their tally."""

    sketch: Sketch
    tally: Tally

    @classmethod
    def empty(cls, plan: SketchPlan) -> Partial:
        """Of no tuples."""
        return cls(plan.empty(), Tally())

    def merge(self, other: Partial) -> None:
        """Add the tuples of `other`; OverflowError if a counter could leave 64 bits."""
        self.sketch.merge(other.sketch)  # type: ignore[arg-type]  # one plan made both
        self.tally.add(other.tally)


def task(
    plans: Mapping[int, SketchPlan], feeds: Iterable[Feed]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for `mapInArrow`: sketches by number, fed with every batch, sent as rows of `PARTIAL_SCHEMA`."""

    def partials(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        started = time.process_time()
        parts = {i: Partial.empty(plan) for i, plan in plans.items()}
        for batch in batches:
            for feed in feeds:
                feed_batch(batch, feed, parts)
        for i, part in parts.items():
            if part.tally.tuples:
                spent, started = time.process_time() - started, time.process_time()
                yield _row(i, part, spent)

    return partials


def feed_batch(batch: pa.RecordBatch, feed: Feed, parts: Mapping[int, Partial]) -> None:
    """Add the tuples of a batch that count to the partial sketches that they go to."""
    for synopses, tuples in _joining(batch, feed):
        _update(tuples, feed, [parts[i] for i in synopses])


def merging(
    plans: Mapping[int, SketchPlan],
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for `mapInArrow` over what tasks sent: one row for each synopsis, its partial sketches added up."""

    def merged(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        started, before = time.process_time(), 0.0
        wholes: dict[int, Partial] = {}
        for row in (row for batch in batches for row in batch.to_pylist()):
            i = row["synopsis"]
            wholes.setdefault(i, Partial.empty(plans[i])).merge(received(row, plans[i]))
            before += row["cpu"]
        for i, whole in wholes.items():
            spent, started = time.process_time() - started, time.process_time()
            yield _row(i, whole, before + spent)
            before = 0.0

    return merged


def received(row: Mapping[str, Any], plan: SketchPlan) -> Partial:
    """The partial sketch in one row of what a task sent."""
    return Partial(plan.restored(arrays_in(row)), tally_in(row))


def arrays_in(row: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """The arrays in one row of what a task sent."""
    return {a["name"]: _array(a["data"], a["dtype"]).reshape(a["shape"]) for a in row["arrays"]}


def tally_in(row: Mapping[str, Any]) -> Tally:
    """The tally in one row of what a task sent."""
    return Tally(row["tuples"], row["mass"], row["negative"], row["slack"])


def _array(data: bytes, dtype: str) -> NDArray[Any]:
    return np.frombuffer(data, np.dtype(dtype).newbyteorder("<")).astype(dtype)


def _row(synopsis: int, part: Partial, cpu: float) -> pa.RecordBatch:
    return sent_row(synopsis, part.tally, part.sketch.state(), cpu)


def sent_row(
    synopsis: int, tally: Tally, state: Mapping[str, NDArray[Any]], cpu: float = 0.0
) -> pa.RecordBatch:
    """A row of `PARTIAL_SCHEMA`: the number of a synopsis, its tally, its arrays, CPU seconds since the row before."""
    arrays = [
        {
            "name": name,
            "dtype": array.dtype.name,
            "shape": list(array.shape),
            "data": array.astype(array.dtype.newbyteorder("<")).tobytes(),
        }
        for name, array in state.items()
    ]
    values = [synopsis, tally.tuples, tally.mass, tally.negative, tally.slack, cpu, arrays]
    return pa.RecordBatch.from_arrays(
        [pa.array([v], f.type) for v, f in zip(values, _ARROW_SCHEMA, strict=True)], schema=_ARROW_SCHEMA
    )


def joining(batch: pa.RecordBatch, feed: Feed) -> pa.RecordBatch:
    """The tuples of a batch that count; those with a NULL key never join, those without a group are in none."""
    import pyarrow.compute as pc  # late: a reader of kept sketches does without

    kept: pa.BooleanArray | None = batch.column(feed.mask) if feed.mask else None
    needed = (feed.mask, *feed.keys, *feed.weights, *feed.slacks, feed.group)
    read = [n for n in dict.fromkeys(needed) if n is not None]
    if read and len(read) < batch.num_columns:
        batch = batch.select(read)
    for name in (*feed.keys, *([] if feed.group is None else [feed.group])):
        column = batch.column(name)
        if column.null_count:
            kept = column.is_valid() if kept is None else pc.and_(kept, column.is_valid())
    return batch if kept is None else batch.filter(kept)


def _joining(batch: pa.RecordBatch, feed: Feed) -> Iterator[tuple[tuple[int, ...], pa.RecordBatch]]:
    """The tuples of a batch that count, with the sketches that they go to."""
    batch = joining(batch, feed)
    if feed.group is not None:
        parts = cut(batch, batch.column(feed.group).to_numpy())
    elif feed.partitions:
        parts = cut(batch, _cells(batch, feed))
    else:
        parts = iter([(0, batch)])
    for number, tuples in parts:
        if tuples.num_rows:
            yield feed.members[number] if feed.members else feed.synopses, tuples


def _cells(batch: pa.RecordBatch, feed: Feed) -> NDArray[np.int64]:
    """The cell of every tuple: the parts that its keys lie in, as one number."""
    numbers = np.zeros(batch.num_rows, np.int64)
    for name, partition in zip(feed.keys, feed.partitions, strict=True):
        if partition is not None:
            numbers = numbers * partition.count + partition.part_of(batch.column(name).to_numpy())
    return numbers


def cut(batch: pa.RecordBatch, numbers: NDArray[np.int64]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The tuples of each number, each a slice of the batch sorted once."""
    if not batch.num_rows:
        return
    order = np.argsort(numbers, kind="stable")
    batch = batch.take(pa.array(order))
    groups, starts = np.unique(numbers[order], return_index=True)
    ends = [*starts[1:].tolist(), batch.num_rows]
    for group, start, end in zip(groups.tolist(), starts.tolist(), ends, strict=True):
        yield group, batch.slice(start, end - start)


def _update(batch: pa.RecordBatch, feed: Feed, parts: list[Partial]) -> None:
    """Add tuples to the sketches of one virtual relation."""
    keys = [batch.column(name).to_numpy() for name in feed.keys]
    # A total has no keys that would tell how many tuples there are.
    ones = None if keys else np.ones(batch.num_rows, dtype=np.int64)
    weights = [ones if name is None else batch.column(name).to_numpy() for name in feed.weights]
    linear = [
        (p.sketch, w) for p, w in zip(parts, weights, strict=True) if isinstance(p.sketch, SparseFirstSketch)
    ]
    update_sparse_first([sketch for sketch, _ in linear], keys, [w for _, w in linear])
    for part, weight in zip(parts, weights, strict=True):
        if not isinstance(part.sketch, SparseFirstSketch):
            update: Callable[..., None] = part.sketch.update
            update(*keys, weights=weight)
    for part, weight in zip(parts, weights, strict=True):
        part.tally.add(_tally(batch.num_rows, weight))
    for part, name in zip(parts, feed.slacks, strict=bool(feed.slacks)):
        if name is not None:
            part.tally.slack += float(batch.column(name).to_numpy().sum())


def _tally(tuples: int, weights: Weights | None) -> Tally:
    if weights is None:
        return Tally(tuples, float(tuples), 0)
    with np.errstate(over="ignore"):  # told by `Tally.add`
        mass = float(np.abs(weights.astype(np.float64)).sum())
    return Tally(tuples, mass, int((weights < 0).sum()))


def cell_number(synopsis: Synopsis, domains: Mapping[str, DomainPartition]) -> int:
    """The number of a synopsis's cell, in C order over the parts of its attributes."""
    number = 0
    for attribute, part in zip(synopsis.attributes, synopsis.cell, strict=bool(synopsis.cell)):
        if attribute.class_name in domains:
            number = number * domains[attribute.class_name].count + part
    return number


def sketch_plan(
    synopsis: Synopsis, seed: int, dtype: str, family: str = "tabulation", **parameters: int
) -> SketchPlan:
    """The sketch of a planned synopsis: one family per attribute, given by the seed and the join class."""
    families = tuple(
        make_family(family, derive_seed(seed, a.class_name), **parameters) for a in synopsis.attributes
    )
    if synopsis.method == LEVEL:
        spec = LevelSpec(families[0].derive(LEVEL), synopsis.buckets, synopsis.rows)
        return SketchPlan(spec, synopsis.sparse)
    if synopsis.method == PAIRS:
        sample = PairSampleSpec(families[0].derive(PAIRS), synopsis.rows, synopsis.buckets, LEVELS)
        return SketchPlan(sample, synopsis.sparse)
    if synopsis.method == HEAVY_KEYS:
        return SketchPlan(HeavyKeysSpec(MOST_HEAVY))
    if synopsis.method == KEY_SAMPLE:
        if dtype != "int64":
            raise no_doubles(str(synopsis.weight.expression))
        # The hash of a kept key sample of the class: both keep the same keys.
        return SketchPlan(KeySampleSpec(families[0].derive("key sample"), synopsis.buckets))
    if synopsis.method == "agms":
        return SketchPlan(AgmsSpec(families, synopsis.buckets, synopsis.rows, dtype), synopsis.sparse)
    return SketchPlan(ConvolutionSpec(families, synopsis.rows, synopsis.buckets, dtype), synopsis.sparse)


def no_doubles(expression: str, sql: str = "", span: tuple[int, int] | None = None) -> UnsupportedQuery:
    """The refusal of a sum of doubles on a key sample, whose weights are integers."""
    return UnsupportedQuery(
        f"a key sample has no sums of DOUBLE ({expression})",
        "SKIMQL_UNKNOWN_METHOD",
        sql,
        span,
        "SUM(CAST(... AS DECIMAL(18, 4))), or no USING",
    )
