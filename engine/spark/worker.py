"""What Spark's Python workers run for us, kept from being looked through after every task."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator

import pyarrow as pa

Mapped = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

# Whether a task of ours has run in this process, and how many modules there were when they were last left alone.
_ran, _left = False, 0


def in_worker(function: Mapped) -> Mapped:
    """The function for `mapInArrow`.

    Spark's daemon collects garbage after every task of a worker that is used again, which takes some 40 ms where pandas
    and ours are imported: as much as sketching 300,000 tuples. What is there when a later task begins has outlived the
    ones before: where modules have been imported since, the collector is told to leave it alone.
    """

    def mapped(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        _leave_imported_alone()
        return function(batches)

    return mapped


def _leave_imported_alone() -> None:
    global _ran, _left
    # Not before the first task: no garbage has been collected then.
    if _ran and _left != len(sys.modules):
        _left = len(sys.modules)
        gc.freeze()
    _ran = True
