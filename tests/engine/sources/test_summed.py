"""A glance at summed values with Spark: of files without a job, of anything else of its first tuples."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.questions import query

from skimql.engine.sources.summed import summed_values

pytestmark = pytest.mark.spark


def test_of_files_and_of_views_the_values_behind_the_filter_are_seen(session, spark, tmp_path):
    pq.write_table(pa.table({"k": range(100), "v": range(100)}), tmp_path / "t.parquet")
    session.table("t", str(tmp_path / "t.parquet"))
    session.table("u", spark.sql("SELECT id AS k, CAST(id AS STRING) AS s FROM range(50)"))
    schemas = {n: session.tables[n] for n in "tu"}
    asked = query(
        "SUM(t.v), SUM(CAST(u.s AS DOUBLE)) FROM t JOIN u ON t.k = u.k WHERE t.v < 10 AND u.k >= 45", schemas
    )
    of_file, of_view = summed_values(spark, session.tables, asked)
    assert (sorted(of_file.values), of_file.largest) == (list(range(10)), 99)
    assert (sorted(of_view.values), of_view.largest) == (list(range(45, 50)), np.inf)
