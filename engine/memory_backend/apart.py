"""The synopses of a kept sketch from an Arrow table: the same as Spark's workers build."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...errors import BudgetExceeded
from ..catalog.form import Groups, Head
from ..materialized.building import GROUP, added, as_groups, finished, refuse_doubles, task, work_of
from ..synopses import Built
from .build import explained
from .expressions import evaluate, passing
from .groups import numbered, ranks, values_at
from .keys import key_values
from .tables import MemoryTables
from .weights import weights_of


def built_on(
    tables: MemoryTables, sql: str, head: Head, most_groups: int, dense: npt.NDArray[np.int64] | None = None
) -> tuple[Groups | None, tuple[Built, ...]]:
    """The synopses of a head over its table; see `materialized.building.built_on`."""
    with explained(sql, head.table):
        whole, zone = tables.table(head.table), tables.zone
        rows = passing(head.filter, whole, zone)
        tuples = whole if rows is None else whole.filter(rows)
        weights = [weights_of(w, tuples, sql, zone) for w in head.weights]
        refuse_doubles(head, weights, sql)
        columns: dict[str, pa.Array] = {"one": pa.array(np.ones(tuples.num_rows, np.int64))}
        columns |= {f"key{n}": key_values(a, tuples, zone) for n, a in enumerate(head.attributes)}
        columns |= {f"weight{n}": pa.array(w.values) for n, w in enumerate(weights) if w.values is not None}
        groups = None
        if head.groups is not None:
            groups, columns[GROUP] = _grouped(tuples, head.groups, zone, most_groups, sql)
        work = work_of(head, weights, dense)
        batch = pa.RecordBatch.from_arrays(
            [c.combine_chunks() if isinstance(c, pa.ChunkedArray) else c for c in columns.values()],
            list(columns),
        )
        sent = [row for part in task(work)(iter([batch])) for row in part.to_pylist()]
        return groups, finished(work, groups, added(work, sent), [w.scale for w in weights])


def _grouped(tuples: pa.Table, asked: Groups, zone: str, most: int, sql: str) -> tuple[Groups, pa.Array]:
    """The groups of some tuples, and the number of each tuple's."""
    found = [evaluate(e, tuples, zone) for e in asked.expressions]
    numbers, first = numbered([ranks(v) for v in found], tuples.num_rows)
    if len(first) > most:
        raise BudgetExceeded(
            f"more than {most:,} groups of {', '.join(asked.expressions)}; each takes its own sketches",
            "SKIMQL_TOO_MANY_GROUPS",
            sql,
            hint="SET skimql.max_groups = ..., or EXACT SELECT ...",
        )
    types = tuple(v.kind for v in found)
    return as_groups(asked.expressions, types, values_at(found, first, zone), sql), pa.array(numbers)
