"""How Spark's own tables are found by name; a stand-in for Spark."""

from types import SimpleNamespace

import pytest
from pyspark.errors import AnalysisException

from skimql.engine.sources.spark_tables import is_cached, is_frame, refresh_table, spark_table


class Spark:
    def __init__(self, *known):
        self.known, self.tried = known, []
        self.catalog = SimpleNamespace(refreshTable=self.table)

    def table(self, name):
        self.tried.append(name)
        if name not in self.known:
            raise AnalysisException(f"no {name}")
        return SimpleNamespace(name=name, schema=())


@pytest.mark.parametrize(
    ("name", "known", "tried"),
    [
        ("t", "t", 1),
        ("odd name", "`odd name`", 2),
        ("a`b", "`a``b`", 2),
        ("parquet./x/y.z", "`parquet`.`/x/y.z`", 3),
        ("cat.db.t", "`cat`.`db`.`t`", 4),
    ],
)
def test_a_name_is_tried_as_it_stands_then_as_one_identifier_then_as_what_is_in_a_database(
    name, known, tried
):
    spark = Spark(known)
    assert spark_table(spark, name).name == known
    assert len(spark.tried) == tried
    refresh_table(spark, name)
    assert len(spark.tried) == 2 * tried


def test_a_name_that_nobody_knows_is_a_key_error_and_nothing_to_refresh():
    with pytest.raises(KeyError):
        spark_table(Spark(), "x.y")
    refresh_table(Spark(), "x.y")


def test_what_is_a_frame_and_whether_it_is_cached():
    none = SimpleNamespace(useMemory=False, useDisk=False, useOffHeap=False)
    disk = SimpleNamespace(useMemory=False, useDisk=True, useOffHeap=False)
    frame = SimpleNamespace(schema=None, selectExpr=None, storageLevel=none)
    assert (is_frame(frame), is_frame("t"), is_frame(SimpleNamespace(schema=None))) == (True, False, False)
    assert (is_cached(frame), is_cached(SimpleNamespace(storageLevel=disk))) == (False, True)


def test_a_name_that_a_server_does_not_know_is_unknown():
    # A client of Spark Connect is told so when it asks for the schema, not before.
    class Lazy:
        def __init__(self, name):
            self.name = name

        @property
        def schema(self):
            if self.name != "`two words`":
                raise AnalysisException(f"no {self.name}")
            return ()

    client = SimpleNamespace(table=Lazy)
    assert spark_table(client, "two words").name == "`two words`"
    with pytest.raises(KeyError):
        spark_table(client, "nowhere")
