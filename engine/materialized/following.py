"""Whether a new sketch can take the layout of the first one of its class, and with which of them it is not joined."""

from __future__ import annotations

from collections.abc import Sequence

from ..catalog.form import Head
from .matching import BESIDE, JOINED

# Names of sketches that a note tells; the others are counted.
MOST_TOLD = 3


def share_layout(one: str, other: str) -> bool:
    """Whether sketches of two methods are joined where they have one layout."""
    return one == other or {one, other} <= JOINED


def _sampled_beside(one: str, other: str) -> bool:
    """Whether sketches of two methods are joined as sampled tables and what is beside them."""
    return "sample_sketch" in (one, other) and {one, other} <= BESIDE | {"sample_sketch"}


def note_of_unlike(method: str, seed: int, rows: int, buckets: int, others: Sequence[Head]) -> str:
    """What there is to say of the sketches of its class with which a new one is not joined; empty of none.

    Parameters
    ----------
    method : str
    seed, rows, buckets : int
        Of the new sketch.
    others : sequence of Head
    """
    told = []
    for head in others:
        if _sampled_beside(method, head.method):
            continue
        if not share_layout(method, head.method):
            told.append(f"{head.name} ({head.method})")
        elif head.seed != seed:
            told.append(f"{head.name} (seed {head.seed})")
        elif not head.kind.joint and (head.rows, head.buckets) != (rows, buckets):
            told.append(f"{head.name} ({head.rows} rows x {head.buckets:,} buckets)")
    if not told:
        return ""
    more = f" and {len(told) - MOST_TOLD} more" if len(told) > MOST_TOLD else ""
    # An exact map is joined whatever its size.
    own = "as counters it is" if method in JOINED else "it is"
    return f"{own} not joined with {', '.join(told[:MOST_TOLD])}{more} of its class"
