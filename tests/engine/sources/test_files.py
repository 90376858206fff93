"""What footers of Parquet files tell of columns, and of which files they are read."""

import math
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skimql.engine.catalog.footer import ends_of
from skimql.engine.sources import files
from skimql.engine.sources.files import values_between


class Frame:
    """A frame over one file."""

    def __init__(self, path):
        self.path = path

    def inputFiles(self):
        return [Path(self.path).as_uri()]


@pytest.mark.parametrize(("part", "told"), [(0.001, math.inf), (1.0, 100.0)])
def test_a_footer_is_read_that_is_a_small_part_of_its_file(part, told, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "MOST_RANGED_BYTES", 16)
    monkeypatch.setattr(files, "MOST_RANGED_PART", part)
    pq.write_table(pa.table({"k": range(100)}), tmp_path / "t.parquet")
    files._told.cache_clear()
    assert values_between(Frame(tmp_path / "t.parquet"), "k") == told


def test_of_columns_that_differ_by_case_alone_the_first_one_is_told_of(tmp_path):
    table = pa.table({"k": [9, 9], "K": [1, 2], "x": [0.5, 2.5]})
    pq.write_table(table, tmp_path / "t.parquet", write_statistics=["K", "x"])
    raw = (tmp_path / "t.parquet").read_bytes()
    found = ends_of(raw[-8 - int.from_bytes(raw[-8:-4], "little") : -8])
    assert set(found) == {"x"}
    assert (found["x"].integers, found["x"].numbers) == (None, (0.5, 2.5))
