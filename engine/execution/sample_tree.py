"""What a sampled plan is evaluated on: keys of the sampled class, and what hangs from them in the join tree.

Where the tuples are read is the affair of a backend, which says how one table is scanned.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ...optimizer.operators import relation_name
from ...optimizer.plan import Message, Plan, Sample, Synopsis, Weight
from ...sketches.joins.accumulate import distinct
from ...sketches.samples.known_keys import product_range, products
from ..sources.ranges import ANY, Range, value_range, weight_range
from .partial_aggregate import group_column
from .sample_rows import Grouped, Rows, summed

# More keys than this are not listed in a filter but sent to the scan.
MOST_LISTED = 4096

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def asks_for_dense(sample: Sample) -> bool:
    """Whether a sample is of its dense keys alone, and they are too many to be listed."""
    return not sample.rate and len(sample.dense) > MOST_LISTED


@dataclass(frozen=True, slots=True)
class Member:
    """One table of the sampled class: total weights with everything that hangs from it, and its own tuples.

    Attributes
    ----------
    grouped : Grouped
    drawn : Grouped
        The same of the tuples drawn for their values, by their number in `rows.drawn` in the place of the key.
    rows : Rows
    """

    grouped: Grouped
    drawn: Grouped
    rows: Rows


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
    def term_scales(self) -> tuple[float, ...]:
        """For each term the factor that made its contributions integers, once all vertices were read."""
        return tuple(map(math.prod, zip(*self.scales.values(), strict=True))) or (1.0,) * len(self._terms)

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes of all that was sent, exact messages too."""

    @abstractmethod
    def _sampled(self, sample: Sample, number: int) -> object:
        """Which tuples of a member are read; None stands for all of them."""

    @abstractmethod
    def _scan(
        self,
        vertex: int,
        positions: Sequence[int],
        kept: object,
        among: Ints | None,
        also: Ints | None,
        tuples: float,
    ) -> Rows:
        """Read the tuples of a vertex, about `tuples` of them, `among` the only keys that are wanted.

        Tuples of the keys `also` are read in any case, as if they were sampled.
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

    def heavy_keys(self, vertex: int, position: int, most: float) -> tuple[Ints, float]:
        """The keys of a table that are known to have more than `most` tuples, and the most tuples of any other key.

        Infinite where nothing tells.
        """
        return np.empty(0, np.int64), math.inf

    def _named(self, vertex: int) -> str:
        """A vertex of the residual tree as operators are named by it."""
        relation = self._plan.query.graph.vertices[self._plan.vertices[vertex]]
        return relation_name(relation.table, relation.filter, relation.alias)

    def _pays(self, tuples: float, among: Ints) -> bool:
        """Whether asking for some keys alone costs less than what so many tuples cost."""
        return False

    def member(
        self, sample: Sample, number: int, among: Ints | None = None, also: Ints | None = None
    ) -> Member:
        """One table of the sampled class by the class's key, with everything that hangs from it.

        Parameters
        ----------
        sample : Sample
        number : int
            Which of its members.
        among : ndarray of int64, shape (n,), optional
            The only keys that are wanted: those that the members before have. Others may come along.
        also : ndarray of int64, shape (n,), optional
            Keys that are wanted in any case, as if they were sampled.

        Raises
        ------
        BudgetExceeded
            If a table sends more than the limit.
        """
        vertex, position = sample.members[number]
        kept = self._sampled(sample, number)
        return self._grouped(vertex, position, kept, sample.rate, among, sample.edges, also)

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

    def values(self, relation: Synopsis, expression: str) -> Range:
        """Between which the values of an expression over the tuples of a relation lie, but for NULL."""
        return value_range(
            expression, lambda column: self._column_range(relation.table, column, relation.filter)
        )

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
        also: Ints | None = None,
    ) -> Member:
        """The subtree of a vertex, away from the edges `above`, as weights by one of its attributes."""
        below = [(e, own, other) for e, own, other in self.edges(vertex) if e not in above]
        positions = (position, *(own for _, own, _ in below))
        own = (tuple(t[vertex] for t in self._terms), self._groups.get(vertex))
        # A self-join reads one sample twice, the second time with keys that are not wanted.
        whole = (positions, own, kept)
        tuples = rate * self._expected[vertex]
        asked = among is not None and rate == 0.0
        known = None if also is not None else self._whole.get(whole)
        if among is not None and (known is not None or not (asked or self._pays(tuples, among))):
            among = None
        rows = known or self._scan(vertex, positions, kept, among, also, tuples)
        self.scales[vertex], self.doubles[vertex] = rows.scales, rows.doubles
        if among is None and also is None:
            self._whole[whole] = rows
        # Tuples that were drawn for their values stand behind the keys, each with its number.
        sent, drawn = np.hstack([rows.keys, rows.drawn.keys]), rows.drawn.keys.shape[1]
        keys, groups = sent[: len(positions)], sent[len(positions) :]
        weights = np.hstack([rows.weights, rows.drawn.weights])
        numbers = np.concatenate([np.full(rows.keys.shape[1], -1), np.arange(drawn)])
        grouped: tuple[int, ...] = (vertex,) if vertex in self._groups else ()
        for column, (edge, _, (other, at)) in enumerate(below, 1):
            behind = self._grouped(other, at, None, 1.0, distinct(keys[column]), [edge]).grouped
            # Every row with every group of its partner.
            first = np.searchsorted(behind.keys, keys[column], "left")
            many = np.searchsorted(behind.keys, keys[column], "right") - first
            mine = np.repeat(np.arange(keys.shape[1]), many)
            theirs = np.arange(many.sum()) + np.repeat(first - (np.cumsum(many) - many), many)
            weights = weights[:, mine] * behind.weights[:, theirs]
            keys, numbers = keys[:, mine], numbers[mine]
            groups = np.vstack([groups[:, mine], behind.groups[:, theirs]])
            grouped += behind.vertices
        is_key, is_drawn = numbers < 0, numbers >= 0
        return Member(
            summed(keys[0, is_key], weights[:, is_key], groups[:, is_key], grouped),
            summed(numbers[is_drawn], weights[:, is_drawn], groups[:, is_drawn], grouped),
            rows,
        )
