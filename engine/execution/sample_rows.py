"""What the scans of a sample send: keys with their weights, tuples that were looked at or drawn by themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...optimizer.plan import Synopsis
from ...sketches.joins.accumulate import integer_sums
from ..synopses import check_mass

SAFE = float(1 << 62)

# Why a tuple is read, as bits: its key is in the sample, it is looked at by itself; and, a bit for each draw of values
# from the third on, it was drawn for a value.
SAMPLED, LOOKED_AT, VALUED = 1, 2, 4

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Grouped:
    """Total weights by key and by the groups of what they are of.

    Attributes
    ----------
    keys : ndarray of int64, shape (n,), ascending
        Distinct together with `groups`.
    weights : ndarray of float64, shape (terms, n)
    groups : ndarray of int64, shape (vertices, n)
        The number of a group of each vertex of the plan in `vertices`.
    vertices : tuple of int
        The grouped vertices among those that were joined.
    """

    keys: Ints
    weights: Floats
    groups: Ints
    vertices: tuple[int, ...] = ()

    def of_groups(self) -> dict[tuple[int, ...], Grouped]:
        """The same for each combination of groups by itself; one without vertices that are grouped."""
        if not self.vertices:
            return {(): self}
        order = np.lexsort((self.keys, *self.groups[::-1]))
        groups = self.groups[:, order]
        starts = np.flatnonzero(np.r_[True, (groups[:, 1:] != groups[:, :-1]).any(axis=0)])
        parts = np.split(order, starts[1:]) if order.size else []
        return {
            tuple(int(g) for g in self.groups[:, part[0]]): Grouped(
                self.keys[part], self.weights[:, part], self.groups[:, part], self.vertices
            )
            for part in parts
        }

    def whole(self) -> Grouped:
        """Total weights by key, all groups together."""
        return summed(self.keys, self.weights, self.groups[:0], ()) if self.vertices else self


def summed(keys: Ints, weights: Floats, groups: Ints, vertices: tuple[int, ...]) -> Grouped:
    """Weights of equal keys and groups added up."""
    if not vertices:
        order = None if _ascending(keys) else np.argsort(keys, kind="stable")
        if order is None or _ascending(keys[order]):
            # Nothing is added up. A sum of one number has no negative zero.
            own = weights if order is None else weights[:, order]
            return Grouped(keys if order is None else keys[order], own + 0.0, groups[:0, : len(keys)])
        distinct, which = np.unique(keys, return_inverse=True)
        chosen = np.empty((0, len(distinct)), np.int64)
    else:
        columns, which = np.unique(np.vstack([keys, groups]), axis=1, return_inverse=True)
        distinct, chosen = columns[0], columns[1:]
    sums = [np.bincount(which.reshape(-1), w, len(distinct)) for w in weights]
    shaped = np.array(sums, np.float64).reshape(len(weights), len(distinct))
    return Grouped(distinct, shaped, chosen, vertices)


def _ascending(keys: Ints) -> bool:
    """Whether each is larger than the one before."""
    return bool((keys[1:] > keys[:-1]).all())


@dataclass(frozen=True, slots=True)
class Counts:
    """Distinct keys, int64 (n,), ascending, and how many tuples each has, or the sum of something over them."""

    keys: Ints
    counts: Ints | Floats

    def of(self, keys: Ints) -> Ints | Floats:
        """The counts of some keys, 0 for those that are not there."""
        at = np.searchsorted(self.keys, keys)
        at[at == len(self.keys)] = 0
        found = self.keys[at] == keys if len(self.keys) else np.zeros(len(keys), np.bool_)
        return np.where(found, self.counts[at] if len(self.keys) else 0, 0)

    @classmethod
    def counted(cls, keys: Ints, counts: Ints | Floats) -> Counts:
        """The sums of the counts of equal keys."""
        if counts.dtype == np.int64 and (counts == 1).all():
            return cls(*np.unique(keys, return_counts=True))
        found, which = np.unique(keys, return_inverse=True)
        sums = np.bincount(which, counts, len(found))
        return cls(found, sums if counts.dtype == np.float64 else sums.astype(np.int64))


@dataclass(frozen=True, slots=True)
class Drawn:
    """Tuples that were drawn for a value, each by itself.

    Attributes
    ----------
    keys : ndarray of int64, shape (positions, n)
    weights : ndarray of float64, shape (terms, n)
    draws : ndarray of int64, shape (n,)
        By the number of which draw.
    sizes : ndarray of float64, shape (n,)
        The absolute values.
    """

    keys: Ints
    weights: Floats
    draws: Ints
    sizes: Floats


@dataclass(frozen=True, slots=True)
class Rows:
    """What a scan sent.

    Attributes
    ----------
    keys : ndarray of int64, shape (positions, n)
        Distinct as columns.
    weights : ndarray of float64, shape (terms, n)
    hits : Counts
        Tuples that were drawn by themselves, by the first key, sampled or not.
    tuples : Counts
        All tuples of the sampled keys, by the first.
    drawn : Drawn
        Tuples that were drawn for their values, sampled or not.
    scales : tuple of float
        For each term the factor that made its weights integers.
    doubles : tuple of bool
        For each term whether its weights are none.
    """

    keys: Ints
    weights: Floats
    hits: Counts
    tuples: Counts
    drawn: Drawn
    scales: tuple[float, ...] = ()
    doubles: tuple[bool, ...] = ()


def rows_of(
    why: npt.NDArray[np.generic],
    keys: Sequence[pa.ChunkedArray | pa.Array],
    weights: Mapping[Synopsis, tuple[npt.NDArray[np.generic], float]],
    own: Sequence[Synopsis],
    hits: Ints | None = None,
    tuples: Ints | None = None,
    sizes: Mapping[int, Floats] | None = None,
) -> Rows:
    """What was read, grouped by its keys.

    Parameters
    ----------
    why : ndarray, shape (n,)
        The bits `SAMPLED`, `LOOKED_AT`, and from `VALUED` on those of each draw of values.
    keys : sequence of Arrow columns
        BIGINT; those behind the first are NULL for a tuple that was looked at by itself.
    weights : mapping
        By synopsis the weight of each row, and the factor that made it an integer.
    own : sequence of Synopsis
        The synopsis of each term.
    hits : ndarray of int64, shape (n,), optional
        How many tuples of each row were looked at; by default 1 where `why` says so.
    tuples : ndarray of int64, shape (n,), optional
        How many tuples each row stands for; by default 1.
    sizes : mapping of int to ndarray of float64, shape (n,), optional
        By the number of a draw of values the absolute value of each row that was drawn.

    Raises
    ------
    ValueError
        If a weight is not finite.
    """
    reasons = why.astype(np.int64)
    first, sampled = keys[0].to_numpy(), reasons & SAMPLED > 0
    counts = (reasons & LOOKED_AT) // LOOKED_AT if hits is None else hits
    own_tuples = np.ones(len(why), np.int64) if tuples is None else tuples
    values: dict[Synopsis, Ints | Floats] = {}
    for synopsis, (found, _) in weights.items():
        own_values = found[sampled]
        # Integers are added up as such, as long as no sum can leave 64 bits.
        whole = own_values.dtype == np.int64 and np.abs(own_values.astype(np.float64)).sum() < SAFE
        values[synopsis] = own_values.astype(np.int64) if whole else own_values.astype(np.float64)
    if len(keys) == 1:
        distinct, which = np.unique(first[sampled], return_inverse=True)
        by_keys = distinct.reshape(1, -1)
        counted = Counts(distinct, _sums(which, own_tuples[sampled], len(distinct)))
        sums = {s: _sums(which, v, len(distinct)) for s, v in values.items()}
    else:
        by_keys, sums = _summed_by_keys([k.filter(pa.array(sampled)).to_numpy() for k in keys], values)
        counted = Counts.counted(first[sampled], own_tuples[sampled])
    for own_sums in sums.values():
        check_mass(float(np.abs(own_sums).sum()) if own_sums.dtype == np.float64 else 0.0)
    return Rows(
        by_keys,
        np.array([sums[s] for s in own], np.float64),
        Counts.counted(first[counts > 0], counts[counts > 0]),
        counted,
        _drawn(reasons, keys, [weights[s][0] for s in own], sizes or {}),
        tuple(weights[s][1] for s in own),
        tuple(weights[s][0].dtype == np.float64 for s in own),
    )


def _sums(which: Ints, values: Ints | Floats, number: int) -> Ints | Floats:
    """Values added up by their places, those of integers without rounding."""
    if values.dtype == np.float64:
        return np.bincount(which, values, number)
    return integer_sums(which, values.astype(np.int64), number)


def _summed_by_keys(
    keys: Sequence[Ints], values: Mapping[Synopsis, Ints | Floats]
) -> tuple[Ints, dict[Synopsis, Ints | Floats]]:
    """The distinct combinations of several keys, and the values added up by them."""
    arrays = {f"k{n}": k for n, k in enumerate(keys)} | {f"w{n}": v for n, v in enumerate(values.values())}
    by_keys = pa.table(arrays).group_by([f"k{n}" for n in range(len(keys))], use_threads=False)
    grouped = by_keys.aggregate([(f"w{n}", "sum") for n in range(len(values))])
    return (
        np.array([grouped[f"k{n}"].to_numpy() for n in range(len(keys))], np.int64),
        {s: grouped[f"w{n}_sum"].to_numpy() for n, s in enumerate(values)},
    )


def _drawn(
    why: Ints,
    keys: Sequence[pa.ChunkedArray | pa.Array],
    weights: Sequence[npt.NDArray[np.generic]],
    sizes: Mapping[int, Floats],
) -> Drawn:
    """The tuples that draws of values have found; one that several have is there for each."""
    chosen = [np.flatnonzero(why & (VALUED << n)) for n in sizes]
    rows = np.concatenate(chosen) if chosen else np.empty(0, np.int64)
    found = np.array([w[rows].astype(np.float64) for w in weights]).reshape(len(weights), rows.size)
    check_mass(float(np.abs(found).sum()))
    return Drawn(
        np.array([k.take(pa.array(rows)).to_numpy() for k in keys], np.int64).reshape(len(keys), rows.size),
        found,
        np.repeat(np.fromiter(sizes, np.int64, len(sizes)), [len(c) for c in chosen]),
        np.concatenate([s[c] for s, c in zip(sizes.values(), chosen, strict=True)] or [np.empty(0)]),
    )
