"""The arrays of a stored sketch, as declared."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.kept import kept

from skimql.engine.catalog import file
from skimql.engine.catalog.arrays import Declared, check_schema, declared_arrays

HEAD = kept("s", "t", {"k": [1, 2]}).head


def listed(number=0, entries=2, **changes):
    one = {"dtype": "int64", "shape": [entries], "sha256": "0" * 64, **changes}
    return {f"{number}.keys.0": one, f"{number}.weights": one}


def test_an_array_knows_its_size():
    declared = Declared("int64", (11, 64), "0" * 64)
    assert declared.size == 704
    assert declared.rows >= 1


def test_the_arrays_that_a_file_needs_are_those_of_its_head():
    encoded = file.encode(kept("s", "t", {"k": [1, 2]}))
    metadata = pq.read_metadata(pa.BufferReader(encoded)).metadata
    assert b"skimql.arrays" in metadata


@pytest.mark.parametrize(
    "wrong", [{}, listed(1), listed(entries=3), listed(dtype="float64"), listed(shape=[]), {"0.keys.0": 7}]
)
def test_others_are_refused(wrong):
    with pytest.raises((ValueError, KeyError)):
        declared_arrays(HEAD, wrong)


def test_the_columns_of_a_file_are_those_of_a_sketch():
    with pytest.raises(ValueError):
        check_schema(pa.schema([("name", pa.string()), ("other", pa.int64())]))
