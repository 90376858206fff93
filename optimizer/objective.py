"""What is asked of an answer, and the names of the methods that can give it."""

from __future__ import annotations

from dataclasses import dataclass

ENTRY_BYTES = 16
METHODS = (
    "exact",
    "hash",
    "skimmed",
    "convolution",
    "agms",
    "key_sample",
    "two_level",
    "sampled_messages",
    "distinct",
    "join_distinct",
    "exact_run",
)
# An hour: whoever asks for an approximate answer does not wait for more.
MAX_EXACT_SECONDS = 3600
SKETCHES = ("hash", "skimmed", "convolution", "agms")


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
        Forces one of `METHODS`.
    methods : tuple of str
        Those that whoever asks can run.
    rows : int
        Rows of a sketch.
    columns : int
        Most weights that a table's tuples have in the query: 1 for a COUNT, 2 for SUM and AVG (the argument and
        its presence). Every table is planned for as many.
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
    methods: tuple[str, ...] = METHODS
    rows: int = 11
    columns: int = 1

    def __post_init__(self) -> None:
        if self.method is not None and self.method not in METHODS:
            raise ValueError(f"a method is one of {', '.join(METHODS)}, not {self.method!r}")
        if self.relative_error is None and self.size_bytes is None:
            raise ValueError("an objective has an error target or a size")

    @property
    def entry_bytes(self) -> float:
        """Bytes of a key with its weights, in a message or a sample."""
        return ENTRY_BYTES * (1 + self.columns) / 2

    @property
    def most_bytes(self) -> float:
        """What the state may take."""
        return min(self.max_bytes, self.max_bytes if self.size_bytes is None else self.size_bytes)
