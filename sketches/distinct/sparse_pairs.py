"""A pair sample that is an exact map of pairs until its tables could be smaller.

Small relations come out exact over joins too, and one that outgrows its map goes on in the tables of a pair sample.
Those are the same as if it had never been sparse.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from ..hashing.xi import as_keys
from ..joins.exact_map import ExactMap, group_tuples
from .count_signature import Ints
from .level import integer_weights
from .pair_sample import HASH_BITS, Drawn, PairSample, PairSampleSpec, State, arrange

BLOCK = 1 << 16  # tuples grouped at a time: how far a map may outgrow its limit before it is noticed


class SparsePairSample:
    """Linear sketch of a relation of pairs that gives a sample of distinct values, all of them while it is small.

    Parameters
    ----------
    spec : PairSampleSpec
        Of the tables.
    limit_bytes : int, optional
        Size of the map, 24 bytes a pair, above which it turns into tables; by default the most they can take.

    Notes
    -----
    When the change happens depends on the order of the data. Once made it stays, even if most pairs are deleted.
    """

    def __init__(self, spec: PairSampleSpec | None = None, limit_bytes: int | None = None) -> None:
        self.spec = spec or PairSampleSpec()
        self.limit_bytes = self.spec.most_bytes if limit_bytes is None else limit_bytes
        self._map: ExactMap | None = ExactMap.empty(2, "int64")
        self._tables: PairSample | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of the map or of the tables."""
        return self._map.nbytes if self._map is not None else self._dense().nbytes

    def update(self, values: ArrayLike, partners: ArrayLike, weights: ArrayLike | None = None) -> None:
        """Add a batch of pairs, in place; see `PairSample.update`.

        Batches of up to 65,536 pairs are added as a whole or refused; of longer ones that overflow, earlier blocks
        may have been added.
        """
        first, second = as_keys(values), as_keys(partners)
        if len(first) != len(second):
            raise ValueError(f"pairs need as many partners as values: {len(second)} and {len(first)}")
        signs = integer_weights(weights, len(first))
        for start in range(0, len(first), BLOCK):
            if self._map is None:
                self._dense().update(first[start:], second[start:], signs[start:])
                return
            block = slice(start, start + BLOCK)
            columns: list[Ints] = [first[block], second[block]]
            groups = group_tuples(columns, len(columns[0]))
            self._take(self._map.plus(ExactMap.from_batch(columns, groups, signs[block])))

    def merge(self, other: SparsePairSample) -> None:
        """Add the other's relation, in place; ValueError naming both if the specs differ; OverflowError."""
        self._combine(other, +1)

    def subtract(self, other: SparsePairSample) -> None:
        """Take the other's relation out, in place; errors as in `merge`."""
        self._combine(other, -1)

    def copy(self) -> SparsePairSample:
        """An independent copy."""
        twin = SparsePairSample(self.spec, self.limit_bytes)
        twin._map = None if self._map is None else self._map.copy()
        twin._tables = None if self._tables is None else self._tables.copy()
        return twin

    def dense(self) -> PairSample:
        """The tables: those it has, not to be changed, or those the map would turn into."""
        if self._map is None:
            return self._dense()
        sample = PairSample(self.spec)
        values, partners = self._map.columns
        sample.update(values, partners, self._map.weights)
        return sample

    def draw(self) -> Drawn:
        """Read the sample: every value while the map is there."""
        if self._map is None:
            return self._dense().draw()
        return arrange(self._map.keys.T, self.spec.hashes(self._map.columns[0]), 1 << HASH_BITS)

    def __repr__(self) -> str:
        kind = "tables" if self._map is None else f"exact, {len(self._map):,} pairs"
        return f"SparsePairSample({self.spec}, {self.nbytes:,} bytes, {kind})"

    def state(self) -> State:
        """``{"keys": ..., "weights": ...}`` while exact, then the state of the tables; copies."""
        if self._map is None:
            return self._dense().state()
        return {"keys": self._map.keys.copy(), "weights": self._map.weights.copy()}

    @classmethod
    def from_state(
        cls, spec: PairSampleSpec, state: Mapping[str, np.ndarray], limit_bytes: int | None = None
    ) -> SparsePairSample:
        """The sketch whose `state` this is; ValueError if the arrays do not fit `spec`."""
        sample = cls(spec, limit_bytes)
        if set(state) == {"keys", "weights"}:
            sample._map = ExactMap.from_arrays(state["keys"], state["weights"], 2, "int64")
        else:
            sample._map, sample._tables = None, PairSample.from_state(spec, state)
        return sample

    def _combine(self, other: SparsePairSample, sign: int) -> None:
        if self.spec != other.spec:
            raise ValueError(f"cannot combine a {self.spec} with a {other.spec}")
        if self._map is not None and other._map is not None:
            self._take(self._map.plus(other._map, sign))
            return
        mine = self.dense()
        if sign > 0:
            mine.merge(other.dense())
        else:
            mine.subtract(other.dense())
        self._map, self._tables = None, mine

    def _take(self, grown: ExactMap) -> None:
        """Adopt a map, or turn it into tables if it is too large."""
        self._map = grown
        if grown.nbytes > self.limit_bytes:
            self._tables = self.dense()
            self._map = None

    def _dense(self) -> PairSample:
        assert self._tables is not None, "a sample is a map or tables"
        return self._tables
