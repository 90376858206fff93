"""What an analysed plan tells of where its tuples come from."""

from __future__ import annotations

import pytest

from skimql.engine.sources.plan_facts import plan_facts


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
