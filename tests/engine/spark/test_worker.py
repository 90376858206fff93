"""What a Python worker is left with after its tasks."""

from __future__ import annotations

import gc
import sys

import pyarrow as pa
import pytest

from skimql.engine.spark import worker
from skimql.engine.spark.worker import in_worker


def test_what_is_imported_is_left_alone_once(monkeypatch):
    frozen = []
    monkeypatch.setattr(worker, "_ran", False)
    monkeypatch.setattr(worker, "_left", 0)
    monkeypatch.setattr(gc, "freeze", lambda: frozen.append(len(sys.modules)))
    same = in_worker(lambda batches: batches)
    batch = pa.RecordBatch.from_pydict({"a": [1]})

    def run(times):
        for _ in range(times):
            assert list(same(iter([batch]))) == [batch]
        return len(frozen)

    assert run(1) == 0
    assert run(3) == 1, "also where nothing was imported since the first"
    monkeypatch.setitem(sys.modules, "later", worker)
    assert run(3) == 2


@pytest.mark.spark
def test_the_collector_of_a_worker_has_little_to_look_at(spark):
    """Of a worker's 75,000 objects all but those of the task itself."""

    def told(batches):
        for _ in batches:
            pass
        yield pa.RecordBatch.from_pydict(
            {"frozen": [gc.get_freeze_count()], "looked at": [len(gc.get_objects())]}
        )

    for _ in range(6):
        rows = (
            spark.range(0, 1, 1, 1)
            .mapInArrow(in_worker(told), "frozen BIGINT, `looked at` BIGINT")
            .toArrow()
            .to_pylist()
        )
    assert rows[0]["frozen"] > 20_000 > rows[0]["looked at"]
