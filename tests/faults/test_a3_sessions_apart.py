"""Sessions of one Spark, and the user's own work beside them, see nothing of one another."""

from __future__ import annotations

import threading

import pytest
from pyspark import RDD
from pyspark.sql import SparkSession

from skimql import Session, SkimqlError

# Interpreted, Spark's own list of its tables cannot be read.
pytestmark = pytest.mark.usefixtures("as_users_have_it")


def values(frame):
    return sorted(row[0] for row in frame.collect())


def numbers(spark, *values):
    return spark.sql(f"SELECT * FROM VALUES {', '.join(f'({v})' for v in values)} AS v(k)")


def views(spark):
    return {t.name for t in spark.catalog.listTables() if t.isTemporary}


@pytest.fixture
def pair(spark):
    """Two sessions whose tables have the same names."""
    before = views(spark)
    one, two = Session(spark, error=None), Session(spark, error=None)
    one.table("t", numbers(spark, 1))
    one.table("u", numbers(spark, 1, 2))
    two.table("t", numbers(spark, 1, 1, 2))
    yield one, two
    for name in views(spark) - before:
        spark.catalog.dropTempView(name)


SUBQUERY = "SELECT APPROXIMATE COUNT(*) FROM u a JOIN u b ON a.k = b.k WHERE a.k IN (SELECT k FROM t)"


def test_a_session_answers_from_its_own_tables_whatever_another_registers(pair, spark):
    one, _ = pair
    join = "SELECT APPROXIMATE COUNT(*) FROM t JOIN u ON t.k = u.k"
    assert one.sql(f"{join} ERROR WITHIN 5%").value == 1
    assert one.sql(SUBQUERY).value == 1
    assert one.sql("EXACT SELECT COUNT(*) FROM t").value == 1
    assert one.compare(join).compared[0][0] == 1
    assert values(one.sql("SELECT k FROM t")) == [1]
    assert one.sql("ESTIMATE ROWS FOR SELECT * FROM t JOIN u ON t.k = u.k").value == 1
    one.sql("CREATE SKETCH st ON t (k)")
    one.sql("CREATE SKETCH su ON u (k)")
    assert one.sql(join).value == 1


def test_the_users_views_are_neither_added_to_nor_replaced(pair, spark):
    one, two = pair
    active = SparkSession.getActiveSession(), RDD.toDF
    assert not views(spark) & {"t", "u"}
    numbers(spark, 7, 8).createOrReplaceTempView("t")
    spark.sql("CREATE OR REPLACE TEMP VIEW over_t AS SELECT k + 1 AS k FROM t")
    one.table("t", numbers(spark, 1))
    one.sql(SUBQUERY)
    one.guard(numbers(spark, 1), numbers(spark, 1), on="k")
    assert (SparkSession.getActiveSession(), RDD.toDF) == active
    assert values(spark.table("t")) == [7, 8]
    assert views(spark) >= {"t", "over_t"}
    assert not [v for v in views(spark) if "skimql" in v or v == "u"]
    # The user's view is of the user's t, also where ours hides that name.
    assert values(one.sql("SELECT k FROM over_t WHERE k - 7 IN (SELECT k FROM t)")) == [8]
    assert values(two.sql("SELECT k FROM over_t")) == [8, 9]
    assert one.sql("SELECT APPROXIMATE COUNT(*) FROM over_t o JOIN t ON t.k = o.k - 7").value == 1


def test_what_the_user_changes_in_spark_is_seen_by_the_next_statement(pair, spark):
    one, _ = pair
    count = "SELECT APPROXIMATE COUNT(*) FROM mine m JOIN u ON m.k = u.k WHERE u.k IN (SELECT k FROM mine)"
    numbers(spark, 1, 1).createOrReplaceTempView("mine")
    one.table("alias", "mine")
    by_alias = count.replace("FROM mine", "FROM alias")
    assert one.sql(count).value == 2
    assert one.sql(by_alias).value == 2
    numbers(spark, 1, 2, 2).createOrReplaceTempView("mine")
    assert one.sql(count).value == 3
    assert one.sql(by_alias).value == 3
    spark.udf.register("only", lambda k: k == 2, "boolean")
    assert one.sql(count + " AND only(m.k)").value == 2
    spark.udf.register("only", lambda k: k == 1, "boolean")
    assert one.sql(count + " AND only(m.k)").value == 1
    spark.sql("DECLARE OR REPLACE VARIABLE wanted_k INT DEFAULT 1")
    assert one.sql("EXACT SELECT COUNT(*) FROM t WHERE k = wanted_k").value == 1
    spark.sql("SET VARIABLE wanted_k = 2")
    assert one.sql("EXACT SELECT COUNT(*) FROM t WHERE k = wanted_k").value == 0
    spark.sql("DROP TEMPORARY VARIABLE wanted_k")
    spark.sql("DROP TEMPORARY FUNCTION only")
    spark.catalog.dropTempView("mine")
    for gone in (count, by_alias):
        with pytest.raises(SkimqlError) as told:
            one.sql(gone)
        assert told.value.code == "SKIMQL_UNKNOWN_TABLE"


def test_statements_for_spark_take_effect_in_the_users_session(pair, spark, tmp_path):
    one, _ = pair
    one.sql("SET spark.sql.shuffle.partitions = 3")
    try:
        assert spark.conf.get("spark.sql.shuffle.partitions") == "3"
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", "2")
    one.sql("CREATE DATABASE IF NOT EXISTS apart")
    one.sql("USE apart")
    try:
        assert spark.catalog.currentDatabase() == "apart"
        one.sql("CREATE TABLE grown USING parquet AS SELECT k FROM u")
        assert values(spark.table("grown")) == [1, 2]
        assert one.sql("SELECT APPROXIMATE COUNT(*) FROM grown g JOIN t ON g.k = t.k").value == 1
        one.sql("INSERT INTO grown SELECT k FROM t")
        assert values(spark.table("grown")) == [1, 1, 2]
        assert one.sql("SELECT APPROXIMATE COUNT(*) FROM grown g JOIN t ON g.k = t.k").value == 2
        spark.sql("INSERT INTO grown VALUES (1)")
        inside = (
            "SELECT APPROXIMATE COUNT(*) FROM u JOIN grown g ON u.k = g.k WHERE g.k IN (SELECT k FROM grown)"
        )
        assert one.sql(inside).value == 4
    finally:
        spark.sql("USE default")
        spark.sql("DROP DATABASE apart CASCADE")
    one.sql("CREATE OR REPLACE TEMP VIEW of_t AS SELECT k + 10 AS k FROM t")
    assert values(spark.table("of_t")) == [11]
    assert one.sql("SELECT APPROXIMATE COUNT(*) FROM of_t JOIN t ON of_t.k = t.k + 10").value == 1
    one.sql("SELECT k FROM t").createOrReplaceTempView("kept")
    assert values(spark.table("kept")) == [1]
    assert {"t", "u"} <= {row["tableName"] for row in one.sql("SHOW TABLES").collect()}


def test_two_sessions_eight_threads_and_the_users_own_jobs_at_once(pair, spark):
    """All answers are right, no setting is ever seen changed, and no name appears."""
    one, two = pair
    two.table("u", numbers(spark, 1, 2))
    settings = {n: spark.conf.get(n, None) for n in ARROW}
    seen, wrong, over = set(), [], threading.Event()

    def ask(session, expected):
        for _ in range(2):
            found = [session.sql(SUBQUERY).value, session.sql("EXACT SELECT COUNT(*) FROM t").value]
            if found != expected:
                wrong.append((found, expected))

    def watch():
        while not over.wait(0.01):
            seen.update((n, spark.conf.get(n, None)) for n in ARROW)

    def work():
        for size in ("777", "778"):
            spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", size)
            found = spark.range(2000).mapInArrow(lambda bs: bs, "id bigint").toArrow().to_batches()
            if max(len(b) for b in found) > int(size):
                wrong.append(size)

    watcher = threading.Thread(target=watch)
    asking = [threading.Thread(target=ask, args=(s, e)) for s, e in ((one, [1, 1]), (two, [2, 3])) * 4]
    try:
        watcher.start()
        for thread in (*asking, worker := threading.Thread(target=work)):
            thread.start()
        for thread in (*asking, worker):
            thread.join()
        after = spark.conf.get("spark.sql.execution.arrow.maxRecordsPerBatch")
    finally:
        over.set()
        watcher.join()
        for name, value in settings.items():
            spark.conf.unset(name) if value is None else spark.conf.set(name, value)
    assert not wrong
    assert after == "778"
    assert seen <= {*settings.items(), (ARROW[0], "777"), (ARROW[0], "778")}
    assert not views(spark) & {"t", "u"}


ARROW = ("spark.sql.execution.arrow.maxRecordsPerBatch", "spark.sql.execution.arrow.maxBytesPerBatch")
