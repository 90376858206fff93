"""What merging two vertices would gain: the errors of a workload as the greedy search keeps them.

Both classes answer `gain` exactly and `bound` from above, and are told of every merge. The average error
keeps the components of `levels` and re-solves only what a merge dissolves; most gains need no solving.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Protocol

from .levels import Component, components_of
from .share import Metric, SharedGraph
from .weights import integer_weights


class Error(Protocol):
    """How much of the error's root (average) or of the error (maximum) a merge would remove."""

    def scale(self) -> float: ...

    def bound(self, vertex: int) -> float: ...

    def gain(self, one: int, other: int) -> float: ...

    def merge(self, one: int, other: int) -> tuple[int, int]: ...


class MaximumError:
    """The greatest W_Q / M_Q: proportional to the sum over vertices of w_v = max W_Q over Q(v)."""

    def __init__(self, graph: SharedGraph, weights: Sequence[int]) -> None:
        self._need = [max((weights[q] for q in queries), default=0) for queries in graph.queries_of()]
        self._total = float(sum(self._need))

    def scale(self) -> float:
        return self._total

    def bound(self, vertex: int) -> float:
        return float(self._need[vertex])

    def gain(self, one: int, other: int) -> float:
        return float(min(self._need[one], self._need[other]))

    def merge(self, one: int, other: int) -> tuple[int, int]:
        kept, gone = (other, one) if self._need[other] > self._need[one] else (one, other)
        self._total -= self._need[gone]
        return kept, gone


@dataclass(frozen=True, slots=True)
class Change:
    """What a removal or merge does: the components it dissolves, those it makes, and the root it gains."""

    gain: float
    dissolved: tuple[Component, ...]
    made: tuple[Component, ...]

    def is_even(self) -> bool:
        """Whether one component lost a vertex and nothing else: the least gain there can be."""
        return len(self.dissolved) == len(self.made) == 1 and self.dissolved[0].weight == self.made[0].weight


class AverageError:
    """The root of the sum of W_Q / M_Q at the best allocation, kept as the components that make it up."""

    def __init__(self, graph: SharedGraph, weights: Sequence[int]) -> None:
        self._weights = weights
        self._usable = [set(vertices) for vertices in graph.vertices_of()]
        self._users = [set(queries) for queries in graph.queries_of()]
        demands = {q: (weights[q], tuple(sorted(used))) for q, used in enumerate(self._usable)}
        self._component: dict[int, Component] = {}
        self._live: set[Component] = set()
        self._place(components_of(range(len(graph.vertices)), demands))
        self._removals: dict[int, Change] = {}
        self._merges: dict[tuple[int, int], Change] = {}

    def scale(self) -> float:
        return sum(sorted(component.root for component in self._live))

    def bound(self, vertex: int) -> float:
        return self._removal(vertex).gain

    def gain(self, one: int, other: int) -> float:
        """Exact; most merges are read off a removal, or off two, without solving anything anew."""
        kept, gone = self._ordered(one, other)
        for stays, goes in ((kept, gone), (gone, kept)):
            if self._is_free(stays, goes):
                return self._removal(goes).gain
        home, other_home = self._component[kept], self._component[gone]
        if self._removal(kept).is_even() and self._removal(gone).is_even() and not other_home.is_below(home):
            # Two components of one level, or one, whose loads spread evenly: so do those of the union.
            return _union_gain(home, other_home)
        return self._change(kept, gone).gain

    def _is_free(self, stays: int, goes: int) -> bool:
        """Whether `stays` has room for the queries of `goes` at no cost: its level is at least theirs.

        Levels are those after the removal of `goes`; then the merge gains what the removal gains.
        """
        removal = self._removal(goes)
        level = next((c for c in removal.made if stays in c.vertices), self._component[stays])
        if level in removal.dissolved:  # `stays` is left without queries of its own, so on level 0
            return False
        users = self._users[goes]
        if any(len(self._usable[q]) == 1 for q in users):  # the removal took these along
            return False
        return not any(level.is_below(c) and not users.isdisjoint(c.queries) for c in removal.made)

    def merge(self, one: int, other: int) -> tuple[int, int]:
        kept, gone = self._ordered(one, other)
        change = self._change(kept, gone)
        for q in self._users[gone]:
            self._usable[q].discard(gone)
            self._usable[q].add(kept)
        self._users[kept] |= self._users[gone]
        self._live.difference_update(change.dissolved)
        del self._component[gone]
        self._place(change.made)
        return kept, gone

    def _place(self, components: Sequence[Component]) -> None:
        self._live.update(components)
        for component in components:
            for vertex in component.vertices:
                self._component[vertex] = component

    def _ordered(self, one: int, other: int) -> tuple[int, int]:
        """The vertex that stays (on the higher level, the smaller of equals) and the one that goes."""
        one, other = min(one, other), max(one, other)
        return (other, one) if self._component[one].is_below(self._component[other]) else (one, other)

    def _removal(self, vertex: int) -> Change:
        """The change if the vertex were gone; as other loads only rise, it holds until a part dissolves."""
        known = self._removals.get(vertex)
        if known is None or not self._live.issuperset(known.dissolved):
            known = self._removals[vertex] = self._solve(None, vertex)
        return known

    def _change(self, kept: int, gone: int) -> Change:
        known = self._merges.get((kept, gone))
        if known is None or not self._live.issuperset(known.dissolved):
            known = self._merges[kept, gone] = self._solve(kept, gone)
        return known

    def _solve(self, kept: int | None, gone: int) -> Change:
        """Levels after `gone` became `kept`, or nothing; only its component and what that reaches change."""
        open_set = {self._component[gone]}
        if kept is not None and not self._component[gone].is_below(self._component[kept]):
            open_set.add(self._component[kept])
        while True:
            dissolved = tuple(sorted(open_set, key=lambda c: min(c.vertices)))
            inside = frozenset(v for c in dissolved for v in c.vertices) - {gone}
            demands: dict[int, tuple[int, tuple[int, ...]]] = {}
            outside: dict[int, list[Component]] = {}
            reached = set[Component]()
            for q in sorted(q for c in dissolved for q in c.queries):
                usable = self._usable[q] - {gone}
                if kept is not None and gone in self._usable[q]:
                    usable.add(kept)
                within = tuple(sorted(usable & inside))
                beyond = [self._component[v] for v in usable - inside]
                if within:
                    demands[q], outside[q] = (self._weights[q], within), beyond
                else:
                    reached.update(beyond)
            if not reached:
                made = tuple(components_of(inside, demands))
                reached = {
                    above for c in made for q in c.queries for above in outside[q] if above.is_below(c)
                }
            if not reached:
                before = sum(sorted(c.root for c in dissolved))
                return Change(before - sum(sorted(c.root for c in made)), dissolved, made)
            open_set |= reached


def _union_gain(one: Component, other: Component) -> float:
    if one is other:
        return one.root - sqrt(one.weight * (len(one.vertices) - 1))
    weight, size = one.weight + other.weight, len(one.vertices) + len(other.vertices)
    return one.root + other.root - sqrt(weight * (size - 1))


def error_factor(
    graph: SharedGraph, weights: Sequence[float] | None = None, metric: Metric = "average"
) -> float:
    """The least sum (average) or greatest (maximum) of W_Q / M_Q that a graph allows, times the space."""
    whole = integer_weights(weights, len(graph.queries))
    unit = (sum(weights) if weights is not None else len(graph.queries)) / sum(whole)
    if metric == "average":
        return AverageError(graph, whole).scale() ** 2 * unit
    return MaximumError(graph, whole).scale() * unit
