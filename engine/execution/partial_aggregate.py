"""What one Spark task does: Arrow batches of 64-bit integers in, its partial sketches out, as rows.

Runs in Spark's Python workers; nothing here needs Spark itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...errors import UnsupportedQuery
from ...optimizer.distinct_count import LEVELS
from ...optimizer.domain_partition import DomainPartition
from ...optimizer.methods import KEY_SAMPLE, LEVEL, PAIRS, SAMPLE_SKETCH
from ...optimizer.plan import Synopsis
from ...sketches.distinct.level import LevelSpec
from ...sketches.distinct.pair_sample import PairSampleSpec
from ...sketches.hashing.xi import derive_seed, make_family
from ...sketches.joins.agms import AgmsSpec
from ...sketches.joins.convolution import ConvolutionSpec
from ...sketches.joins.heavy_keys import METHOD as HEAVY_KEYS
from ...sketches.joins.heavy_keys import HeavyKeysSpec
from ...sketches.samples.key_sample import KeySampleSpec
from ...sketches.samples.sample_sketch import SampleSketchSpec
from ..synopses import Tally
from .feeds import Feed as Feed
from .feeds import Partial as Partial
from .feeds import SketchPlan as SketchPlan
from .feeds import cut as cut
from .feeds import feed_batch as feed_batch
from .feeds import feed_together as feed_together
from .feeds import joining as joining
from .feeds import together as together

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


def task(
    plans: Mapping[int, SketchPlan], feeds: Iterable[Feed]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for `mapInArrow`: sketches by number, fed with every batch, sent as rows of `PARTIAL_SCHEMA`."""

    def partials(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        started = time.process_time()
        parts = {i: Partial.empty(plan) for i, plan in plans.items()}
        sharing = together(feeds, plans)
        for batch in batches:
            for own in sharing:
                feed_together(batch, own, parts)
        for i, part in parts.items():
            if part.tally.tuples:
                spent, started = time.process_time() - started, time.process_time()
                yield _row(i, part, spent)

    return partials


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
    if synopsis.method in (KEY_SAMPLE, SAMPLE_SKETCH):
        if dtype != "int64":
            raise no_doubles(str(synopsis.weight.expression))
        # The hash of a kept key sample of the class: both keep the same keys.
        sampled = families[0].derive("key sample")
        if synopsis.method == KEY_SAMPLE:
            return SketchPlan(KeySampleSpec(sampled, synopsis.buckets))
        return SketchPlan(SampleSketchSpec(sampled, synopsis.buckets, len(families)))
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
