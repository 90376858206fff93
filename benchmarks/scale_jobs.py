"""The jobs of `benchmarks.scale`: what is run, on which key, and what the bars compare."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import duckdb
import pyarrow as pa
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from skimql import Session
from skimql.engine.execution.build import build
from skimql.engine.execution.sample_join import run_sample
from skimql.engine.extension.enable import enable
from skimql.optimizer.candidates.first_sample import ClassSample
from skimql.optimizer.choose import choose
from skimql.optimizer.physical import SketchJoin
from skimql.optimizer.plan import Attribute, Plan, Scan, Weight
from skimql.optimizer.route import routed

from .data.keys import KEYS, key_files

SEED = 3
SAMPLE_SHARE = 256
MAIN = ("bigint", "zipf")
TYPES = {"k": "bigint", "u": "bigint", "ks": "string", "us": "string", "v": "int"}


@dataclass(frozen=True, slots=True)
class Job:
    """Something to run, and the fields that name its record."""

    job: str
    route: str
    key: str
    rows: int
    run: Callable[[], object]

    @property
    def name(self) -> tuple[str, str, str, int]:
        """What tells its record from others."""
        return self.job, self.route, self.key, self.rows


class Bench:
    """Tables and jobs on one Spark session.

    Parameters
    ----------
    spark : SparkSession
    rows : int
        Tuples of the larger relation; the other has half as many, at least a million.
    """

    def __init__(self, spark: SparkSession, rows: int) -> None:
        self.spark, self.rows = spark, rows
        self.left_files = key_files("left", rows)
        self.right_files = key_files("right", max(rows // 2 // 1_000_000, 1) * 1_000_000)
        self.left, self.right = (spark.read.parquet(*f) for f in (self.left_files, self.right_files))
        self.session = Session(spark, seed=SEED)
        self.session.table("d", self.left)
        self.session.table("e", self.right)

    # --- one key

    def scan(self, column: str) -> object:
        """A bare scan: the largest key."""
        return self.left.agg(F.max(column)).collect()

    def distinct(self, column: str) -> object:
        """Spark's own distinct count."""
        return self.left.agg(F.approx_count_distinct(column)).collect()

    def nothing(self, column: str) -> object:
        """The keys sent to Python workers that only count them."""

        def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            rows = sum(b.num_rows for b in batches)
            yield pa.RecordBatch.from_pydict({"n": pa.array([rows], pa.int64())})

        sent = self.left.select(self._fingerprint(column).alias("c0"))
        return sent.mapInArrow(count, "n BIGINT").toArrow()

    def _fingerprint(self, column: str) -> Column:
        return F.col(column) if TYPES[column] == "bigint" else F.xxhash64(column)

    def key_sample(self, column: str) -> object:
        """One key in 256 and its tuples, as the engine samples a self-join, which takes one scan."""
        asked = self.session.plan(f"SELECT APPROXIMATE COUNT(*) FROM d a JOIN d b ON a.{column} = b.{column}")
        sampled = choose(asked.query, SEED, 0, 0, sample=ClassSample(0, 1 / SAMPLE_SHARE))
        return run_sample(self.spark, sampled, self.session.tables)[()]

    def sketches(
        self, route: str, rows: int, buckets: int, *keys: str, weight: str | None = None
    ) -> Callable[[], object]:
        """Sketches of table d by each of the keys, made in one scan by the engine."""
        plan = self._plan(rows, buckets, keys, weight)
        planned = routed(plan, "arrow" if route == "arrow" else "jvm")
        if route == "folded":
            planned = replace(planned, family="folded")
        return lambda: build(self.spark, planned, self.session.tables)

    def _plan(self, rows: int, buckets: int, keys: tuple[str, ...], weight: str | None) -> Plan:
        """A self-join asks for one sketch, and is scanned once; with more keys it is no query any more."""
        sql = f"SELECT APPROXIMATE COUNT(*) FROM d a JOIN d b ON a.k = b.k OPTIONS (rows = {rows}, buckets = {buckets})"
        attempt = self.session.plan(sql).attempt
        assert isinstance(attempt, SketchJoin), "asked for by OPTIONS"
        plan = attempt.plan
        weights = [Weight()] if weight is None else [Weight(), Weight(weight)]
        synopses = tuple(
            replace(plan.synopses[0], attributes=(Attribute((f"`{key}`",), (TYPES[key],), key),), weight=w)
            for key in keys
            for w in weights
        )
        return replace(plan, synopses=synopses, scans=(Scan("d", tuple(range(len(synopses)))),))

    def functions(self, *items: str) -> Callable[[], object]:
        """The SQL functions of sketches over the larger relation, in one aggregation."""
        enable(self.spark)
        self.left.createOrReplaceTempView("skim_d")
        select = ", ".join(f"length({item})" for item in items)
        return lambda: self.spark.sql(f"SELECT {select} FROM skim_d").collect()

    # --- joins

    def exact_join(self, column: str) -> object:
        """Spark's exact count of the join."""
        return self.left.select(column).join(self.right.select(column), column).agg(F.count("*")).collect()

    def grouped_join(self, column: str) -> object:
        """The same after each side has been grouped by the key."""
        left, right = (
            f.groupBy(column).agg(F.count("*").alias(n)) for f, n in ((self.left, "f"), (self.right, "g"))
        )
        return left.join(right, column).agg(F.sum(F.col("f").cast("double") * F.col("g"))).collect()

    def duckdb_join(self, column: str) -> object:
        """DuckDB's exact count, on the same two threads."""
        sql = f"SELECT count(*) FROM read_parquet(?) JOIN read_parquet(?) USING ({column})"
        with duckdb.connect(config={"threads": 2}) as connection:
            return connection.execute(sql, [self.left_files, self.right_files]).fetchall()

    def store(self) -> None:
        """Sketches of the join of d and e by the uniform key, kept for the session."""
        self.session.sql(
            "CREATE OR REPLACE SKETCHES w FOR QUERIES (SELECT COUNT(*) FROM d JOIN e ON d.u = e.u) "
            "SIZE 704 KB MINIMIZE AVERAGE ERROR"
        )

    def answer_stored(self) -> object:
        """The question that the stored sketches answer."""
        return self.session.sql("SELECT APPROXIMATE COUNT(*) FROM d JOIN e ON d.u = e.u")


def jobs_of_key(bench: Bench, key: tuple[str, str], *, all_jobs: bool) -> Iterator[Job]:
    """Scans, Spark's distinct count, and sketches on both routes, by one key."""
    column, name = KEYS[key], " ".join(key)

    def job(kind: str, route: str, run: Callable[[], object]) -> Job:
        return Job(kind, route, name, bench.rows, run)

    yield job("scan", "spark", lambda: bench.scan(column))
    yield job("approx_count_distinct", "spark", lambda: bench.distinct(column))
    yield job("sketch 11 x 1k", "jvm", bench.sketches("jvm", 11, 1024, column))
    yield job("sketch 11 x 4k", "jvm", bench.sketches("jvm", 11, 4096, column))
    yield job("sketch 11 x 4k", "sql", bench.functions(f"skim_sketch({column})"))
    if not all_jobs:
        return
    yield job("nothing", "arrow", lambda: bench.nothing(column))
    yield job("sketch 7 x 1k", "arrow", bench.sketches("arrow", 7, 1024, column))
    yield job("sketch 7 x 1k", "jvm", bench.sketches("jvm", 7, 1024, column))
    yield job("sketch 11 x 4k", "arrow", bench.sketches("arrow", 11, 4096, column))
    yield job("COUNT and SUM 11 x 4k", "arrow", bench.sketches("arrow", 11, 4096, column, weight="v"))
    yield job("COUNT and SUM 11 x 4k", "jvm", bench.sketches("jvm", 11, 4096, column, weight="v"))
    both = bench.functions(f"skim_sketch({column})", f"skim_sketch({column}, v)")
    yield job("COUNT and SUM 11 x 4k", "sql", both)
    yield job("two keys 11 x 4k", "sql", bench.functions(f"skim_sketch(struct({column}, u))"))
    yield job("two sketches 11 x 4k", "sql", bench.functions(f"skim_sketch({column})", "skim_sketch(u)"))
    yield job("sketch 11 x 1k, one grouping", "jvm", bench.sketches("folded", 11, 1024, column))
    yield job("sketch 11 x 4k, one grouping", "jvm", bench.sketches("folded", 11, 4096, column))
    yield job("key sample 1/256", "jvm", lambda: bench.key_sample(column))
    for route in ("arrow", "jvm"):
        yield job("3 sketches, one scan", route, bench.sketches(route, 11, 1024, "k", "u", "v"))
        single = [bench.sketches(route, 11, 1024, k) for k in ("k", "u", "v")]
        yield job("3 sketches, three scans", route, lambda single=single: [run() for run in single])


def join_jobs(bench: Bench) -> Iterator[Job]:
    """Exact joins of the two relations; the Zipf one is too large to be enumerated, and runs grouped only."""

    def job(kind: str, route: str, key: str, run: Callable[[], object]) -> Job:
        return Job(kind, route, key, bench.rows, run)

    yield job("exact join", "spark", "bigint uniform", lambda: bench.exact_join("u"))
    yield job("exact join, grouped first", "spark", "bigint uniform", lambda: bench.grouped_join("u"))
    yield job("exact join, grouped first", "spark", "bigint zipf", lambda: bench.grouped_join("k"))
    yield job("exact join", "duckdb", "bigint uniform", lambda: bench.duckdb_join("u"))
    yield job("answer from stored sketches", "driver", "bigint uniform", bench.answer_stored)
