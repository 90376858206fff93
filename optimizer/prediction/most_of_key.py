"""The most pairs or triples of values that one join key has, by the tuples of keys that statistics know of."""

from __future__ import annotations

import math
from dataclasses import replace

from ..distinct_count import DistinctCount, PairsByKey
from ..plan import Plan
from .figures import Figures
from .sampled_class import heaviest_known


def of_count(figures: Figures, count: DistinctCount) -> DistinctCount:
    """A count by the key with the most that a key has: no more values than it has tuples in either table."""
    if not isinstance(count, PairsByKey):
        return count
    vertices = (count.left.vertex, count.right.vertex) if count.full else (count.left.vertex,)
    both = {count.left.vertex, count.right.vertex}
    classes = figures.tree.classes
    joined = next((j for j, c in enumerate(classes) if both <= {*c.vertices}), None)
    if joined is None:
        return count
    bound = math.prod(figures.heaviest(v, joined) for v in vertices)
    known = math.prod(
        heaviest_known(figures.attribute(v, joined), figures.relations[v].tuples) for v in vertices
    )
    most = bound if math.isfinite(bound) else known
    return replace(count, most_of_key=max(math.ceil(most), 1), bounded=math.isfinite(bound))


def of_plan(figures: Figures, plan: Plan) -> Plan:
    """A plan whose counts by a key know the most that a key has."""
    aggregates = tuple(
        a if a.distinct is None else replace(a, distinct=of_count(figures, a.distinct))
        for a in plan.aggregates
    )
    return replace(plan, aggregates=aggregates)
