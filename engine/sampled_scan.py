"""The scans of a sampled plan: the tables of the sampled class, and what hangs from them in the join tree.

Spark filters a table of the class by the hash of the key before anything else, and groups what is left by the keys to
which more tables are joined. Each table beyond is then scanned once, filtered by the keys that got that far.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from ..errors import BudgetExceeded
from ..optimizer.plan import Plan, Sample
from ..sketches.xi import XxHash64, derive_seed
from .jobs import ProgressListener, run_job
from .keys import key_column
from .messages import Messages
from .tables import Frames
from .weights import product, total, weight_column

HASH_BITS = 40

# The key of the sampled class, among the columns of the user's table.
KEY = "`skimql key 0`"
WHY = "skimql why"
DRAWN = "skimql drawn"
WANTED = "skimql wanted"

# Why a tuple was read: its key is in the sample, or it was looked at by itself.
SAMPLED, LOOKED_AT = 0, 1

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def sample_family(seed: int, class_name: str) -> XxHash64:
    """The hash that decides which keys of a class are sampled: the same in Spark and in numpy.

    Its seed is eight letters: XXH64 does not tell eight bytes of text from a BIGINT, and Spark compiles text as a
    parameter, so that another seed needs no new code.
    """
    digits = f"{derive_seed(seed, f'sample {class_name}'):016x}"[-8:]
    return XxHash64(int.from_bytes(digits.encode("ascii"), "little"))


def seed_text(family: XxHash64) -> str:
    """The letters of a seed of `sample_family`."""
    return family.seed.to_bytes(8, "little").decode("ascii")


@dataclass(frozen=True, slots=True)
class Grouped:
    """Total weights by key: keys int64 (n,), ascending and distinct; weights float64 (terms, n)."""

    keys: Ints
    weights: Floats


@dataclass(frozen=True, slots=True)
class Hits:
    """Keys among the tuples looked at, sampled or not: int64 (n,), ascending, and how often each was met."""

    keys: Ints
    counts: Ints


@dataclass(frozen=True, slots=True)
class _Rows:
    """What a scan sent: keys at several positions, int64 (positions, n), weights float64 (terms, n), and hits."""

    keys: Ints
    weights: Floats
    hits: Hits


class _Kept(Protocol):
    """Which tuples of a scan are read."""

    @property
    def why(self) -> Column:
        """`SAMPLED` or `LOOKED_AT`, of a tuple that is read."""

    @property
    def hits(self) -> Column:
        """The aggregate that counts the tuples looked at by themselves."""

    def where(self, frame: DataFrame) -> DataFrame:
        """The tuples that are read."""


class SampleScans:
    """The scans of one plan, with one sample or, after another, with its dense keys alone.

    Parameters
    ----------
    spark, plan, tables, listener
        As for `maintain.build`.
    terms : sequence of tuples of int
        The synopses of each term of the plan.
    limit_bytes : int
        Bytes that what one table sends may take.
    """

    def __init__(
        self,
        spark: SparkSession,
        plan: Plan,
        terms: Sequence[tuple[int, ...]],
        tables: Frames,
        listener: ProgressListener | None,
        limit_bytes: int,
    ) -> None:
        self._spark, self._plan, self._terms, self._tables = spark, plan, terms, tables
        self._listener, self._limit = listener, limit_bytes
        self._messages = Messages(spark, plan, tables, listener)
        self._scanned: dict[object, _Rows] = {}
        self._sent_bytes = 0

    @property
    def nbytes(self) -> int:
        """Bytes of all that was sent, exact messages too."""
        return self._sent_bytes + self._messages.nbytes

    def member(self, sample: Sample, number: int, among: Ints | None = None) -> tuple[Grouped, Hits]:
        """One table of the sampled class by the class's key, with everything that hangs from it.

        Parameters
        ----------
        sample : Sample
        number : int
            Which of its members.
        among : ndarray of int64, shape (n,), optional
            The only keys that are wanted: those that the members before have.

        Raises
        ------
        BudgetExceeded
            If a table sends more than the limit.
        """
        vertex, position = sample.members[number]
        sampled = _Sampled.of(sample, number, self._plan.seed)
        kept: _Kept = sampled
        if among is not None:
            kept = _SampledAmong(sampled, _Among(self._spark, among))
        return self._grouped(vertex, position, kept, sample.edges)

    def edges(self, vertex: int) -> list[tuple[int, int, tuple[int, int]]]:
        """The edges at a vertex: number, own position, and vertex and position at the other end."""
        found = []
        for number, e in enumerate(self._plan.edges):
            if e.left == vertex:
                found.append((number, e.left_position, (e.right, e.right_position)))
            elif e.right == vertex:
                found.append((number, e.right_position, (e.left, e.left_position)))
        return found

    def _grouped(self, vertex: int, position: int, kept: _Kept, above: Sequence[int]) -> tuple[Grouped, Hits]:
        """The subtree of a vertex, away from the edges `above`, as weights by one of its attributes."""
        below = [(e, own, other) for e, own, other in self.edges(vertex) if e not in above]
        positions = (position, *(own for _, own, _ in below))
        # A self-join reads one sample twice, the second time with keys that are not wanted.
        own = tuple(t[vertex] for t in self._terms)
        whole = (positions, own, kept.sampled if isinstance(kept, _SampledAmong) else kept)
        asked = whole if whole in self._scanned else (positions, own, kept)
        if asked not in self._scanned:
            self._scanned[asked] = self._scan(vertex, positions, kept)
        rows = self._scanned[asked]
        keys, weights = rows.keys, rows.weights
        for column, (edge, _, (other, at)) in enumerate(below, 1):
            wanted, where = np.unique(keys[column], return_inverse=True)
            sent, _ = self._grouped(other, at, _Among(self._spark, wanted), [edge])
            found = np.isin(wanted, sent.keys)
            every = np.zeros((len(self._terms), len(wanted)))
            every[:, found] = sent.weights[:, np.searchsorted(sent.keys, wanted[found])]
            weights = (weights * every[:, where])[:, found[where]]
            keys = keys[:, found[where]]
        distinct, which = np.unique(keys[0], return_inverse=True)
        sums = [np.bincount(which, w, len(distinct)) for w in weights]
        return Grouped(
            distinct, np.array(sums, np.float64).reshape(len(self._terms), len(distinct))
        ), rows.hits

    def _scan(self, vertex: int, positions: Sequence[int], kept: _Kept) -> _Rows:
        own = [self._plan.synopses[t[vertex]] for t in self._terms]
        relation = own[0]
        frame = self._tables.frame(relation.table)
        if relation.filter is not None:
            frame = frame.where(relation.filter)
        # The sample first: neither weights nor messages are looked at for what it leaves out.
        names = [f"skimql key {n}" for n in range(len(positions))]
        frame = frame.withColumns(
            {name: key_column(relation.attributes[p]) for name, p in zip(names, positions, strict=True)}
        )
        frame = kept.where(frame)
        for name in names:
            frame = frame.where(F.col(name).isNotNull())
        frame, _ = self._messages.joined(frame, [s.messages for s in own])
        weights = {
            s: product(
                [weight_column(frame, s.weight, self._plan.query.sql), *self._messages.weights(s.messages)]
            )
            for s in dict.fromkeys(own)
        }
        why = kept.why
        # Of a tuple looked at by itself only the first key is asked.
        groups = [F.col(n) if n == names[0] else F.when(why == SAMPLED, F.col(n)).alias(n) for n in names]
        sums = [total(w).alias(f"s{n}") for n, w in enumerate(weights.values())]
        most = self._limit // (8 * (1 + len(names) + len(sums)))
        grouped = frame.groupBy(why.alias("why"), *groups).agg(kept.hits.alias("hits"), *sums).limit(most + 1)
        sent = run_job(self._spark, f"sample of {relation.table}", grouped.toArrow, self._listener)
        if sent.num_rows > most:
            raise BudgetExceeded(
                f"the sampled keys of {relation.table} take more than {self._limit:,} bytes",
                sql=self._plan.query.sql,
                hint="a smaller SIZE, or a larger skimql.max_bytes",
            )
        self._sent_bytes += 8 * (len(names) + len(sums)) * sent.num_rows
        sampled = np.asarray(sent["why"]) == SAMPLED
        hits = _hits(np.asarray(sent["skimql key 0"], np.int64), np.asarray(sent["hits"], np.int64))
        sent = sent.filter(pa.array(sampled))
        at = {s: n for n, s in enumerate(weights)}
        arrays = [np.asarray(sent[f"s{n}"]) / w.scale for n, w in enumerate(weights.values())]
        return _Rows(
            np.array([np.asarray(sent[n]) for n in names], np.int64).reshape(len(names), -1),
            np.array([arrays[at[s]] for s in own], np.float64).reshape(len(own), -1),
            hits,
        )


@dataclass(frozen=True, slots=True)
class _Sampled:
    """The tuples of a table of the sampled class: by hash, dense keys, and some looked at one by one."""

    family: XxHash64
    rate: float
    dense: tuple[int, ...]
    row_rate: float

    @classmethod
    def of(cls, sample: Sample, number: int, seed: int) -> _Sampled:
        row_rate = sample.row_rates[number] if sample.row_rates else 0.0
        return cls(sample_family(seed, sample.class_name), sample.rate, sample.dense, row_rate)

    @property
    def why(self) -> Column:
        return F.col(WHY) if self.row_rate and self.rate < 1.0 else F.lit(SAMPLED)

    @property
    def hits(self) -> Column:
        return F.count_if(F.col(DRAWN)) if self.row_rate and self.rate < 1.0 else F.lit(0)

    def where(self, frame: DataFrame) -> DataFrame:
        if self.rate == 1.0:
            return frame
        parts = []
        if self.rate:
            below = max(1, round(self.rate * (1 << HASH_BITS)))
            hashed = f"xxhash64('{seed_text(self.family)}', {KEY}) & {(1 << HASH_BITS) - 1}L"
            parts.append(f"({hashed}) < {below}L")
        if self.dense:
            parts.append(f"{KEY} IN ({', '.join(f'{k}L' for k in self.dense)})")
        kept = " OR ".join(parts) or "false"
        if not self.row_rate:
            return frame.where(kept)
        # By a hash of the tuple's number: every so many would miss a key that comes at the wrong beat.
        below = max(1, round(self.row_rate * (1 << HASH_BITS)))
        drawn = f"xxhash64(monotonically_increasing_id()) & {(1 << HASH_BITS) - 1}L < {below}L"
        frame = frame.withColumn(DRAWN, F.expr(drawn))
        why = f"CASE WHEN {kept} THEN {SAMPLED} WHEN `{DRAWN}` THEN {LOOKED_AT} END"
        return frame.withColumn(WHY, F.expr(why)).where(F.col(WHY).isNotNull())


@dataclass(frozen=True)
class _SampledAmong:
    """The sampled tuples with one of the wanted keys; those looked at by themselves in any case."""

    sampled: _Sampled
    among: _Among

    @property
    def why(self) -> Column:
        return self.sampled.why

    @property
    def hits(self) -> Column:
        return self.sampled.hits

    def where(self, frame: DataFrame) -> DataFrame:
        frame = self.sampled.where(frame)
        if not self.sampled.row_rate or self.sampled.rate == 1.0:
            return self.among.where(frame)
        frame = frame.join(F.broadcast(self.among.frame), F.col("skimql key 0") == F.col(WANTED), "left")
        return frame.where((F.col(WHY) == LOOKED_AT) | F.col(WANTED).isNotNull())


@dataclass(frozen=True, eq=False)
class _Among:
    """The tuples whose key is one of these, int64 (n,)."""

    spark: SparkSession
    keys: Ints

    @property
    def why(self) -> Column:
        return F.lit(SAMPLED)

    @property
    def hits(self) -> Column:
        return F.lit(0)

    @property
    def frame(self) -> DataFrame:
        return self.spark.createDataFrame(pa.table({WANTED: self.keys}))

    def where(self, frame: DataFrame) -> DataFrame:
        return frame.join(F.broadcast(self.frame), F.col("skimql key 0") == F.col(WANTED), "left_semi")


def _hits(keys: Ints, counts: Ints) -> Hits:
    distinct, which = np.unique(keys[counts > 0], return_inverse=True)
    return Hits(distinct, np.bincount(which, counts[counts > 0], len(distinct)).astype(np.int64))
