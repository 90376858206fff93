"""How to answer COUNT(DISTINCT ...): level sketch, key sample of the join key, or the two-sided pair sampler.

The projections are those of `Aggregate.projection`. Distinct degrees are taken to be the numbers of tuples with a
key, which they cannot exceed: repeated pairs make the real error smaller or larger with their skew, so the figures are
assumptions, and said to be.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..sketches.count_signature import WORDS_PER_CELL
from ..sketches.occupancy import TERNARY_INFORMATION
from .candidate import EXACT, Candidate, Choice, EdgeChoice, NoMethod, checked, rank
from .cost import Cost, exact_join, sample, scans, sketches
from .figures import Contributions, Figures
from .messages import JoinTree, whole
from .objective import ENTRY_BYTES, Objective
from .predict import Predicted, sample_variance
from .relation import RelationStatistics, complete

LEVELS = 32
LEAST_BUCKETS = 16
PAIR_BYTES = 96  # 1.5 cells of 32 bytes for a pair, on its level and, on average, once more below
TWO_SIDED_LOSS = (
    0.46  # error times sqrt(k) of the pair sampler at the sparsest join measured: 5.8 % at k = 64
)
DEGREES = "distinct degrees are the numbers of tuples of a key"


def choose_distinct(
    tree: JoinTree, statistics: Sequence[RelationStatistics], projection: str, objective: Objective
) -> Choice:
    """Choose how to answer a COUNT(DISTINCT ...) over one table or a join of two.

    Parameters
    ----------
    tree : JoinTree
    statistics : sequence of RelationStatistics
    projection : str
        ``single``, ``one_sided``, ``two_sided`` or ``full``; for ``one_sided`` the first vertex has the columns.
    objective : Objective

    Raises
    ------
    NoMethod
        For more than two tables, or if nothing fits or meets the target.
    """
    relations = [complete(s, len(tree.classes_of(v))) for v, s in enumerate(statistics)]
    figures = Figures(tree, relations)
    residual = whole(tree)

    def built(size: float) -> Candidate:
        if projection == "single":
            return _level(figures, size)
        if len(relations) != 2:
            raise ValueError("distinct tuples are counted over one table or a join of two")
        if projection == "two_sided":
            return _pairs(figures, size)
        return _keys(figures, size, one_sided=projection == "one_sided")

    found = []
    try:
        found.append(_least(built, objective))
    except ValueError as fault:
        method = "level_sketch" if projection == "single" else "join_distinct"
        found.append(Candidate(method, residual, 0.0, EXACT, Cost(math.inf), refused=str(fault)))
    if objective.size_bytes is None:
        cost = scans(relations).plus(exact_join(relations))
        found.append(Candidate("exact_run", residual, 0.0, EXACT, cost))
    candidates = tuple(checked(c, objective) for c in found)
    able = [c for c in candidates if not c.refused]
    if not able:
        raise NoMethod("; ".join(f"{c.name}: {c.refused}" for c in candidates), candidates)
    taken = min(able, key=lambda c: rank(c, objective))
    width = taken.half_width(objective.confidence)
    edges = tuple(
        EdgeChoice(e, taken.method.replace("_", " "), f"predicted +-{width:.2g}")
        for joined in tree.classes
        for e in joined.edges
    )
    return Choice(taken, candidates, edges, (DEGREES,), objective)


def _least(built, objective: Objective) -> Candidate:  # type: ignore[no-untyped-def]
    """The candidate at the given size, or at the least that meets the target."""
    best: Candidate = built(objective.most_bytes)
    target = objective.relative_error
    if objective.size_bytes is not None or target is None or best.half_width(objective.confidence) > target:
        return best
    low, high = 1024.0, float(objective.most_bytes)
    while high > 1.1 * low:
        middle = math.sqrt(low * high)
        try:
            tried: Candidate = built(middle)
        except ValueError:
            low = middle
            continue
        if tried.half_width(objective.confidence) <= target:
            high, best = middle, tried
        else:
            low = middle
    return best


def _level(figures: Figures, size: float) -> Candidate:
    """A level sketch: 0.479 / sqrt(buckets)."""
    buckets = int(size) // (8 * WORDS_PER_CELL * LEVELS)
    least = 8 * WORDS_PER_CELL * LEVELS * LEAST_BUCKETS
    if buckets < LEAST_BUCKETS:
        raise ValueError(f"{size:,.0f} bytes hold no level sketch; {least:,} would")
    (relation,) = figures.relations
    distinct = relation.attributes[0].distinct if relation.attributes else relation.tuples
    cost = scans([relation]).plus(sketches([relation], [1], "hash", 0))
    predicted = Predicted(distinct, distinct**2 / (TERNARY_INFORMATION * buckets))
    held = 8.0 * WORDS_PER_CELL * LEVELS * buckets
    return Candidate("level_sketch", whole(figures.tree), held, predicted, cost, rows=1, buckets=buckets)


def _keys(figures: Figures, size: float, *, one_sided: bool) -> Candidate:
    """A sample of the join keys with distinct degrees: pi_{A,B} or pi_{A,B,C}."""
    tables = len(figures.relations)
    capacity = int(size) // tables // ENTRY_BYTES
    if capacity < 1:
        raise ValueError(f"{size:,.0f} bytes hold no sampled key")
    cells = figures.cells(0)
    weights, squares = cells.weights.copy(), cells.squares.copy()
    if one_sided:
        weights[1] = squares[1] = np.minimum(weights[1], 1.0)
    own = replace(cells, weights=weights, squares=squares)
    contributions = Contributions(own, weights.prod(axis=0), squares.prod(axis=0), (1.0,) * tables)
    p = [min(1.0, capacity / max(figures.attribute(v, 0).distinct, 1.0)) for v in range(tables)]
    certain = np.repeat(np.array(p)[:, np.newaxis] == 1.0, own.counts.size, axis=1)
    variance, _ = sample_variance(contributions, certain, p, (False,) * tables)
    cost = scans(figures.relations).plus(sample(figures.relations, min(p), 0))
    held = float(ENTRY_BYTES * tables * capacity)
    predicted = Predicted(contributions.total, variance)
    return Candidate("join_distinct", whole(figures.tree), held, predicted, cost)


def _pairs(figures: Figures, size: float) -> Candidate:
    """The two-sided pair sampler: k values of either side with all their join keys."""
    relations = figures.relations
    each = size / 2 / PAIR_BYTES
    degree = max(r.tuples / max(r.attributes[0].distinct, 1.0) for r in relations)
    values = each / max(degree, 1.0)
    if values < 2:
        raise ValueError(f"{size:,.0f} bytes hold fewer than two values of each side")
    answer = figures.total
    predicted = Predicted(answer, (answer * TWO_SIDED_LOSS) ** 2 / values)
    cost = scans(relations).plus(sketches(relations, [2, 2], "convolution", 0))
    return Candidate("join_distinct", whole(figures.tree), float(size), predicted, cost)
