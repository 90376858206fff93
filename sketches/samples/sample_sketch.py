"""A sample of one table's tuples by the hash of one of its join keys, its other keys carried along.

For questions on several key classes where every table is summarised by itself: class a is sampled by hash in all
tables that have it, the entries of a table that leads on carry its other keys, and tables beyond are linear sketches
on theirs, which `sample_sketch_join` asks for the carried keys. No table is read for what another has told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from ..hashing.xi import Family, check_families
from .known_keys import Floats, KnownKeys
from .packed import PackedEntries, most_within
from .threshold_sample import Hashes, Ints, State, ThresholdSample, checked_entries

NO_KEYS: Ints = np.empty(0, np.int64)
NO_KEYS.setflags(write=False)


@dataclass(frozen=True, slots=True)
class SampleSketchSpec:
    """What makes two sample sketches comparable.

    Parameters
    ----------
    family : Family
        Hash family of the sampled join class; its first function decides. Tables to be joined need the same one, and
        the sketches beyond others.
    capacity : int
        Entries of 64-bit words whose bytes are enough for what is kept beside dense keys, at least 1. Entries are held
        packed, so that more of them fit. The threshold falls as far as this demands.
    attributes : int
        Join keys of the table, 1 or more.
    sampled : int
        Which of them is of the sampled class.
    columns : tuple of str
        Names of the weights kept with each entry: ``count`` for the tuples, one more for each SUM argument.
    hash_bits : int
        Bits of the hash that are compared, 1 to 63.
    """

    family: Family
    capacity: int
    attributes: int = 1
    sampled: int = 0
    columns: tuple[str, ...] = ("count",)
    hash_bits: int = 40

    def __post_init__(self) -> None:
        check_families("SampleSketchSpec", self.family)
        if self.capacity < 1:
            raise ValueError(
                f"a sample sketch needs room for at least one entry, got capacity {self.capacity}"
            )
        if not 0 <= self.sampled < self.attributes:
            raise ValueError(f"of {self.attributes} attributes none has the number {self.sampled}")
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
        """Bytes of one entry in 64-bit words: its keys and weights."""
        return 8 * (self.attributes + len(self.columns))


class SampleSketch(ThresholdSample[SampleSketchSpec]):
    """Combinations of a table's join keys, sampled by the hash of one of them, with their exact net weights.

    Parameters
    ----------
    spec : SampleSketchSpec
    dense_keys : ndarray of int64, shape (d,), optional
        Distinct keys of the sampled class whose entries are kept whatever their hash, beside the capacity.

    Notes
    -----
    All entries of a sampled key are kept, or none: what the table has of a kept key is known exactly, as in a
    `KeySample`, which this is for a table of one attribute. A key with more entries than the capacity can therefore
    never be kept, and the estimate lacks it, unless it is dense; see `crowded`. Deletions are exact, and partial
    samples merge at the lower threshold; the threshold never rises again.
    """

    kind = "sample sketch"

    def __init__(self, spec: SampleSketchSpec, dense_keys: Ints = NO_KEYS) -> None:
        self.dense_keys: Ints = np.unique(np.asarray(dense_keys, np.int64))
        super().__init__(spec)
        self._crowded = False

    def __repr__(self) -> str:
        size = f"{self.keys.shape[1]:,} entries, {self.probability:.3g} of all keys"
        return f"SampleSketch({size}, {', '.join(self.spec.columns)} over {self.spec.family}, {self.nbytes:,} bytes)"

    @property
    def keys(self) -> Ints:
        """Kept entries, int64, shape (attributes, n), in lexicographic order with the sampled attribute first."""
        return self._kept()[0][np.argsort(self._order(), kind="stable")]

    @property
    def crowded(self) -> bool:
        """Whether a key was met with more entries than there is room for: it should be dense. False says little."""
        self._compact()
        return self._crowded

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays held once pending tuples are folded in."""
        self._compact()
        return sum(p.nbytes for p in self._packed) + self._totals.nbytes + self.dense_keys.nbytes

    def update(self, keys: Sequence[npt.NDArray[np.generic]], weights: Ints | None = None) -> None:
        """Add a batch of tuples.

        Parameters
        ----------
        keys : sequence of ndarray of int64, shape (batch,)
            One array for each attribute.
        weights : ndarray of int64, shape (columns, batch) or (batch,), optional
            What each tuple adds to each column: +1 or -1 for ``count``, the signed SUM argument for others.
            Default: +1 everywhere.

        Raises
        ------
        ValueError
            If dtypes or shapes do not fit.
        OverflowError
            If a kept entry's net weight leaves int64; raised at the next compaction.
        """
        if len(keys) != self.spec.attributes:
            raise ValueError(f"{len(keys)} key arrays for {self.spec.attributes} attributes")
        entries, weights = checked_entries(keys, weights, len(self.spec.columns))
        self._add(entries[self._order()], weights)

    def known(self, columns: Sequence[str], factors: Floats | None = None) -> KnownKeys:
        """The kept keys of the sampled class with their total weights, for the estimators of `sample_join`.

        Parameters
        ----------
        columns : sequence of str
        factors : ndarray of float64, shape (k, n), optional
            What each entry's weight is multiplied by, one factor for each of k columns or one column for all: what
            the tables beyond say of its other keys. The products have no bounds and no totals.
        """
        rows = [self._column(c) for c in columns]
        entries, net = self._kept()
        column = entries[0]
        starts = (
            np.flatnonzero(np.concatenate([[True], column[1:] != column[:-1]])) if column.size else NO_KEYS
        )
        keys, weights = column[starts], net[rows].astype(np.float64)
        if factors is not None:
            weights = weights * factors
        if column.size:
            weights = np.add.reduceat(weights, starts, axis=1)
        certain = np.isin(keys, self.dense_keys) | (self.probability == 1.0)
        unseen, totals = self._unseen[rows], self._totals[rows].astype(np.float64)
        if factors is not None:
            unseen = np.repeat([[-np.inf, np.inf]], len(weights), axis=0)
            totals = np.full(len(weights), np.nan)
        return KnownKeys(keys, weights, certain, self.probability, unseen, self.ranks(keys), totals)

    def copy(self) -> Self:
        """An independent sample with the same content."""
        twin = super().copy()
        twin._crowded = self.crowded
        return twin

    def state(self) -> State:
        """Arrays from which :meth:`from_state` restores the sample; `keys` with the sampled attribute first."""
        own: State = {"dense_keys": self.dense_keys.copy(), "crowded": np.array([self.crowded], np.uint8)}
        return super().state() | own

    @classmethod
    def from_state(cls, spec: SampleSketchSpec, state: Mapping[str, npt.NDArray[np.generic]]) -> Self:
        """Restore a sample from the arrays of :meth:`state`; ValueError if they do not belong to this spec."""
        dense = checked_entries([state["dense_keys"]], None, 1)[0][0]
        if np.any(dense[1:] <= dense[:-1]):
            raise ValueError(f"the stored dense keys are not in ascending order, so not a state of {spec}")
        sample = cls(spec, dense)
        sample._restore(np.asarray(state["keys"]), state)
        sample._crowded = bool(state["crowded"][0])
        return sample

    def _order(self) -> list[int]:
        """The attributes as they stand in an entry: the sampled one first."""
        sampled = self.spec.sampled
        return [sampled, *(i for i in range(self.spec.attributes) if i != sampled)]

    def _empty(self) -> Self:
        return type(self)(self.spec, self.dense_keys)

    def _hashes(self, entries: Ints) -> Hashes:
        return np.where(self._dense(entries), np.uint64(0), self._hash(entries[0]))

    def _hold(self, entries: Ints, weights: Ints) -> None:
        # Apart, so that a dense key of much weight or far from all others does not widen the columns of the sample.
        dense = self._dense(entries)
        self._packed = tuple(PackedEntries(entries[:, own], weights[:, own]) for own in (~dense, dense))

    def _held(self) -> tuple[Ints, Ints]:
        sampled, dense = (packed.arrays() for packed in self._packed)
        if not dense[0].shape[1]:
            return sampled
        entries, weights = (np.concatenate(parts, axis=1) for parts in zip(sampled, dense, strict=True))
        order = np.lexsort(entries[::-1])
        return entries[:, order], weights[:, order]

    def _cut(self, entries: Ints, weights: Ints) -> int | None:
        free = ~self._dense(entries)
        entries, weights = entries[:, free], weights[:, free]
        if not entries.shape[1] or self._fits(entries, weights) == entries.shape[1]:
            return None
        hashes = self._hash(entries[0])
        order = np.argsort(hashes, kind="stable")
        return int(hashes[order[self._fits(entries[:, order], weights[:, order])]])

    def _fits(self, entries: Ints, weights: Ints) -> int:
        """How many entries there is room for, from the first on.

        Sums are reckoned in whole words: one of both signs may be larger before all its tuples are there, and how
        they came together would decide what fits.
        """
        room = self.spec.capacity * self.spec.entry_bytes
        return most_within(np.concatenate([entries, weights]), room, len(weights) - 1)

    def _dense(self, entries: Ints) -> npt.NDArray[np.bool_]:
        return np.isin(entries[0], self.dense_keys)

    def _absorb(self, other: SampleSketch, sign: np.int64) -> None:
        if not np.array_equal(self.dense_keys, other.dense_keys):
            raise ValueError(
                "sample sketches of different dense keys do not add up: "
                f"{self.dense_keys.size} and {other.dense_keys.size} of them"
            )
        super()._absorb(other, sign)
        self._crowded |= other.crowded

    def _drop(self, entries: Ints, weights: Ints) -> None:
        self._crowded |= self._fits(entries, weights) < entries.shape[1]


class BatchSampleSketch(SampleSketch):
    """The sample sketch of one batch of tuples, wherever it is cut; see `BatchSample`. `net` is the sample.

    What is inserted and deleted in the batch stays, and there is room for as many entries as their keys alone take:
    weights, which may be large in a part of the batch and nothing in the whole, do not decide which are kept. So a
    batch has every entry that the sample it is added to has room for.
    """

    drops_nothing = False

    def net(self) -> SampleSketch:
        """The sample without the entries that weigh nothing, as far as there is room for their weights."""
        whole = SampleSketch(self.spec, self.dense_keys)
        whole._absorb(self, np.int64(1))
        return whole

    def _fits(self, entries: Ints, weights: Ints) -> int:
        return most_within(entries, self.spec.capacity * self.spec.entry_bytes)
