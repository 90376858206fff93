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
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ...errors import BudgetExceeded
from ...optimizer.operators import SAMPLE
from ...optimizer.plan import Message, Plan, Sample, Synopsis, ValueDraw
from ...sketches.hashing.spark_families import XxHash64
from ...sketches.samples.sampled_hash import HASH_BITS, draw_family, sample_family, seed_text, value_family
from ..observed import Observation, observed
from ..sources.files import own_files, partitions, range_without_nan
from ..sources.filters import cheap_first, filtered
from ..sources.keys import key_column, key_text
from ..sources.keys_seen import column_of
from ..sources.ordered_keys import counted_in_order
from ..sources.ranges import ANY, Range
from ..sources.tables import Frames, Tables
from ..sources.weights import WeightColumn, product, total, weight_column
from ..spark.isolation import moved
from ..spark.jobs import ProgressListener, run_job
from ..spark.session import SPARK_FAULTS
from .explanation import explained
from .grouping import SparkGroups
from .messages import Messages
from .sample_rows import LOOKED_AT, SAMPLED, VALUED, Ints, Rows, rows_of
from .sample_tree import SampleTree, asks_for_dense

# Columns of a scan, beside those of the user's table.
KEY = "`skimql key {}`"
WHY = "`skimql why`"
ROW = "`skimql row`"
DRAWN = "`skimql drawn`"
SIZE = "`skimql size {}`"
READ = "`skimql read`"
WANTED = "`skimql wanted`"
NUMBER = "`skimql number`"

# Tuples of one partition that may be sent without being grouped, at least.
LEAST_OF_PARTITION = 131_072

# And as many times those that are expected to be drawn one by one.
MOST_OF_DRAWN = 2.0

# Tables beyond the sampled class of which the most tuples of a key are counted have at most so many.
MOST_COUNTED = 4e6

# Spark's bound on what a job sends to the driver, by the name of its setting.
MOST_RESULT = "spark.driver.maxResultSize"

# CPU nanoseconds of sending keys to a scan that reads no others, for all of them and for each, and of a tuple that is
# read because none were sent. Measured on TPC-H.
WANTED_NS = 100e6
WANTED_KEY_NS = 1000.0
SENT_NS = 400.0


def _word(family: XxHash64, key: str) -> str:
    """The first word of a hash, as SQL over a BIGINT."""
    return f"xxhash64('{seed_text(family)}', {key})"


def _below(word: str, rate: float) -> str:
    """Whether a hash is one of a share of all, as SQL."""
    return f"{word} & {(1 << HASH_BITS) - 1}L < {max(1, round(rate * (1 << HASH_BITS)))}L"


@dataclass(frozen=True, slots=True)
class _Sampled:
    """Which tuples of a scan are read.

    Attributes
    ----------
    sampled : str
        Whether a tuple is read for its key, as SQL over the columns `KEY`.
    drawn : str
        The bits `LOOKED_AT` and from `VALUED` on as SQL over the table.
    heavy : bool
        Whether heavy keys are among those that are read.
    sizes : tuple of (int, str)
        Draws of values, and the absolute value as SQL over the table.
    row_rate : float
        Share of the tuples that is looked at one by one.
    """

    sampled: str = "true"
    drawn: str = "0"
    heavy: bool = False
    sizes: tuple[tuple[int, str], ...] = ()
    row_rate: float = 0.0

    @property
    def why(self) -> str:
        """The bits of why a tuple is read, NULL for one that is not, as SQL."""
        if self.drawn == "0":
            return f"CASE WHEN {self.sampled} THEN {SAMPLED} END"
        return f"CASE WHEN {self.sampled} THEN {DRAWN} | {SAMPLED} WHEN {DRAWN} > 0 THEN {DRAWN} END"

    @classmethod
    def of(cls, sample: Sample, number: int, draw: int, seed: int) -> _Sampled:
        """The tuples of one member of a sampled class, by the number of its draw."""
        if sample.rate == 1.0:
            return cls()
        if asks_for_dense(sample):
            return cls(heavy=True)
        parts = []
        if sample.rate:
            family = sample_family(seed, sample.class_name)
            parts.append(_below(_word(family, KEY.format(0)), sample.rate))
        if sample.dense:
            parts.append(f"{KEY.format(0)} IN ({', '.join(f'{k}L' for k in sample.dense)})")
        sampled = " OR ".join(parts) or "false"
        if not sample.row_rates:
            return cls(sampled, heavy=bool(sample.dense))
        # By a hash of the tuple's number: every so many would miss a key that comes at the wrong beat.
        reasons = []
        if sample.row_rates[number]:
            family = draw_family(seed, sample.class_name, draw)
            reasons.append(f"IF({_below(_word(family, ROW), sample.row_rates[number])}, {LOOKED_AT}, 0)")
        values = [(n, d) for n, d in enumerate(sample.value_draws) if d.member == number]
        for n, value in values:
            drawn = _drawn(value, value_family(seed, sample.class_name, n))
            reasons.append(f"IF({drawn}, {VALUED << n}, 0)")
        sizes = tuple((n, _value(d)) for n, d in values)
        return cls(sampled, " | ".join(reasons) or "0", bool(sample.dense), sizes, sample.row_rates[number])


def _value(draw: ValueDraw) -> str:
    return f"abs(CAST(({draw.expression}) AS DOUBLE))"


def _drawn(draw: ValueDraw, family: XxHash64) -> str:
    """Whether a tuple is drawn for its value, as SQL; Spark takes what is not a number for the largest one."""
    word = f"({_word(family, ROW)} & {(1 << HASH_BITS) - 1}L)"
    # Divided first: a factor for a unit of tiny values is no DOUBLE.
    most = f"{_value(draw)} / {draw.unit!r}D * {float(1 << HASH_BITS)!r}D"
    return f"({_value(draw)} >= {draw.least!r}D AND {word} < {most})"


@dataclass(frozen=True, slots=True)
class _Scan:
    """The tuples that are read, as SQL over some frames; the columns with their keys; and the weight of a synopsis.

    `sizes` are the draws of values, each with a column of its own.
    """

    text: str
    frames: Mapping[str, DataFrame]
    keys: tuple[str, ...]
    weights: Mapping[Synopsis, WeightColumn]
    sizes: tuple[int, ...] = ()

    @property
    def each(self) -> str:
        """Every tuple, with its number in its partition."""
        values = [*self.keys[1:], *(w.text for w in self._weighing)]
        names = [*self.keys[1:], *(f"s{n}" for n in range(len(self._weighing)))]
        # Of a tuple looked at by itself only the first key is asked.
        asked = [
            f"CASE WHEN {WHY} & {~LOOKED_AT} > 0 THEN {v} END AS {n}"
            for v, n in zip(values, names, strict=True)
        ]
        asked += [f"{SIZE.format(n)} AS z{n}" for n in self.sizes]
        number = f"monotonically_increasing_id() & {(1 << 33) - 1}L AS {NUMBER}"
        return f"SELECT {', '.join([WHY, self.keys[0], *asked, number])} FROM ({self.text})"

    @property
    def grouped(self) -> str:
        """Total weights by keys."""
        why = f"{WHY} & {~LOOKED_AT}"
        keys = [self.keys[0], *(f"CASE WHEN {why} > 0 THEN {k} END" for k in self.keys[1:])]
        named = [f"{k} AS {n}" for k, n in zip(keys, self.keys, strict=True)]
        sums = [f"{total(w)} AS s{n}" for n, w in enumerate(self._weighing)]
        counts = ["count(1) AS tuples", f"count_if({WHY} & {LOOKED_AT} > 0) AS hits"]
        counts += [f"max({SIZE.format(n)}) AS z{n}" for n in self.sizes]
        # What was drawn for a value stays by itself.
        alone = [f"CASE WHEN {WHY} >= {VALUED} THEN {ROW} END"] if self.sizes else []
        selected = ", ".join([f"{why} AS {WHY}", *named, *counts, *sums])
        return f"SELECT {selected} FROM ({self.text}) GROUP BY {', '.join([why, *keys, *alone])}"

    @property
    def _weighing(self) -> list[WeightColumn]:
        return [w for w in self.weights.values() if w.text is not None]

    def rows(self, sent: pa.Table, own: Sequence[Synopsis]) -> Rows:
        """What was sent, either way."""
        why = sent[WHY.strip("`")].to_numpy()
        counted = {n: sent[n].to_numpy() for n in ("tuples", "hits") if n in sent.column_names}
        sizes = {n: sent[f"z{n}"].to_numpy() for n in self.sizes}
        tuples = counted.get("tuples", np.ones(len(why), np.int64))
        numbers = iter(range(len(self._weighing)))
        weights = {
            s: (tuples if w.text is None else sent[f"s{next(numbers)}"].to_numpy(), w.scale)
            for s, w in self.weights.items()
        }
        keys = [sent[k.strip("`")] for k in self.keys]
        return rows_of(why, keys, weights, own, counted.get("hits"), tuples, sizes)


class SampleScans(SampleTree):
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
        super().__init__(plan, terms, expected, groups)
        self._spark, self._tables, self._listener, self._limit = spark, tables, listener, limit_bytes
        self._messages = Messages(spark, plan, tables, listener)
        self._sent_bytes = 0

    @property
    def nbytes(self) -> int:
        """Bytes of all that was sent, exact messages too."""
        return self._sent_bytes + self._messages.nbytes

    def _sampled(self, sample: Sample, number: int) -> _Sampled:
        return _Sampled.of(sample, number, self.draw(sample, number), self._plan.seed)

    def _column_range(self, table: str, column: str, condition: str | None) -> Range:
        tables = self._tables
        while isinstance(tables, SparkGroups):
            tables = tables.tables
        if not isinstance(tables, Tables):
            return ANY

        def run(frame: DataFrame, job: str) -> pa.Table:
            return run_job(self._spark, job, frame.toArrow, self._listener)

        return range_without_nan(tables, table, column, run, condition)

    def _message_range(self, message: Message) -> tuple[float, float]:
        return self._messages.weight_range(message)

    def _most_tuples(self, vertex: int, position: int) -> float:
        if not self._expected[vertex] <= MOST_COUNTED:
            return math.inf
        relation = self._plan.synopses[self._terms[0][vertex]]
        frame = filtered(self._tables.frame(relation.table), [relation.filter])
        key = key_column(relation.attributes[position])
        keys = frame.where(key.isNotNull()).groupBy(key.alias("k")).agg(F.count(F.lit(1)).alias("n"))
        counted = keys.agg(F.max("n").alias("n"))
        with observed(SAMPLE, self._named(vertex)):
            sent = run_job(self._spark, f"most of a key of {relation.table}", counted.toArrow, self._listener)
        return float(sent["n"][0].as_py() or 0)

    def heavy_keys(self, vertex: int, position: int, most: float) -> tuple[Ints, float]:
        """See `SampleTree.heavy_keys`: by the files of a table that is in the order of its keys."""
        relation = self._plan.synopses[self._terms[0][vertex]]
        tables = self._tables
        while isinstance(tables, SparkGroups):
            tables = tables.tables
        keys = relation.attributes[position].keys
        column = column_of(keys[0]) if len(keys) == 1 else None
        if not isinstance(tables, Tables) or column is None:
            return super().heavy_keys(vertex, position, most)
        _, paths = own_files(tables, relation.table, column)
        found = counted_in_order(paths, column) if paths else None
        return super().heavy_keys(vertex, position, most) if found is None else found.above(most)

    def _pays(self, tuples: float, among: Ints) -> bool:
        """Whether asking for some keys alone costs less than what so many tuples cost."""
        return SENT_NS * tuples > WANTED_NS + WANTED_KEY_NS * len(among)

    def _scan(
        self,
        vertex: int,
        positions: Sequence[int],
        kept: object,
        among: Ints | None,
        also: Ints | None,
        tuples: float,
    ) -> Rows:
        """What one scan sends: of about `tuples` tuples, or of fewer where only some keys are wanted."""
        own = self._plan.synopses[self._terms[0][vertex]]
        attributes = [own.attributes[p] for p in positions]
        with (
            explained(self._plan.query.sql, own.table, attributes),
            observed(SAMPLE, self._named(vertex)) as seen,
        ):
            return self._read(vertex, positions, kept, among, also, tuples, seen)

    def _read(
        self,
        vertex: int,
        positions: Sequence[int],
        kept: object,
        among: Ints | None,
        also: Ints | None,
        tuples: float,
        seen: Observation,
    ) -> Rows:
        own = [self._plan.synopses[t[vertex]] for t in self._terms]
        table = own[0].table
        kept = kept if isinstance(kept, _Sampled) else _Sampled()
        group = self._groups.get(vertex)
        scan = self._prepared(own, positions, kept, among, also, None if group is None else f"`{group}`")
        most = self._limit // (8 * (2 + len(scan.keys) + len(scan.weights)))
        many = among is None and most < tuples < math.inf
        drawn = kept.row_rate * self._expected[vertex] if kept.row_rate else 0.0
        sent = None if kept.heavy or many else self._each(table, scan, most, drawn)
        if sent is None:
            sent = self._sent(table, f"{scan.grouped} LIMIT {most + 1}", scan)
            if sent.num_rows > most:
                raise BudgetExceeded(
                    f"the sampled keys of {table} take more than {self._limit:,} bytes",
                    sql=self._plan.query.sql,
                    hint="a smaller SIZE, or a larger skimql.max_bytes",
                )
        rows = scan.rows(sent, own)
        seen.rows = sent.num_rows
        seen.bytes_held = rows.keys.nbytes + 8 * len(scan.weights) * rows.keys.shape[1]
        self._sent_bytes += int(seen.bytes_held)
        return rows

    def _each(self, table: str, scan: _Scan, most: int, drawn: float) -> pa.Table | None:
        """Every tuple that is read; None where a partition has so many that a heavy key must be among them.

        About so many are drawn whatever their keys, maybe all of them in one partition.
        """
        usual = int(min(MOST_OF_DRAWN * drawn, most))
        each = min(most, max(LEAST_OF_PARTITION, usual, most // partitions(self._tables.frame(table))))
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
            # A server of Spark Connect looks for them only when it runs.
            return run_job(self._spark, f"sample of {table}", spark.sql(text).toArrow, self._listener)
        finally:
            for name in scan.frames:
                spark.catalog.dropTempView(name)

    def _prepared(
        self,
        own: Sequence[Synopsis],
        positions: Sequence[int],
        kept: _Sampled,
        among: Ints | None,
        also: Ints | None,
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
        own_columns = [*keys, f"{kept.drawn} AS {DRAWN}"]
        text = f"SELECT * FROM skimql_tuples_{suffix}{filtered}"
        if kept.drawn != "0":
            # Numbered once: the function counts its calls, which a condition may leave out.
            text = f"SELECT *, monotonically_increasing_id() AS {ROW} FROM ({text})"
        text = f"SELECT *, {', '.join(own_columns)} FROM ({text})"
        # The sample first: neither weights nor messages are looked at for what it leaves out.
        listed = among is not None or also is not None
        text = f"SELECT *, {kept.why} AS {READ if listed else WHY} FROM ({text})"
        if group is not None:
            names += (group,)
        known = " AND ".join(f"{n} IS NOT NULL" for n in names)
        why = READ if listed else WHY
        text = (
            f"SELECT * FROM ({text}) WHERE {known if also is not None else f'{why} IS NOT NULL AND {known}'}"
        )
        if listed:
            lists = np.unique(np.concatenate([k for k in (among, also) if k is not None]))
            wanted = self._spark.createDataFrame(pa.table({WANTED.strip("`"): lists}))
            frames[f"skimql_wanted_{suffix}"] = F.broadcast(wanted)
            # What is drawn by itself is read whether its key is wanted or not.
            kind = "JOIN" if kept.drawn == "0" and also is None else "LEFT JOIN"
            text = f"SELECT * FROM ({text}) {kind} skimql_wanted_{suffix} ON {names[0]} = {WANTED}"
            if kind == "JOIN":
                text = f"SELECT *, {READ} AS {WHY} FROM ({text})"
            else:
                found = READ if also is None else f"coalesce({READ}, 0) | {SAMPLED}"
                other = READ if among is None else f"nullif({READ} & {~SAMPLED}, 0)"
                text = f"SELECT *, IF({WANTED} IS NOT NULL, {found}, {other}) AS {WHY} FROM ({text})"
                text = f"SELECT * FROM ({text}) WHERE {WHY} IS NOT NULL"
        if kept.sizes:
            sizes = [f"IF({WHY} >= {VALUED}, {v}, NULL) AS {SIZE.format(n)}" for n, v in kept.sizes]
            text = f"SELECT *, {', '.join(sizes)} FROM ({text})"
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
            tuple(n for n, _ in kept.sizes),
        )
