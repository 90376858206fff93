"""The keys of some tuples: those of columns of integers, as the files have them, without a job."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skimql.engine.sources.keys_seen import column_of, distinct_keys, keys_seen, seen_distinct
from skimql.optimizer.plan import Attribute

pytestmark = pytest.mark.spark

SHUFFLED = [i * 7919 % 1000 // 3 for i in range(1000)]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    found = str(tmp_path_factory.mktemp("seen") / "keys.parquet")
    columns = {"k": range(1000), "u": [*SHUFFLED[:-1], None], "s": ["1"] * 1000, "d": [1.5] * 1000}
    pq.write_table(pa.table(columns), found)
    return found


def of(frame, *keys, kind="bigint"):
    return keys_seen(frame, Attribute(keys, (kind,) * len(keys), ""))


def test_keys_are_those_of_a_column_of_integers_and_say_whether_they_are_ordered(spark, path):
    frame = spark.read.parquet(path)
    tracker = spark.sparkContext.statusTracker()
    before = len(tracker.getJobIdsForGroup())
    ordered, mixed = of(frame, "`k`"), of(frame, "`u`")
    assert len(tracker.getJobIdsForGroup()) == before, "no job"
    assert (ordered.ordered, mixed.ordered) == (True, False)
    keys, counts = np.unique(SHUFFLED[:-1], return_counts=True)
    assert (mixed.keys.tolist(), mixed.counts.tolist()) == (keys.tolist(), counts.tolist())
    assert mixed.keys.dtype == np.int64
    both = of(frame, "`u`", "`k`")
    assert (both.keys.size, both.counts.max(), both.ordered, both.present) == (999, 1, False, 0.999)
    assert both.keys.tolist() != of(frame, "`k`", "`u`").keys.tolist(), (
        "in the order of the key, not of the file"
    )
    assert (mixed.tuples, mixed.present) == (1000, 0.999), "without NULL, of all that were looked at"


def test_what_is_no_column_of_integers_or_of_no_file_has_no_keys_that_are_seen(spark, path):
    frame = spark.read.parquet(path)
    assert of(frame, "`s`", kind="string") is None
    assert of(frame, "`s`") is None, "text that is compared as an integer"
    assert of(frame, "`d`") is None
    assert of(frame, "`k` + 1") is None
    assert of(frame, "`k`", "`s`") is None
    assert of(frame, "`t`.`k`") is None
    assert of(frame, "`nowhere`") is None
    assert of(frame, "`k` +") is None
    assert of(spark.range(10), "`id`") is None


def test_the_distinct_keys_of_a_small_table_are_counted_of_any_type(path):
    assert distinct_keys([path], ["K"]) == 1000
    assert distinct_keys([path], ["u", "s"]) == len({*SHUFFLED[:-1], None})
    assert distinct_keys([path, path], ["d"]) == 1
    assert distinct_keys([path], ["nowhere"]) == math.inf
    assert distinct_keys([], ["k"]) == math.inf


def test_distinct_keys_of_a_large_table_are_told_by_some_of_its_tuples(path):
    assert seen_distinct([path], ["K"], 1000.0) == 1000.0
    assert seen_distinct([path], ["k", "s"], 4000.0) == 2000.0, "each key once: the root of what was not seen"
    assert seen_distinct([path], ["s"], 1e9) == 1.0
    assert seen_distinct([path], ["nowhere"], 1e9) == math.inf
    assert seen_distinct([], ["k"], 1e9) == math.inf


def test_a_key_is_a_column_or_an_expression():
    assert column_of("`a b`") == "a b"
    assert column_of("`a` + 1") is None
    assert column_of("`t`.`a`") is None
    assert column_of("`a") is None


def test_keys_of_a_file_that_is_written_again_are_seen_anew(spark, tmp_path):
    path = str(tmp_path / "again.parquet")
    for last in (10, 5000):
        pq.write_table(pa.table({"k": range(last)}), path)
        seen = of(spark.read.parquet(path), "`k`")
        assert (seen.keys.size, seen.tuples) == (last, last)
        assert of(spark.read.parquet(path), "`k`") is seen, "looked at once"
