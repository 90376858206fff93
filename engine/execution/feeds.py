"""Feeding sketches with Arrow batches of 64-bit integers: which tuples count, for what, in which sketch.

Runs in Spark's Python workers; nothing here needs Spark itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...optimizer.domain_partition import DomainPartition
from ...sketches.distinct.level import LevelSpec
from ...sketches.distinct.pair_sample import PairSampleSpec
from ...sketches.distinct.sparse_level import SparseLevelSketch
from ...sketches.distinct.sparse_pairs import SparsePairSample
from ...sketches.joins.accumulate import Weights
from ...sketches.joins.agms import AgmsSpec
from ...sketches.joins.convolution import ConvolutionSpec
from ...sketches.joins.heavy_keys import HeavyKeys, HeavyKeysSpec
from ...sketches.joins.sparse import SparseFirstSketch, update_sparse_first
from ...sketches.samples.key_sample import BatchSample, KeySampleSpec
from ...sketches.samples.sample_sketch import BatchSampleSketch, SampleSketchSpec
from ..synopses import Sketch, Tally


@dataclass(frozen=True, slots=True)
class SketchPlan:
    """One sketch to build: its spec, and whether it may start as an exact map."""

    spec: (
        ConvolutionSpec
        | AgmsSpec
        | LevelSpec
        | PairSampleSpec
        | HeavyKeysSpec
        | KeySampleSpec
        | SampleSketchSpec
    )
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
            case SampleSketchSpec():
                return _known(BatchSampleSketch(self.spec))
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
            case SampleSketchSpec():
                return _known(BatchSampleSketch.from_state(self.spec, state))
            case _:
                return SparseFirstSketch.from_state(self.spec, state, self._limit)

    @property
    def _limit(self) -> int | None:
        return None if self.sparse else 0


def _known(sketch: Any) -> Sketch:
    """What is no sketch of the others' kind: candidates for dense keys, which are never kept, and samples."""
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


def feed_batch(batch: pa.RecordBatch, feed: Feed, parts: Mapping[int, Partial]) -> None:
    """Add the tuples of a batch that count to the partial sketches that they go to."""
    for synopses, tuples in _joining(batch, feed):
        _update(tuples, [_Fed(feed, None, [parts[i] for i in synopses])])


def together(feeds: Iterable[Feed], plans: Mapping[int, SketchPlan]) -> tuple[tuple[Feed, ...], ...]:
    """Feeds whose sketches share their hashes, whatever their filters: of the same keys and one layout.

    Those of groups and cells stand alone.
    """
    found: dict[object, list[Feed]] = {}
    for number, feed in enumerate(feeds):
        layout = {getattr(plans[i].spec, "layout", None): None for i in feed.synopses}
        alone = number if feed.group is not None or feed.partitions else None
        found.setdefault((feed.keys, next((own for own in layout if own), None), alone), []).append(feed)
    return tuple(map(tuple, found.values()))


def feed_together(batch: pa.RecordBatch, feeds: Sequence[Feed], parts: Mapping[int, Partial]) -> None:
    """Add the tuples of a batch to the sketches of feeds of the same keys, hashing each key once.

    A tuple that a feed leaves out weighs nothing in its sketches.
    """
    if len(feeds) == 1:
        feed_batch(batch, feeds[0], parts)
        return
    kept: NDArray[np.bool_] | None = None
    for name in feeds[0].keys:
        if batch.column(name).null_count:
            there = batch.column(name).is_valid().to_numpy(zero_copy_only=False)
            kept = there if kept is None else kept & there
    masks = {f.mask: _true(batch.column(f.mask)) for f in feeds if f.mask is not None}
    if all(f.mask is not None for f in feeds):
        any_of = np.logical_or.reduce(list(masks.values()))
        kept = any_of if kept is None else kept & any_of
    if kept is not None and not kept.all():
        needed = {n for f in feeds for n in (*f.keys, *f.weights, *f.slacks) if n is not None}
        batch = batch.select(sorted(needed)).filter(pa.array(kept))
        masks = {name: mask[kept] for name, mask in masks.items()}
    if batch.num_rows:
        _update(
            batch, [_Fed(f, masks[f.mask] if f.mask else None, [parts[i] for i in f.synopses]) for f in feeds]
        )


def _true(column: pa.BooleanArray) -> NDArray[np.bool_]:
    """Where a column is true; not where it is NULL."""
    return np.asarray(column.fill_null(False).to_numpy(zero_copy_only=False))


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


@dataclass(frozen=True, slots=True)
class _Fed:
    """A feed with its sketches, and which tuples of a batch it takes; None for all."""

    feed: Feed
    mask: NDArray[np.bool_] | None
    parts: list[Partial]


def _update(batch: pa.RecordBatch, fed: Sequence[_Fed]) -> None:
    """Add tuples to the sketches of feeds that share their keys."""
    keys = [batch.column(name).to_numpy() for name in fed[0].feed.keys]
    linear: list[tuple[SparseFirstSketch[Any], Weights | None]] = []
    seen: list[Weights] = []
    for own in fed:
        tuples = batch.num_rows if own.mask is None else int(own.mask.sum())
        if not tuples:
            continue
        weights = {
            name: _once(_weights(batch, name, own, bool(keys)), seen)
            for name in dict.fromkeys(own.feed.weights)
        }
        tallies = {name: _tally(tuples, weight) for name, weight in weights.items()}
        for part, name in zip(own.parts, own.feed.weights, strict=True):
            weight = weights[name]
            if isinstance(part.sketch, SparseFirstSketch):
                linear.append((part.sketch, weight))
            else:
                other: Any = part.sketch
                inside = slice(None) if own.mask is None else own.mask
                taken = [k[inside] for k in keys]
                # A sample of combinations takes them as one.
                given = [taken] if isinstance(other, BatchSampleSketch) else taken
                other.update(*given, weights=None if weight is None else weight[inside])
            part.tally.add(tallies[name])
        for part, name in zip(own.parts, own.feed.slacks, strict=bool(own.feed.slacks)):
            if name is not None:
                slack = batch.column(name).to_numpy()
                part.tally.slack += float((slack if own.mask is None else slack[own.mask]).sum())
    update_sparse_first([sketch for sketch, _ in linear], keys, [w for _, w in linear])


def _weights(batch: pa.RecordBatch, name: str | None, own: _Fed, keyed: bool) -> Weights | None:
    """The weight of every tuple, 0 of those that a feed does not take; None for ones."""
    if name is None:
        if own.mask is not None:
            return own.mask.astype(np.int64)
        # A total has no keys that would tell how many tuples there are.
        return None if keyed else np.ones(batch.num_rows, dtype=np.int64)
    weights: Weights = batch.column(name).to_numpy()
    return weights if own.mask is None else np.where(own.mask, weights, weights.dtype.type(0))


def _once(weights: Weights | None, seen: list[Weights]) -> Weights | None:
    """The array before that is equal, which is then summed once for all: whether a value is there is often always."""
    if weights is None:
        return None
    for other in seen:
        alike = other.dtype == weights.dtype and np.array_equal(other[:64], weights[:64])
        if alike and np.array_equal(other, weights):
            return other
    seen.append(weights)
    return weights


def _tally(tuples: int, weights: Weights | None) -> Tally:
    if weights is None:
        return Tally(tuples, float(tuples), 0)
    with np.errstate(over="ignore"):  # told by `Tally.add`
        mass = float(np.abs(weights.astype(np.float64)).sum())
    return Tally(tuples, mass, int((weights < 0).sum()))
