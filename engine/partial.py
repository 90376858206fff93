"""What one Spark task does: Arrow batches of 64-bit integers in, its partial sketches out, as rows.

Runs in Spark's Python workers; nothing here needs Spark itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..sketches.accumulate import Weights
from ..sketches.convolution import ConvolutionSpec
from ..sketches.sparse import SparseFirstSketch, update_sparse_first

# One row per partial sketch; its arrays as little-endian bytes: counters, or the keys and weights of an exact map.
PARTIAL_SCHEMA = (
    "synopsis INT, tuples BIGINT, mass DOUBLE, negative BIGINT, counters BINARY, keys BINARY, weights BINARY"
)
# The hash family of every sketch that is built.
FAMILY = "tabulation"

_ARRAYS = ("counters", "keys", "weights")
_ARROW_SCHEMA = pa.schema(
    [
        ("synopsis", pa.int32()),
        ("tuples", pa.int64()),
        ("mass", pa.float64()),
        ("negative", pa.int64()),
        *((name, pa.binary()) for name in _ARRAYS),
    ]
)


@dataclass(frozen=True, slots=True)
class SketchPlan:
    """One sketch to build: its spec, and whether it may start as an exact map."""

    spec: ConvolutionSpec
    sparse: bool = True

    def empty(self) -> SparseFirstSketch[ConvolutionSpec]:
        """A sketch of no tuples."""
        return SparseFirstSketch(self.spec, None if self.sparse else 0)


@dataclass(frozen=True, slots=True)
class Feed:
    """How a batch feeds the sketches of one virtual relation with one set of attributes.

    `mask` (BOOLEAN), `keys` (BIGINT, one per attribute) and `weights` (BIGINT or DOUBLE, one per synopsis) are
    column names; None stands for every tuple, and for a weight of 1. With `group` (BIGINT, the name of a column of
    group numbers) the sketches differ from group to group: `members` has them by group number, `synopses` none.
    """

    mask: str | None
    keys: tuple[str, ...]
    weights: tuple[str | None, ...]
    synopses: tuple[int, ...]
    group: str | None = None
    members: tuple[tuple[int, ...], ...] = ()


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
class Partial:
    """A sketch of some of the tuples, and their tally."""

    sketch: SparseFirstSketch[ConvolutionSpec]
    tally: Tally

    @classmethod
    def empty(cls, plan: SketchPlan) -> Partial:
        """Of no tuples."""
        return cls(plan.empty(), Tally())

    def merge(self, other: Partial) -> None:
        """Add the tuples of `other`; OverflowError if a counter could leave 64 bits."""
        self.sketch.merge(other.sketch)
        self.tally.add(other.tally)


@dataclass(frozen=True, slots=True)
class Built:
    """A finished sketch, its tally, and the factor that made its weights integers (1 but for DECIMAL)."""

    sketch: SparseFirstSketch[ConvolutionSpec]
    tally: Tally
    scale: float


def task(
    plans: Mapping[int, SketchPlan], feeds: Iterable[Feed]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for `mapInArrow`: sketches by number, fed with every batch, sent as rows of `PARTIAL_SCHEMA`."""

    def partials(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        parts = {i: Partial.empty(plan) for i, plan in plans.items()}
        for batch in batches:
            for feed in feeds:
                for synopses, tuples in _joining(batch, feed):
                    _update(tuples, feed, [parts[i] for i in synopses])
        for i, part in parts.items():
            if part.tally.tuples:
                yield _row(i, part)

    return partials


def received(row: Mapping[str, Any], plan: SketchPlan) -> Partial:
    """The partial sketch in one row of what a task sent."""
    spec = plan.spec
    if row["counters"] is not None:
        state = {"counters": _array(row["counters"], spec.dtype).reshape(spec.shape)}
    else:
        weights = _array(row["weights"], spec.dtype)
        keys = _array(row["keys"], "int64").reshape(len(weights), len(spec.families))
        state = {"keys": keys, "weights": weights}
    sketch = SparseFirstSketch.from_state(spec, state, None if plan.sparse else 0)
    return Partial(sketch, Tally(row["tuples"], row["mass"], row["negative"]))


def _array(data: bytes, dtype: str) -> NDArray[Any]:
    return np.frombuffer(data, np.dtype(dtype).newbyteorder("<")).astype(dtype)


def _row(synopsis: int, part: Partial) -> pa.RecordBatch:
    state = part.sketch.state()
    arrays = [
        state[name].astype(state[name].dtype.newbyteorder("<")).tobytes() if name in state else None
        for name in _ARRAYS
    ]
    values = [synopsis, part.tally.tuples, part.tally.mass, part.tally.negative, *arrays]
    return pa.RecordBatch.from_arrays(
        [pa.array([v], f.type) for v, f in zip(values, _ARROW_SCHEMA, strict=True)], schema=_ARROW_SCHEMA
    )


def _joining(batch: pa.RecordBatch, feed: Feed) -> Iterator[tuple[tuple[int, ...], pa.RecordBatch]]:
    """The tuples of a batch that count, with the sketches that they go to; tuples with a NULL key never join."""
    import pyarrow.compute as pc  # late: a reader of kept sketches does without

    kept: pa.BooleanArray | None = batch.column(feed.mask) if feed.mask else None
    for name in feed.keys:
        column = batch.column(name)
        if column.null_count:
            kept = column.is_valid() if kept is None else pc.and_(kept, column.is_valid())
    if kept is not None:
        batch = batch.filter(kept)
    if feed.group is None:
        parts = [(feed.synopses, batch)]
    else:
        parts = [(feed.members[g], tuples) for g, tuples in _by_group(batch, feed.group)]
    yield from (part for part in parts if part[1].num_rows)


def _by_group(batch: pa.RecordBatch, column: str) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The batch cut into its groups, each a slice of the batch sorted once; no number, no group."""
    batch = batch.filter(batch.column(column).is_valid())
    numbers = batch.column(column).to_numpy()
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
    update_sparse_first([part.sketch for part in parts], keys, weights)
    for part, weight in zip(parts, weights, strict=True):
        part.tally.add(_tally(batch.num_rows, weight))


def _tally(tuples: int, weights: Weights | None) -> Tally:
    if weights is None:
        return Tally(tuples, float(tuples), 0)
    return Tally(tuples, float(np.abs(weights.astype(np.float64)).sum()), int((weights < 0).sum()))
