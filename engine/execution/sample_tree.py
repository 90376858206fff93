"""What a sampled plan is evaluated on: keys of the sampled class, and what hangs from them in the join tree.

Where the tuples are read is the affair of a backend, which says how one table is scanned.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...optimizer.operators import relation_name
from ...optimizer.plan import Message, Plan, Sample, Synopsis, Weight
from ...sketches.samples.known_keys import product_range, products
from ..sources.ranges import ANY, Range, weight_range
from ..synopses import check_mass
from .partial_aggregate import group_column

SAFE = float(1 << 62)

# Why a tuple is read, as bits: its key is in the sample, it is looked at by itself, it was drawn for a value.
SAMPLED, LOOKED_AT, VALUED = 1, 2, 4

# More keys than this are not listed in a filter but sent to the scan.
MOST_LISTED = 4096

# In the place of the logarithm of no chance at all.
NEVER = -1e6

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def asks_for_dense(sample: Sample) -> bool:
    """Whether a sample is of its dense keys alone, and they are too many to be listed."""
    return not sample.rate and len(sample.dense) > MOST_LISTED


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
        return _summed(self.keys, self.weights, self.groups[:0], ()) if self.vertices else self


def _summed(keys: Ints, weights: Floats, groups: Ints, vertices: tuple[int, ...]) -> Grouped:
    """Weights of equal keys and groups added up."""
    if not vertices:
        distinct, which = np.unique(keys, return_inverse=True)
        chosen = np.empty((0, len(distinct)), np.int64)
    else:
        columns, which = np.unique(np.vstack([keys, groups]), axis=1, return_inverse=True)
        distinct, chosen = columns[0], columns[1:]
    sums = [np.bincount(which.reshape(-1), w, len(distinct)) for w in weights]
    shaped = np.array(sums, np.float64).reshape(len(weights), len(distinct))
    return Grouped(distinct, shaped, chosen, vertices)


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
        found, which = np.unique(keys, return_inverse=True)
        sums = np.bincount(which, counts, len(found))
        return cls(found, sums if counts.dtype == np.float64 else sums.astype(np.int64))


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
    valued : Counts
        Tuples that were drawn for their values, as `hits`.
    unvalued : Counts
        Of the sampled keys the logarithm of the chance that none was.
    scales : tuple of float
        For each term the factor that made its weights integers.
    doubles : tuple of bool
        For each term whether its weights are none.
    """

    keys: Ints
    weights: Floats
    hits: Counts
    tuples: Counts
    valued: Counts
    unvalued: Counts
    scales: tuple[float, ...] = ()
    doubles: tuple[bool, ...] = ()


@dataclass(frozen=True, slots=True)
class Member:
    """One table of the sampled class: total weights with everything that hangs from it, and its own tuples.

    Attributes
    ----------
    grouped : Grouped
    rows : Rows
    """

    grouped: Grouped
    rows: Rows


def rows_of(
    why: npt.NDArray[np.generic],
    keys: Sequence[pa.ChunkedArray | pa.Array],
    weights: Mapping[Synopsis, tuple[npt.NDArray[np.generic], float]],
    own: Sequence[Synopsis],
    hits: Ints | None = None,
    tuples: Ints | None = None,
    valued: Ints | None = None,
    unvalued: Floats | None = None,
) -> Rows:
    """What was read, grouped by its keys.

    Parameters
    ----------
    why : ndarray, shape (n,)
        The bits `SAMPLED`, `LOOKED_AT` and `VALUED`.
    keys : sequence of Arrow columns
        BIGINT; those behind the first are NULL for a tuple that was looked at by itself.
    weights : mapping
        By synopsis the weight of each row, and the factor that made it an integer.
    own : sequence of Synopsis
        The synopsis of each term.
    hits, valued : ndarray of int64, shape (n,), optional
        How many tuples of each row were looked at, and were drawn for a value; by default 1 where `why` says so.
    tuples : ndarray of int64, shape (n,), optional
        How many tuples each row stands for; by default 1.
    unvalued : ndarray of float64, shape (n,), optional
        The logarithm of the chance that none of them was drawn for its value; by default 0.

    Raises
    ------
    ValueError
        If a weight is not finite.
    """
    reasons = why.astype(np.int64)
    first, sampled = keys[0].to_numpy(), reasons & SAMPLED > 0
    counts = (reasons & LOOKED_AT) // LOOKED_AT if hits is None else hits
    drawn = (reasons & VALUED) // VALUED if valued is None else valued
    own_tuples = np.ones(len(why), np.int64) if tuples is None else tuples
    chances = np.zeros(len(why)) if unvalued is None else unvalued
    arrays: dict[str, npt.NDArray[np.generic]] = {
        f"k{n}": k.filter(pa.array(sampled)).to_numpy() for n, k in enumerate(keys)
    }
    for n, (values, _) in enumerate(weights.values()):
        own_values = values[sampled]
        # Integers are added up as such, as long as no sum can leave 64 bits.
        whole = own_values.dtype == np.int64 and np.abs(own_values.astype(np.float64)).sum() < SAFE
        arrays[f"w{n}"] = own_values if whole else own_values.astype(np.float64)
    names = [n for n in arrays if n.startswith("w")]
    by_keys = pa.table(arrays).group_by([n for n in arrays if n.startswith("k")], use_threads=False)
    grouped = by_keys.aggregate([(n, "sum") for n in names])
    sums = dict(zip(weights, (grouped[f"{n}_sum"].to_numpy() for n in names), strict=True))
    for own_sums in sums.values():
        check_mass(float(np.abs(own_sums).sum()) if own_sums.dtype == np.float64 else 0.0)
    return Rows(
        np.array([grouped[f"k{n}"].to_numpy() for n in range(len(keys))], np.int64),
        np.array([sums[s] for s in own], np.float64),
        Counts.counted(first[counts > 0], counts[counts > 0]),
        Counts.counted(first[sampled], own_tuples[sampled]),
        Counts.counted(first[drawn > 0], drawn[drawn > 0]),
        Counts.counted(first[sampled], chances[sampled]),
        tuple(weights[s][1] for s in own),
        tuple(weights[s][0].dtype == np.float64 for s in own),
    )


class SampleTree(ABC):
    """The scans of one plan, with one sample or, after another, with its dense keys alone.

    Parameters
    ----------
    plan : Plan
    terms : sequence of tuples of int
        The synopses of each term of the plan.
    expected : sequence of float
        Tuples of each vertex behind its filter; infinite where that is not known.
    groups : collection of int
        The vertices of the query's join graph that are grouped; their tables know their `group_column`.
    """

    def __init__(
        self,
        plan: Plan,
        terms: Sequence[tuple[int, ...]],
        expected: Sequence[float],
        groups: Collection[int] = (),
    ) -> None:
        # The number of a tuple's group travels with its keys.
        self._groups = {n: group_column(v) for n, v in enumerate(plan.vertices) if v in groups}
        self._plan, self._terms, self._expected = plan, terms, expected
        self._whole: dict[object, Rows] = {}
        self._weights: dict[int, Floats] = {}
        self._own: dict[Synopsis, tuple[float, float]] = {}
        # By vertex, once it was read, the factors that made the weights of each term integers.
        self.scales: dict[int, tuple[float, ...]] = {}
        self.doubles: dict[int, tuple[bool, ...]] = {}

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes of all that was sent, exact messages too."""

    @abstractmethod
    def _sampled(self, sample: Sample, number: int) -> object:
        """Which tuples of a member are read; None stands for all of them."""

    @abstractmethod
    def _scan(
        self, vertex: int, positions: Sequence[int], kept: object, among: Ints | None, tuples: float
    ) -> Rows:
        """Read the tuples of a vertex, about `tuples` of them, `among` the only keys that are wanted.

        Where the vertex is grouped its group numbers are one more key, the last.
        """

    def _column_range(self, table: str, column: str, condition: str | None) -> Range:
        """What the values of a column lie between behind a filter, as far as is known without a scan."""
        return ANY

    def _message_range(self, message: Message) -> tuple[float, float]:
        """The least and the greatest weight that a message has for any key; it has been sent."""
        return -math.inf, math.inf

    def _most_tuples(self, vertex: int, position: int) -> float:
        """The most tuples behind the filter that have one key; infinite where it would cost much to know."""
        return math.inf

    def _named(self, vertex: int) -> str:
        """A vertex of the residual tree as operators are named by it."""
        relation = self._plan.query.graph.vertices[self._plan.vertices[vertex]]
        return relation_name(relation.table, relation.filter, relation.alias)

    def _pays(self, tuples: float, among: Ints) -> bool:
        """Whether asking for some keys alone costs less than what so many tuples cost."""
        return False

    def member(self, sample: Sample, number: int, among: Ints | None = None) -> Member:
        """One table of the sampled class by the class's key, with everything that hangs from it.

        Parameters
        ----------
        sample : Sample
        number : int
            Which of its members.
        among : ndarray of int64, shape (n,), optional
            The only keys that are wanted: those that the members before have. Others may come along.

        Raises
        ------
        BudgetExceeded
            If a table sends more than the limit.
        """
        vertex, position = sample.members[number]
        kept = self._sampled(sample, number)
        grouped, rows = self._grouped(vertex, position, kept, sample.rate, among, sample.edges)
        return Member(grouped, rows)

    def tuple_weights(self, vertex: int, above: Sequence[int]) -> Floats:
        """Between which weights one tuple of a vertex adds to each term, with what hangs from it away from `above`.

        Returns
        -------
        ndarray of float64, shape (terms, 2)
            At most 0 and at least 0, but for a count that nothing hangs from; infinite where there is no bound.
        """
        if vertex not in self._weights:
            self._weights[vertex] = self._tuple_weights(vertex, above)
        return self._weights[vertex]

    def weights_beside(self, vertex: int, above: Sequence[int]) -> Floats:
        """`tuple_weights` without the value of the tuple itself: what that is multiplied by."""
        return self._tuple_weights(vertex, above, Weight())

    def _tuple_weights(self, vertex: int, above: Sequence[int], weight: Weight | None = None) -> Floats:
        synopses = [self._plan.synopses[t[vertex]] for t in self._terms]
        ranges = np.array(
            [self._own_weights(s if weight is None else replace(s, weight=weight)) for s in synopses]
        )
        for edge, _, (other, at) in self.edges(vertex):
            if edge in above:
                continue
            theirs = self.tuple_weights(other, [edge])
            low, high = theirs.T
            if np.isfinite(theirs).all(axis=1).any():
                most = self._most_tuples(other, at)
                low, high = products(low, most), products(high, most)
            mine_low, mine_high = ranges.T
            low, high = product_range(mine_low, mine_high, np.minimum(low, 0.0), np.maximum(high, 0.0))
            ranges = np.stack([low, high], axis=1)
        return ranges

    def _own_weights(self, synopsis: Synopsis) -> tuple[float, float]:
        """Between which weights a tuple adds to one synopsis, with its exact messages."""
        if synopsis not in self._own:
            ends = weight_range(
                synopsis.weight,
                lambda column: self._column_range(synopsis.table, column, synopsis.filter),
            )
            low, high = (np.array([end]) for end in ends)
            for message in synopsis.messages:
                least, most = (np.array([end]) for end in self._message_range(message))
                low, high = product_range(low, high, least, most)
            self._own[synopsis] = float(low[0]), float(high[0])
        return self._own[synopsis]

    def draw(self, sample: Sample, number: int) -> int:
        """The number of the draw of tuples of a member: that of the first which is the same table by the same key."""
        return next(
            n for n, _ in enumerate(sample.members) if self._drawn(sample, n) == self._drawn(sample, number)
        )

    def _drawn(self, sample: Sample, number: int) -> tuple[object, ...]:
        vertex, position = sample.members[number]
        relation = self._plan.synopses[self._terms[0][vertex]]
        return relation.table, relation.filter, relation.attributes[position]

    def edges(self, vertex: int) -> list[tuple[int, int, tuple[int, int]]]:
        """The edges at a vertex: number, own position, and vertex and position at the other end."""
        found = []
        for number, e in enumerate(self._plan.edges):
            if e.left == vertex:
                found.append((number, e.left_position, (e.right, e.right_position)))
            elif e.right == vertex:
                found.append((number, e.right_position, (e.left, e.left_position)))
        return found

    def _grouped(
        self,
        vertex: int,
        position: int,
        kept: object,
        rate: float,
        among: Ints | None,
        above: Sequence[int],
    ) -> tuple[Grouped, Rows]:
        """The subtree of a vertex, away from the edges `above`, as weights by one of its attributes."""
        below = [(e, own, other) for e, own, other in self.edges(vertex) if e not in above]
        positions = (position, *(own for _, own, _ in below))
        own = (tuple(t[vertex] for t in self._terms), self._groups.get(vertex))
        # A self-join reads one sample twice, the second time with keys that are not wanted.
        whole = (positions, own, kept)
        tuples = rate * self._expected[vertex]
        asked = among is not None and rate == 0.0
        if among is not None and (whole in self._whole or not (asked or self._pays(tuples, among))):
            among = None
        rows = self._whole.get(whole) or self._scan(vertex, positions, kept, among, tuples)
        self.scales[vertex], self.doubles[vertex] = rows.scales, rows.doubles
        if among is None:
            self._whole[whole] = rows
        keys, groups, weights = rows.keys[: len(positions)], rows.keys[len(positions) :], rows.weights
        grouped: tuple[int, ...] = (vertex,) if vertex in self._groups else ()
        for column, (edge, _, (other, at)) in enumerate(below, 1):
            sent, _ = self._grouped(other, at, None, 1.0, np.unique(keys[column]), [edge])
            # Every row with every group of its partner.
            first = np.searchsorted(sent.keys, keys[column], "left")
            many = np.searchsorted(sent.keys, keys[column], "right") - first
            mine = np.repeat(np.arange(keys.shape[1]), many)
            theirs = np.arange(many.sum()) + np.repeat(first - (np.cumsum(many) - many), many)
            weights = weights[:, mine] * sent.weights[:, theirs]
            keys, groups = keys[:, mine], np.vstack([groups[:, mine], sent.groups[:, theirs]])
            grouped += sent.vertices
        return _summed(keys[0], weights, groups, grouped), rows
