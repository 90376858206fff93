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

from ..hashing.xi import Family, check_families
from .known_keys import KnownKeys
from .threshold_sample import Ints, ThresholdSample, checked_entries, net_entries


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
    def attributes(self) -> int:
        """Keys of an entry: the key itself."""
        return 1

    @property
    def entry_bytes(self) -> int:
        """Bytes of one kept key with its weights."""
        return 8 * (1 + len(self.columns))


class KeySample(ThresholdSample[KeySampleSpec]):
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

    kind = "key sample"

    def __repr__(self) -> str:
        size = f"{self.keys.size:,} of at most {self.spec.capacity:,} keys, {self.probability:.3g} of all"
        return f"KeySample({size}, {', '.join(self.spec.columns)} over {self.spec.family}, {self.nbytes:,} bytes)"

    @property
    def keys(self) -> Ints:
        """Kept keys in ascending order, int64, shape (n,)."""
        keys: Ints = self._kept()[0][0]
        return keys

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
        self._add(keys[np.newaxis], weights)

    def state(self) -> dict[str, npt.NDArray[np.generic]]:
        """Arrays from which :meth:`from_state` restores the sample: keys, weights, the largest hash to keep,
        the totals and the bounds of unseen weights."""
        return super().state() | {"keys": self.keys.copy()}

    @classmethod
    def from_state(cls, spec: KeySampleSpec, state: Mapping[str, npt.NDArray[np.generic]]) -> KeySample:
        """Restore a sample from the arrays of :meth:`state`.

        Raises
        ------
        ValueError
            If the arrays do not belong to this spec: wrong shapes, unsorted keys, or keys above the
            threshold.
        """
        sample = cls(spec)
        sample._restore(state["keys"][np.newaxis], state)
        return sample


class BatchSample(KeySample):
    """The key sample of one batch of tuples, wherever it is cut: a key that is inserted and deleted in it stays.

    So the threshold is that of all keys of the batch, whichever part of it has which tuples. `net` is the sample.
    """

    drops_nothing = False

    def net(self) -> KeySample:
        """The sample without the keys that weigh nothing."""
        whole = KeySample(self.spec)
        whole.merge(self)
        return whole


def checked_batch(
    keys: npt.NDArray[np.generic], weights: npt.NDArray[np.generic] | None, columns: int
) -> tuple[Ints, Ints]:
    """Keys of shape (batch,) and weights of shape (columns, batch), both int64; anything else is a
    ValueError."""
    entries, weights = checked_entries([keys], weights, columns)
    return entries[0], weights


def net_weights(keys: Ints, weights: Ints) -> tuple[Ints, Ints]:
    """Sum the weights of equal keys and drop the keys whose sums are all zero: `net_entries` of one attribute.

    Parameters
    ----------
    keys : ndarray of int64, shape (n,)
    weights : ndarray of int64, shape (columns, n)

    Returns
    -------
    keys : ndarray of int64, shape (k,), ascending
    weights : ndarray of int64, shape (columns, k)
    """
    entries, sums = net_entries(keys[np.newaxis], weights)
    return entries[0], sums
