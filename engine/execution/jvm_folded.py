"""Sketches from one grouping in Spark: fine buckets, and sums of signed weights, folded into rows afterwards.

Signs of tuples that only count are packed three to a BIGINT; where a fine bucket holds too many tuples for the fields,
Spark's ``try_sum`` gives NULL, and a second pass sums the signs of just these buckets one by one. Several keys of one
table share the scan: Spark expands a tuple into one row for each, and their number goes into spare bits of the word.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ...optimizer.route import set_bits
from ...sketches.hashing.spark_families import FIELD_BITS, FIELDS, Folded
from ...sketches.hashing.xi import WORD_BITS
from ...sketches.joins.folding import fold, packed_sums, unpack
from ...sketches.joins.sparse import SparseFirstSketch
from .jvm_measures import Measure, Pass, all_if_set, hash_word, joining, only_joining, tally_of

MOST_BUCKETS_NAMED = 2000  # in a filter on the second pass; beyond, it sums all buckets

Run = Callable[[DataFrame], pa.Table]
Sums = NDArray[np.int64] | NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class FoldedScan:
    """One scan whose sketches are of the family `Folded`.

    Parameters
    ----------
    columns : DataFrame
        As `PreparedScan.columns`.
    measures : sequence of Measure
        All with keys.
    run : callable
        Runs a DataFrame and collects it.
    """

    columns: DataFrame
    measures: Sequence[Measure]
    run: Run

    def passes(self) -> dict[int, Pass]:
        """The sketch and tally of every synopsis.

        Raises
        ------
        OverflowError
            If a sum or counter leaves 64 bits.
        ValueError
            If a weight is not finite.
        """
        words = self._words()
        aggregates = [c for n, m in enumerate(self.measures) for c in self._sums(n, m)]
        table = self.run(words.groupBy(self._group.alias("group")).agg(*aggregates))
        groups = _integers(table, "group")
        hot = [n for n, m in enumerate(self.measures) if m.counts and table[f"{n}s0"].null_count]
        wide = self._wide(words, groups, table, hot) if hot else None
        return {m.synopsis: self._pass(n, m, groups, table, wide) for n, m in enumerate(self.measures)}

    @property
    def _family(self) -> Folded:
        family = self.measures[0].spec.families[0]
        assert isinstance(family, Folded), "chosen by the plan"
        return family

    @property
    def _key_sets(self) -> list[tuple[str, ...]]:
        return list(dict.fromkeys(m.keys for m in self.measures))

    @property
    def _rows(self) -> int:
        return max(m.spec.rows for m in self.measures)

    @property
    def _set_place(self) -> int:
        """Lowest bit of the number of the key set, below the fine bucket."""
        return WORD_BITS - self._family.fine_bits - set_bits(len(self._key_sets))

    @property
    def _group(self) -> Column:
        return F.shiftrightunsigned(F.col("w0"), self._set_place)

    def _words(self) -> DataFrame:
        """The hash words ``w0``, ``w1``, … of every tuple (for each key set) beside masks and weights."""
        kept = [F.col(c) for c in dict.fromkeys(c for m in self.measures for c in (m.mask, m.weight) if c)]
        count = 1 + max(word for word, _ in self._places())
        if len(self._key_sets) == 1:
            keys = self._key_sets[0]
            words = [self._word(keys, w).alias(f"w{w}") for w in range(count)]
            return only_joining(self.columns, keys).select(*words, *kept)
        assert count == 1, "the plan makes sure that one word is enough"
        numbered = [
            F.when(joining(keys), self._numbered(keys, number)).alias(f"k{number}")
            for number, keys in enumerate(self._key_sets)
        ]
        words = [F.col(f"k{number}") for number in range(len(numbered))]
        wide = self.columns.select(*kept, *numbered).unpivot(tuple(kept), tuple(words), "set", "w0")
        return wide.where(F.col("w0").isNotNull()).select("w0", *kept)

    def _word(self, keys: tuple[str, ...], number: int) -> Column:
        families = next(m.spec.families for m in self.measures if m.keys == keys)
        return hash_word([f.word_seeds(number + 1)[number] for f in families if isinstance(f, Folded)], keys)

    def _numbered(self, keys: tuple[str, ...], number: int) -> Column:
        """The first word with the number of its key set in place of bits that nothing else reads."""
        mask = (1 << set_bits(len(self._key_sets))) - 1
        cleared = self._word(keys, 0).bitwiseAND(F.lit(~(mask << self._set_place)))
        return cleared.bitwiseOR(F.lit(number << self._set_place))

    def _places(self) -> list[tuple[int, int]]:
        return [self._family.sign_place(r) for r in range(self._rows)]

    def _sums(self, number: int, measure: Measure) -> list[Column]:
        if measure.counts:
            packed = [measure.only_counted(c) for c in _packed(self._places()[: measure.spec.rows])]
            sums = [F.try_sum(c).alias(f"{number}s{i}") for i, c in enumerate(reversed(packed))]
            # Without a mask the number of tuples is among the packed fields.
            return sums + (measure.tally_columns(f"{number}") if measure.presence else [])
        value = measure.value
        negative = [_if_set(value, *place, measure) for place in self._places()[: measure.spec.rows]]
        add = F.sum if measure.spec.dtype == "float64" else F.try_sum
        sums = [add(c).alias(f"{number}s{i}") for i, c in enumerate([value, *negative])]
        return sums + measure.tally_columns(f"{number}")

    def _wide(
        self, words: DataFrame, groups: NDArray[np.int64], table: pa.Table, hot: Sequence[int]
    ) -> pa.Table:
        """Counts, one by one, of the signs in the groups whose packed sums have overflowed."""
        full = np.zeros(len(groups), dtype=bool)
        for number in hot:
            full |= table[f"{number}s0"].combine_chunks().is_null().to_numpy(zero_copy_only=False)
        if full.sum() <= MOST_BUCKETS_NAMED:
            words = words.where(self._group.isin(groups[full].tolist()))
        counts = []
        for number in hot:
            measure = self.measures[number]
            for i, (word, bit) in enumerate(self._places()[: measure.spec.rows]):
                negative = F.shiftright(F.col(f"w{word}"), bit).bitwiseAND(F.lit(1))
                counts.append(F.sum(measure.only_counted(negative)).alias(f"{number}n{i}"))
            counts.append(F.sum(measure.only_counted(F.lit(1))).alias(f"{number}t"))
        return self.run(words.groupBy(self._group.alias("group")).agg(*counts))

    def _pass(
        self, number: int, measure: Measure, groups: NDArray[np.int64], table: pa.Table, wide: pa.Table | None
    ) -> Pass:
        bits = set_bits(len(self._key_sets))
        own = (groups & ((1 << bits) - 1)) == self._key_sets.index(measure.keys)
        sums, tuples = self._sign_sums(number, measure, table, own)
        if measure.counts and wide is not None and f"{number}t" in wide.column_names:
            _replace(sums, tuples, groups[own], wide, number)
        fine, family = groups[own] >> bits, self._family
        whole = np.zeros((measure.spec.rows, 1 << family.fine_bits), dtype=sums.dtype)
        whole[:, fine] = sums
        dense = fold(measure.spec, whole)
        sketch = SparseFirstSketch.from_state(measure.spec, dense.state(), measure.sketch.empty().limit_bytes)
        tally = self._tally(number, measure, table, own, tuples)
        filled = int((tuples > 0).sum())
        return Pass(sketch, tally, _distinct(filled, 1 << family.fine_bits))

    def _sign_sums(
        self, number: int, measure: Measure, table: pa.Table, own: NDArray[np.bool_]
    ) -> tuple[Sums, NDArray[np.int64]]:
        """Signed sums of each row and group, and the tuples of each group; packed ones may have overflowed."""
        rows = measure.spec.rows
        if measure.counts:
            stacked = [_integers(table, f"{number}s{i}")[own] for i in range(packed_sums(rows))]
            return unpack(np.stack(stacked[::-1]), rows)
        tuples = _integers(table, f"{number}tuples")[own]
        names = [f"{number}s{i}" for i in range(rows + 1)]
        if any(table[name].null_count for name in names):
            raise OverflowError("a sum of weights")
        total, *negative = (table[name].to_numpy()[own] for name in names)
        if measure.spec.dtype == "int64" and not _small(table[f"{number}mass"].to_numpy()[own]):
            raise OverflowError("a sum of weights")
        return np.stack([total - 2 * part for part in negative]), tuples

    def _tally(
        self, number: int, measure: Measure, table: pa.Table, own: NDArray[np.bool_], tuples: NDArray[Any]
    ) -> Any:
        counted = int(tuples.sum())
        if measure.weight is None:
            return tally_of(counted, float(counted), 0)
        within = int(_integers(table, f"{number}tuples")[own].sum())
        if measure.presence:
            return tally_of(within, float(counted), 0)
        mass = float(table[f"{number}mass"].to_numpy()[own].sum())
        negative = int(_integers(table, f"{number}negative")[own].sum())
        slack = 0.0 if measure.slack is None else float(table[f"{number}slack"].to_numpy()[own].sum())
        return tally_of(within, mass, negative, slack)


def _packed(places: Sequence[tuple[int, int]]) -> list[Column]:
    """Signs three to a BIGINT, and a 1 in the highest field of the last, see `folding.unpack`."""
    packed = []
    for i in range(packed_sums(len(places))):
        signs = places[FIELDS * i : FIELDS * (i + 1)]
        fields = sum(1 << (FIELD_BITS * j) for j in range(len(signs)))
        last = i == packed_sums(len(places)) - 1
        column = F.lit(0).cast("bigint")
        if signs:
            word, bit = signs[0]
            column = F.shiftright(F.col(f"w{word}"), bit).bitwiseAND(F.lit(fields).cast("bigint"))
        if last:
            column = column.bitwiseOR(F.lit(1 << (FIELD_BITS * (FIELDS - 1))))
        packed.append(column)
    return packed


def _if_set(value: Column, word: int, bit: int, measure: Measure) -> Column:
    """The weight where the sign is negative, else 0."""
    if measure.spec.dtype == "float64":
        negative = F.shiftright(F.col(f"w{word}"), bit).bitwiseAND(F.lit(1)) == 1
        return F.when(negative, value).otherwise(0.0)
    return value.bitwiseAND(all_if_set(F.col(f"w{word}"), bit))


def _replace(
    sums: Sums, tuples: NDArray[np.int64], groups: NDArray[np.int64], wide: pa.Table, number: int
) -> None:
    """Put the counts of the second pass in the place of packed ones."""
    order = np.argsort(groups, kind="stable")
    again = _integers(wide, "group")
    place = np.searchsorted(groups, again, sorter=order)
    known = place < len(groups)
    known[known] = groups[order[place[known]]] == again[known]
    at = order[place[known]]
    tuples[at] = _integers(wide, f"{number}t")[known]
    for row in range(len(sums)):
        sums[row, at] = tuples[at] - 2 * _integers(wide, f"{number}n{row}")[known]


def _integers(table: pa.Table, name: str) -> NDArray[np.int64]:
    column = table[name].combine_chunks()
    return np.asarray(column.fill_null(0).to_numpy(zero_copy_only=False), dtype=np.int64)


def _small(masses: NDArray[np.float64]) -> bool:
    """Whether sums of weights cannot have wrapped."""
    return not len(masses) or float(masses.max()) < float(1 << 62)


def _distinct(filled: int, buckets: int) -> float:
    """Estimate of the number of keys that fill so many of the buckets (linear counting)."""
    return math.inf if filled == buckets else buckets * math.log(buckets / (buckets - filled))
