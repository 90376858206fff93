"""Spark's tables by the jar: the same facts as node by node, and a view from before only where nothing has changed."""

from __future__ import annotations

import pytest
from support.extension import enabled
from support.plan_facts import told
from support.tables import forget_views

from skimql.engine.extension.jar_tables import MOST_VIEWS, JarTables
from skimql.engine.sources.plan_facts import plan_facts
from skimql.engine.sources.source_state import sources_of


@pytest.fixture(scope="module")
def home(spark, tmp_path_factory):
    with enabled(spark, tmp_path_factory.mktemp("jar")):
        yield spark
    forget_views(spark)


@pytest.fixture
def file(home, tmp_path):
    path = str(tmp_path / "t.parquet")
    home.range(5).selectExpr("id AS k", "id AS x").write.parquet(path)
    home.read.parquet(path).createOrReplaceTempView("jt")
    return path


FRAMES = (
    "SELECT * FROM jt",
    "SELECT k + 1 AS k FROM jt WHERE x > 2",
    "SELECT * FROM jt JOIN jt AS u USING (k)",
    "SELECT * FROM jt WHERE k IN (SELECT x FROM jt WHERE x < 3)",
    "SELECT *, rand() AS r FROM jt",
    "SELECT * FROM VALUES (1, 2), (3, 4) AS t(k, x)",
    "SELECT * FROM range(7)",
    "SELECT 1 AS one",
    "SELECT * FROM jt UNION ALL SELECT id, id FROM range(3)",
    "SELECT k, COUNT(*) AS n FROM jt GROUP BY k",
    "SHOW TABLES",
)


@pytest.mark.parametrize("text", FRAMES)
def test_the_jar_tells_what_py4j_tells(home, file, text):
    frame = home.sql(text)
    assert told(JarTables().facts(frame)) == told(plan_facts(frame))
    ours, theirs = sources_of(frame, JarTables().facts), sources_of(frame)
    assert ours == theirs
    assert ours.bare == theirs.bare


def test_so_it_does_of_views_and_tables(home, file, tmp_path):
    home.sql("CREATE OR REPLACE TEMP VIEW jv AS SELECT k AS renamed FROM jt")
    home.read.csv(file, schema="a STRING").createOrReplaceTempView("jc")
    home.sql(f"CREATE TABLE jtable USING parquet LOCATION '{tmp_path / 'table'}' AS SELECT * FROM jt")
    try:
        for name in ("jt", "jv", "jc", "jtable"):
            frame = home.table(name)
            assert told(JarTables().facts(frame)) == told(plan_facts(frame)), name
    finally:
        home.sql("DROP TABLE jtable")


def test_a_cached_frame_is_told_of(home, file):
    frame = home.table("jt").cache()
    try:
        assert JarTables().facts(frame).is_cached()
        assert JarTables().facts(home.table("jt")).is_cached()
    finally:
        frame.unpersist(blocking=True)
    assert not JarTables().facts(home.table("jt")).is_cached()


def test_a_view_is_looked_up_once(home, file):
    tables = JarTables()
    frame = tables.table(home, "jt")
    other = home.range(3).cache()
    try:
        assert tables.table(home, "jt") is frame
        assert tables.facts(frame) is tables.facts(frame)
    finally:
        other.unpersist(blocking=True)


def replaced(home, file):
    home.range(3).selectExpr("id AS other").write.parquet(f"{file}.other")
    home.read.parquet(f"{file}.other").createOrReplaceTempView("jt")


def made_anew_of_the_same(home, file):
    home.read.parquet(file).createOrReplaceTempView("jt")


def appended_and_refreshed(home, file):
    home.range(2).selectExpr("id AS k", "id AS x").write.mode("append").parquet(file)
    home.catalog.refreshTable("jt")


def cached(home, file):
    home.table("jt").cache()


def a_setting_changed(home, file):
    home.conf.set("spark.sql.caseSensitive", "true")


def of_a_text(home, file):
    home.sql(f"CREATE OR REPLACE TEMP VIEW jt AS SELECT * FROM parquet.`{file}`")


@pytest.mark.parametrize(
    "change",
    [replaced, made_anew_of_the_same, appended_and_refreshed, cached, a_setting_changed, of_a_text],
    ids=lambda f: f.__name__,
)
def test_a_view_is_looked_up_again_once_it_may_be_another(home, file, change):
    tables = JarTables()
    before = tables.table(home, "jt")
    tables.facts(before)
    try:
        change(home, file)
        found = tables.table(home, "jt")
        assert found is not before
        assert found.columns == home.table("jt").columns
        assert told(tables.facts(found)) == told(plan_facts(home.table("jt")))
    finally:
        home.conf.unset("spark.sql.caseSensitive")
        home.catalog.clearCache()


def test_a_view_that_is_gone_is_gone(home, file):
    tables = JarTables()
    tables.table(home, "jt")
    home.catalog.dropTempView("jt")
    with pytest.raises(KeyError):
        tables.table(home, "jt")


def test_views_of_other_sessions_are_others(home, file):
    tables, beside = JarTables(), home.newSession()
    home.table("jt").where("k > 2").createOrReplaceTempView("jt")
    beside.read.parquet(file).createOrReplaceTempView("jt")
    assert tables.table(home, "jt").count() == 2
    assert tables.table(beside, "jt").count() == 5
    assert tables.table(home, "jt").count() == 2


@pytest.mark.parametrize("name", ["JT", "`jt`", "Jt"])
def test_names_are_sparks(home, file, name):
    tables = JarTables()
    for _ in range(2):
        assert tables.table(home, name).columns == ["k", "x"]


def test_only_so_many_are_kept(home, file):
    tables = JarTables()
    frame = home.read.parquet(file)
    for number in range(MOST_VIEWS + 3):
        frame.createOrReplaceTempView(f"jt{number}")
        tables.table(home, f"jt{number}")
    assert len(tables._views) == MOST_VIEWS
