"""Two levels: dense keys counted exactly, a key sample or a hash sketch for the rest.

Sampling is bad where few keys carry the join, sketches are bad where many do; the heavy keys are few enough
to be counted. The dense keys are fixed before the data is read: chosen jointly over the tables of a join (see
`two_level_plan`), or by each table alone, as on streams. A key that is dense in one table and not in the
other meets the other's sample or sketch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ..hashing.xi import Family
from ..intervals.interval import Estimate, averaged, collapse_notes, median_interval, uncertified
from ..joins.accumulate import Weights, check_not_wrapped, integer_sums
from ..joins.convolution import ConvolutionSketch, ConvolutionSpec
from ..joins.hash_sketch import frequency_rows, join_size_rows
from ..joins.linear import check_batch, update_many
from .key_sample import KeySample, KeySampleSpec, checked_batch
from .known_keys import KnownKeys

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class TwoLevelSpec:
    """What is kept beside the dense keys.

    Parameters
    ----------
    rest : KeySampleSpec or ConvolutionSpec
        A key sample, with any number of weight columns, or a hash sketch (one attribute) for one.
    """

    rest: KeySampleSpec | ConvolutionSpec

    def __post_init__(self) -> None:
        if isinstance(self.rest, ConvolutionSpec) and len(self.rest.families) != 1:
            raise ValueError(f"the rest of a two-level synopsis is a hash sketch, not {self.rest}")

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the weight columns."""
        return self.rest.columns if isinstance(self.rest, KeySampleSpec) else ("count",)

    @property
    def dtype(self) -> str:
        """Type of the weights."""
        return "int64" if isinstance(self.rest, KeySampleSpec) else self.rest.dtype


class TwoLevel:
    """Exact net weights of given dense keys, and a synopsis of all other keys.

    Parameters
    ----------
    spec : TwoLevelSpec
        The synopsis of the rest.
    dense_keys : ndarray of int64, shape (d,)
        Distinct keys to count exactly, in any order. Tables with equal dense keys join best.

    Notes
    -----
    Linear: merging, subtracting and deleting are exact for the dense keys and for a hash sketch, and as exact
    as :class:`KeySample` for a sample. Time O(batch * log d) beside the rest's.
    """

    def __init__(self, spec: TwoLevelSpec, dense_keys: Ints) -> None:
        self.spec = spec
        self.dense_keys: Ints = np.unique(np.asarray(dense_keys, np.int64))
        self.dense_weights: npt.NDArray[Any] = np.zeros((len(spec.columns), self.dense_keys.size), spec.dtype)
        self.rest: KeySample | ConvolutionSketch = (
            KeySample(spec.rest) if isinstance(spec.rest, KeySampleSpec) else ConvolutionSketch(spec.rest)
        )

    @property
    def nbytes(self) -> int:
        """Bytes of the dense keys and weights and of the rest."""
        return self.dense_keys.nbytes + self.dense_weights.nbytes + self.rest.nbytes

    @property
    def sample(self) -> KeySample:
        """The key sample of the rest; ValueError if it is a hash sketch."""
        if not isinstance(self.rest, KeySample):
            raise ValueError("this two-level synopsis keeps a hash sketch, not a key sample; use sketch_join")
        return self.rest

    def update(self, keys: Ints, weights: Ints | None = None) -> None:
        """Add a batch of tuples; parameters and errors as :meth:`KeySample.update`."""
        if isinstance(self.rest, ConvolutionSketch):
            columns, checked = check_batch([self.rest.spec], [keys], [weights])
            update_sketched([self], columns[0], checked)
            return
        keys, weights = checked_batch(keys, weights, len(self.spec.columns))
        dense = self._find(keys)
        total = self._grown(keys[dense], weights[:, dense])
        self.rest.update(keys[~dense], weights[:, ~dense])
        self.dense_weights = total

    def merge(self, other: TwoLevel) -> None:
        """Add the tuples of another synopsis of the same spec and dense keys."""
        self._check_same(other)
        total = _added(self.dense_weights, other.dense_weights, np.add)
        if isinstance(self.rest, KeySample):
            self.rest.merge(other.sample)
        else:
            self.rest.merge(other.sketch)
        self.dense_weights = total

    def subtract(self, other: TwoLevel) -> None:
        """Remove the tuples of another synopsis of the same spec and dense keys."""
        self._check_same(other)
        total = _added(self.dense_weights, other.dense_weights, np.subtract)
        if isinstance(self.rest, KeySample):
            self.rest.subtract(other.sample)
        else:
            self.rest.subtract(other.sketch)
        self.dense_weights = total

    def copy(self) -> TwoLevel:
        """An independent synopsis with the same content."""
        twin = TwoLevel(self.spec, self.dense_keys)
        twin.dense_weights, twin.rest = self.dense_weights.copy(), self.rest.copy()
        return twin

    def state(self) -> dict[str, npt.NDArray[np.generic]]:
        """Arrays from which :meth:`from_state` restores the synopsis; those of the rest begin with
        ``rest.``"""
        rest = {f"rest.{name}": array for name, array in self.rest.state().items()}
        return {"dense_keys": self.dense_keys.copy(), "dense_weights": self.dense_weights.copy(), **rest}

    @classmethod
    def from_state(cls, spec: TwoLevelSpec, state: Mapping[str, npt.NDArray[np.generic]]) -> TwoLevel:
        """Restore a synopsis from the arrays of :meth:`state`; ValueError if they do not belong to the
        spec."""
        keys, weights = np.asarray(state["dense_keys"]), np.asarray(state["dense_weights"])
        if keys.dtype != np.int64 or keys.ndim != 1 or np.any(keys[1:] <= keys[:-1]):
            raise ValueError(f"the stored dense keys are not in ascending order, so not a state of {spec}")
        synopsis = cls(spec, keys)
        if (weights.shape, weights.dtype) != (synopsis.dense_weights.shape, synopsis.dense_weights.dtype):
            raise ValueError(f"dense weights of {weights.dtype} {weights.shape} are no state of {spec}")
        synopsis.dense_weights = weights.copy()
        rest = {name[5:]: array for name, array in state.items() if name.startswith("rest.")}
        if isinstance(spec.rest, KeySampleSpec):
            synopsis.rest = KeySample.from_state(spec.rest, rest)
        else:
            synopsis.rest = ConvolutionSketch.from_state(spec.rest, rest)
        return synopsis

    def known(self, columns: Sequence[str]) -> KnownKeys:
        """The dense and the sampled keys with the weights of these columns, for `sample_join`."""
        rest = self.sample.known(columns)  # refuses unknown columns
        rows = [self.spec.columns.index(c) for c in columns]
        keys = np.concatenate([self.dense_keys, rest.keys])
        order = np.argsort(keys, kind="stable")
        weights = np.concatenate([self.dense_weights[rows], rest.weights], axis=1)[:, order]
        certain = np.concatenate([np.ones(self.dense_keys.size, bool), rest.certain])[order]
        ranks = np.concatenate([self.sample.ranks(self.dense_keys), rest.ranks])[order]
        totals = rest.totals + self.dense_weights[rows].sum(axis=1, dtype=np.float64)
        return KnownKeys(keys[order], weights, certain, rest.probability, rest.unseen, ranks, totals)

    @property
    def hashing(self) -> tuple[Family, int]:
        """What decides which of the other keys are sampled; see `KeySample.hashing`."""
        return self.sample.hashing

    @property
    def sketch(self) -> ConvolutionSketch:
        """The hash sketch of the rest; ValueError if it is a key sample."""
        if not isinstance(self.rest, ConvolutionSketch):
            raise ValueError("this two-level synopsis keeps a key sample, not a hash sketch; use sample_join")
        return self.rest

    def _find(self, keys: Ints) -> npt.NDArray[np.bool_]:
        """Which keys are dense."""
        if not self.dense_keys.size:
            return np.zeros(keys.size, bool)
        places = np.minimum(np.searchsorted(self.dense_keys, keys), self.dense_keys.size - 1)
        return np.asarray(self.dense_keys[places] == keys)

    def _grown(self, keys: Ints, weights: Sequence[Weights | None] | Ints) -> npt.NDArray[Any]:
        """The weights of the dense keys with those of some tuples of theirs, a row for each column."""
        places, size = np.searchsorted(self.dense_keys, keys), self.dense_keys.size
        more = np.zeros_like(self.dense_weights)
        for row, own in zip(more, weights, strict=True):
            weight = np.ones(keys.size, row.dtype) if own is None else own
            if weight.dtype == np.int64:
                row[:] = integer_sums(places, weight.astype(np.int64, copy=False), size)
                floats = np.bincount(places, weight.astype(np.float64), size)
                check_not_wrapped(row, floats.astype(np.float64, copy=False), "a batch")
            else:
                row[:] = np.bincount(places, weight, size)
        return _added(self.dense_weights, more, np.add)

    def _check_same(self, other: TwoLevel) -> None:
        if self.spec != other.spec:
            raise ValueError(f"two-level synopses of different specs: {self.spec} and {other.spec}")
        if not np.array_equal(self.dense_keys, other.dense_keys):
            raise ValueError(
                "two-level synopses of different dense keys do not add up: "
                f"{self.dense_keys.size} keys from {self.dense_keys[:3].tolist()} and "
                f"{other.dense_keys.size} keys from {other.dense_keys[:3].tolist()}"
            )


def update_sketched(tables: Sequence[TwoLevel], keys: Ints, weights: Sequence[Weights | None]) -> None:
    """Add a batch to several synopses with a hash sketch and the same dense keys: searched and hashed once.

    Parameters
    ----------
    tables : sequence of TwoLevel
    keys : ndarray of int64, shape (n,)
    weights : sequence of (ndarray of shape (n,), or None)
        One for each of them; None are ones.

    Raises
    ------
    OverflowError
        If a weight or counter leaves int64; all are unchanged then.
    """
    if not tables:
        return
    dense = tables[0]._find(keys)
    grown = [
        table._grown(keys[dense], [None if own is None else own[dense]])
        for table, own in zip(tables, weights, strict=True)
    ]
    rest = [None if own is None else own[~dense] for own in weights]
    update_many([t.sketch for t in tables], [keys[~dense]], rest)
    for table, total in zip(tables, grown, strict=True):
        table.dense_weights = total


def _added(mine: npt.NDArray[Any], theirs: npt.NDArray[Any], combine: np.ufunc) -> npt.NDArray[Any]:
    """Weights of the same keys together; OverflowError if one leaves int64."""
    total: npt.NDArray[Any] = combine(mine, theirs)
    if total.dtype == np.int64:
        check_not_wrapped(total, combine(mine.astype(np.float64), theirs.astype(np.float64)), "a dense key")
    return total


def sketch_join(left: TwoLevel, right: TwoLevel, confidence: float = 0.95) -> Estimate:
    """Size of the join of two tables whose rest is a hash sketch.

    Parameters
    ----------
    left, right : TwoLevel
        With hash sketches of one spec. Their dense keys may differ: a key dense on one side alone meets the
        sketch of the other.
    confidence : float
        In (0, 1).

    Returns
    -------
    Estimate
        What is dense on both sides counts exactly; each of the other three sub-joins adds its median over the
        rows, and the interval are order statistics of the rows' totals, widened to hold the value.

    Notes
    -----
    As in the skimmed join of [1]_. Departs from it: the weights are counted, so a key that is dense on both
    sides does not occur in either residual, and its (zero) sub-joins with them are left out instead of
    estimated.

    References
    ----------
    .. [1] S. Ganguly, M. Garofalakis, R. Rastogi, US 2006/0143170, procedure ESTSKIMJOINSIZE (Table 4).
    """
    certain, parts = subjoin_rows(left, right)
    parts = [averaged(rows, left.sketch.spec.buckets, confidence) for rows in parts]
    value = certain + sum(float(np.median(rows)) for rows in parts)
    around = median_interval(certain + np.sum(parts, axis=0), confidence, left.sketch.spec.basis)
    widened = replace(around, value=value, low=min(around.low, value), high=max(around.high, value))
    return uncertified(widened, *collapse_notes([left.sketch.counters, right.sketch.counters]))


def subjoin_rows(left: TwoLevel, right: TwoLevel) -> tuple[float, list[npt.NDArray[np.float64]]]:
    """The sub-joins of `sketch_join`.

    Returns
    -------
    certain : float
        The join of the keys that are dense on both sides.
    parts : list of ndarray of float64, shape (rows,)
        Row estimates of the join of the rests, and of each side's other dense keys with the other's rest.
    """
    both, mine, theirs = np.intersect1d(
        left.dense_keys, right.dense_keys, assume_unique=True, return_indices=True
    )
    certain = float(np.sum(left.dense_weights[0, mine].astype(np.float64) * right.dense_weights[0, theirs]))
    return certain, [
        join_size_rows(left.sketch, right.sketch),
        _against_sketch(left, both, right.sketch),
        _against_sketch(right, both, left.sketch),
    ]


def _against_sketch(table: TwoLevel, known: Ints, sketch: ConvolutionSketch) -> npt.NDArray[np.float64]:
    """Row estimates of the join of a table's dense keys, but the known ones, with another's sketch."""
    alone = ~np.isin(table.dense_keys, known, assume_unique=True)
    rows = frequency_rows(sketch, table.dense_keys[alone])
    return np.asarray(np.sum(rows * table.dense_weights[0, alone].astype(np.float64), axis=1))
