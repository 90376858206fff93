"""A first sample of large tables, by their row counts and a glance at their filters.

On large tables a pilot costs as much as an answer. A sample of the keys by which the largest tables meet costs little
more than the scan, and its own interval says whether it was enough; if not, it says how much would be.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..parser.join_graph import JoinGraph
from .choose import ClassSample
from .cost import EXACT_JOIN_NS
from .messages import tree_of

# Below this many tuples in the largest table statistics are cheaper than a sample that was wrong.
LARGE = 1e6

# Joined tuples that a first sample aims at for an error of 5 %, with a reserve for what is not independent. Half the
# error takes four times as many.
WANTED = 65_536.0
WANTED_ERROR = 0.05

# With so many times fewer than that no sample is enough.
HOPELESS = 16.0

# Most joined tuples that a sample takes, and most keys of the smallest table, which the next tables are asked for.
MOST = 4e6
MOST_WANTED = 1 << 20

# Tuples looked at one by one for keys too heavy to be left to chance.
LOOKED_AT = 16_384.0

# A sample that has to be enlarged is enlarged by so much more than its interval asks for.
RESERVE = 1.4

# With a larger share of the keys the exact run is cheaper.
MOST_RATE = 0.25

# CPU of a tuple that a sample keeps, nanoseconds: computed, sent, grouped in the driver. Measured on TPC-H.
SAMPLED_NS = 400.0

# That of one that only asks whether its key is wanted, and of one that is scanned.
PROBED_NS = 60.0
SCANNED_NS = 60.0

# Where several filters make the size of the join a guess, a first sample is so many times larger as long as it costs
# less than this share of the scans: asking again costs all of them.
RESERVED = 0.1
MOST_RESERVED = 4.0

# A share that a glance has not met at all.
LEAST_SHARE = 0.002


@dataclass(frozen=True, slots=True)
class Size:
    """Tuples of a vertex's table, and the share of them that its filter keeps, as far as a glance can tell."""

    tuples: float
    share: float = 1.0

    @property
    def kept(self) -> float:
        """Tuples behind the filter."""
        return self.tuples * max(self.share, LEAST_SHARE)


def is_large(tuples: Sequence[float | None]) -> bool:
    """Whether a first sample is worth while: all sizes are known, and one is large."""
    return None not in tuples and max((t for t in tuples if t is not None), default=0.0) >= LARGE


def first_sample(graph: JoinGraph, sizes: Sequence[Size], error: float) -> ClassSample | None:
    """The sample that is tried before anything else is known.

    Parameters
    ----------
    graph : JoinGraph
    sizes : sequence of Size
        One for each vertex.
    error : float
        The asked relative error.

    Returns
    -------
    ClassSample or None
        None where the exact run looks cheaper, or no sample of a size worth while can be enough.

    Notes
    -----
    Filters are taken to be independent, and every tuple of the largest table to find partners: what is left of the
    join is then its tuples times the shares of all filters.
    """
    tree = tree_of(graph)
    # The class whose second largest table is largest: where most work is saved.
    joined = max(
        range(len(tree.classes)),
        key=lambda c: (sorted(sizes[v].tuples for v in tree.classes[c].vertices)[-2], -c),
    )
    members = tree.classes[joined].vertices
    largest = max(sizes[v].tuples for v in members)
    left = largest * math.prod(max(s.share, LEAST_SHARE) for s in sizes)
    first = min(sizes[v].kept for v in members)
    each = SAMPLED_NS * (first + left) + PROBED_NS * (sum(sizes[v].kept for v in members) - first)
    rate = WANTED * (WANTED_ERROR / error) ** 2 / max(left, 1.0)
    if sum(s.share < 1.0 for s in sizes) > 1:
        affordable = RESERVED * SCANNED_NS * sum(s.tuples for s in sizes) / max(each, 1.0)
        rate = max(rate, min(MOST_RESERVED * rate, affordable))
    most = min(MOST_RATE, MOST / max(left, 1.0), MOST_WANTED / max(first, 1.0))
    if rate > HOPELESS * most:
        return None
    rate = min(rate, most)
    sampled = rate * each
    if sampled > EXACT_JOIN_NS * sum(s.kept for s in sizes):
        return None
    looked_at = tuple(min(1.0, LOOKED_AT / max(sizes[v].kept, 1.0)) for v in members)
    return ClassSample(joined, rate, row_rates=looked_at)


def enlarged(rate: float, excess: float) -> float | None:
    """The rate at which an interval `excess` times too wide would be narrow enough; None where exact is cheaper.

    The variance of a sample falls with the rate: the interval's width with its root.
    """
    if not math.isfinite(excess):
        return None
    needed = rate * excess**2 * RESERVE
    return needed if needed <= MOST_RATE else None
