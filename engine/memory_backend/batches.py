"""Batches of a stream as Arrow tables: what Spark does of `engine.streams` with a batch, without Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from ...optimizer.plan import Message, Plan
from ..execution.partial_aggregate import Partial, group_column
from ..materialized.definition import now
from ..streams.cells import Cells, Cut
from ..streams.state import Sender
from .build import build_from
from .expressions import evaluate
from .relations import Relations
from .tables import MemoryTables


@dataclass
class MemoryBuilder:
    """A `Builder` of Arrow tables.

    Parameters
    ----------
    name : str
        Of the stream.
    statics : mapping of str to pyarrow.Table
        The tables that batches are joined with.
    """

    name: str
    statics: Mapping[str, pa.Table] = field(default_factory=dict)

    def build(
        self, frame: pa.Table, plan: Plan, times: str | None, cuts: tuple[Cut, ...] = ()
    ) -> tuple[list[Any], dict[Message, Sender]]:
        """The synopses of a batch, and what the tables have sent for them."""
        relations = Relations(plan, MemoryTables({**self.statics, self.name: cut_columns(frame, cuts)}))
        cells = Cells(cuts)
        built = build_from(plan, relations, {self.name: times}, cells)
        wholes = {i: Partial(b.sketch, b.tally) for i, b in enumerate(built)}
        found = cells.finished(wholes, {i: b.scale for i, b in enumerate(built)})
        senders = {}
        for message, keys, weights in relations.sent():
            values = np.ones(len(keys), np.int64) if weights.values is None else weights.values
            senders[message] = Sender.of(keys, values, now())
        return [found[i] for i in range(len(built))], senders

    def pass_over(self, frame: pa.Table) -> None:
        """Nothing: no source waits to be read."""

    def quarantine(self, frame: pa.Table, batch: int, ahead: Mapping[str, int]) -> None:
        """Nothing: whoever has the batch has its rows."""


def cut_columns(frame: pa.Table, cuts: tuple[Cut, ...]) -> pa.Table:
    """The events with a column for each cut, of their time and the values of their groups."""
    for number, cut in enumerate(cuts):
        windows, groups = cut.split.windows, cut.split.groups
        columns = [] if windows is None else [frame[windows.time].combine_chunks()]
        columns += [evaluate(g, frame).data for g in groups]
        columns = [c.combine_chunks() if isinstance(c, pa.ChunkedArray) else c for c in columns]
        names = [f"c{n}" for n in range(len(columns))]
        frame = frame.append_column(group_column(number), pa.StructArray.from_arrays(columns, names))
    return frame
