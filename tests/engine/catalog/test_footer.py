"""What a Parquet file says of itself, read before a page is decompressed."""

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skimql.engine.catalog.footer import MAGIC, read_footer


def parquet():
    table = pa.table({"a": list(range(100)), "b": ["x"] * 100}).replace_schema_metadata({"own": "words"})
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=60)
    return sink.getvalue()


def test_a_footer_tells_metadata_rows_and_pages():
    footer = read_footer(parquet(), 2)
    assert footer.rows == 100
    assert footer.metadata[b"own"] == b"words"
    assert [c.column for c in footer.chunks] == [0, 1, 0, 1]
    assert sum(c.values for c in footer.chunks if c.column == 0) >= 100


@pytest.mark.parametrize(
    "spoil",
    [lambda d: d[:-1], lambda d: MAGIC, lambda d: b"", lambda d: d[:-8] + b"\xff" * 4 + MAGIC],
)
def test_anything_else_is_refused(spoil):
    with pytest.raises(ValueError):
        read_footer(spoil(parquet()), 2)
    with pytest.raises(ValueError):
        read_footer(parquet(), 3)
