"""Rows that could not be read."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from skimql.engine.streams.quarantine import FILE, write_rows
from skimql.errors import StreamError


def test_a_batch_that_comes_again_replaces_its_own_rows_alone(tmp_path):
    for batch in (3, 4, 3):
        write_rows(tmp_path, batch, pa.table({"row": [f"batch {batch} ä", None], "reason": ["a", "b"]}))
    (tmp_path / "batch=3" / "mine.json").write_text("mine")
    write_rows(tmp_path, 3, pa.table({"row": ["new"]}))
    kept = (tmp_path / "batch=4" / FILE).read_text().splitlines()
    assert [json.loads(line) for line in kept] == [
        {"row": "batch 4 ä", "reason": "a"},
        {"row": None, "reason": "b"},
    ]
    assert {p.name: p.read_text() for p in (tmp_path / "batch=3").iterdir()} == {
        "mine.json": "mine",
        FILE: '{"row": "new"}\n',
    }


def test_where_they_cannot_be_written_the_batch_stops(tmp_path):
    (tmp_path / "batch=0").write_text("in the way")
    with pytest.raises(StreamError, match="are not written to") as fault:
        write_rows(tmp_path, 0, pa.table({"row": ["x"]}))
    assert fault.value.code == "SKIMQL_QUARANTINE_NOT_WRITTEN"


def test_text_whose_bytes_are_none_is_put_aside_with_marks(tmp_path):
    rows = pa.table({"row": pa.array([b'{"k": "\xff"', None], pa.binary()).cast(pa.string(), safe=False)})
    write_rows(tmp_path, 1, rows)
    lines = (tmp_path / "batch=1" / "rows.json").read_text().splitlines()
    assert [json.loads(line)["row"] for line in lines] == ['{"k": "\ufffd"', None]
