"""A table that the catalog remembers, and that is gone, breaks no statement but those that read it."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skimql import DataError, Session


def test_only_statements_that_read_a_vanished_table_fail(spark, tmp_path):
    path = tmp_path / "o.parquet"
    pq.write_table(pa.table({"k": [1, 2]}), path)
    Session(spark, catalog=tmp_path / "catalog").table("o", path)
    path.unlink()
    session = Session(spark, catalog=tmp_path / "catalog")
    session.table("p", spark.sql("SELECT 1 AS o"))
    for statement in (
        "SELECT count(*) FROM range(3)",
        "SELECT o FROM p",
        "SELECT p.o AS n FROM p ORDER BY o DESC",
        "SELECT 1 AS `o`, 'o' AS t -- o",
        "SHOW TABLES",
        "EXPLAIN SELECT o FROM p",
    ):
        assert session.sql(statement).collect(), statement
    assert session.sql("EXACT SELECT max(o) FROM p").value == 1
    assert session.sql("SELECT APPROXIMATE COUNT(*) FROM p JOIN p q ON p.o = q.o").value == 1
    for statement in ("SELECT * FROM o", "EXACT SELECT count(*) FROM o", "INSERT INTO p SELECT k FROM o"):
        with pytest.raises(DataError) as told:
            session.sql(statement)
        assert told.value.code == "SKIMQL_NO_SUCH_FILE", statement
        assert str(path) in str(told.value)
