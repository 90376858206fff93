"""What every sample by hash keeps: entries whose key's hash lies below a threshold, with exact net weights.

An entry is a combination of key values, one array for each attribute; the hash of the first decides. All entries of
one key are kept or dropped together, so what is kept of a key is all there is of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Generic, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt

from ..hashing.xi import Family, as_keys

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]
State = dict[str, npt.NDArray[np.generic]]

_BLOCK = 1 << 16


class ThresholdSpec(Protocol):
    """What identifies such a sample. Frozen, compared by value."""

    @property
    def family(self) -> Family:
        """Its first function decides."""

    @property
    def capacity(self) -> int:
        """Most entries kept, or as many as take no more bytes."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the weights."""

    @property
    def hash_bits(self) -> int:
        """Bits of the hash that are compared."""

    @property
    def everything(self) -> int:
        """The threshold below which every hash lies."""

    @property
    def attributes(self) -> int:
        """Keys of an entry."""


SpecT = TypeVar("SpecT", bound=ThresholdSpec)


class ThresholdSample(Generic[SpecT]):
    """Entries whose hash is below a threshold, with their exact net weights; see `KeySample` and `SampleSketch`.

    Notes
    -----
    Without deletions the state does not depend on the order or the batches of the tuples, nor on how partial samples
    were merged. Time O(batch) hashing and O(n log n) now and then; nothing is done key by key in Python.
    """

    kind = "sample"
    # Whether an entry without weight is dropped; else it takes part in setting the threshold.
    drops_nothing = True

    def __init__(self, spec: SpecT) -> None:
        self.spec = spec
        self._threshold = spec.everything
        self._hold(
            np.empty((spec.attributes, 0), np.int64),
            np.empty((len(spec.columns), 0), np.int64),
        )
        self._pending: list[tuple[Ints, Ints]] = []
        self._pending_tuples = 0
        self._unseen: Floats = np.zeros((len(spec.columns), 2))
        self._totals: Ints = np.zeros(len(spec.columns), np.int64)

    @property
    def weights(self) -> Ints:
        """Net weights of what is kept, int64, shape (columns, n)."""
        return self._kept()[1]

    @property
    def threshold(self) -> int:
        """Keys with a hash below this integer are kept; ``spec.everything`` keeps every key."""
        self._compact()
        return self._threshold

    @property
    def probability(self) -> float:
        """Probability with which a key is kept: ``threshold / 2**hash_bits``."""
        return self.threshold / self.spec.everything

    @property
    def totals(self) -> Ints:
        """Exact total weight of *all* tuples, kept or not, int64, shape (columns,)."""
        return self._totals.copy()

    @property
    def unseen(self) -> Floats:
        """Smallest and largest net weight that a key can have, float64, shape (columns, 2).

        Infinite unless set by :meth:`bound_unseen`, since a sample cannot see the keys outside it.
        """
        return self._unseen.copy()

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays held once pending tuples are folded in."""
        entries, weights = self._kept()
        return entries.nbytes + weights.nbytes + self._totals.nbytes

    @property
    def hashing(self) -> tuple[Family, int]:
        """What decides which keys are kept: the hash family and the bits compared."""
        return self.spec.family, self.spec.hash_bits

    def weight(self, column: str) -> Ints:
        """Net weights of one column, int64, shape (n,), in the order of what is kept.

        Raises
        ------
        ValueError
            If there is no such column; the message lists the known ones.
        """
        weights: Ints = self.weights[self._column(column)]
        return weights

    def bound_unseen(self, column: str, lowest: float, highest: float) -> None:
        """State the smallest and largest net weight of any key, known from elsewhere.

        Such a bound makes intervals certified. Merging and subtracting carry it along; an update loses it.
        """
        if not lowest <= 0.0 <= highest:
            raise ValueError(
                f"a key without tuples weighs 0, so the bounds must enclose 0: [{lowest}, {highest}]"
            )
        self._unseen[self._column(column)] = lowest, highest

    def ranks(self, keys: Ints) -> Floats:
        """Hashes of any keys as fractions in [0, 1): those below :attr:`probability` are kept."""
        return np.asarray(self._hash(keys) / self.spec.everything)

    def merge(self, other: Self) -> None:
        """Add the tuples of another sample of the same spec; the lower threshold holds."""
        self._absorb(other, np.int64(1))

    def subtract(self, other: Self) -> None:
        """Remove the tuples of another sample of the same spec; the lower threshold holds."""
        self._absorb(other, np.int64(-1))

    def copy(self) -> Self:
        """An independent sample with the same content."""
        twin = self._empty()
        entries, weights = self._kept()
        twin._threshold = self._threshold
        twin._hold(entries.copy(), weights.copy())
        twin._unseen, twin._totals = self.unseen, self.totals
        return twin

    def state(self) -> State:
        """Arrays from which `from_state` restores the sample: keys, weights, the largest hash to keep, the totals and
        the bounds of unseen weights."""
        entries, weights = self._kept()
        return {
            "keys": entries.copy(),
            "weights": weights.copy(),
            "last_hash": np.array([self.threshold - 1], np.uint64),
            "totals": self.totals,
            "unseen": self.unseen,
        }

    def _restore(self, stored: npt.NDArray[np.generic], state: Mapping[str, npt.NDArray[np.generic]]) -> None:
        """Take over the arrays of :meth:`state`; ValueError unless they are what this spec would keep."""
        entries, weights = checked_entries(stored, state["weights"], len(self.spec.columns))
        self._threshold = int(state["last_hash"][0]) + 1
        last = np.uint64(self._threshold - 1)
        if (
            entries.shape[0] != self.spec.attributes
            or not _ascending(entries)
            or np.any(self._hashes(entries) > last)
            or self._cut(entries, weights) is not None
        ):
            raise ValueError(f"the stored keys are not a sample of {self.spec}")
        self._hold(entries.copy(), weights.copy())
        self._totals[:] = state["totals"]
        self._unseen[:] = state["unseen"]

    def _empty(self) -> Self:
        return type(self)(self.spec)

    def _column(self, column: str) -> int:
        if column not in self.spec.columns:
            raise ValueError(f"no weight column {column!r} in this {self.kind}; it has {self.spec.columns}")
        return self.spec.columns.index(column)

    def _hash(self, keys: Ints) -> Hashes:
        hashes: Hashes = self.spec.family.values(keys, 1, self.spec.hash_bits)[0]
        return hashes

    def _hashes(self, entries: Ints) -> Hashes:
        """What decides about each entry."""
        return self._hash(entries[0])

    def _hold(self, entries: Ints, weights: Ints) -> None:
        """Keep these arrays, which nobody else changes."""
        self._arrays = entries, weights

    def _held(self) -> tuple[Ints, Ints]:
        """What `_hold` was given."""
        return self._arrays

    def _cut(self, entries: Ints, weights: Ints) -> int | None:
        """The hash of the first entries, in the order of their hashes, that there is no room for; None if all fit."""
        room = self.spec.capacity
        if entries.shape[1] <= room:
            return None
        return int(np.partition(self._hashes(entries), room)[room])

    def _drop(self, entries: Ints, weights: Ints) -> None:
        """Told of the entries at which the threshold is set."""

    def _add(self, entries: Ints, weights: Ints) -> None:
        """Add checked tuples: entries of shape (attributes, batch) and weights of shape (columns, batch)."""
        if entries.shape[1]:
            self._totals = exact_totals(self._totals, weights)
            self._unseen[:] = -np.inf, np.inf
        for start in range(0, entries.shape[1], _BLOCK):
            block, block_weights = entries[:, start : start + _BLOCK], weights[:, start : start + _BLOCK]
            if self._threshold < self.spec.everything:
                kept = self._hashes(block) < np.uint64(self._threshold)
                block, block_weights = block[:, kept], block_weights[:, kept]
            self._append(block.copy(), block_weights.copy())

    def _absorb(self, other: Self, sign: np.int64) -> None:
        if other.spec != self.spec:
            raise ValueError(f"{self.kind}s of different specs do not add up: {self.spec} and {other.spec}")
        entries, weights = other._kept()
        self._unseen = self._unseen + (other._unseen if sign > 0 else -other._unseen[:, ::-1])
        if other._threshold < self.threshold:
            self._threshold = other._threshold
            mine, mine_weights = self._held()
            below = self._hashes(mine) < np.uint64(self._threshold)
            self._hold(mine[:, below], mine_weights[:, below])
        elif self._threshold < other._threshold:
            kept = self._hashes(entries) < np.uint64(self._threshold)
            entries, weights = entries[:, kept], weights[:, kept]
        if sign < 0 and np.any(weights == np.iinfo(np.int64).min):
            raise OverflowError("a net weight of -2**63 has no negative in int64")
        self._totals = exact_totals(self._totals, sign * other._totals[:, np.newaxis])
        self._append(entries.copy(), weights * sign)
        self._compact()

    def _append(self, entries: Ints, weights: Ints) -> None:
        self._pending.append((entries, weights))
        self._pending_tuples += entries.shape[1]
        if self._pending_tuples > max(_BLOCK, 4 * self.spec.capacity):
            self._compact()

    def _kept(self) -> tuple[Ints, Ints]:
        """The entries and their weights, once pending tuples are folded in."""
        self._compact()
        return self._held()

    def _compact(self) -> None:
        """Fold the pending tuples in, drop entries without weight, lower the threshold to what there is room for."""
        if not self._pending:
            return
        held, held_weights = self._held()
        entries = np.concatenate([held, *(k for k, _ in self._pending)], axis=1)
        weights = np.concatenate([held_weights, *(w for _, w in self._pending)], axis=1)
        entries, weights = net_entries(entries, weights, drop=self.drops_nothing)
        self._pending, self._pending_tuples = [], 0
        cut = self._cut(entries, weights)
        if cut is not None:
            hashes = self._hashes(entries)
            at, below = hashes == np.uint64(cut), hashes < np.uint64(cut)
            self._drop(entries[:, at], weights[:, at])
            self._threshold = cut
            entries, weights = entries[:, below], weights[:, below]
        self._hold(entries, weights)


def checked_entries(
    entries: Sequence[npt.NDArray[np.generic]] | npt.NDArray[np.generic],
    weights: npt.NDArray[np.generic] | None,
    columns: int,
) -> tuple[Ints, Ints]:
    """Entries of shape (attributes, batch) and weights of shape (columns, batch), both int64; anything else is a
    ValueError."""
    checked = [as_keys(row) for row in entries]
    if len({len(row) for row in checked}) > 1:
        raise ValueError(f"the keys of one batch have different lengths: {[len(row) for row in checked]}")
    rows = checked[0][np.newaxis] if len(checked) == 1 else np.stack(checked)
    size = rows.shape[1]
    if weights is None:
        return rows, np.ones((columns, size), np.int64)
    if weights.ndim == 1 and columns == 1:
        weights = weights[np.newaxis]
    if weights.dtype != np.int64 or weights.shape != (columns, size):
        raise ValueError(
            f"weights must be int64 of shape {(columns, size)}, got {weights.dtype} of shape {weights.shape}"
        )
    return rows, weights.astype(np.int64, copy=False)


def net_entries(entries: Ints, weights: Ints, *, drop: bool = True) -> tuple[Ints, Ints]:
    """Sum the weights of equal entries and drop those whose sums are all zero.

    Parameters
    ----------
    entries : ndarray of int64, shape (attributes, n)
    weights : ndarray of int64, shape (columns, n)
    drop : bool
        False to keep these too.

    Returns
    -------
    entries : ndarray of int64, shape (attributes, k), in lexicographic order
    weights : ndarray of int64, shape (columns, k)

    Raises
    ------
    OverflowError
        If a sum leaves int64.
    """
    if not entries.shape[1]:
        return entries, weights
    order = np.argsort(entries[0], kind="stable") if len(entries) == 1 else np.lexsort(entries[::-1])
    entries, weights = entries[:, order], weights[:, order]
    starts = np.flatnonzero(np.concatenate([[True], np.any(entries[:, 1:] != entries[:, :-1], axis=0)]))
    sums = np.add.reduceat(weights, starts, axis=1)
    _refuse_wrapped(weights, starts, sums)
    if not drop:
        return entries[:, starts], sums
    used = np.any(sums != 0, axis=0)
    return entries[:, starts][:, used], sums[:, used]


def exact_totals(totals: Ints, weights: Ints) -> Ints:
    """Totals after adding weights of shape (columns, n); OverflowError if one leaves int64."""
    low = np.sum(weights & 0xFFFFFFFF, axis=1)
    high = np.sum(weights >> 32, axis=1)
    sums = [int(t) + (int(h) << 32) + int(small) for t, h, small in zip(totals, high, low, strict=True)]
    if any(not -(1 << 63) <= total < 1 << 63 for total in sums):
        raise OverflowError("the total weight leaves int64: use coarser units for the summed column")
    return np.array(sums, np.int64)


def _refuse_wrapped(weights: Ints, starts: npt.NDArray[np.intp], sums: Ints) -> None:
    """A wrapped int64 sum is off by 2**64, which float64 sums of the same terms show beyond doubt."""
    largest = max(float(weights.max()), -float(weights.min()))
    if largest * weights.shape[1] < 2.0**63:
        return
    wide = np.add.reduceat(weights.astype(np.float64), starts, axis=1)
    if np.any(np.abs(wide - sums.astype(np.float64)) > 2.0**62):
        raise OverflowError("the net weight of a key leaves int64: use coarser units for the summed column")


def _ascending(entries: Ints) -> bool:
    """Whether the entries are distinct and in lexicographic order."""
    less = np.zeros(max(entries.shape[1] - 1, 0), bool)
    for row in entries[::-1]:
        less = (row[:-1] < row[1:]) | ((row[:-1] == row[1:]) & less)
    return bool(less.all())
