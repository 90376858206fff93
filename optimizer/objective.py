"""What is asked of an answer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from .methods import CANDIDATES

ENTRY_BYTES = 16
# An hour: whoever asks for an approximate answer does not wait for more.
MAX_EXACT_SECONDS = 3600


@dataclass(frozen=True, slots=True)
class Objective:
    """What is asked of the answer and what it may take.

    Parameters
    ----------
    relative_error : float, optional
        Half-width of the interval over the answer, asked with `confidence`.
    confidence : float
    size_bytes : int, optional
        Bytes for all state of the query together; goes over the error target.
    max_bytes : int
        Never more than this, whatever is asked.
    fold_bytes : int
        Largest exact message.
    max_exact_seconds : float
        Most CPU seconds that an exact run may be predicted to take.
    ordered : bool
        Whether the tables can be read one after another, with what the first told; false for streams and for
        synopses that are built once for any query.
    static : tuple of int, optional
        Where `ordered` is false, the vertices that can be read beforehand all the same and send exact messages.
    method : str, optional
        Forces a candidate of the registry.
    methods : tuple of str
        Those that whoever asks can run.
    rows : int
        Rows of a sketch.
    columns : int
        Most weights that a table's tuples have in the query: 1 for a COUNT, 2 for SUM and AVG (the argument and
        its presence). Every table is planned for as many.
    regressed : bool
        Whether samples come with the totals of their tables, and so are regressed on them.
    groups : tuple of (int, int)
        The grouped vertices and how many groups each has: they send no messages, and have a sketch for each group.
    sparse : bool
        Whether sketches start as exact maps.
    route : str
        ``jvm`` where no Python worker may be started: what workers alone make is out.
    """

    relative_error: float | None = None
    confidence: float = 0.95
    size_bytes: int | None = None
    max_bytes: int = 256 << 20
    fold_bytes: int = 8 << 20
    max_exact_seconds: float = MAX_EXACT_SECONDS
    ordered: bool = True
    static: tuple[int, ...] = ()
    method: str | None = None
    methods: tuple[str, ...] = CANDIDATES
    rows: int = 11
    columns: int = 1
    regressed: bool = True
    groups: tuple[tuple[int, int], ...] = ()
    sparse: bool = True
    route: str = "auto"

    def __post_init__(self) -> None:
        if self.method is not None and self.method not in CANDIDATES:
            raise ValueError(f"a method is one of {', '.join(CANDIDATES)}, not {self.method!r}")
        if self.relative_error is None and self.size_bytes is None:
            raise ValueError("an objective has an error target or a size")

    def sketches(self, vertices: Sequence[int]) -> int:
        """How many sketches of one weight some vertices have together."""
        groups = dict(self.groups)
        return sum(groups.get(v, 1) for v in vertices)

    @property
    def most_groups(self) -> int:
        """How many groups the query has at most."""
        return math.prod(n for _, n in self.groups)

    def senders(self, vertices: int) -> tuple[int, ...]:
        """Those of so many vertices that may send exact messages."""
        may = range(vertices) if self.ordered else self.static
        return tuple(v for v in may if v not in dict(self.groups))

    @property
    def entry_bytes(self) -> float:
        """Bytes of a key with its weights, in a message or a sample."""
        return ENTRY_BYTES * (1 + self.columns) / 2

    @property
    def most_bytes(self) -> float:
        """What the state may take."""
        return min(self.max_bytes, self.max_bytes if self.size_bytes is None else self.size_bytes)
