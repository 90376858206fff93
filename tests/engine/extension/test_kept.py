"""Without a jar: kept sketches answer as a data source and as a table function, in Python workers."""

from __future__ import annotations

import pytest

from skimql import EnvironmentFault, Session, UnsupportedQuery
from skimql.engine.catalog.catalog import Catalog
from skimql.engine.extension.kept import kept_answer, register

Q = "SELECT APPROXIMATE COUNT(*) AS n FROM ka JOIN kb ON ka.k = kb.k"


@pytest.fixture(scope="module")
def kept(spark, tmp_path_factory):
    folder = tmp_path_factory.mktemp("kept")
    with_sketches = Session(spark, catalog=folder, error=None)
    with_sketches.table("ka", spark.sql("SELECT * FROM VALUES (1), (1), (2) AS t(k)"))
    with_sketches.table("kb", spark.sql("SELECT * FROM VALUES (1), (2), (2) AS t(k)"))
    for table in ("ka", "kb"):
        with_sketches.sql(f"CREATE SKETCH s{table} ON {table} (k)")
    return str(folder)


def test_both_answer_from_the_catalog_without_a_scan(spark, kept):
    register(spark, kept)
    by_source = spark.read.format("skimql").option("query", Q).load()
    by_function = spark.sql(f"SELECT n, n_low FROM skimql_answer('{Q}')")
    assert by_source.columns[:3] == ["n", "n_low", "n_high"]
    assert by_source.collect()[0][:3] == (4, 4.0, 4.0)
    assert [tuple(r) for r in by_function.collect()] == [(4, 4.0)]
    spark.sql("DROP TEMPORARY FUNCTION skimql_answer")


def test_what_is_not_kept_is_refused_and_nothing_is_started(kept):
    with pytest.raises(UnsupportedQuery) as fault:
        kept_answer(kept, f"{Q} WHERE ka.k > 1")
    assert fault.value.code == "SKIMQL_NOT_KEPT"
    with pytest.raises(UnsupportedQuery) as fault:
        kept_answer(kept, "SELECT 1")
    assert fault.value.code == "SKIMQL_NOT_AN_ANSWER"


def test_a_catalog_in_memory_is_refused():
    with pytest.raises(EnvironmentFault) as fault:
        register(None, Catalog())
    assert fault.value.code == "SKIMQL_NO_CATALOG"
