"""What Spark's Python workers run for us, kept from being looked through after every task."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator

import pyarrow as pa

Mapped = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

# How many modules there were when the last task began.
_modules: int | None = None


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
    global _modules
    before, _modules = _modules, len(sys.modules)
    # Nothing is left alone before the first task: garbage has not been collected.
    if _modules != before and before is not None:
        gc.freeze()
