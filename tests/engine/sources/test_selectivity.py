"""A glance at filters: no job, the share that Spark's own evaluation gives, 1 where the files do not tell."""

from __future__ import annotations

import math

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

from skimql.engine.memory_backend.expressions import evaluate
from skimql.engine.sources.files import column_range, files_of, has_nan, values_between
from skimql.engine.sources.ranges import ANY, Range
from skimql.engine.sources.selectivity import PROBE, Probe
from skimql.engine.sources.source_state import sources_of

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """100,000 tuples in ten row groups; column day grows with the rows."""
    path = tmp_path_factory.mktemp("glance") / "t.parquet"
    rows = 100_000
    table = pa.table(
        {"Id": range(rows), "day": [i // 100 for i in range(rows)], "s": ["x", "{y}"] * (rows // 2)}
    )
    pq.write_table(table, path, row_group_size=rows // 10)
    return str(path)


@pytest.mark.parametrize(
    ("condition", "share", "tolerance"),
    [
        ("id % 4 = 0", 0.25, 0.001),
        ("s = '{y}'", 0.5, 0.001),
        ("`day` < 500", 0.5, 0.26),  # of four places, two or so
        ("1 = 0", 0.0, 0.0),
        ("s IS NULL", 0.0, 0.0),
    ],
)
def test_share(session, file, condition, share, tolerance):
    frame = session.spark.read.parquet(file)
    tracker = session.spark.sparkContext.statusTracker()
    before = len(tracker.getJobIdsForGroup())
    found = Probe(lambda: session.spark, frame).share(condition)
    assert abs(found - share) <= tolerance
    assert len(tracker.getJobIdsForGroup()) == before, "no job"


def test_all_rows_of_a_small_file_are_looked_at(session, tmp_path):
    path = str(tmp_path / "small.parquet")
    pq.write_table(pa.table({"a": range(1000)}), path)
    assert PROBE > 1000
    assert Probe(lambda: session.spark, session.spark.read.parquet(path)).share("a < 77") == 0.077


def test_groups_are_those_of_some_tuples_behind_the_filter(session, file):
    frame = session.spark.read.parquet(file)

    def groups(condition, *expressions):
        return Probe(lambda: session.spark, frame).groups(condition, expressions)

    assert (groups(None, "`s`"), groups("Id % 2 = 0", "s"), groups(None, "s", "Id % 3")) == (2, 1, 6)
    assert groups("1 = 0", "s") is None
    assert groups(None, "nowhere") is None


def test_the_least_group_is_told_by_its_share_and_what_cannot_be_evaluated_by_none(session, file):
    probe = Probe(lambda: session.spark, session.spark.read.parquet(file))
    assert probe.least_group(None, ["Id % 10 < 3"]) == pytest.approx(0.3, abs=0.01)
    assert probe.least_group("s = 'x'", ["s", "Id % 4"]) == pytest.approx(0.5, abs=0.01)
    assert (probe.told_share("s = 'x'"), probe.told_share("nowhere = 1"), probe.share("nowhere = 1")) == (
        0.5,
        None,
        1.0,
    )
    assert probe.least_group("1 = 0", ["s"]) is None
    assert probe.least_group(None, ["nowhere"]) is None


def test_what_can_be_evaluated_in_the_driver_does_not_ask_spark(session, file):
    """Without a Spark session nobody evaluates what the driver does not know."""

    def in_driver(expression, tuples):
        return evaluate(expression, tuples).data

    frame = session.spark.read.parquet(file)
    here, there = Probe(lambda: None, frame, in_driver), Probe(lambda: session.spark, frame)
    for condition in ("id % 4 = 0 AND s = 'x'", "s LIKE '%y}' OR id BETWEEN 5 AND 900", "day IN (3, 900)"):
        assert here.share(condition) == there.share(condition) < 1.0
    assert here.groups("id < 40000", ["s", "Id % 3"]) == there.groups("id < 40000", ["s", "Id % 3"]) == 6
    asked = ("day < 2", "CASE WHEN s = 'x' THEN 0.5 ELSE NULL END")
    assert here.values(*asked) == there.values(*asked)
    assert {0.5, None} == set(here.values(*asked))
    unknown = "hash(id) % 4 = 0"
    with pytest.raises(AttributeError, match="createDataFrame"):
        here.share(unknown)
    assert Probe(lambda: session.spark, frame, in_driver).share(unknown) == there.share(unknown) < 1.0


@pytest.mark.parametrize("condition", ["nowhere = 1", "Id = ", "computed > 3"])
def test_what_the_files_do_not_tell_is_taken_for_all(session, file, condition):
    frame = session.spark.read.parquet(file).withColumn("computed", F.col("Id") + 1)
    assert Probe(lambda: session.spark, frame).share(condition) == 1.0


def test_no_files(session):
    assert Probe(lambda: session.spark, session.spark.range(10)).share("id < 3") == 1.0


def test_an_empty_file(session, tmp_path):
    path = str(tmp_path / "empty.parquet")
    pq.write_table(pa.table({"a": pa.array([], pa.int64())}), path)
    assert Probe(lambda: session.spark, session.spark.read.parquet(path)).share("a < 3") == 1.0


def test_values_between_is_told_by_footers_of_integers(session, file, tmp_path):
    frame = session.spark.read.parquet(file)
    assert values_between(frame, "id") == 100_000
    assert values_between(frame, "day") == 1000
    assert values_between(frame, "s") == math.inf
    assert values_between(frame, "no such column") == math.inf
    nested = str(tmp_path / "nested.parquet")
    session.spark.sql("SELECT struct(id * 1000 AS id) AS s, id FROM range(7)").write.parquet(nested)
    assert values_between(session.spark.read.parquet(nested), "id") == 7
    csv = tmp_path / "t.csv"
    csv.write_text("k\n1\n5\n")
    assert values_between(session.spark.read.csv(str(csv), header=True), "k") == math.inf
    assert values_between(session.spark.range(5), "id") == math.inf


def test_a_column_range_is_that_of_files_and_of_a_view_of_nothing_but_them(session, file):
    """A view may call anything by the name of a column: what bounds an interval must hold."""
    session.table("t", file)
    session.table("viewed", session.spark.read.parquet(file).selectExpr("Id * 1000 AS Id"))
    read = session.spark.read.parquet(file)
    read.createOrReplaceTempView("renamed")
    session.table("given", read)
    session.spark.sql("CREATE OR REPLACE TEMP VIEW of_text AS SELECT day AS Id FROM renamed")
    for bare in ("t", "renamed", "given"):
        assert column_range(session.tables, bare, "Id") == Range(0.0, 99_999.0, 64)
    assert column_range(session.tables, "of_text", "Id") == ANY
    assert column_range(session.tables, "t", "iD").bits == 64, (
        "an integer by any spelling: its products may overflow"
    )
    assert column_range(session.tables, "viewed", "Id") == ANY
    assert column_range(session.tables, "t", "s") == ANY
    assert sources_of(read).bare
    read.cache()
    assert not sources_of(session.spark.table("renamed")).bare, "what is cached may be of files as they were"
    read.unpersist()


def test_whether_a_column_has_nan_is_counted_once_for_each_state_of_its_files(session, tmp_path):
    """Footers tell the least and the greatest number beside it, and nothing of the NaN itself."""
    asked = []

    def run(frame):
        asked.append(frame)
        return frame.toArrow()

    for values, has in (([1.0, 5.0], False), ([1.0, float("nan"), 5.0], True)):
        path = str(tmp_path / f"{has}.parquet")
        pq.write_table(pa.table({"a b": values, "n": pa.array(range(len(values)))}), path)
        session.table("t", path)
        assert column_range(session.tables, "t", "a b") == Range(1.0, 5.0, None)
        assert [has_nan(session.tables, "t", name, run) for name in ("a b", "A b", "n")] == [has, has, False]
        kept = {c: has_nan(session.tables, "t", "a b", run, c) for c in ("n = 1", "n <> 1", "n = 1")}
        assert kept == {"n = 1": has, "n <> 1": False}, "what the filter leaves out is added up by nobody"
    assert len(asked) == 4


def test_files_that_are_read_twice_tell_no_number_of_tuples(session, tmp_path):
    """What is named twice, or beside its folder, is read twice; Spark lists it once."""
    session.spark.range(1000).write.parquet(str(tmp_path / "a"))
    session.spark.range(10).write.parquet(str(tmp_path / "ab"))
    (part,) = [str(p) for p in (tmp_path / "a").glob("*.parquet")][:1]
    read = session.spark.read.parquet
    folder = str(tmp_path / "a")
    for paths in ((folder, folder), (folder, part), (part, part)):
        twice = read(*paths)
        assert twice.count() > read(folder).count() or part in paths
        found = sources_of(twice)
        assert not found.whole
        assert not found.bare
    assert sources_of(read(folder, str(tmp_path / "ab"))).bare, "of two folders, one named like the other"
    twice = read(folder, folder)
    twice.createOrReplaceTempView("twice")
    assert files_of(session.tables, "twice", twice, count=True).tuples is None
    assert column_range(session.tables, "twice", "id") == ANY


def test_the_integers_behind_a_filter_are_those_of_the_tuples_that_are_looked_at(session, file):
    frame = session.spark.read.parquet(file)

    def values_of(expression, tuples):
        return evaluate(expression, tuples).data

    probe = Probe(lambda: session.spark, frame, values_of)
    seen = probe.passing("s = 'x' AND ID % 4 = 0", "Id")
    whole = probe.passing("Id >= 0", "Id")
    assert whole.size == PROBE // 4 * 4
    assert seen.tolist() == [n for n in whole.tolist() if n % 4 == 0]
    assert seen.dtype == "int64"
    # Nothing but Spark tells, no such column, no integers, no files.
    assert Probe(lambda: session.spark, frame).passing("Id >= 0", "Id") is None
    for condition, column in (("Id >= 0", "nowhere"), ("Id >= 0", "s"), ("java_method('a', 'b') = s", "Id")):
        assert probe.passing(condition, column) is None
    assert Probe(lambda: session.spark, frame, values_of, ()).passing("Id >= 0", "Id") is None
