"""The scans of a sampled plan: the tables of the sampled class, and what hangs from them in the join tree.

Spark filters a table of the class by the hash of the key before anything else, and sends the few tuples that are left:
grouping them in the JVM would cost more. Where a heavy key makes them many, Spark groups them after all. Each table
beyond is then scanned once, for the keys that got that far. A scan is one SQL text: one analysis, few calls.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ...errors import BudgetExceeded
from ...optimizer.plan import Plan, Sample, Synopsis
from ...sketches.hashing.xi import XxHash64, derive_seed
from ..sources.files import partitions
from ..sources.filters import cheap_first
from ..sources.keys import key_text
from ..sources.tables import Frames
from ..sources.weights import WeightColumn, product, total, weight_column
from ..spark.isolation import moved
from ..spark.jobs import ProgressListener, run_job
from ..spark.session import SPARK_FAULTS
from .messages import Messages
from .scan import group_column

HASH_BITS = 40

# Columns of a scan, beside those of the user's table.
KEY = "`skimql key {}`"
WHY = "`skimql why`"
DRAWN = "`skimql drawn`"
READ = "`skimql read`"
WANTED = "`skimql wanted`"
NUMBER = "`skimql number`"

# Why a tuple is read: its key is in the sample, or it is looked at by itself, or both.
SAMPLED, LOOKED_AT, BOTH = 0, 1, 2

# Tuples of one partition that may be sent without being grouped, at least.
LEAST_OF_PARTITION = 131_072

# Spark's bound on what a job sends to the driver, by the name of its setting.
MOST_RESULT = "spark.driver.maxResultSize"

# CPU nanoseconds of sending keys to a scan that reads no others, for all of them and for each, and of a tuple that is
# read because none were sent. Measured on TPC-H.
WANTED_NS = 100e6
WANTED_KEY_NS = 1000.0
SENT_NS = 400.0

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
    """Total weights by key and by the groups of what they are of.

    Attributes
    ----------
    keys : ndarray of int64, shape (n,), ascending
        Distinct together with `groups`.
    weights : ndarray of float64, shape (terms, n)
    groups : ndarray of int64, shape (vertices, n)
        The number of a group of each vertex of the plan in `vertices`.
    vertices : tuple of int
        The grouped vertices among those that were joined.
    """

    keys: Ints
    weights: Floats
    groups: Ints
    vertices: tuple[int, ...] = ()

    def of_groups(self) -> dict[tuple[int, ...], Grouped]:
        """The same for each combination of groups by itself; one without vertices that are grouped."""
        if not self.vertices:
            return {(): self}
        order = np.lexsort((self.keys, *self.groups[::-1]))
        groups = self.groups[:, order]
        starts = np.flatnonzero(np.r_[True, (groups[:, 1:] != groups[:, :-1]).any(axis=0)])
        parts = np.split(order, starts[1:]) if order.size else []
        return {
            tuple(int(g) for g in self.groups[:, part[0]]): Grouped(
                self.keys[part], self.weights[:, part], self.groups[:, part], self.vertices
            )
            for part in parts
        }

    def whole(self) -> Grouped:
        """Total weights by key, all groups together."""
        return _summed(self.keys, self.weights, self.groups[:0], ()) if self.vertices else self


def _summed(keys: Ints, weights: Floats, groups: Ints, vertices: tuple[int, ...]) -> Grouped:
    """Weights of equal keys and groups added up."""
    if not vertices:
        distinct, which = np.unique(keys, return_inverse=True)
        chosen = groups[:, :0]
    else:
        columns, which = np.unique(np.vstack([keys, groups]), axis=1, return_inverse=True)
        distinct, chosen = columns[0], columns[1:]
    sums = [np.bincount(which.reshape(-1), w, len(distinct)) for w in weights]
    shaped = np.array(sums, np.float64).reshape(len(weights), len(distinct))
    return Grouped(distinct, shaped, chosen, vertices)


@dataclass(frozen=True, slots=True)
class Hits:
    """Keys among the tuples looked at, sampled or not: int64 (n,), ascending, and how often each was met."""

    keys: Ints
    counts: Ints


@dataclass(frozen=True, slots=True)
class _Rows:
    """What a scan sent: keys int64 (positions, n), distinct as columns; weights float64 (terms, n); hits."""

    keys: Ints
    weights: Floats
    hits: Hits


def _below(word: str, rate: float) -> str:
    """Whether a hash is one of a share of all, as SQL."""
    return f"{word} & {(1 << HASH_BITS) - 1}L < {max(1, round(rate * (1 << HASH_BITS)))}L"


@dataclass(frozen=True, slots=True)
class _Kept:
    """Which tuples of a scan are read.

    Attributes
    ----------
    sampled : str
        Whether a tuple is read for its key, as SQL over the columns `KEY`.
    drawn : str
        Whether it is looked at by itself, as SQL over the table.
    heavy : bool
        Whether heavy keys are among those that are read.
    """

    sampled: str = "true"
    drawn: str = "false"
    heavy: bool = False

    @property
    def why(self) -> str:
        """`SAMPLED`, `LOOKED_AT` or `BOTH`, or NULL for a tuple that is not read, as SQL."""
        if self.drawn == "false":
            return f"CASE WHEN {self.sampled} THEN {SAMPLED} END"
        both = f"CASE WHEN {DRAWN} THEN {BOTH} ELSE {SAMPLED} END"
        return f"CASE WHEN {self.sampled} THEN {both} WHEN {DRAWN} THEN {LOOKED_AT} END"

    @classmethod
    def of(cls, sample: Sample, number: int, seed: int) -> _Kept:
        """The tuples of one member of a sampled class."""
        if sample.rate == 1.0:
            return cls()
        parts = []
        if sample.rate:
            family = sample_family(seed, sample.class_name)
            parts.append(_below(f"xxhash64('{seed_text(family)}', {KEY.format(0)})", sample.rate))
        if sample.dense:
            parts.append(f"{KEY.format(0)} IN ({', '.join(f'{k}L' for k in sample.dense)})")
        sampled = " OR ".join(parts) or "false"
        if not sample.row_rates or not sample.row_rates[number]:
            return cls(sampled, heavy=bool(sample.dense))
        # By a hash of the tuple's number: every so many would miss a key that comes at the wrong beat.
        return cls(sampled, _below("xxhash64(monotonically_increasing_id())", sample.row_rates[number]))


@dataclass(frozen=True, slots=True)
class _Scan:
    """The tuples that are read, as SQL over some frames; the columns with their keys; and the weight of a synopsis."""

    text: str
    frames: Mapping[str, DataFrame]
    keys: tuple[str, ...]
    weights: Mapping[Synopsis, WeightColumn]

    @property
    def each(self) -> str:
        """Every tuple, with its number in its partition."""
        values = [*self.keys[1:], *(w.text for w in self._weighing)]
        names = [*self.keys[1:], *(f"s{n}" for n in range(len(self._weighing)))]
        # Of a tuple looked at by itself only the first key is asked.
        asked = [
            f"CASE WHEN {WHY} <> {LOOKED_AT} THEN {v} END AS {n}" for v, n in zip(values, names, strict=True)
        ]
        number = f"monotonically_increasing_id() & {(1 << 33) - 1}L AS {NUMBER}"
        return f"SELECT {', '.join([WHY, self.keys[0], *asked, number])} FROM ({self.text})"

    @property
    def grouped(self) -> str:
        """Total weights by keys."""
        why = f"CASE WHEN {WHY} = {LOOKED_AT} THEN {LOOKED_AT} ELSE {SAMPLED} END"
        keys = [self.keys[0], *(f"CASE WHEN {WHY} <> {LOOKED_AT} THEN {k} END" for k in self.keys[1:])]
        named = [f"{k} AS {n}" for k, n in zip(keys, self.keys, strict=True)]
        sums = [f"{total(w)} AS s{n}" for n, w in enumerate(self._weighing)]
        counts = [f"count(1) AS tuples, count_if({WHY} <> {SAMPLED}) AS hits"]
        selected = ", ".join([f"{why} AS {WHY}", *named, *counts, *sums])
        return f"SELECT {selected} FROM ({self.text}) GROUP BY {', '.join([why, *keys])}"

    @property
    def _weighing(self) -> list[WeightColumn]:
        return [w for w in self.weights.values() if w.text is not None]

    def rows(self, sent: pa.Table, own: Sequence[Synopsis]) -> _Rows:
        """What was sent, either way."""
        first = KEY.format(0).strip("`")
        why = sent[WHY.strip("`")].to_numpy()
        tuples = sent["tuples"].to_numpy() if "tuples" in sent.column_names else np.ones(len(why), np.int64)
        counts = sent["hits"].to_numpy() if "hits" in sent.column_names else (why != SAMPLED).astype(np.int64)
        met = counts > 0
        keys, which = np.unique(sent[first].to_numpy()[met], return_inverse=True)
        hits = Hits(keys, np.bincount(which, counts[met], len(keys)).astype(np.int64))
        sampled = why != LOOKED_AT
        arrays: dict[str, npt.NDArray[np.generic]] = {
            f"k{n}": sent[k.strip("`")].filter(pa.array(sampled)).to_numpy() for n, k in enumerate(self.keys)
        }
        numbers = iter(range(len(self._weighing)))
        for n, weight in enumerate(self.weights.values()):
            values = tuples if weight.text is None else sent[f"s{next(numbers)}"].to_numpy()
            arrays[f"w{n}"] = values[sampled].astype(np.float64) / weight.scale
        names = [n for n in arrays if n.startswith("w")]
        by_keys = pa.table(arrays).group_by([n for n in arrays if n.startswith("k")], use_threads=False)
        grouped = by_keys.aggregate([(n, "sum") for n in names])
        weights = dict(zip(self.weights, (grouped[f"{n}_sum"].to_numpy() for n in names), strict=True))
        return _Rows(
            np.array([grouped[f"k{n}"].to_numpy() for n in range(len(self.keys))], np.int64),
            np.array([weights[s] for s in own], np.float64),
            hits,
        )


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
    expected : sequence of float
        Tuples of each vertex behind its filter; infinite where that is not known.
    groups : collection of int
        The vertices of the query's join graph that are grouped; `tables` know their `group_column`.
    """

    def __init__(
        self,
        spark: SparkSession,
        plan: Plan,
        terms: Sequence[tuple[int, ...]],
        tables: Frames,
        listener: ProgressListener | None,
        limit_bytes: int,
        expected: Sequence[float],
        groups: Collection[int] = (),
    ) -> None:
        # The number of a tuple's group travels with its keys.
        self._groups = {n: f"`{group_column(v)}`" for n, v in enumerate(plan.vertices) if v in groups}
        self._spark, self._plan, self._terms, self._tables = spark, plan, terms, tables
        self._listener, self._limit, self._expected = listener, limit_bytes, expected
        self._messages = Messages(spark, plan, tables, listener)
        self._whole: dict[object, _Rows] = {}
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
            The only keys that are wanted: those that the members before have. Others may come along.

        Raises
        ------
        BudgetExceeded
            If a table sends more than the limit.
        """
        vertex, position = sample.members[number]
        kept = _Kept.of(sample, number, self._plan.seed)
        return self._grouped(vertex, position, kept, sample.rate, among, sample.edges)

    def edges(self, vertex: int) -> list[tuple[int, int, tuple[int, int]]]:
        """The edges at a vertex: number, own position, and vertex and position at the other end."""
        found = []
        for number, e in enumerate(self._plan.edges):
            if e.left == vertex:
                found.append((number, e.left_position, (e.right, e.right_position)))
            elif e.right == vertex:
                found.append((number, e.right_position, (e.left, e.left_position)))
        return found

    def _grouped(
        self,
        vertex: int,
        position: int,
        kept: _Kept,
        rate: float,
        among: Ints | None,
        above: Sequence[int],
    ) -> tuple[Grouped, Hits]:
        """The subtree of a vertex, away from the edges `above`, as weights by one of its attributes."""
        below = [(e, own, other) for e, own, other in self.edges(vertex) if e not in above]
        positions = (position, *(own for _, own, _ in below))
        own = (tuple(t[vertex] for t in self._terms), self._groups.get(vertex))
        # A self-join reads one sample twice, the second time with keys that are not wanted.
        whole = (positions, own, kept)
        tuples = rate * self._expected[vertex]
        if among is not None and (whole in self._whole or not self._pays(tuples, among)):
            among = None
        rows = self._whole.get(whole) or self._scan(vertex, positions, kept, among, tuples)
        if among is None:
            self._whole[whole] = rows
        keys, groups, weights = rows.keys[: len(positions)], rows.keys[len(positions) :], rows.weights
        grouped: tuple[int, ...] = (vertex,) if vertex in self._groups else ()
        for column, (edge, _, (other, at)) in enumerate(below, 1):
            sent, _ = self._grouped(other, at, _Kept(), 1.0, np.unique(keys[column]), [edge])
            # Every row with every group of its partner.
            first = np.searchsorted(sent.keys, keys[column], "left")
            many = np.searchsorted(sent.keys, keys[column], "right") - first
            mine = np.repeat(np.arange(keys.shape[1]), many)
            theirs = np.arange(many.sum()) + np.repeat(first - (np.cumsum(many) - many), many)
            weights = weights[:, mine] * sent.weights[:, theirs]
            keys, groups = keys[:, mine], np.vstack([groups[:, mine], sent.groups[:, theirs]])
            grouped += sent.vertices
        return _summed(keys[0], weights, groups, grouped), rows.hits

    def _pays(self, tuples: float, among: Ints) -> bool:
        """Whether asking for some keys alone costs less than what so many tuples cost."""
        return SENT_NS * tuples > WANTED_NS + WANTED_KEY_NS * len(among)

    def _scan(
        self, vertex: int, positions: Sequence[int], kept: _Kept, among: Ints | None, tuples: float
    ) -> _Rows:
        """What one scan sends: of about `tuples` tuples, or of fewer where only some keys are wanted."""
        own = [self._plan.synopses[t[vertex]] for t in self._terms]
        table = own[0].table
        scan = self._prepared(own, positions, kept, among, self._groups.get(vertex))
        most = self._limit // (8 * (2 + len(scan.keys) + len(scan.weights)))
        many = among is None and most < tuples < math.inf
        sent = None if kept.heavy or many else self._each(table, scan, most)
        if sent is None:
            sent = self._sent(table, f"{scan.grouped} LIMIT {most + 1}", scan)
            if sent.num_rows > most:
                raise BudgetExceeded(
                    f"the sampled keys of {table} take more than {self._limit:,} bytes",
                    sql=self._plan.query.sql,
                    hint="a smaller SIZE, or a larger skimql.max_bytes",
                )
        rows = scan.rows(sent, own)
        self._sent_bytes += rows.keys.nbytes + 8 * len(scan.weights) * rows.keys.shape[1]
        return rows

    def _each(self, table: str, scan: _Scan, most: int) -> pa.Table | None:
        """Every tuple that is read; None where a partition has so many that a heavy key must be among them."""
        each = min(most, max(LEAST_OF_PARTITION, most // partitions(self._tables.frame(table))))
        try:
            sent = self._sent(table, f"SELECT * FROM ({scan.each}) WHERE {NUMBER} <= {each}L", scan)
        except SPARK_FAULTS as fault:
            if MOST_RESULT in str(fault):
                return None
            raise
        numbers = sent[NUMBER.strip("`")].to_numpy()
        return None if sent.num_rows > most or (len(numbers) and int(numbers.max()) == each) else sent

    def _sent(self, table: str, text: str, scan: _Scan) -> pa.Table:
        spark = next(iter(scan.frames.values())).sparkSession  # of the scanned table
        try:
            for name, frame in scan.frames.items():
                moved(frame, spark).createOrReplaceTempView(name)
            found = spark.sql(text)
        finally:
            for name in scan.frames:
                spark.catalog.dropTempView(name)
        return run_job(self._spark, f"sample of {table}", found.toArrow, self._listener)

    def _prepared(
        self,
        own: Sequence[Synopsis],
        positions: Sequence[int],
        kept: _Kept,
        among: Ints | None,
        group: str | None,
    ) -> _Scan:
        relation, suffix = own[0], uuid.uuid4().hex
        frame = self._tables.frame(relation.table)
        frames = {f"skimql_tuples_{suffix}": frame}
        weights = {
            w: weight_column(frame, w, self._plan.query.sql) for w in dict.fromkeys(s.weight for s in own)
        }
        names = tuple(KEY.format(n) for n in range(len(positions)))
        keys = [f"{key_text(relation.attributes[p])} AS {n}" for p, n in zip(positions, names, strict=True)]
        filtered = "" if relation.filter is None else f" WHERE {cheap_first(relation.filter, frame.schema)}"
        text = f"SELECT *, {', '.join(keys)}, {kept.drawn} AS {DRAWN} FROM skimql_tuples_{suffix}{filtered}"
        # The sample first: neither weights nor messages are looked at for what it leaves out.
        text = f"SELECT *, {kept.why} AS {WHY if among is None else READ} FROM ({text})"
        if group is not None:
            names += (group,)
        known = " AND ".join(f"{n} IS NOT NULL" for n in (WHY if among is None else READ, *names))
        text = f"SELECT * FROM ({text}) WHERE {known}"
        if among is not None:
            wanted = self._spark.createDataFrame(pa.table({WANTED.strip("`"): among}))
            frames[f"skimql_wanted_{suffix}"] = F.broadcast(wanted)
            text = f"SELECT * FROM ({text}) LEFT JOIN skimql_wanted_{suffix} ON {names[0]} = {WANTED}"
            why = (
                f"CASE WHEN {WANTED} IS NOT NULL OR {READ} = {LOOKED_AT} THEN {READ} "
                f"WHEN {READ} = {BOTH} THEN {LOOKED_AT} END"
            )
            text = f"SELECT * FROM (SELECT *, {why} AS {WHY} FROM ({text})) WHERE {WHY} IS NOT NULL"
        for number, join in enumerate(self._messages.joins([s.messages for s in own])):
            view = f"skimql_message{number}_{suffix}"
            frames[view] = join.frame
            text = f"SELECT * FROM ({text}) {join.kind} JOIN {view} ON {join.condition}"
        return _Scan(
            text,
            frames,
            names,
            {
                s: product([weights[s.weight], *self._messages.weights(s.messages)])
                for s in dict.fromkeys(own)
            },
        )
