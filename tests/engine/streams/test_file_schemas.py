"""Files of a batch whose columns are not those of their stream are told before they are taken for something else."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.continuous import stream_of

from skimql.engine.streams.file_schemas import other_types, refuse_lacking
from skimql.errors import StreamError

STREAM = stream_of("s", "k BIGINT, v DOUBLE, op STRING")


def test_a_file_without_a_column_stops_the_stream_and_one_with_more_does_not(tmp_path):
    files = {
        "whole": {"k": [1], "V": [0.5], "op": ["i"], "more": [1]},
        "less": {"k": [1], "op": ["i"]},
        "op=i/0": {"k": [1], "v": [0.5]},
    }
    for name, columns in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        pq.write_table(pa.table(columns), tmp_path / name)
    (tmp_path / "none").write_text("no Parquet")
    fine = [str(tmp_path / n) for n in ("whole", "op=i/0", "none", "gone")]
    refuse_lacking(STREAM, 3, fine)
    with pytest.raises(StreamError, match="less has no column v; it has") as fault:
        refuse_lacking(STREAM, 3, [*fine, str(tmp_path / "less")])
    assert fault.value.code == "SKIMQL_STREAM_TYPE"
    assert "`v` double" in fault.value.message.lower()


@pytest.mark.parametrize(
    ("column", "told"),
    [
        (pa.array([1], pa.int32()), ""),
        (pa.array([1], pa.int64()), ""),
        (pa.array([1.5]), "has k as double"),
        (pa.array(["1"]), "has k as string"),
        (pa.array([2**63], pa.uint64()), "has k as uint64"),
    ],
)
def test_columns_of_other_types_are_told_with_both_schemas(tmp_path, column, told):
    pq.write_table(pa.table({"k": column, "v": [0.5], "op": ["i"]}), tmp_path / "f")
    found = other_types(STREAM, 0, [str(tmp_path / "f")])
    assert (found is not None) == bool(told)
    if found is not None:
        assert told in found.message
        assert found.code == "SKIMQL_STREAM_TYPE"
