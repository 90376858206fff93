"""Acyclic joins of skimmed relations: the sum of the sub-joins of dense and residual parts.

Each relation is its dense tuples plus a residual, so a join of n relations falls into 2**n sub-joins. Dense
parts next to each other in the join tree are joined exactly; what touches a residual is multiplied as
sketches, and each of these sub-joins takes its own median over the rows.

References
----------
.. [1] S. Ganguly, M. Garofalakis, R. Rastogi, US 2006/0143170, "Processing data-stream join aggregates using
   skimmed sketches": procedures ESTSUBJOINSIZE and ESTSKIMJOINSIZE (Tables 3 and 4), paragraphs
   [0043]-[0044].
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ..hashing.xi import Family
from ..intervals.interval import (
    Estimate,
    averaged,
    collapse_notes,
    median_interval,
    ratio_interval,
    uncertified,
)
from .convolution import ConvolutionSketch, ConvolutionSpec, join_rows
from .join_tree import Edges, check_join
from .skim import Skimmed

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class SubJoin:
    """One of the sub-joins of a skimmed join.

    Parameters
    ----------
    dense : tuple of bool
        For each vertex whether its dense part takes part, or its residual.
    rows : ndarray of float64, shape (R,)
        The estimates of the rows; one entry where all parts are dense, which is exact.
    """

    dense: tuple[bool, ...]
    rows: Floats

    @property
    def value(self) -> float:
        """The median of the rows."""
        return float(np.median(self.rows))


def subjoins(vertices: Sequence[Skimmed], edges: Edges) -> list[SubJoin]:
    """Estimate every sub-join of a tree of skimmed relations.

    Parameters
    ----------
    vertices : sequence of Skimmed
        The same object may stand for several vertices (a self-join).
    edges : sequence of (u, v, i, j)
        Attribute i of vertex u equals attribute j of vertex v; a tree as `convolution.join_rows` takes it.

    Returns
    -------
    list of SubJoin
        All residuals first. Sub-joins with an empty dense part are left out; their value is zero.

    Notes
    -----
    2**n sketch products. For two vertices these are dense-dense, dense-sparse, sparse-dense and
    sparse-sparse.
    """
    check_join([v.residual.spec for v in vertices], edges)
    return [
        SubJoin(dense, _estimate(vertices, edges, dense))
        for dense in itertools.product((False, True), repeat=len(vertices))
        if not any(d and not v.weights.size for d, v in zip(dense, vertices, strict=True))
    ]


def skimmed_join(vertices: Sequence[Skimmed], edges: Edges, confidence: float = 0.95) -> Estimate:
    """Size or weighted total of an acyclic join of skimmed relations.

    Parameters
    ----------
    vertices, edges
        As in `subjoins`. Two streams: ``[f, g], [(0, 1, 0, 0)]``; a self-join: ``[f, f]`` with the same edge.
    confidence : float
        In (0, 1).

    Returns
    -------
    Estimate
        The value is the sum of the sub-joins' medians; the interval are order statistics of the rows' totals
        over all sub-joins, widened to hold the value.

    Notes
    -----
    One median of the totals would gain less than separate medians: the sub-joins' errors rarely point the
    same way in the same row. Departs from [1]_: dense parts that meet are joined exactly also inside larger
    joins.
    """
    parts = subjoins(vertices, edges)
    parts = _averaged(parts, vertices, confidence)
    value = sum(part.value for part in parts)
    around = median_interval(row_totals(parts), confidence, _basis(vertices))
    widened = replace(around, value=value, low=min(around.low, value), high=max(around.high, value))
    return uncertified(widened, *collapse_notes([v.residual.counters for v in vertices]))


def skimmed_average(
    sums: Sequence[Skimmed], counts: Sequence[Skimmed], edges: Edges, confidence: float = 0.95
) -> Estimate:
    """AVG over an acyclic join of skimmed relations: SUM over COUNT on the same hashes, whose errors cancel.

    Parameters
    ----------
    sums, counts : sequence of Skimmed
        The vertices weighted for the SUM and for the COUNT, of the same specs; most are the same objects.
    edges, confidence
        As in `skimmed_join`.

    Returns
    -------
    Estimate
        The ratio of the two sums of medians; the interval is `interval.ratio_interval` of the rows' totals,
        widened to hold the value.
    """
    tops, bottoms = (_averaged(subjoins(v, edges), v, confidence) for v in (sums, counts))
    count = sum(part.value for part in bottoms)
    around = ratio_interval(row_totals(tops), row_totals(bottoms), confidence, _basis([*sums, *counts]))
    if not count or math.isnan(around.value):
        return around
    value = sum(part.value for part in tops) / count
    widened = replace(around, value=value, low=min(around.low, value), high=max(around.high, value))
    return uncertified(widened, *collapse_notes([v.residual.counters for v in (*sums, *counts)]))


def _averaged(parts: Sequence[SubJoin], vertices: Sequence[Skimmed], confidence: float) -> list[SubJoin]:
    """The sub-joins with as few rows as their medians can be trusted with."""
    buckets = vertices[0].residual.spec.buckets
    return [replace(part, rows=averaged(part.rows, buckets, confidence)) for part in parts]


def row_totals(parts: Sequence[SubJoin]) -> Floats:
    """The total of all sub-joins in each row: float64, shape (R,)."""
    rows = max(len(part.rows) for part in parts)
    return np.asarray(np.sum([np.broadcast_to(part.rows, rows) for part in parts], axis=0))


@dataclass(frozen=True, slots=True, eq=False)
class _Dense:
    """A relation listed in full: one column of keys for each family, and the weight of each tuple."""

    columns: dict[Family, Ints]
    weights: Floats


_Part = _Dense | ConvolutionSketch
_Link = tuple[int, int, Family]


def _estimate(vertices: Sequence[Skimmed], edges: Edges, dense: Sequence[bool]) -> Floats:
    """Row estimates of one sub-join, after joining neighbouring dense parts exactly."""
    parts: dict[int, _Part] = {}
    for number, (vertex, is_dense) in enumerate(zip(vertices, dense, strict=True)):
        families = vertex.residual.spec.families
        listed = _Dense(dict(zip(families, vertex.keys, strict=True)), vertex.weights.astype(np.float64))
        parts[number] = listed if is_dense else vertex.residual
    links = [(u, v, vertices[u].residual.spec.families[i]) for u, v, i, _ in edges]
    links = _join_dense_neighbours(parts, links)
    if any(isinstance(part, _Dense) and not part.weights.size for part in parts.values()):
        return np.zeros(1)
    if not links:
        (only,) = parts.values()
        return np.array([only.weights.sum()]) if isinstance(only, _Dense) else join_rows([only], [])
    numbers = list(parts)
    sketches = [_as_sketch(parts[n], vertices[0].residual.spec) for n in numbers]
    ends = [(numbers.index(u), numbers.index(v), family) for u, v, family in links]
    return join_rows(
        sketches,
        [(u, v, sketches[u].spec.families.index(f), sketches[v].spec.families.index(f)) for u, v, f in ends],
    )


def _join_dense_neighbours(parts: dict[int, _Part], links: list[_Link]) -> list[_Link]:
    """Contract every edge between two dense parts, in place; returns the edges that are left."""
    waiting = list(links)
    left: list[_Link] = []
    while waiting:
        u, v, family = waiting.pop()
        one, other = parts[u], parts[v]
        if isinstance(one, _Dense) and isinstance(other, _Dense):
            parts[u] = _equi_join(one, other, family)
            del parts[v]
            waiting, left = ([_redirect(link, v, u) for link in some] for some in (waiting, left))
        else:
            left.append((u, v, family))
    return left


def _redirect(link: _Link, old: int, new: int) -> _Link:
    u, v, family = link
    return new if u == old else u, new if v == old else v, family


def _equi_join(left: _Dense, right: _Dense, family: Family) -> _Dense:
    """All pairs of tuples with equal keys in the shared column, which is then dropped."""
    order = np.argsort(right.columns[family], kind="stable")
    theirs = right.columns[family][order]
    first = np.searchsorted(theirs, left.columns[family], "left")
    matches = np.searchsorted(theirs, left.columns[family], "right") - first
    mine = np.repeat(np.arange(matches.size), matches)
    within = np.arange(mine.size) - np.repeat(np.cumsum(matches) - matches, matches)
    other = order[first[mine] + within]
    columns = {f: c[mine] for f, c in left.columns.items() if f != family}
    columns |= {f: c[other] for f, c in right.columns.items() if f != family}
    return _Dense(columns, left.weights[mine] * right.weights[other])


def _as_sketch(part: _Part, like: ConvolutionSpec) -> ConvolutionSketch:
    if isinstance(part, ConvolutionSketch):
        return part
    # Products of weights may leave int64; as float64 they lose at most 1e-16 of themselves.
    sketch = ConvolutionSketch(ConvolutionSpec(tuple(part.columns), like.rows, like.buckets, "float64"))
    sketch.update(list(part.columns.values()), part.weights)
    return sketch


def _basis(vertices: Sequence[Skimmed]) -> str:
    """Weights read from a sketch tie its rows together; the theorem holds where none were."""
    proven = all(not v.weights.size and v.residual.spec.basis == "theorem" for v in vertices)
    return "theorem" if proven else "measured"
