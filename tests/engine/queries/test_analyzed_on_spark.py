"""EXPLAIN ANALYZE on Spark: rows and bytes of every operator are those of the tables, by either route."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytestmark = pytest.mark.spark

ASK = "SELECT APPROXIMATE COUNT(*), SUM(a.v) FROM a JOIN b ON a.k = b.k"
RNG = np.random.default_rng(3)


@pytest.fixture
def files(session, tmp_path):
    for name, tuples in (("a", 4000), ("b", 3000)):
        columns = {"k": RNG.integers(0, 500, tuples), "v": RNG.integers(0, 100, tuples)}
        pq.write_table(pa.table(columns), tmp_path / f"{name}.parquet")
        session.table(name, str(tmp_path / f"{name}.parquet"))
    return tmp_path


def analyzed(session, text):
    return json.loads(session.sql(f"EXPLAIN ANALYZE FORMAT JSON {text}").value)["plan"]["run"]


def flat(operators):
    return {
        o["operator"] + " " + (o["of"] or ""): o
        for own in operators
        for o in (own, *flat(own["inputs"]).values())
    }


def read_of(path, *columns):
    """Bytes of some columns in a Parquet file."""
    footer = pq.read_metadata(path)
    return sum(
        footer.row_group(g).column(c).total_compressed_size
        for g in range(footer.num_row_groups)
        for c in range(footer.num_columns)
        if footer.schema.column(c).name in columns
    )


def test_scans_attempts_and_kept_sketches_are_told_with_what_they_took(session, files):
    session.sql("SET skimql.cache = true")
    for ask, columns in (
        (f"{ASK} OPTIONS (sparse = false, buckets = 64)", ("kv", "k")),
        (
            f"{ASK.replace(', SUM(a.v)', '')} OPTIONS (cache = false, route = jvm, buckets = 64, seed = 3)",
            ("k", "k"),
        ),
    ):
        (run,) = analyzed(session, ask)
        told = flat(run["operators"])
        assert [told[f"scan {t}"]["actual"]["rows"] for t in "ab"] == [4000, 3000]
        for name, own in zip("ab", columns, strict=True):
            size, figures = read_of(files / f"{name}.parquet", *own), told[f"scan {name}"]["actual"]
            assert size <= figures["bytes_read"] <= 3 * size + 20_000
            assert figures["cpu_seconds"] > 0
            assert told[f"scan {name}"]["predicted"]["rows"] == figures["rows"]
        assert run["in_all"]["actual"]["bytes_held"] == run["bytes"]

    first, second = analyzed(
        session, f"{ASK} ERROR WITHIN 0.1% BEHAVIOR 'run_on_full_table' OPTIONS (buckets = 64)"
    )
    loads = [o for o in flat(first["operators"]).values() if o["operator"] == "load"]
    assert sorted(o["actual"]["rows"] for o in loads) == [3000, 4000]
    assert all(o["actual"]["rows"] == o["predicted"]["rows"] for o in loads)
    (exact,) = second["operators"]
    assert (exact["operator"], exact["actual"]["rows"], exact["actual"]["half_width"]) == (
        "exact run",
        1,
        0.0,
    )
    assert exact["actual"]["bytes_read"] >= read_of(files / "a.parquet", "k", "v") + read_of(
        files / "b.parquet", "k"
    )
