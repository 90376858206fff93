"""Parquet files of one folder whose columns differ in width: the error names the file and the way out."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skimql import SkimqlError


def test_the_file_that_does_not_fit_is_named_and_a_schema_reads_it(session, tmp_path):
    pq.write_table(pa.table({"k": pa.array([1, 2], pa.int32())}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"k": pa.array([2, 3, 1 << 40])}), tmp_path / "b.parquet")
    session.table("t", tmp_path)
    query = "SELECT APPROXIMATE COUNT(*) FROM t a JOIN t b ON a.k = b.k"
    with pytest.raises(SkimqlError) as caught:
        session.sql(query)
    assert "b.parquet" in caught.value.message
    assert "schema='k BIGINT" in caught.value.message
    session.table("t", tmp_path, schema="k BIGINT")
    assert session.sql(query).value == 7
