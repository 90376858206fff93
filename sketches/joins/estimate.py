"""From sketches to an answer with its interval: exact where all of them are, else from their rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..hashing.spark_families import Folded
from ..intervals.interval import (
    LEAST_BUCKETS,
    Estimate,
    averaged,
    clip,
    collapse_notes,
    exact,
    in_rows,
    median_interval,
    ratio_interval,
    uncertified,
)
from ..intervals.rounding import slack_of
from .accumulate import EXACT_IN_FLOAT
from .agms import AgmsSketch, AgmsSpec, join_averages
from .collision import collision_free_rows
from .convolution import ConvolutionSketch, join_rows
from .exact_map import ExactMap, exact_join
from .join_tree import Edges, check_join
from .linear import LinearSketch
from .sparse import SparseFirstSketch

AnySketch = LinearSketch[Any] | SparseFirstSketch[Any]
NOTHING_MATCHES = "no rows match"


@dataclass(frozen=True, slots=True)
class JoinTerm:
    """`coefficient` times a join aggregate; entry v of `sketches` is the sketch of vertex v.

    All are `ConvolutionSketch` or all `AgmsSketch`, each possibly still sparse. The same object may stand for
    several vertices.
    """

    sketches: tuple[AnySketch, ...]
    coefficient: float = 1.0


def join_estimate(
    sketches: Sequence[AnySketch],
    edges: Edges,
    confidence: float = 0.95,
    low_bound: float = -math.inf,
    high_bound: float = math.inf,
) -> Estimate:
    """Estimate an acyclic join aggregate with an interval: `sum_estimate` of a single term."""
    return sum_estimate([JoinTerm(tuple(sketches))], edges, confidence, low_bound, high_bound)


def ratio_estimate(
    numerators: Sequence[AnySketch],
    denominators: Sequence[AnySketch],
    edges: Edges,
    confidence: float = 0.95,
    low_bound: float = -math.inf,
    high_bound: float = math.inf,
) -> Estimate:
    """Estimate AVG = SUM / COUNT on the same hashes: `sum_ratio_estimate` of single terms."""
    top, bottom = JoinTerm(tuple(numerators)), JoinTerm(tuple(denominators))
    return sum_ratio_estimate([top], [bottom], edges, confidence, low_bound, high_bound)


def sum_estimate(
    terms: Sequence[JoinTerm],
    edges: Edges,
    confidence: float = 0.95,
    low_bound: float = -math.inf,
    high_bound: float = math.inf,
) -> Estimate:
    """Estimate a sum of acyclic join aggregates over the same join, with an interval.

    Parameters
    ----------
    terms : sequence of JoinTerm
        Vertices and families are the same in all; what differs are the weights, or the parts of a partitioned
        domain. Sketches of one term have equal sizes; those of another may have more rows, which are averaged
        down to the fewest (see `in_rows`).
    edges : sequence of (u, v, i, j)
        Attribute i of vertex u equals attribute j of vertex v, see `join_tree.check_join`.
    confidence : float
        In (0, 1).
    low_bound, high_bound : float
        Bounds that hold for certain: 0 and the product of the numbers of tuples for COUNT.

    Returns
    -------
    Estimate
        Exact if every sketch is, or if one of them is exactly empty; so are, with the given confidence, rows
        without collisions (see `collision`). Not certified where the rows are too few or their keys
        collapse; the notes say why.
    """
    _check(terms, edges)
    known = known_sum(terms, edges)
    if known is not None:
        return exact(known)
    rows, counters = _rows(terms, edges, _fewest_rows(terms))
    free = _free_rows(terms, edges, counters, confidence)
    if free is not None and _agree(rows[free]):
        value = float(rows[free][0])
        slack = _slack(terms, int(np.flatnonzero(free)[0]))
        return Estimate(value, value - slack, value + slack, confidence, True, "measured")
    estimate = median_interval(averaged(rows, _buckets(terms), confidence), confidence, _basis(terms))
    return clip(uncertified(estimate, *_doubts(terms, counters)), low_bound, high_bound)


def sum_ratio_estimate(
    numerators: Sequence[JoinTerm],
    denominators: Sequence[JoinTerm],
    edges: Edges,
    confidence: float = 0.95,
    low_bound: float = -math.inf,
    high_bound: float = math.inf,
) -> Estimate:
    """Estimate the ratio of two sums of join aggregates on the same hashes: AVG = SUM / COUNT.

    Parameters
    ----------
    numerators, denominators : sequence of JoinTerm
        As for `sum_estimate`. Vertices without the averaged column have the same sketch in both.
    edges, confidence
        As for `sum_estimate`, the same for both.
    low_bound, high_bound : float
        Bounds that hold for certain: the smallest and the largest value averaged.

    Returns
    -------
    Estimate
        NaN with an infinite interval where too few rows match to tell; NaN, exact, where none do.
    """
    _check([*numerators, *denominators], edges)
    top, bottom = known_sum(numerators, edges), known_sum(denominators, edges)
    if bottom == 0:
        return Estimate(math.nan, math.nan, math.nan, 1.0, True, "exact", (NOTHING_MATCHES,))
    if top is not None and bottom is not None:
        return exact(top / bottom)
    if bottom is not None:
        part = sum_estimate(numerators, edges, confidence)
        ends = sorted((part.low / bottom, part.high / bottom))
        scaled = Estimate(
            part.value / bottom, ends[0], ends[1], confidence, part.certified, part.basis, part.notes
        )
        return clip(scaled, low_bound, high_bound)
    most = min(_fewest_rows(numerators), _fewest_rows(denominators))
    rows, counters = _rows(numerators, edges, most)
    bottom_rows, bottom_counters = _rows(denominators, edges, most)
    counters += bottom_counters
    free = _free_rows(numerators, edges, counters, confidence)
    if free is not None and bottom_rows[free].all() and _agree(rows[free] / bottom_rows[free]):
        ratio = float(rows[free][0] / bottom_rows[free][0])
        slack = _slack(numerators, int(np.flatnonzero(free)[0])) / abs(float(bottom_rows[free][0]))
        return Estimate(ratio, ratio - slack, ratio + slack, confidence, True, "measured")
    both = [*numerators, *denominators]
    rows, bottom_rows = (averaged(r, _buckets(both), confidence) for r in (rows, bottom_rows))
    estimate = ratio_interval(rows, bottom_rows, confidence, _basis(both))
    return clip(uncertified(estimate, *_doubts(both, counters)), low_bound, high_bound)


def _check(terms: Sequence[JoinTerm], edges: Edges) -> None:
    for term in terms:
        check_join([s.spec for s in term.sketches], edges)


def known_sum(terms: Sequence[JoinTerm], edges: Edges) -> int | float | None:
    """The exact sum of the terms where every one is known from exact maps, else None."""
    total: int | float = 0
    for term in terms:
        known = _known(term.sketches, edges)
        if known is None:
            return None
        # An integer stays one: floats end at 2^53.
        total += known if term.coefficient == 1 else term.coefficient * known
    return total


def _free_rows(
    terms: Sequence[JoinTerm], edges: Edges, counters: Sequence[NDArray[np.generic]], confidence: float
) -> NDArray[np.bool_] | None:
    """Rows known to have no collisions; only a single join on one attribute lets that be seen."""
    alike = len({array.shape for array in counters}) == 1
    if len(edges) != 1 or not alike:
        return None
    family = terms[0].sketches[0].spec.families[0]
    shared = 1 << family.fine_bits if isinstance(family, Folded) else None
    return collision_free_rows(counters, confidence, shared)


def _slack(terms: Sequence[JoinTerm], row: int) -> float:
    """How far the doubles of a row without collisions may be from the sum that its counters say.

    Whole numbers up to 2^53 are none; what has been lost when counters of doubles were added up is not known here.
    """
    mass, whole, buckets = 0.0, True, 0
    for term in terms:
        spec = term.sketches[0].spec
        product = np.ones(int(spec.shape[1]))
        for sketch in term.sketches:
            dense = sketch.dense() if isinstance(sketch, SparseFirstSketch) else sketch
            product *= np.abs(dense.counters[row % len(dense.counters)].astype(np.float64))
            whole &= sketch.spec.dtype == "int64"
        whole &= term.coefficient == 1
        mass += abs(term.coefficient) * float(product.sum())
        buckets += len(product)
    return 0.0 if whole and mass < EXACT_IN_FLOAT else slack_of(buckets, mass)


def _agree(values: NDArray[np.float64]) -> bool:
    """Whether rows that should all be exact do agree, up to the rounding of doubles."""
    return bool(np.ptp(values) <= 1e-9 * abs(values[0]))


def _known(sketches: Sequence[AnySketch], edges: Edges) -> int | float | None:
    """The exact aggregate where maps or a plain total tell it."""
    if len(sketches) == 1:
        # Nothing is joined: the one counter is the total itself.
        alone = sketches[0]
        exact = alone.exact if isinstance(alone, SparseFirstSketch) else None
        if exact is not None:
            return exact.weights.sum().item()  # type: ignore[no-any-return]
        total = alone.dense() if isinstance(alone, SparseFirstSketch) else alone
        return total.counters[0, 0].item()  # type: ignore[no-any-return]
    maps = [s.exact if isinstance(s, SparseFirstSketch) else None for s in sketches]
    if any(m is not None and len(m) == 0 for m in maps):
        return 0
    present: list[ExactMap] = [m for m in maps if m is not None]
    return exact_join(present, edges) if len(present) == len(maps) else None


def _fewest_rows(terms: Sequence[JoinTerm]) -> int:
    return min(int(term.sketches[0].spec.shape[0]) for term in terms)


def _rows(
    terms: Sequence[JoinTerm], edges: Edges, most: int
) -> tuple[NDArray[np.float64], list[NDArray[np.generic]]]:
    """Estimates in `most` rows, and the counters they come from; each sparse sketch turned dense once.

    Rows of several terms add, since row r of each is made by the same hashes. Terms that are known exactly add
    just that.
    """
    dense: dict[int, LinearSketch[Any]] = {}
    total = np.zeros(most)
    for term in terms:
        known = _known(term.sketches, edges)
        if known is not None:
            total = total + term.coefficient * known
            continue
        for sketch in term.sketches:
            if id(sketch) not in dense:
                dense[id(sketch)] = sketch.dense() if isinstance(sketch, SparseFirstSketch) else sketch
        ready = [dense[id(sketch)] for sketch in term.sketches]
        kinds = {type(sketch) for sketch in ready}
        if kinds == {AgmsSketch}:
            rows = join_averages([s for s in ready if isinstance(s, AgmsSketch)], edges)
        elif AgmsSketch not in kinds:
            rows = join_rows([s for s in ready if isinstance(s, ConvolutionSketch)], edges)
        else:
            raise ValueError("convolution and AGMS sketches cannot be multiplied")
        total = total + term.coefficient * in_rows(rows, most)
    # Atomic sketches have no buckets that keys could collapse into.
    return total, [s.counters for s in dense.values() if not isinstance(s, AgmsSketch)]


def _buckets(terms: Sequence[JoinTerm]) -> int:
    return min(int(s.spec.shape[1]) for term in terms for s in term.sketches)


def _doubts(terms: Sequence[JoinTerm], counters: Sequence[NDArray[np.generic]]) -> tuple[str, ...]:
    """Why the interval cannot be certified; nothing if it can."""
    notes = collapse_notes(counters)
    atomic = [s.spec.s1 for term in terms for s in term.sketches if isinstance(s.spec, AgmsSpec)]
    if atomic and min(atomic) < LEAST_BUCKETS:
        notes += (
            f"{min(atomic)} atomic sketches averaged; certified intervals need {LEAST_BUCKETS} or more",
        )
    return notes


def _basis(terms: Sequence[JoinTerm]) -> str:
    measured = any(s.spec.basis == "measured" for term in terms for s in term.sketches)
    return "measured" if measured else "theorem"
