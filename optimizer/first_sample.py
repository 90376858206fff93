"""A first sample of large tables, by their row counts alone.

On large tables a pilot costs as much as an answer. A sample of the keys by which the largest tables meet costs little
more than the scan, and its own interval says whether it was enough; if not, it says how much would be.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..parser.join_graph import JoinGraph
from .choose import ClassSample
from .messages import tree_of

# Below this many tuples in the largest table statistics are cheaper than a sample that was wrong.
LARGE = 1e6

# Tuples behind the filters that a first sample aims at, and the most that it takes of a table before its filter.
WANTED = 65_536.0
MOST = 450_000.0

# Share of the tuples that a filter is taken to keep while nothing is known of it.
ASSUMED_SELECTIVITY = 0.1

# Tuples looked at one by one for keys too heavy to be left to chance.
LOOKED_AT = 16_384.0

# A sample that has to be enlarged is enlarged by so much more than its interval asks for.
RESERVE = 1.4

# With a larger share of the keys the exact run is cheaper.
MOST_RATE = 0.25


def first_sample(graph: JoinGraph, scanned: Sequence[float | None]) -> ClassSample | None:
    """The sample that is tried before anything is known but row counts.

    Parameters
    ----------
    graph : JoinGraph
    scanned : sequence of float or None
        Tuples of each vertex's table before its filter.

    Returns
    -------
    ClassSample or None
        None where no table is large, or the size of one is not known.
    """
    known = [t for t in scanned if t is not None]
    if len(known) < len(scanned) or not graph.edges or max(known) < LARGE:
        return None
    tree = tree_of(graph)
    # The class whose second largest table is largest: where most work is saved.
    joined = max(
        range(len(tree.classes)),
        key=lambda c: (sorted(known[v] for v in tree.classes[c].vertices)[-2], -c),
    )
    members = tree.classes[joined].vertices
    largest = max(members, key=lambda v: known[v])
    filters = sum(graph.vertices[v].filter is not None for v in members)
    wanted = min(WANTED / ASSUMED_SELECTIVITY**filters, MOST)
    return ClassSample(
        joined,
        min(1.0, wanted / known[largest]),
        row_rates=tuple(min(1.0, LOOKED_AT / max(known[v], 1.0)) for v in members),
    )


def enlarged(rate: float, excess: float) -> float | None:
    """The rate at which an interval `excess` times too wide would be narrow enough; None where exact is cheaper.

    The variance of a sample falls with the rate: the interval's width with its root.
    """
    if not math.isfinite(excess):
        return None
    needed = rate * excess**2 * RESERVE
    return needed if needed <= MOST_RATE else None
