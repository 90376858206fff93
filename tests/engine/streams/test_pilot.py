"""The first events of a view's streams, read before it runs: its method and size are planned from them."""

from __future__ import annotations

import json

import numpy as np
import pytest

from skimql import Session
from skimql.errors import SkimqlError


def write(folder, name, keys, op="i"):
    folder.mkdir(exist_ok=True)
    lines = (json.dumps({"k": int(k), "x": 0.5, "op": op}) for k in keys)
    (folder / name).write_text("\n".join(lines))


def test_a_view_is_planned_from_the_files_that_are_there(spark, tmp_path):
    random = np.random.default_rng(1)
    for name in "ab":
        write(tmp_path / name, "0.json", random.integers(0, 2000, 5000))
        write(tmp_path / name, "_hidden.json", [1] * 10)
    session = Session(spark, catalog=tmp_path / "c")
    for name in "ab":
        session.sql(
            f"CREATE STREAM {name} (k BIGINT, x DOUBLE, op STRING) FROM JSON '{tmp_path / name}' DELETES WHEN op = 'd'"
        )
    select = "SELECT APPROXIMATE COUNT(*) AS n FROM a JOIN b USING (k)"
    create = "CREATE CONTINUOUS VIEW {} WITH (trigger = 'available now') AS {}"
    session.sql(create.format("q", f"{select} ERROR WITHIN 10%"))
    answer = session.answer("SELECT * FROM q")
    (row,) = answer.records()
    assert answer.method == "key_sample"
    # Spark knows the view by its name without being told.
    assert spark.table("q").columns == list(row)
    assert spark.sql("SELECT n FROM q").collect()[0].n == row["n"]
    assert (row["target"], row["as_of_batch"]) == ("unknown", "a 0, b 0")
    session.sql(create.format("h", f"{select} USING hash OPTIONS (buckets = 8192)"))
    exact = session.answer("SELECT * FROM h")
    assert exact.value == pytest.approx(row["n"], rel=0.15)
    plan = str(session.sql("EXPLAIN SKETCHES q"))
    assert "key_sample is taken" in plan
    assert "of the keys" in plan
    session.sql(
        "CREATE STREAM r (timestamp TIMESTAMP, value BIGINT) FROM RATE '' OPTIONS (rowsPerSecond = 1)"
    )
    (tmp_path / "empty").mkdir()
    session.sql(f"CREATE STREAM e (k BIGINT) FROM PARQUET '{tmp_path / 'empty'}'")
    for other in ("r ON a.k = r.value", "e ON a.k = e.k"):
        with pytest.raises(SkimqlError, match="local folder with files") as fault:
            session.sql(
                create.format("p", f"SELECT APPROXIMATE COUNT(*) FROM a JOIN {other} ERROR WITHIN 5%")
            )
        assert fault.value.code == "SKIMQL_NO_PILOT"
    with pytest.raises(SkimqlError, match="no sums of DOUBLE") as fault:
        session.sql(create.format("p", f"{select.replace('COUNT(*)', 'SUM(a.x)')} USING key_sample"))
    assert fault.value.code == "SKIMQL_UNKNOWN_METHOD"
    for name, summed, way in (("n3", "COUNT(*)", "key_sample"), ("x3", "SUM(e.k * 0.5D)", "hash")):
        of_three = f"SELECT APPROXIMATE {summed} FROM a JOIN b USING (k) JOIN e ON b.k = e.k"
        session.sql(create.format(name, of_three))
        assert way in str(session.sql(f"EXPLAIN SKETCHES {name}"))
    session.sql("TERMINATE h")
    assert (spark.catalog.tableExists("h"), spark.catalog.tableExists("q")) == (False, True)
    session.close()
    assert not spark.catalog.tableExists("q")
