"""The scans of a sampled plan on Arrow tables: the keys that Spark's scans sample, each table one partition."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ...errors import BudgetExceeded
from ...optimizer.operators import SAMPLE
from ...optimizer.plan import Message, Plan, Sample, ValueDraw, Weight
from ...sketches.samples.sampled_hash import HASH_BITS, draw_family, sample_family, value_family
from ..execution.sample_join import DEFAULT_LIMIT_BYTES, SampleJoin, sample_join
from ..execution.sample_rows import LOOKED_AT, SAMPLED, VALUED, Floats, Ints, Rows, rows_of
from ..execution.sample_tree import SampleTree
from ..observed import Observation, observed
from ..sources.ordered_keys import key_counts
from ..sources.ranges import Range
from .build import explained
from .relations import Relation, Relations
from .tables import MemoryTables


def run_sample(
    plan: Plan,
    tables: MemoryTables,
    limit_bytes: int = DEFAULT_LIMIT_BYTES,
    groups: Collection[int] = (),
) -> dict[tuple[int, ...], SampleJoin]:
    """Evaluate a plan with a sample; see `execution.sample_join.run_sample`.

    Raises
    ------
    BudgetExceeded
        If what a table sends takes more than `limit_bytes`.
    UnsupportedQuery
        If an expression is not known in memory.
    DataError
        If a value cannot be computed.
    """
    return sample_join(plan, lambda plan, terms: MemoryScans(plan, terms, tables, limit_bytes, groups))


# A column beside those of the user's table: the place of a tuple among those behind the filter.
NUMBER = "skimql number"


@dataclass(frozen=True, slots=True)
class _Sampled:
    """Which tuples are read: shares of the keys and of the tuples, keys that are read in any case, draws of values.

    No tuple is drawn, for its value neither, where `row_rate` is 0: of a sample of its dense keys alone.
    """

    class_name: str
    rate: float
    dense: tuple[int, ...]
    row_rate: float
    draw: int
    values: tuple[tuple[int, ValueDraw], ...] = ()


class MemoryScans(SampleTree):
    """The scans of one plan on Arrow tables.

    Notes
    -----
    The number of a tuple, which decides whether it is looked at by itself, counts those behind the filter in their
    order: that of Spark's ``monotonically_increasing_id`` in one partition.
    """

    def __init__(
        self,
        plan: Plan,
        terms: Sequence[tuple[int, ...]],
        tables: MemoryTables,
        limit_bytes: int,
        groups: Collection[int] = (),
    ) -> None:
        super().__init__(plan, terms, [math.inf] * len(plan.vertices), groups)
        self._relations = Relations(plan, tables)
        self._limit, self._sent_bytes = limit_bytes, 0

    @property
    def nbytes(self) -> int:
        """See `SampleTree.nbytes`."""
        return self._sent_bytes + self._relations.nbytes

    def _sampled(self, sample: Sample, number: int) -> _Sampled | None:
        if sample.rate == 1.0:
            return None
        row_rate = sample.row_rates[number] if sample.row_rates else 0.0
        values = tuple((n, d) for n, d in enumerate(sample.value_draws) if d.member == number)
        draw = self.draw(sample, number)
        return _Sampled(sample.class_name, sample.rate, sample.dense, row_rate, draw, values)

    def _scan(
        self,
        vertex: int,
        positions: Sequence[int],
        kept: object,
        among: Ints | None,
        also: Ints | None,
        tuples: float,
    ) -> Rows:
        own = [self._plan.synopses[t[vertex]] for t in self._terms]
        with explained(self._plan.query.sql, own[0].table), observed(SAMPLE, self._named(vertex)) as seen:
            before, sampled = self._sent_bytes, kept if isinstance(kept, _Sampled) else None
            rows = self._read(vertex, positions, sampled, among, also, seen)
            seen.bytes_held = self._sent_bytes - before
            return rows

    def _column_range(self, table: str, column: str, condition: str | None) -> Range:
        kept = None if condition is None else self._relations.tuples(table, condition)
        return self._relations.tables.column_range(table, column, kept)

    def _message_range(self, message: Message) -> tuple[float, float]:
        return self._relations.weight_range(message)

    def _most_tuples(self, vertex: int, position: int) -> float:
        relation = self._plan.synopses[self._terms[0][vertex]]
        tuples = self._relations.tuples(relation.table, relation.filter)
        keys = self._relations.keys(relation.attributes[position], tuples).drop_null()
        return float(np.unique(keys.to_numpy(), return_counts=True)[1].max(initial=0))

    def heavy_keys(self, vertex: int, position: int, most: float) -> tuple[Ints, float]:
        """See `SampleTree.heavy_keys`."""
        relation = self._plan.synopses[self._terms[0][vertex]]
        tuples = self._relations.tuples(relation.table, None)
        keys = self._relations.keys(relation.attributes[position], tuples).drop_null()
        runs = np.unique(keys.to_numpy(), return_counts=True)
        return key_counts(iter([(runs[0].astype(np.int64), runs[1].astype(np.int64))])).above(most)

    def _pays(self, tuples: float, among: Ints) -> bool:
        return True

    def _read(
        self,
        vertex: int,
        positions: Sequence[int],
        passing: _Sampled | None,
        among: Ints | None,
        also: Ints | None,
        seen: Observation,
    ) -> Rows:
        own = [self._plan.synopses[t[vertex]] for t in self._terms]
        first = own[0]
        relation = Relation(self._relations.tuples(first.table, first.filter))
        keys = self._keys(vertex, positions, relation.tuples)
        why = self._why(keys[0], passing)
        sizes = self._values(relation.tuples, passing, why)
        if among is not None:
            why[~np.isin(keys[0].fill_null(0).to_numpy(), among)] &= ~SAMPLED
        if also is not None:
            why[np.isin(keys[0].fill_null(0).to_numpy(), also)] |= SAMPLED
        known = why > 0
        for key in keys:
            known &= key.is_valid().to_numpy(zero_copy_only=False)
        numbered = relation.tuples.append_column(NUMBER, pa.array(np.arange(len(why))))
        relation = self._relations.joined(Relation(numbered).filtered(known), [s.messages for s in own])
        numbers = relation.tuples[NUMBER].to_numpy()
        why, keys = why[numbers], [k.take(pa.array(numbers)) for k in keys]
        seen.rows = len(why)
        weights = {}
        for synopsis in dict.fromkeys(own):
            found = self._relations.weights(synopsis.weight, synopsis.messages, relation)
            values = np.ones(len(why), np.int64) if found.values is None else found.values
            weights[synopsis] = values, found.scale
        rows = rows_of(why, keys, weights, own, sizes={n: s[numbers] for n, s in sizes.items()})
        most = self._limit // (8 * (2 + len(keys) + len(weights)))
        if rows.keys.shape[1] > most:
            raise BudgetExceeded(
                f"the sampled keys of {first.table} take more than {self._limit:,} bytes",
                sql=self._plan.query.sql,
                hint="a smaller SIZE, or a larger skimql.max_bytes",
            )
        self._sent_bytes += rows.keys.nbytes + 8 * len(weights) * rows.keys.shape[1]
        return rows

    def _keys(self, vertex: int, positions: Sequence[int], tuples: pa.Table) -> list[pa.Array]:
        """The keys of some tuples, and the numbers of their groups where the vertex is grouped."""
        own = self._plan.synopses[self._terms[0][vertex]]
        keys = [self._relations.keys(own.attributes[p], tuples) for p in positions]
        if vertex in self._groups:
            keys.append(tuples[self._groups[vertex]].combine_chunks())
        return keys

    def _why(self, keys: pa.Array, passing: _Sampled | None) -> Ints:
        """The bits `SAMPLED` and `LOOKED_AT` of every tuple."""
        if passing is None:
            return np.full(len(keys), SAMPLED, np.int64)
        values = keys.fill_null(0).to_numpy()
        sampled = np.zeros(len(values), bool)
        if passing.rate:
            family = sample_family(self._plan.seed, passing.class_name)
            sampled |= family.values(values, 1, HASH_BITS)[0] < np.uint64(_below(passing.rate))
        sampled |= np.isin(values, np.array(passing.dense, np.int64))
        sampled &= keys.is_valid().to_numpy(zero_copy_only=False)
        found = np.where(sampled, SAMPLED, 0)
        if passing.row_rate:
            family = draw_family(self._plan.seed, passing.class_name, passing.draw)
            numbers = np.arange(len(values), dtype=np.int64)
            drawn = family.values(numbers, 1, HASH_BITS)[0] < np.uint64(_below(passing.row_rate))
            found[drawn] |= LOOKED_AT
        return found

    def _values(self, tuples: pa.Table, passing: _Sampled | None, why: Ints) -> dict[int, Floats]:
        """The absolute values by draw; those that are drawn have it in `why`."""
        sizes: dict[int, Floats] = {}
        if passing is None or not passing.row_rate:
            return sizes
        for number, draw in passing.values:
            found = self._relations.tables.weights(Weight(draw.expression), tuples, self._plan.query.sql)
            values = np.zeros(len(why)) if found.values is None else np.abs(found.values / found.scale)
            family = value_family(self._plan.seed, passing.class_name, number)
            hashes = family.values(np.arange(len(why), dtype=np.int64), 1, HASH_BITS)[0].astype(np.float64)
            # What is not a number is never below anything.
            large = ~(values < draw.least)
            below = np.minimum(values, draw.unit) / draw.unit * (1 << HASH_BITS)
            why[large & ~(hashes >= below)] |= VALUED << number
            sizes[number] = values
        return sizes


def _below(rate: float) -> int:
    return max(1, round(rate * (1 << HASH_BITS)))
