"""A coordinated sample of join keys with exact net weights.

A key is kept when its hash lies below a threshold. All tables of one join class use one hash function,
so a key kept here is kept there, and the product of its exact weights is its exact contribution to the join:
the error depends on how unequal the contributions are, not on the number of tables. Flat keys and several
tables joined on one key are therefore answered far better than by sketches of signs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..hashing.xi import Family, as_keys, check_families
from .known_keys import KnownKeys

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]

_BLOCK = 1 << 16


@dataclass(frozen=True, slots=True)
class KeySampleSpec:
    """What makes two key samples comparable.

    Parameters
    ----------
    family : Family
        Hash family of the join class; its first function decides. Samples to be joined need the same one.
    capacity : int
        Most keys kept, at least 1. The threshold falls as far as this demands.
    columns : tuple of str
        Names of the weights kept with each key: ``count`` for the tuples, one more for each SUM argument.
    hash_bits : int
        Bits of the hash that are compared, 1 to 63. The default is what every family offers; ties, which 40
        bits leave among very many keys, cost a little capacity and no accuracy.
    """

    family: Family
    capacity: int
    columns: tuple[str, ...] = ("count",)
    hash_bits: int = 40

    def __post_init__(self) -> None:
        check_families("KeySampleSpec", self.family)
        if self.capacity < 1:
            raise ValueError(f"a key sample needs room for at least one key, got capacity {self.capacity}")
        if not self.columns or len(set(self.columns)) != len(self.columns):
            raise ValueError(f"the weight columns need distinct names, got {self.columns}")
        if not 1 <= self.hash_bits <= 63:
            raise ValueError(f"hash_bits lie in 1 to 63, not {self.hash_bits}")

    @property
    def everything(self) -> int:
        """The threshold below which every hash lies: ``2**hash_bits``."""
        return 1 << self.hash_bits

    @property
    def entry_bytes(self) -> int:
        """Bytes of one kept key with its weights."""
        return 8 * (1 + len(self.columns))


class KeySample:
    """Keys whose hash is below a threshold, with their exact net weights.

    Parameters
    ----------
    spec : KeySampleSpec
        Family, seed, capacity and weight columns.

    Notes
    -----
    While at most ``capacity`` distinct keys have been seen the sample holds all of them and the join is
    exact. After that the threshold is the (capacity + 1)-th smallest hash seen, so given the threshold each
    kept key was kept with probability ``threshold / 2**hash_bits``.

    Deletions are exact: a kept key's weights are the sums over *all* its tuples, and a key whose weights are
    all zero is dropped. The threshold never rises again, because what it dropped is gone: after inserting and
    deleting much data the sample is smaller than a fresh one, but equally unbiased. Without deletions the
    state does not depend on the order or the batches of the tuples, nor on how partial samples were merged.

    Time O(batch) hashing and O(n log n) now and then; nothing is done key by key in Python.
    """

    def __init__(self, spec: KeySampleSpec) -> None:
        self.spec = spec
        self._threshold = spec.everything
        self._keys: Ints = np.empty(0, np.int64)
        self._weights: Ints = np.empty((len(spec.columns), 0), np.int64)
        self._pending: list[tuple[Ints, Ints]] = []
        self._pending_tuples = 0
        self._unseen: Floats = np.zeros((len(spec.columns), 2))
        self._totals: Ints = np.zeros(len(spec.columns), np.int64)

    def __repr__(self) -> str:
        size = f"{self.keys.size:,} of at most {self.spec.capacity:,} keys, {self.probability:.3g} of all"
        return f"KeySample({size}, {', '.join(self.spec.columns)} over {self.spec.family}, {self.nbytes:,} bytes)"

    @property
    def keys(self) -> Ints:
        """Kept keys in ascending order, int64, shape (n,)."""
        self._compact()
        return self._keys

    @property
    def weights(self) -> Ints:
        """Net weights of the kept keys, int64, shape (columns, n)."""
        self._compact()
        return self._weights

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
        self._compact()
        return self._keys.nbytes + self._weights.nbytes + self._totals.nbytes

    def weight(self, column: str) -> Ints:
        """Net weights of one column, int64, shape (n,), in the order of :attr:`keys`.

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

    def known(self, columns: Sequence[str]) -> KnownKeys:
        """The kept keys with the weights of these columns, for the estimators of `sample_join`."""
        rows = [self._column(c) for c in columns]
        certain = np.full(self.keys.size, self.probability == 1.0)
        return KnownKeys(
            self.keys,
            self.weights[rows],
            certain,
            self.probability,
            self._unseen[rows],
            self.ranks(self.keys),
            self._totals[rows].astype(np.float64),
        )

    def ranks(self, keys: Ints) -> Floats:
        """Hashes of any keys as fractions in [0, 1): those below :attr:`probability` are kept."""
        return np.asarray(self._hash(keys) / self.spec.everything)

    @property
    def hashing(self) -> tuple[Family, int]:
        """What decides which keys are kept: the hash family and the bits compared."""
        return self.spec.family, self.spec.hash_bits

    def update(self, keys: Ints, weights: Ints | None = None) -> None:
        """Add a batch of tuples.

        Parameters
        ----------
        keys : ndarray of int64, shape (batch,)
            Encoded join keys.
        weights : ndarray of int64, shape (columns, batch) or (batch,), optional
            What each tuple adds to each column: +1 or -1 for ``count``, the signed SUM argument for others.
            Default: +1 everywhere. One dimension only if the sample has one column.

        Raises
        ------
        ValueError
            If dtypes or shapes do not fit.
        OverflowError
            If a kept key's net weight leaves int64; raised at the next compaction.
        """
        keys, weights = checked_batch(keys, weights, len(self.spec.columns))
        if keys.size:
            self._totals = exact_totals(self._totals, weights)
            self._unseen[:] = -np.inf, np.inf
        for start in range(0, keys.size, _BLOCK):
            block, block_weights = keys[start : start + _BLOCK], weights[:, start : start + _BLOCK]
            if self._threshold < self.spec.everything:
                kept = self._hash(block) < np.uint64(self._threshold)
                block, block_weights = block[kept], block_weights[:, kept]
            self._append(block.copy(), block_weights.copy())

    def merge(self, other: KeySample) -> None:
        """Add the tuples of another sample of the same spec; the lower threshold holds."""
        self._absorb(other, np.int64(1))

    def subtract(self, other: KeySample) -> None:
        """Remove the tuples of another sample of the same spec; the lower threshold holds."""
        self._absorb(other, np.int64(-1))

    def copy(self) -> KeySample:
        """An independent sample with the same content."""
        twin = KeySample(self.spec)
        twin._threshold, twin._keys, twin._weights = self.threshold, self.keys.copy(), self.weights.copy()
        twin._unseen, twin._totals = self.unseen, self.totals
        return twin

    def state(self) -> dict[str, npt.NDArray[np.generic]]:
        """Arrays from which :meth:`from_state` restores the sample: keys, weights, the largest hash to keep,
        the totals and the bounds of unseen weights."""
        return {
            "keys": self.keys.copy(),
            "weights": self.weights.copy(),
            "last_hash": np.array([self.threshold - 1], np.uint64),
            "totals": self.totals,
            "unseen": self.unseen,
        }

    @classmethod
    def from_state(cls, spec: KeySampleSpec, state: Mapping[str, npt.NDArray[np.generic]]) -> KeySample:
        """Restore a sample from the arrays of :meth:`state`.

        Raises
        ------
        ValueError
            If the arrays do not belong to this spec: wrong shapes, unsorted keys, or keys above the
            threshold.
        """
        keys, weights = checked_batch(state["keys"], state["weights"], len(spec.columns))
        sample = cls(spec)
        sample._threshold = int(state["last_hash"][0]) + 1
        last = np.uint64(sample._threshold - 1)
        if keys.size > spec.capacity or np.any(keys[1:] <= keys[:-1]) or np.any(sample._hash(keys) > last):
            raise ValueError(f"the stored keys are not a sample of {spec}")
        sample._keys, sample._weights = keys.copy(), weights.copy()
        sample._totals[:] = state["totals"]
        sample._unseen[:] = state["unseen"]
        return sample

    def _column(self, column: str) -> int:
        if column not in self.spec.columns:
            raise ValueError(f"no weight column {column!r} in this key sample; it has {self.spec.columns}")
        return self.spec.columns.index(column)

    def _hash(self, keys: Ints) -> Hashes:
        hashes: Hashes = self.spec.family.values(keys, 1, self.spec.hash_bits)[0]
        return hashes

    def _absorb(self, other: KeySample, sign: np.int64) -> None:
        if other.spec != self.spec:
            raise ValueError(f"key samples of different specs do not add up: {self.spec} and {other.spec}")
        keys, weights = other.keys, other.weights
        self._unseen = self._unseen + (other._unseen if sign > 0 else -other._unseen[:, ::-1])
        if other._threshold < self.threshold:
            self._threshold = other._threshold
            self._keep(self._hash(self._keys) < np.uint64(self._threshold))
        elif self._threshold < other._threshold:
            kept = self._hash(keys) < np.uint64(self._threshold)
            keys, weights = keys[kept], weights[:, kept]
        if sign < 0 and np.any(weights == np.iinfo(np.int64).min):
            raise OverflowError("a net weight of -2**63 has no negative in int64")
        self._totals = exact_totals(self._totals, sign * other._totals[:, np.newaxis])
        self._append(keys.copy(), weights * sign)
        self._compact()

    def _append(self, keys: Ints, weights: Ints) -> None:
        self._pending.append((keys, weights))
        self._pending_tuples += keys.size
        if self._pending_tuples > max(_BLOCK, 4 * self.spec.capacity):
            self._compact()

    def _keep(self, kept: npt.NDArray[np.bool_]) -> None:
        self._keys, self._weights = self._keys[kept], self._weights[:, kept]

    def _compact(self) -> None:
        """Fold the pending tuples in, drop keys without weight, lower the threshold to the capacity."""
        if not self._pending:
            return
        keys = np.concatenate([self._keys, *(k for k, _ in self._pending)])
        weights = np.concatenate([self._weights, *(w for _, w in self._pending)], axis=1)
        self._keys, self._weights = net_weights(keys, weights)
        self._pending, self._pending_tuples = [], 0
        if self._keys.size > self.spec.capacity:
            hashes = self._hash(self._keys)
            cut = np.partition(hashes, self.spec.capacity)[self.spec.capacity]
            self._threshold = int(cut)
            self._keep(hashes < cut)


def checked_batch(
    keys: npt.NDArray[np.generic], weights: npt.NDArray[np.generic] | None, columns: int
) -> tuple[Ints, Ints]:
    """Keys of shape (batch,) and weights of shape (columns, batch), both int64; anything else is a
    ValueError."""
    keys = as_keys(keys)
    if weights is None:
        return keys, np.ones((columns, keys.size), np.int64)
    if weights.ndim == 1 and columns == 1:
        weights = weights[np.newaxis]
    if weights.dtype != np.int64 or weights.shape != (columns, keys.size):
        raise ValueError(
            f"weights must be int64 of shape {(columns, keys.size)}, "
            f"got {weights.dtype} of shape {weights.shape}"
        )
    return keys, weights.astype(np.int64, copy=False)


def net_weights(keys: Ints, weights: Ints) -> tuple[Ints, Ints]:
    """Sum the weights of equal keys and drop the keys whose sums are all zero.

    Parameters
    ----------
    keys : ndarray of int64, shape (n,)
    weights : ndarray of int64, shape (columns, n)

    Returns
    -------
    keys : ndarray of int64, shape (k,), ascending
    weights : ndarray of int64, shape (columns, k)

    Raises
    ------
    OverflowError
        If a sum leaves int64.
    """
    if not keys.size:
        return keys, weights
    order = np.argsort(keys, kind="stable")
    keys, weights = keys[order], weights[:, order]
    starts = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
    sums = np.add.reduceat(weights, starts, axis=1)
    _refuse_wrapped(weights, starts, sums)
    used = np.any(sums != 0, axis=0)
    return keys[starts][used], sums[:, used]


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
