"""From sketches to an answer with its interval: exact where all of them are, else from their rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .agms import AgmsSketch, join_averages
from .convolution import ConvolutionSketch, join_rows
from .exact_map import ExactMap, exact_join
from .interval import (
    Estimate,
    clip,
    collapse_notes,
    exact,
    median_interval,
    ratio_interval,
    uncertified,
)
from .join_tree import Edges, check_join
from .linear import LinearSketch
from .sparse import SparseFirstSketch

AnySketch = LinearSketch[Any] | SparseFirstSketch[Any]
NOTHING_MATCHES = "no rows match"


def join_estimate(
    sketches: Sequence[AnySketch],
    edges: Edges,
    confidence: float = 0.95,
    low_bound: float = -math.inf,
    high_bound: float = math.inf,
) -> Estimate:
    """Estimate an acyclic join aggregate with an interval.

    Parameters
    ----------
    sketches : sequence of sketches
        Entry v is the sketch of vertex v: all `ConvolutionSketch` or all `AgmsSketch`, each possibly still
        sparse. The same object may stand for several vertices.
    edges : sequence of (u, v, i, j)
        Attribute i of vertex u equals attribute j of vertex v, see `join_tree.check_join`.
    confidence : float
        In (0, 1).
    low_bound, high_bound : float
        Bounds that hold for certain: 0 and the product of the numbers of tuples for COUNT.

    Returns
    -------
    Estimate
        Exact if every sketch is, or if one of them is exactly empty. Not certified where the rows are too
        few or their keys collapse; the notes say why.
    """
    check_join([s.spec for s in sketches], edges)
    known = _known(sketches, edges)
    if known is not None:
        return exact(known)
    rows, counters = _rows(sketches, edges)
    estimate = median_interval(rows, confidence, _basis(sketches))
    return clip(uncertified(estimate, *collapse_notes(counters)), low_bound, high_bound)


def ratio_estimate(
    numerators: Sequence[AnySketch],
    denominators: Sequence[AnySketch],
    edges: Edges,
    confidence: float = 0.95,
    low_bound: float = -math.inf,
    high_bound: float = math.inf,
) -> Estimate:
    """Estimate the ratio of two join aggregates on the same hashes: AVG = SUM / COUNT.

    Parameters
    ----------
    numerators, denominators : sequence of sketches
        As for `join_estimate`. Vertices without the averaged column have the same sketch in both.
    edges, confidence
        As for `join_estimate`, the same for both.
    low_bound, high_bound : float
        Bounds that hold for certain: the smallest and the largest value averaged.

    Returns
    -------
    Estimate
        NaN with an infinite interval where too few rows match to tell; NaN, exact, where none do.
    """
    for sketches in (numerators, denominators):
        check_join([s.spec for s in sketches], edges)
    top, bottom = _known(numerators, edges), _known(denominators, edges)
    if bottom == 0:
        return Estimate(math.nan, math.nan, math.nan, 1.0, True, "exact", (NOTHING_MATCHES,))
    if top is not None and bottom is not None:
        return exact(top / bottom)
    if bottom is not None:
        part = join_estimate(numerators, edges, confidence)
        ends = sorted((part.low / bottom, part.high / bottom))
        scaled = Estimate(
            part.value / bottom, ends[0], ends[1], confidence, part.certified, part.basis, part.notes
        )
        return clip(scaled, low_bound, high_bound)
    rows, counters = _rows(numerators, edges)
    bottom_rows, bottom_counters = _rows(denominators, edges)
    estimate = ratio_interval(rows, bottom_rows, confidence, _basis([*numerators, *denominators]))
    notes = collapse_notes([*counters, *bottom_counters])
    return clip(uncertified(estimate, *notes), low_bound, high_bound)


def _known(sketches: Sequence[AnySketch], edges: Edges) -> int | float | None:
    """The exact aggregate where maps or a plain total tell it."""
    if len(sketches) == 1 and isinstance(sketches[0], LinearSketch):
        return sketches[0].counters[0, 0].item()  # type: ignore[no-any-return]
    maps = [s.exact if isinstance(s, SparseFirstSketch) else None for s in sketches]
    if any(m is not None and len(m) == 0 for m in maps):
        return 0
    present: list[ExactMap] = [m for m in maps if m is not None]
    return exact_join(present, edges) if len(present) == len(maps) else None


def _rows(
    sketches: Sequence[AnySketch], edges: Edges
) -> tuple[NDArray[np.float64], list[NDArray[np.generic]]]:
    """Estimates of the rows, and the counters they come from; each sparse sketch turned dense once."""
    dense: dict[int, LinearSketch[Any]] = {}
    for sketch in sketches:
        if id(sketch) not in dense:
            dense[id(sketch)] = sketch.dense() if isinstance(sketch, SparseFirstSketch) else sketch
    ready = [dense[id(sketch)] for sketch in sketches]
    counters: list[NDArray[np.generic]] = [s.counters for s in dense.values()]
    hashed = [s for s in ready if isinstance(s, ConvolutionSketch)]
    if len(hashed) == len(ready):
        return join_rows(hashed, edges), counters
    atomic = [s for s in ready if isinstance(s, AgmsSketch)]
    if len(atomic) == len(ready):
        return join_averages(atomic, edges), []
    raise ValueError("convolution and AGMS sketches cannot be multiplied")


def _basis(sketches: Sequence[AnySketch]) -> str:
    return "measured" if any(s.spec.basis == "measured" for s in sketches) else "theorem"
