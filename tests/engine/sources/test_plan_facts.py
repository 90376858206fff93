"""What an analysed plan tells of where its tuples come from."""

from __future__ import annotations

import pytest
from support.effort import jvm_calls
from support.plan_facts import told

from skimql.engine.sources import plan_facts as plan_facts_module
from skimql.engine.sources.plan_facts import KnownPlans, plan_facts


@pytest.fixture
def file(spark, tmp_path):
    path = str(tmp_path / "t.parquet")
    spark.range(5).selectExpr("id AS k").write.parquet(path)
    return path


def test_a_file_is_a_chain_of_one(spark, file):
    facts = plan_facts(spark.read.parquet(file))
    (leaf,) = facts.leaves
    assert facts.chain == ("LogicalRelation",)
    assert leaf.relation is not None
    assert (leaf.relation.format, [root.rpartition("/")[2] for root in leaf.relation.roots]) == (
        "Parquet",
        ["t.parquet"],
    )
    assert all(name.endswith(".parquet") for name in leaf.relation.files)
    assert facts.deterministic
    assert facts.settled
    assert not facts.in_catalog
    assert not facts.is_cached()


def test_leaves_of_subqueries_are_among_them(spark, file):
    spark.read.parquet(file).createOrReplaceTempView("pf")
    facts = plan_facts(spark.sql("SELECT id FROM range(9) WHERE id IN (SELECT k FROM pf)"))
    assert [leaf.name for leaf in facts.leaves] == ["Range", "LogicalRelation"]
    assert facts.chain[-1] == "Range"
    spark.catalog.dropTempView("pf")


def test_views_of_texts_are_not_settled(spark, file):
    spark.read.parquet(file).createOrReplaceTempView("pf")
    spark.sql("CREATE OR REPLACE TEMP VIEW pg AS SELECT k FROM pf")
    assert plan_facts(spark.table("pf")).settled
    assert not plan_facts(spark.table("pg")).settled
    for name in ("pf", "pg"):
        spark.catalog.dropTempView(name)


def test_constants_tell_plans_apart(spark):
    one, two, again = (
        plan_facts(spark.sql(f"SELECT * FROM VALUES ({n}) AS t(k)")).canonical() for n in (1, 2, 1)
    )
    assert one != two
    assert one == again


TEXTS = (
    "SELECT * FROM kp",
    "SELECT k + 1 AS k FROM kp WHERE k > 2",
    "SELECT * FROM kp JOIN kp AS u USING (k)",
    "SELECT * FROM kp WHERE k IN (SELECT id FROM range(3))",
    "SELECT *, rand() AS r FROM kp",
    "SELECT * FROM VALUES (1, 2), (3, 4) AS t(k, x)",
    "SHOW TABLES",
)


@pytest.mark.parametrize("text", TEXTS)
def test_what_is_remembered_is_what_a_plan_tells(spark, file, text):
    spark.read.parquet(file).createOrReplaceTempView("kp")
    known, frame = KnownPlans(), spark.sql(text)
    for again in (frame, frame, spark.sql(text)):
        assert told(known.facts(again)) == told(plan_facts(again))
    spark.catalog.dropTempView("kp")


def test_files_are_those_of_now(spark, file):
    spark.read.parquet(file).createOrReplaceTempView("kp")
    known = KnownPlans()
    before = known.facts(spark.table("kp"))
    spark.range(7).selectExpr("id AS k").write.mode("append").parquet(file)
    # As Spark itself, which lists the files of a frame once.
    assert told(known.facts(spark.table("kp"))) == told(before)
    spark.catalog.refreshTable("kp")
    (leaf,) = known.facts(spark.table("kp")).leaves
    assert len(leaf.relation.files) == 2 * len(before.leaves[0].relation.files)
    spark.catalog.dropTempView("kp")


def test_of_a_dataframe_seen_before_its_files_alone_are_asked(spark, file):
    known, frame = KnownPlans(), spark.read.parquet(file)
    before = known.facts(frame)
    with jvm_calls() as calls:
        again = known.facts(frame)
    assert calls.number == 3
    assert told(again) == told(before)


def test_what_another_jvm_has_told_is_forgotten(spark, file):
    known, frame = KnownPlans(), spark.read.parquet(file)
    expected = told(known.facts(frame))
    known._jvm = None
    with jvm_calls() as calls:
        assert told(known.facts(frame)) == expected
    assert calls.number > 20


def test_a_view_of_another_frame_is_another_plan(spark, file, tmp_path):
    other, known = str(tmp_path / "other.parquet"), KnownPlans()
    spark.range(5).selectExpr("id AS k").write.parquet(other)
    for path in (file, other):
        spark.read.parquet(path).createOrReplaceTempView("kp")
        (leaf,) = known.facts(spark.table("kp")).leaves
        assert leaf.relation.roots[0].endswith(path)
    spark.table("kp").cache()
    assert known.facts(spark.table("kp")).is_cached()
    spark.table("kp").unpersist()
    assert not known.facts(spark.table("kp")).is_cached()
    spark.catalog.dropTempView("kp")


def test_the_latest_are_remembered(spark, file, monkeypatch):
    monkeypatch.setattr(plan_facts_module, "MOST_KNOWN", 2)
    known = KnownPlans()
    for _ in range(4):
        known.facts(spark.read.parquet(file))
    assert len(known._known) == 2


def test_what_spark_cuts_short_is_told_apart(spark, file):
    """Its texts have 25 values of a list and 25 columns of a row."""
    known, frame = KnownPlans(), spark.read.parquet(file)
    named = [f"k + {n} AS c{n}" for n in range(30)]
    base = frame.selectExpr(*named)
    wide = [base.selectExpr(*base.columns[:29], f"c29 + {n} AS last") for n in range(2)]
    lists = [frame.where(frame.k.isin([*range(40), n])) for n in (77, 78)]
    for one, two in (wide, lists):
        assert known.facts(one).canonical() != known.facts(two).canonical()
        assert known.facts(two).canonical() == plan_facts(two).canonical()
