"""Parquet files of the user's whose footers are damaged: looked up without an end of the process, or not at all."""

from __future__ import annotations

import math
import random
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skimql.engine.catalog.footer import ends_of
from skimql.engine.sources.files import values_between

TABLE = pa.table(
    {
        "k": pa.array(range(3, 53), pa.int32()),
        "big": pa.array([-(2**62), *range(49)], pa.int64()),
        "tiny": pa.array([None, *range(-5, 44)], pa.int8()),
        "s": [str(n) for n in range(50)],
        "nested": [{"k": 7 * n} for n in range(50)],
        "day": pa.array(range(50), pa.date32()),
        "unsigned": pa.array(range(50), pa.uint32()),
        "empty": pa.array([None] * 50, pa.int32()),
    }
)


class Frame:
    """A frame over one file."""

    def __init__(self, path):
        self.path = path

    def inputFiles(self):
        return [Path(self.path).as_uri()]


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(TABLE, path, row_group_size=20)
    return path


@pytest.mark.parametrize(
    ("column", "values"),
    [("k", 50), ("K", 50), ("big", 2**62 + 49), ("tiny", 49), ("nested.k", 344), ("s", math.inf), ("day", math.inf),
     ("unsigned", math.inf), ("empty", math.inf), ("none", math.inf), ("nested", math.inf)],
)  # fmt: skip
def test_only_integers_have_a_range(column, values, file):
    assert values_between(Frame(file), column) == values


def test_a_damaged_footer_ends_in_a_value_or_a_fault_of_ours(file):
    raw = file.read_bytes()
    end = len(raw) - 8
    footer = raw[end - int.from_bytes(raw[end : end + 4], "little") : end]
    chosen, found = random.Random(5), set()
    for _ in range(400):
        damaged = bytearray(footer)
        for _ in range(chosen.choice([1, 1, 3])):
            damaged[chosen.randrange(len(damaged))] = chosen.randrange(256)
        try:
            own = ends_of(bytes(damaged)).get("k")
            found.add(None if own is None else own.integers)
        except ValueError:
            found.add("refused")
    assert {(3, 52), None, "refused"} <= found
    for length in range(0, len(footer), 17):
        with pytest.raises(ValueError, match="footer"):
            ends_of(footer[:length])


def test_a_schema_of_endless_nesting_is_refused():
    """A column of one INT32 with statistics, and a schema in which each element has one child."""
    value = b"\x04\x01\x00\x00\x00"
    about = b"\x15\x02\x29\x18\x01k\x9c\x58" + value + b"\x18" + value + b"\x00\x00"
    group = b"\x19\x1c\x3c" + about + b"\x00\x00"
    schema = b"\x48\x01z\x15\x02\x00" * 5000
    footer = b"\x29\xfc\x88\x27" + schema + b"\x29\x1c" + group + b"\x00"
    with pytest.raises(ValueError, match="nested too deeply"):
        ends_of(footer)


def test_a_column_of_no_type_does_not_end_the_process(file):
    """As it does where pyarrow looks at it."""
    program = (
        "import sys, pyarrow.parquet as pq; pq.read_metadata(sys.argv[1]).row_group(0).column(0).statistics"
    )
    raw = file.read_bytes()
    start = len(raw) - 8 - int.from_bytes(raw[-8:-4], "little")
    # A column begins with its type, INT32, where no type has that number afterwards.
    file.write_bytes(raw[:start] + raw[start:].replace(b"\x1c\x15\x02\x19", b"\x1c\x15\x17\x19"))
    done = subprocess.run([sys.executable, "-c", program, str(file)], capture_output=True, text=True)
    assert done.returncode < 0, "pyarrow has learned it: read footers by it again"
    assert values_between(Frame(file), "k") == math.inf
