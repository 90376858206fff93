"""The keys with the most tuples, by files in the order of their keys."""

from __future__ import annotations

import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skimql.engine.sources import ordered_keys
from skimql.engine.sources.ordered_keys import (
    MOST_FILES,
    MOST_KNOWN,
    MOST_LISTED,
    counted_in_order,
    key_counts,
    ordered_columns,
)


def written(folder, *parts, name="k", rows=1000):
    """One file for each part, named so that they do not come in the order of their keys."""
    paths = []
    for number, part in enumerate(parts):
        paths.append(str(folder / f"{9 - number}.parquet"))
        pq.write_table(pa.table({name: part, "x": [1.0] * len(part)}), paths[-1], row_group_size=rows)
    return paths


@pytest.mark.parametrize("rows", [1, 7, 1000])
def test_runs_are_counted_across_row_groups_and_files(tmp_path, rows):
    random = np.random.default_rng(1)
    keys = np.sort(random.zipf(1.4, 3000) % 500)
    paths = written(tmp_path, *np.array_split(keys, 3), rows=rows)
    found = counted_in_order(paths, "K")
    own, counts = np.unique(keys, return_counts=True)
    expected = {k: c for k, c in zip(own.tolist(), counts.tolist(), strict=True) if c > found.other}
    assert dict(zip(found.keys.tolist(), found.counts.tolist(), strict=True)) == expected
    assert found.counts.tolist() == sorted(found.counts.tolist(), reverse=True)
    for most in (0, 1, 5, 100, 10_000):
        listed, other = found.above(most)
        left = counts[~np.isin(own, listed)]
        assert set(own[counts > max(most, found.other)].tolist()) == set(listed.tolist())
        assert other == left.max(initial=0)
        keys, tuples = found.listed(most)
        assert keys.tolist() == listed.tolist()
        assert tuples.tolist() == counts[np.searchsorted(own, keys)].tolist()


def test_keys_of_one_tuple_each_are_not_kept_apart(tmp_path):
    found = counted_in_order(written(tmp_path, range(10_000)), "k")
    assert found.above(1.0) == (pytest.approx([]), 1.0)
    assert found.keys.size <= MOST_KNOWN


def test_more_heavy_keys_than_are_listed_leave_the_most_of_the_others():
    counts = np.arange(1, 3 * MOST_KNOWN + 1)
    runs = [(np.arange(n, n + 64), counts[n : n + 64]) for n in range(0, counts.size, 64)]
    np.random.default_rng(2).shuffle(runs)
    listed, other = key_counts(iter(runs)).above(10.0)
    assert listed.tolist() == list(range(counts.size - MOST_LISTED, counts.size))
    assert other == counts.size - MOST_LISTED


@pytest.mark.parametrize(
    "column",
    [
        [3, 1, 2],
        ["1", "2"],
        [1.0, 2.0],
        pa.array([1, 2**63], pa.uint64()),
    ],
)
def test_what_is_not_in_order_or_no_integer_tells_nothing(tmp_path, column):
    assert counted_in_order(written(tmp_path, column), "k") is None


def test_files_that_overlap_tell_nothing_and_missing_ones_neither(tmp_path):
    assert counted_in_order(written(tmp_path, [1, 5], [3, 9]), "k") is None
    assert counted_in_order([str(tmp_path / "nowhere.parquet")], "k") is None
    assert counted_in_order(written(tmp_path, [1, 2]), "x") is None
    (tmp_path / "text.parquet").write_text("k")
    assert counted_in_order([str(tmp_path / "text.parquet")], "k") is None


def test_null_is_no_key_and_small_integers_are_keys(tmp_path):
    paths = written(
        tmp_path, pa.array([None, -3, -3, 4, None], pa.int16()), pa.array([None, None], pa.int16())
    )
    found = counted_in_order(paths, "k")
    assert found.above(1.0)[0].tolist() == [-3]


def test_a_file_that_has_changed_is_read_again(tmp_path, monkeypatch):
    (path,) = written(tmp_path, [1, 1, 2])
    assert counted_in_order([path], "k").above(0)[1] in (0.0, 1.0, 2.0)
    read = []
    monkeypatch.setattr(ordered_keys, "_runs", lambda *a: read.append(a) or iter(()))
    counted_in_order([path], "k")
    assert not read
    written(tmp_path, [1, 1, 1, 1])
    os.utime(path, ns=(1, 1))
    counted_in_order([path], "k")
    assert len(read) == 1


def test_columns_whose_row_groups_follow_each_other_are_in_order(tmp_path):
    keys = np.arange(3000) // 4
    shuffled = np.random.default_rng(3).permutation(3000)
    columns = {"K": keys, "u": shuffled, "one": np.ones(3000, int), "t": keys.astype(str), "d": keys * 1.0}
    nulls = pa.array(keys, mask=keys > 600)
    whole = pa.table({**columns, "s": pa.StructArray.from_arrays([pa.array(keys)], ["k"]), "n": nulls})

    def written_in(name, table, rows, parts=2):
        folder = tmp_path / name
        folder.mkdir()
        size = -(-table.num_rows // parts)
        for part in range(parts):
            path = folder / f"{9 - part}.parquet"
            pq.write_table(table.slice(part * size, size), path, row_group_size=rows)
        return [str(p) for p in folder.iterdir()]

    paths = written_in("files", whole, 500)
    # Of one value nothing is sampled; text and doubles are not counted; the last groups of n have no value.
    assert ordered_columns(paths) == ("k",)
    assert ordered_columns(written_in("turned", whole.take(np.arange(3000)[::-1]), 500)) == ("k",)
    assert ordered_columns(written_in("large", whole, 5000, parts=1)) == ()
    assert ordered_columns(paths * MOST_FILES) == ordered_columns([]) == ()
    assert ordered_columns([str(tmp_path / "none.parquet")]) == ()
