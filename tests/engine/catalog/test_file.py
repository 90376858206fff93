"""One stored sketch as bytes: what is written is read, and damage is refused or has changed nothing."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.kept import kept, same
from support.sketch_files import with_metadata

from skimql import CorruptSketch, IncompatibleSketches
from skimql.engine.catalog.file import decode, encode

SMALL = {
    "key map": kept("s", "t", {"k": [1, 2, 2, -5]}, rows=3, buckets=8),
    "counters": kept("s", "t", {"k": range(50)}, rows=3, buckets=8, sparse=False),
    "counters and map of doubles": kept("s", "t", {"k": [1, 2, 2]}, summed=("v", [0.5, -1.5, 0.25]), dtype="float64", rows=3, buckets=8),
    "two attributes": kept("s", "t", {"a": [1, 2, 3], "b": [4, 5, 6]}, rows=3, buckets=8),
    "no tuples": kept("s", "t", {"k": []}, summed=("v", [])),
    "no attributes": kept("s", "t", {}, summed=("v", [3, 4]), condition="`v` > 2"),
}  # fmt: skip


@pytest.mark.parametrize("sketch", SMALL.values(), ids=SMALL)
def test_what_is_written_is_read(sketch):
    assert same(decode(encode(sketch), "file"), sketch)


@given(
    keys=st.lists(st.integers(-(2**63), 2**63 - 1), max_size=30),
    rows=st.integers(1, 5),
    buckets=st.integers(2, 20),
    sparse=st.booleans(),
    seed=st.integers(0, 2**63 - 1),
)
def test_any_sketch_survives(keys, rows, buckets, sparse, seed):
    sketch = kept("s", "t", {"k": keys}, rows=rows, buckets=buckets, sparse=sparse, seed=seed)
    assert same(decode(encode(sketch), "file"), sketch)


@pytest.mark.parametrize("name", ["key map", "counters"])
def test_a_flipped_byte_is_refused_or_changes_nothing(name):
    """Every byte, one bit of it: pages, headers, footer, metadata, magic."""
    data = encode(SMALL[name])
    assert same(decode(data, "the file"), SMALL[name])
    refused = unharmed = 0
    for place in range(len(data)):
        damaged = bytearray(data)
        damaged[place] ^= 1 << (place % 8)
        try:
            read = decode(bytes(damaged), "the file")
        except CorruptSketch:
            refused += 1
        else:
            assert same(read, SMALL[name]), f"byte {place} changed the sketch unseen"
            unharmed += 1
    # Only what nobody reads may be changed unseen: the name of the writing library, say.
    assert refused > 0.8 * len(data), (refused, unharmed)


def test_pages_and_arrays_have_checksums_of_their_own():
    """A flipped bit in a page is told by its CRC; other values under right CRCs by the SHA-256 of the array."""
    data = bytearray(encode(SMALL["counters"]))
    page = bytes(data).index(b"\x28\xb5\x2f\xfd", 200)  # where a zstd frame begins
    data[page + 12] ^= 1
    with pytest.raises(CorruptSketch, match="CRC checksum verification failed"):
        decode(bytes(data), "the file")
    with pytest.raises(CorruptSketch, match=r"the SHA-256 of array 0\.counters"):
        decode(with_metadata(encode(SMALL["counters"]), values=lambda v: v + 1), "the file")


def test_a_file_cut_short_is_refused_wherever_it_is_cut():
    data = encode(SMALL["counters"])
    for length in [0, 1, 4, 8, *range(10, len(data), 37), len(data) - 1]:
        with pytest.raises(CorruptSketch, match="the file"):
            decode(data[:length], "the file")


def test_what_is_no_sketch_is_refused(tmp_path):
    pq.write_table(pa.table({"a": [1, 2]}), tmp_path / "other.parquet")
    for data in (b"", b"PAR1", b"hello" * 100, (tmp_path / "other.parquet").read_bytes()):
        with pytest.raises(CorruptSketch, match="the file"):
            decode(data, "the file")


def test_a_newer_format_is_refused_and_both_versions_are_named():
    with pytest.raises(IncompatibleSketches, match=r"the file has format version 99.* up to 3") as caught:
        decode(with_metadata(encode(SMALL["key map"]), format_version=99), "the file")
    assert caught.value.code == "SKIMQL_NEWER_FORMAT"


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": "other"},
        {"rows": 4},
        {"rows": "many"},
        {"buckets": -1},
        {"method": 3},
        {"attributes": []},
        {"measures": []},
        {"attributes": [{"keys": ["`k`"], "types": ["bigint"], "comparison_types": ["bigint"], "class": "k",
                         "family": {"name": "nosuch", "seed": 1, "parameters": {}}}]},
    ],
)  # fmt: skip
def test_metadata_that_do_not_fit_the_arrays_are_refused(changes):
    data = with_metadata(encode(SMALL["counters"]), **changes)
    with pytest.raises(CorruptSketch, match="the file"):
        decode(data, "the file")


def test_counters_on_disk_are_little_endian_and_readable_by_others():
    sketch = SMALL["counters"]
    table = pq.read_table(pa.BufferReader(encode(sketch)))
    rows = [r.as_py() for r in table["integers"]]
    assert table["array"].to_pylist() == ["0.counters"] * 3
    assert np.array_equal(np.array(rows), sketch.built[0].sketch.state()["counters"])
