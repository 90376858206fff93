"""What numpy makes of the files of `benchmarks.kills` is what streams make of them, and tells what is lost or doubled."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest
from support.continuous import MemorySpark, declared, stream_of

from benchmarks.kills import kinds_of
from benchmarks.kills_data import NAMES, SINKS, VIEWS, truth_differs, write_data
from skimql.engine.catalog.catalog import Catalog

FILES = 6
WINDOWS = {"window": "2 minutes", "slide": "1 minute", "time": "ts", "watermark": "1 minute"}


def run(folder, wrong=None):
    """Both streams without Spark; `wrong` changes the batches of a."""
    write_data(folder, FILES, 300, 1)
    signs = "CASE WHEN op = 'd' THEN -1 ELSE 1 END"
    streams = [stream_of(name, "k BIGINT, v BIGINT, op STRING, ts TIMESTAMP", signs) for name in NAMES]
    views = {}
    for view, (windows, select) in VIEWS.items():
        sink = {"sink": str(folder / "sinks" / view)} if view in SINKS else {}
        views[view] = (select, {**(WINDOWS if windows else {}), **sink})
    catalog = declared(Catalog(folder / "catalog"), streams, views)
    for name in NAMES:
        (folder / name).rmdir()
        (folder / f"{name} to come").rename(folder / name)
        batches = [pq.read_table(f) for f in sorted((folder / name).iterdir())]
        if wrong is not None and name == "a":
            batches = wrong(batches)
        MemorySpark(catalog, name, folder / f"checkpoint of {name}").run(batches)
    return truth_differs(folder, FILES)


def test_the_truth_is_what_streams_make_of_the_files(tmp_path):
    assert run(tmp_path) == []


@pytest.mark.parametrize(
    "wrong",
    [lambda b: [*b[:3], b[3].slice(1), *b[4:]], lambda b: [*b[:2], b[1], *b[3:]]],
    ids=["an event is lost", "a batch twice and one not"],
)
def test_what_is_lost_or_doubled_is_told(tmp_path, wrong):
    assert run(tmp_path, wrong)


def test_three_of_ten_kills_are_of_workers():
    kinds = kinds_of(50, 1)
    assert [kinds.count(k) for k in ("worker", "driver", "all")] == [15, 17, 18]
    assert kinds == kinds_of(50, 1) != kinds_of(50, 2)
