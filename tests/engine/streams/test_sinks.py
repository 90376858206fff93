"""A row for every batch, each batch once, wherever the process dies."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest
from support.continuous import Killed, MemorySpark, declared, stream_of
from support.memory import arrow

from skimql.engine.catalog.catalog import Catalog
from skimql.errors import StreamError

SCHEMA = "k BIGINT, batch BIGINT"


@pytest.mark.parametrize("kill", [None, (1, "built"), (1, "saved"), (2, "committed")])
def test_every_batch_has_its_row_once(tmp_path, kill):
    sink = tmp_path / "sink"
    catalog = declared(
        Catalog(tmp_path / "c"),
        [stream_of("S", SCHEMA)],
        {"q": ("SELECT APPROXIMATE COUNT(*) AS n, SUM(batch) AS batch FROM s", {"sink": str(sink)})},
    )
    batches = [arrow(SCHEMA, [(n, 1)] * (n + 1)) for n in range(3)]
    spark = MemorySpark(catalog, "S", tmp_path / "checkpoint")
    if kill is not None:
        with pytest.raises(Killed):
            spark.run(batches, kill)
    spark.run(batches)
    files = sorted(f.name for f in sink.iterdir())
    assert files == [f"s-{n:012}.parquet" for n in range(3)]
    rows = [pq.read_table(sink / f).to_pylist()[0] for f in files]
    assert [(r["n"], r["batch"], r["batch_2"], r["stream"]) for r in rows] == [
        (1, 1, 0, "S"),
        (3, 3, 1, "S"),
        (6, 6, 2, "S"),
    ]


def test_a_sink_that_cannot_be_written_stops_the_batch(tmp_path):
    (tmp_path / "file").write_text("")
    catalog = declared(
        Catalog(tmp_path / "c"),
        [stream_of("s", SCHEMA)],
        {"q": ("SELECT APPROXIMATE COUNT(*) FROM s", {"sink": str(tmp_path / "file")})},
    )
    spark = MemorySpark(catalog, "s", tmp_path / "checkpoint")
    with pytest.raises(StreamError, match="cannot be written") as fault:
        spark.run([arrow(SCHEMA, [(1, 1)])])
    assert fault.value.code == "SKIMQL_SINK_NOT_WRITTEN"
    assert catalog.manifest.continuous.streams["s"].state is None


def test_a_file_of_another_is_not_replaced(tmp_path):
    sink = tmp_path / "sink"
    sink.mkdir()
    (sink / "s-000000000000.parquet").write_text("mine")
    catalog = declared(
        Catalog(tmp_path / "c"),
        [stream_of("s", SCHEMA)],
        {"q": ("SELECT APPROXIMATE COUNT(*) FROM s", {"sink": str(sink)})},
    )
    spark = MemorySpark(catalog, "s", tmp_path / "checkpoint")
    with pytest.raises(StreamError, match="that is not of this batch"):
        spark.run([arrow(SCHEMA, [(1, 1)])])
    assert [f.read_text() for f in sink.iterdir()] == ["mine"]
