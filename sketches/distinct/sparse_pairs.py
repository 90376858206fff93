"""A pair sample that is an exact map of pairs until its tables could be smaller; see `sparse_first`.

Small relations come out exact over joins too.
"""

from __future__ import annotations

from collections.abc import Sequence

from numpy.typing import ArrayLike

from ..hashing.xi import Keys, as_keys
from ..joins.accumulate import Weights
from ..joins.exact_map import ExactMap
from ..joins.sparse_first import SparseFirst
from .level import integer_weights
from .pair_sample import HASH_BITS, Drawn, PairSample, PairSampleSpec, arrange


class SparsePairSample(SparseFirst[PairSampleSpec, PairSample]):
    """Linear sketch of a relation of pairs that gives a sample of distinct values, all of them while it is small.

    Parameters
    ----------
    spec : PairSampleSpec, optional
        Of the tables.
    limit_bytes : int, optional
        Size of the map, 24 bytes a pair, above which it turns into tables; by default the most they can take.
    """

    __slots__ = ()

    def __init__(self, spec: PairSampleSpec | None = None, limit_bytes: int | None = None) -> None:
        spec = spec or PairSampleSpec()
        super().__init__(spec, spec.most_bytes if limit_bytes is None else limit_bytes)

    def update(self, values: ArrayLike, partners: ArrayLike, weights: ArrayLike | None = None) -> None:
        """Add a batch of pairs, in place; see `PairSample.update`.

        Batches of up to 65,536 pairs are added as a whole or refused; of longer ones that overflow, earlier blocks
        may have been added.
        """
        first, second = as_keys(values), as_keys(partners)
        if len(first) != len(second):
            raise ValueError(f"pairs need as many partners as values: {len(second)} and {len(first)}")
        self._add([first, second], integer_weights(weights, len(first)))

    def draw(self) -> Drawn:
        """Read the sample: every value while the map is there."""
        if self._map is None:
            return self._turned().draw()
        return arrange(self._map.keys.T, self.spec.hashes(self._map.columns[0]), 1 << HASH_BITS)

    def _empty_map(self) -> ExactMap:
        return ExactMap.empty(2, "int64")

    def _new_dense(self) -> PairSample:
        return PairSample(self.spec)

    @staticmethod
    def _feed(
        dense: Sequence[PairSample], columns: Sequence[Keys], weights: Sequence[Weights | None]
    ) -> None:
        for one, weight in zip(dense, weights, strict=True):
            one.update(columns[0], columns[1], weight)
