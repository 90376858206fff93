"""Sketches of the parts of a domain as one of the whole relation, for questions that the parts were not planned for.

A workload with `PARTITION INTO` has for each relation a sketch of every cell: a combination of parts of its join keys.
Every tuple is in one of them, and all hash alike: their counters add up to those of the relation. What the parts gain
by being multiplied apart is the declared questions' alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ...sketches.joins.sparse import SparseFirstSketch
from ..catalog.file import StoredSketch
from ..catalog.form import Head, Measure
from ..results.estimator import first_rows
from ..synopses import Built, Tally

# Between the names of the cells that are read as one.
BESIDE = "\1"


def of_all_parts(heads: Sequence[Head]) -> list[Head]:
    """The heads, those of cells as one for each relation and weight, under all their names.

    A relation of which a cell is missing has none.
    """
    found: list[Head] = []
    parts: dict[object, dict[tuple[int, ...], Head]] = {}
    for head in heads:
        if not head.cell:
            found.append(head)
            continue
        (one,) = head.measures
        same = (
            head.group,
            head.table,
            head.filter,
            head.attributes,
            head.families,
            head.buckets,
            head.method,
        )
        own = parts.setdefault((*same, one.weight, one.dtype, one.scale), {})
        if head.cell not in own or own[head.cell].rows < head.rows:
            own[head.cell] = head
    complete = (
        own
        for own in parts.values()
        if len(own) == math.prod(max(places) + 1 for places in zip(*own, strict=True))
    )
    return [*found, *(_whole([own[cell] for cell in sorted(own)]) for own in complete)]


def added_up(sketches: Sequence[StoredSketch]) -> StoredSketch:
    """The sketch of a relation from those of all its cells, in the order of `of_all_parts`."""
    head = _whole([s.head for s in sketches])
    cut = [first_rows(s.built[0].linear, head.rows) for s in sketches]
    # Where all are exact maps, all of it is one.
    first = cut[0]
    whole: SparseFirstSketch[Any] = SparseFirstSketch.from_state(first.spec, first.state(), head.limit_bytes)
    for other in cut[1:]:
        whole.merge(other)
    return StoredSketch(head, (Built(whole, head.measures[0].tally, head.measures[0].scale),))


def _whole(heads: Sequence[Head]) -> Head:
    first = heads[0]
    (one,) = first.measures
    tallies, nbytes = [h.measures[0].tally for h in heads], sum(h.nbytes for h in heads)
    tally = Tally(
        sum(t.tuples for t in tallies),
        sum(t.mass for t in tallies),
        sum(t.negative for t in tallies),
        sum(t.slack for t in tallies),
    )
    exact = all(h.exact for h in heads)
    return replace(
        first,
        name=BESIDE.join(h.name for h in heads),
        rows=min(h.rows for h in heads),
        limit_bytes=max(nbytes, *(h.limit_bytes for h in heads)) if exact else first.limit_bytes,
        measures=(Measure(one.weight, one.dtype, one.scale, tally, exact, nbytes),),
        cell=(),
    )
