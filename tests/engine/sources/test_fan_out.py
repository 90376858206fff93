"""The most tuples that agree on some columns, by files in order or small ones, beside a count of all tuples."""

from __future__ import annotations

import math
import os
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skimql.engine.sources import fan_out as module
from skimql.engine.sources.fan_out import counts_of, fan_out, nulls
from skimql.engine.sources.files import integers_between


def written(folder, table, files=2, rows=50):
    """Files of equal parts, named so that they do not come in the order of their tuples."""
    paths, step = [], -(-table.num_rows // files)
    for number in range(files):
        paths.append(str(folder / f"{9 - number}.parquet"))
        pq.write_table(table.slice(number * step, step), paths[-1], row_group_size=rows)
    return paths


def most(table, columns, but=()):
    values = zip(*(table.column(c).to_pylist() for c in columns), strict=True)
    counts = Counter(v for v in values if None not in v and v[0] not in but)
    return max(counts.values(), default=0)


def tables(seed):
    random = np.random.default_rng(seed)
    k = np.sort(random.zipf(2.0, 600) % 200)
    j = random.integers(0, 5, 600)
    missing = random.random(600) < 0.05
    table = pa.table(
        {
            "k": pa.array(k, mask=missing if seed % 2 else None),
            "j": pa.array(j.astype(np.int32)),
            "x": pa.array([f"x{v % 3}" for v in j]),
        }
    )
    return table if seed % 3 else table.take(pa.array(random.permutation(600)))


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("rows", [1, 7, 1000])
def test_it_is_that_of_all_tuples(tmp_path, seed, rows):
    table = tables(seed)
    paths = written(tmp_path, table, 1 + seed % 3, rows)
    for columns in (("k",), ("j",), ("x",), ("k", "j"), ("j", "x"), ("k", "j", "x")):
        assert fan_out(paths, [c.upper() for c in columns], 600.0) == most(table, columns)
    assert fan_out(paths, (), 600.0) == 600.0
    heavy = counts_of(paths, "k", 600.0).keys[:3].tolist()
    assert fan_out(paths, ("k",), 600.0, heavy) == most(table, ("k",), heavy)
    assert nulls(paths, "k") == table.column("k").null_count


@pytest.mark.parametrize("rows", [1, 3, 10, 1000])
def test_of_large_tables_in_order_pairs_are_compared_with_their_neighbours(tmp_path, monkeypatch, rows):
    monkeypatch.setattr(module, "MOST_IN_ANY", 10.0)
    k, j = np.repeat(np.arange(300), 4), np.tile([3, 1, 0, 2], 300)
    unique = pa.table({"k": k, "j": j, "y": np.arange(1200)[::-1]})
    paths = written(tmp_path, unique, 3, rows)
    assert fan_out(paths, ("j", "k"), 1200.0) == 1.0
    assert fan_out(paths, ("k", "j"), 1200.0) == 1.0
    twice = j.copy()
    twice[4 * 77 + 3] = twice[4 * 77]
    paths = written(tmp_path, pa.table({"k": k, "j": twice}), 3, rows)
    assert fan_out(paths, ("k", "j"), 1200.0) == 4.0
    assert fan_out(paths, ("j",), 1200.0) == math.inf


def test_what_files_do_not_tell_is_infinite(tmp_path, monkeypatch):
    paths = written(tmp_path, pa.table({"k": [3, 1, 2, 1]}), 1)
    assert fan_out(paths, ("k",), 4.0) == 2.0
    assert fan_out(paths, ("z",), 4.0) == math.inf
    assert nulls(paths, "z") == math.inf
    assert fan_out([str(tmp_path / "nowhere.parquet")], ("k",), 4.0) == math.inf
    assert fan_out([], ("k",), 4.0) == math.inf
    assert nulls([], "k") == math.inf
    (tmp_path / "text.parquet").write_text("k")
    assert fan_out([str(tmp_path / "text.parquet")], ("k",), 4.0) == math.inf
    pq.write_table(pa.table({"k": [1, None]}), tmp_path / "bare.parquet", write_statistics=False)
    assert nulls([str(tmp_path / "bare.parquet")], "k") == math.inf
    # Spark leaves out the last digits of these.
    moments = pa.table({"t": pa.array([1, 2], pa.timestamp("ns"))})
    pq.write_table(moments, tmp_path / "moments.parquet", use_deprecated_int96_timestamps=True)
    assert fan_out([str(tmp_path / "moments.parquet")], ("t",), 2.0) == math.inf
    monkeypatch.setattr(module, "MOST_IN_ANY", 3.0)
    assert fan_out(paths, ("k",), 4.0) == math.inf
    monkeypatch.setattr(module, "MOST_IN_ORDER", 3.0)
    assert fan_out(written(tmp_path, pa.table({"k": [1, 1, 2, 3]}), 1), ("k",), 4.0) == math.inf


def test_a_column_within_another_is_not_taken_for_it(tmp_path):
    nested = pa.array([{"k": None, "j": 1}] * 4)
    paths = written(tmp_path, pa.table({"s": nested, "k": [1, None, 2, 2]}), 1)
    assert nulls(paths, "k") == 1.0
    assert fan_out(paths, ("k",), 4.0) == 2.0
    inner = pa.array([{"b": 1}] * 4)
    (path,) = written(tmp_path, pa.table({"a": inner, "a.b": [7, 7, 8, 8]}), 1)
    assert fan_out([path], ("a.b",), 4.0) == math.inf
    assert nulls([path], "a.b") == math.inf
    assert integers_between(path, "a.b") is None


def test_files_that_change_are_counted_again(tmp_path):
    paths = written(tmp_path, pa.table({"k": [1, 2, 2]}), 1)
    assert fan_out(paths, ("k",), 3.0) == 2.0
    pq.write_table(pa.table({"k": [2, 2, 2]}), paths[0])
    os.utime(paths[0], ns=(1, 1))
    assert fan_out(paths, ("k",), 3.0) == 3.0


def test_damaged_footers_tell_nothing_and_end_nothing(tmp_path):
    (path,) = written(tmp_path, pa.table({"k": list(range(100))}), 1)
    with open(path, "rb") as file:
        whole = file.read()
    random = np.random.default_rng(3)
    length = int.from_bytes(whole[-8:-4], "little")
    for number in range(60):
        damaged = bytearray(whole)
        for _ in range(3):
            damaged[len(whole) - 9 - int(random.integers(0, length))] = int(random.integers(0, 256))
        with open(path, "wb") as file:
            file.write(damaged)
        os.utime(path, ns=(number, number))
        assert fan_out([path], ("k", "k"), 100.0) >= 1.0
        assert nulls([path], "k") >= 0.0
