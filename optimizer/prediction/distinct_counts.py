"""Predicted error of the distinct counts of a query: of parts, set expressions, pairs and triples, in groups too."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ...sketches.distinct.level import LevelSpec
from ...sketches.distinct.pair_sample import PairSampleSpec
from ..distinct_count import LEVELS, DistinctCount, JoinedPairs, KeySet, KeySets, PairsByKey, Part
from ..plan import Synopsis, any_family
from .distinct import TUPLES_RESERVE, DistinctError, level_error, sets_error
from .figures import Figures
from .joined_values import JoinedFigures, Side, joined_figures
from .pair_samples import by_key_error, joined_error
from .relation import Relation
from .values import Presence, Values, chance_of_any, shared_cells, values_of


@dataclass(eq=False)
class DistinctPredictor:
    """Predicts the errors of a query's distinct counts; what does not depend on the sizes is computed once.

    Parameters
    ----------
    figures : Figures
        Of the join tree.
    seen : callable
        The figures of a synopsis's own attributes behind its filter.
    confidence : float
    groups : mapping of int to int
        How many groups each grouped vertex has: predicted is what one of them has.
    """

    figures: Figures
    seen: Callable[[Synopsis], Relation]
    confidence: float
    groups: Mapping[int, int] = field(default_factory=dict)
    presence: Presence = field(init=False)
    _relations: dict[int, Relation] = field(default_factory=dict, init=False)
    _joined: dict[tuple[int, int], JoinedFigures] = field(default_factory=dict, init=False)
    _known_values: dict[tuple[int, int], Values] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self.presence = Presence(self.figures, self.groups)

    def error(self, count: DistinctCount, synopses: Sequence[Synopsis]) -> DistinctError:
        """What is predicted of one count; `synopses` differ in nothing but their sizes from call to call."""
        match count:
            case Part():
                return self._part(count, synopses)
            case KeySets():
                return self._sets(count, synopses)
            case JoinedPairs():
                return self._pairs(count, synopses)
            case PairsByKey():
                return self._by_key(count, synopses)

    def grouped(self, count: DistinctCount, synopses: Sequence[Synopsis]) -> float:
        """How many values an exact run has to tell apart: of a set expression those of all its sides."""
        if not isinstance(count, KeySets) or self._class_of({p.vertex for p in _leaves(count)}) is not None:
            return self.error(count, synopses).value
        return sum(self._values(p, synopses[p.synopsis], 0).distinct for p in _leaves(count))

    def _part(self, part: Part, synopses: Sequence[Synopsis], but: int | None = None) -> DistinctError:
        synopsis = synopses[part.synopsis]
        share = self.presence.of_group(part.vertex, but)
        values = self._values(part, synopsis, 0).thinned(share)
        tuples = _most_tuples(self.known(part.synopsis, synopsis), synopsis, share)
        return level_error(values.distinct, _level(synopsis), synopsis.sparse, self.confidence, tuples)

    def _sets(self, count: KeySets, synopses: Sequence[Synopsis]) -> DistinctError:
        leaves = _leaves(count)
        joined = self._class_of({p.vertex for p in leaves})
        known = [self.known(p.synopsis, synopses[p.synopsis]) for p in leaves]
        cells = shared_cells([(r, r.attributes[0]) for r in known])
        shares = [1.0 if joined is None else self.presence.of_group(p.vertex, joined) for p in leaves]
        there = [
            np.minimum(chance_of_any(w, share), 1.0) * np.minimum(w, 1.0)
            for share, w in zip(shares, cells.weights, strict=True)
        ]
        value = float(cells.counts @ _chance(count, dict(zip(leaves, there, strict=True))))
        union = float(cells.counts @ (1.0 - np.prod([1.0 - t for t in there], axis=0)))
        spec, sparse = _level(synopses[leaves[0].synopsis]), synopses[leaves[0].synopsis].sparse
        tuples = [
            _most_tuples(r, synopses[p.synopsis], share)
            for p, share, r in zip(leaves, shares, known, strict=True)
        ]
        sides = [
            level_error(float(cells.counts @ t), spec, sparse, self.confidence, n)
            for t, n in zip(there, tuples, strict=True)
        ]
        return sets_error(value, union, sides, spec, self.confidence)

    def _pairs(self, count: JoinedPairs, synopses: Sequence[Synopsis]) -> DistinctError:
        left, right = count.left, count.right
        key = left.synopsis, right.synopsis
        joined = self._class_of({left.vertex, right.vertex})
        if key not in self._joined:
            keys, others, counts = self.presence.pairs(joined or 0, left.vertex, right.vertex)
            sides = self._sides(count.left, count.right, synopses, (keys, others), joined, sampled=0)
            self._joined[key] = joined_figures(*sides, counts)
        figures = self._joined[key]
        one = self._part(count.left_values, synopses, joined)
        other = DistinctError(1.0, 0.0, 0.0, 0.0)
        if count.right_values is not None:
            other = self._part(count.right_values, synopses, joined)
        specs = _sample(synopses[left.synopsis]), _sample(synopses[right.synopsis])
        return joined_error(figures, specs, (one, other), synopses[left.synopsis].sparse, self.confidence)

    def _by_key(self, count: PairsByKey, synopses: Sequence[Synopsis]) -> DistinctError:
        left, right = count.left, count.right
        joined = self._class_of({left.vertex, right.vertex})
        keys, others, counts = self.presence.pairs(joined or 0, left.vertex, right.vertex)
        sides = self._sides(left, right, synopses, (keys, others), joined, sampled=1)
        synopsis = synopses[left.synopsis]
        found = by_key_error(
            *sides, counts, count.full, _sample(synopsis), synopsis.sparse, self.confidence, count.most_of_key
        )
        return found if count.bounded else replace(found, certified=False)

    def _sides(
        self,
        left: Part,
        right: Part,
        synopses: Sequence[Synopsis],
        keys: tuple[np.ndarray, np.ndarray],
        joined: int | None,
        sampled: int,
    ) -> tuple[Side, Side]:
        """Both relations; the counted values are those of the synopses' attribute `sampled`."""
        found = []
        for part, own in zip((left, right), keys, strict=True):
            synopsis = synopses[part.synopsis]
            share = self.presence.of_group(part.vertex, joined)
            relation = self.known(part.synopsis, synopsis)
            pairs = relation.joint_distinct
            if pairs is not None:
                pairs = pairs * share
            most = _most_tuples(relation, synopsis, share)
            found.append(Side(self._values(part, synopsis, sampled).thinned(share), own, pairs, most))
        return found[0], found[1]

    def _values(self, part: Part, synopsis: Synopsis, position: int) -> Values:
        """The values of one of a synopsis's attributes; their sizes change nothing of them."""
        known, at = self._known_values, (part.synopsis, position)
        if at not in known:
            own = self.known(part.synopsis, synopsis)
            known[at] = values_of(own, own.attributes[position])
        return known[at]

    def known(self, number: int, synopsis: Synopsis) -> Relation:
        """The figures of a synopsis's own attributes, by its number among them."""
        if number not in self._relations:
            self._relations[number] = self.seen(synopsis)
        return self._relations[number]

    def _class_of(self, vertices: set[int]) -> int | None:
        """The class that joins the vertices; None for the sets of a set expression."""
        classes = self.figures.tree.classes
        return next((j for j, c in enumerate(classes) if vertices <= {*c.vertices}), None)


def _most_tuples(relation: Relation, synopsis: Synopsis, share: float) -> float:
    """The most tuples of a share of those behind the filter: a pilot scales them up, those of a table are counted."""
    most = TUPLES_RESERVE * share * relation.tuples
    return most if synopsis.filter is not None else min(most, relation.scanned)


def _level(synopsis: Synopsis) -> LevelSpec:
    return LevelSpec(any_family(), synopsis.buckets, synopsis.rows)


def _sample(synopsis: Synopsis) -> PairSampleSpec:
    return PairSampleSpec(any_family(), synopsis.rows, synopsis.buckets, LEVELS)


def _leaves(sets: KeySet) -> list[Part]:
    return [sets] if isinstance(sets, Part) else [*_leaves(sets.left), *_leaves(sets.right)]


def _chance(sets: KeySet, there: Mapping[Part, np.ndarray]) -> np.ndarray:
    """Probability that each cell's keys are in the set."""
    if isinstance(sets, Part):
        return there[sets]
    left, right = _chance(sets.left, there), _chance(sets.right, there)
    match sets.operator:
        case "union":
            return np.asarray(1.0 - (1.0 - left) * (1.0 - right))
        case "intersect":
            return np.asarray(left * right)
        case _:
            return np.asarray(left * (1.0 - right))
