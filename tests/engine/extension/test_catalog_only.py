"""Without a jar: kept sketches answer as a data source and as a table function, in Python workers."""

from __future__ import annotations

import pytest

from skimql import EnvironmentFault, Session, UnsupportedQuery
from skimql.engine.catalog.catalog import Catalog
from skimql.engine.extension import catalog_only
from skimql.engine.extension.catalog_only import catalog_answer, register

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


def test_the_function_answers_from_the_catalog_without_a_scan(spark, kept):
    register(spark, kept)
    try:
        assert [tuple(r) for r in spark.sql(f"SELECT n, n_low FROM skimql_answer('{Q}')").collect()] == [
            (4, 4.0)
        ]
    finally:
        spark.sql("DROP TEMPORARY FUNCTION skimql_answer")


def test_the_data_source_gives_the_same(kept):
    """Here and not in workers, of which each takes seconds to start; `benchmarks.surfaces` and the docs ask it by Spark."""
    source = catalog_only._source(kept)({"query": Q})
    reader = source.reader(source.schema())
    (partition,) = reader.partitions()
    (batch,) = reader.read(partition)
    assert source.schema().names[:3] == ["n", "n_low", "n_high"]
    assert [tuple(r.values())[:3] for r in batch.to_pylist()] == [(4, 4.0, 4.0)]


def test_what_is_not_kept_is_refused_and_nothing_is_started(kept):
    with pytest.raises(UnsupportedQuery) as fault:
        catalog_answer(kept, f"{Q} WHERE ka.k > 1")
    assert fault.value.code == "SKIMQL_NOT_KEPT"
    with pytest.raises(UnsupportedQuery) as fault:
        catalog_answer(kept, "SELECT 1")
    assert fault.value.code == "SKIMQL_NOT_AN_ANSWER"
    # Spark asks twice, and a reader changes nothing.
    for text in ("DROP SKETCH ska", "CREATE SKETCH other ON ka (k)", "REFRESH SKETCH ska"):
        with pytest.raises(UnsupportedQuery) as fault:
            catalog_answer(kept, text)
        assert fault.value.code == "SKIMQL_NOT_AN_ANSWER"
    assert [r["sketch"] for r in catalog_answer(kept, "SHOW SKETCHES").to_pylist()] == ["ska", "skb"]
    # What Spark shows of a worker's error is its text.
    with pytest.raises(catalog_only.Refused, match=r"^\[SKIMQL_NOT_KEPT\] kept sketches"):
        catalog_only._source(kept)({"query": f"{Q} WHERE ka.k > 1"}).schema()


def test_a_catalog_in_memory_is_refused():
    with pytest.raises(EnvironmentFault) as fault:
        register(None, Catalog())
    assert fault.value.code == "SKIMQL_NO_CATALOG"
