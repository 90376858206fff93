"""The ways to answer a query that counts distinct values: synopses of predicted error and size, or the exact run.

What the synopses are follows from the query (`distinct`); here they are sized: the least size whose predicted intervals
meet an error target, or the largest within the bytes asked; and compared with the exact run. Nothing is run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ...parser.join_graph import Query
from ...sketches.distinct.level import LevelSpec
from ...sketches.distinct.pair_sample import PairSampleSpec
from ..distinct import DistinctPlanner, set_tree
from ..distinct_count import LEVELS, DistinctCount, JoinedPairs, KeySet, KeySets, PairsByKey, Part, parts_of
from ..groups import grouped_vertices
from ..messages import JoinTree, Residual, tree_of, whole
from ..methods import PAIRS
from ..objective import Objective
from ..plan import Synopsis, any_family, most_bytes
from ..prediction.cost import distinct_synopses, exact_distinct, scans, sketches
from ..prediction.distinct import (
    DistinctError,
    JoinedFigures,
    Side,
    by_key_error,
    joined_error,
    joined_figures,
    level_error,
    sets_error,
)
from ..prediction.figures import Figures
from ..prediction.relation import Relation, RelationStatistics, complete
from ..prediction.sketches import convolution_variance, tree_variance
from ..prediction.values import Presence, Values, chance_of_any, shared_cells, values_of
from ..prediction.variance import Predicted
from .candidate import EXACT, Candidate, Choice, NoMethod, best_of, bytes_text, checked, too_long
from .folding import messages_bytes, messages_cost

METHODS = ("distinct", "join_distinct")
LEAST_BUCKETS = 64
# A level sketch of this size takes 25 MB, its relative standard error is 0.27 %.
MOST_BUCKETS = 1 << 17
# Widths of intervals vary, those of samples more: planned ones are so much narrower than the target.
ROOM = 1.05
SAMPLE_ROOM = 1.25
SAME_SIZE = 1.05


@dataclass(frozen=True, slots=True)
class DistinctPredicted(Predicted):
    """Predicted answer and error of the least certain aggregate, and the half-width of its interval."""

    width: float = 0.0

    def half_width(self, confidence: float) -> float:
        """See `Predicted.half_width`; at the confidence that it was predicted for."""
        return self.width


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
        values = self._values(part, synopsis, 0).thinned(self.presence.of_group(part.vertex, but))
        return level_error(values.distinct, _level(synopsis), synopsis.sparse, self.confidence)

    def _sets(self, count: KeySets, synopses: Sequence[Synopsis]) -> DistinctError:
        leaves = _leaves(count)
        joined = self._class_of({p.vertex for p in leaves})
        known = [self._known(p.synopsis, synopses[p.synopsis]) for p in leaves]
        cells = shared_cells([(r, r.attributes[0]) for r in known])
        there = [
            np.minimum(
                chance_of_any(w, 1.0 if joined is None else self.presence.of_group(p.vertex, joined)), 1.0
            )
            * np.minimum(w, 1.0)
            for p, w in zip(leaves, cells.weights, strict=True)
        ]
        value = float(cells.counts @ _chance(count, dict(zip(leaves, there, strict=True))))
        union = float(cells.counts @ (1.0 - np.prod([1.0 - t for t in there], axis=0)))
        spec, sparse = _level(synopses[leaves[0].synopsis]), synopses[leaves[0].synopsis].sparse
        sides = [level_error(float(cells.counts @ t), spec, sparse, self.confidence) for t in there]
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
        return by_key_error(
            *sides, counts, count.full, _sample(synopsis), synopsis.sparse, self.confidence, count.most_of_key
        )

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
            pairs = self._known(part.synopsis, synopsis).joint_distinct
            if pairs is not None:
                pairs = pairs * share
            found.append(Side(self._values(part, synopsis, sampled).thinned(share), own, pairs))
        return found[0], found[1]

    def _values(self, part: Part, synopsis: Synopsis, position: int) -> Values:
        known = self._known(part.synopsis, synopsis)
        return values_of(known, known.attributes[position])

    def _known(self, number: int, synopsis: Synopsis) -> Relation:
        if number not in self._relations:
            self._relations[number] = self.seen(synopsis)
        return self._relations[number]

    def _class_of(self, vertices: set[int]) -> int | None:
        """The class that joins the vertices; None for the sets of a set expression."""
        classes = self.figures.tree.classes
        return next((j for j, c in enumerate(classes) if vertices <= {*c.vertices}), None)


def choose_distinct(
    query: Query,
    statistics: Sequence[RelationStatistics],
    seen: Mapping[tuple[object, ...], RelationStatistics],
    objective: Objective,
    sparse: bool = True,
    too_large: Collection[int] = (),
) -> Choice:
    """Choose how to answer a query with COUNT(DISTINCT)s; the error of a grouped one is that of each group.

    Parameters
    ----------
    query : Query
        Key types and types of counted columns known.
    statistics : sequence of RelationStatistics
        One for each vertex, by its join classes.
    seen : mapping
        By `seen_key`, what is known of the attributes of a synopsis, in their order; missing ones are assumed.
    objective : Objective
    sparse : bool
        Whether synopses start as exact maps.
    too_large : collection of int
        Vertices whose messages are too large to be folded.

    Raises
    ------
    NoMethod
        If nothing fits or meets the target.
    UnsupportedQuery
        As `DistinctPlanner.plan`.
    """
    run = _Sizing(query, statistics, seen, objective, sparse, too_large)
    candidates = [checked(run.sized(), replace(objective, methods=METHODS))]
    if objective.size_bytes is None and objective.method is None:
        candidates.append(checked(run.exact(), objective))
    able = [c for c in candidates if not c.refused]
    if not able:
        reasons = "; ".join(f"{c.name}: {c.refused}" for c in candidates)
        raise NoMethod(f"no method can answer this: {reasons}", candidates)
    taken = best_of(able, objective)
    return Choice(taken, tuple(candidates), (), run.assumptions, objective)


def seen_key(synopsis: Synopsis) -> tuple[object, ...]:
    """What its own figures depend on: table, filter and attributes, without the names of classes."""
    attributes = tuple((a.keys, a.key_types) for a in synopsis.attributes)
    return synopsis.table.lower(), synopsis.filter, attributes


def counting_synopses(query: Query, too_large: Collection[int] = ()) -> tuple[Synopsis, ...]:
    """The synopses of a query's distinct counts, of any size: whose attributes are to be known."""
    numbers: dict[Synopsis, int] = {}
    planner = DistinctPlanner(
        query,
        LEAST_BUCKETS,
        True,
        lambda s: numbers.setdefault(s, len(numbers)),
        grouped_vertices(query),
        too_large,
    )
    for aggregate in query.aggregates:
        if aggregate.function == "count_distinct":
            planner.plan(aggregate)
    return tuple(numbers)


@dataclass(frozen=True)
class _Draft:
    counts: tuple[DistinctCount, ...]
    synopses: tuple[Synopsis, ...]
    residual: Residual


class _Sizing:
    def __init__(
        self,
        query: Query,
        statistics: Sequence[RelationStatistics],
        seen: Mapping[tuple[object, ...], RelationStatistics],
        objective: Objective,
        sparse: bool,
        too_large: Collection[int],
    ) -> None:
        self.query, self.objective, self.sparse, self.too_large = query, objective, sparse, too_large
        self.tree = JoinTree(1, ()) if query.sets is not None else tree_of(query.graph)
        at = range(len(statistics))
        classes = [() if query.sets is not None else self.tree.classes_of(v) for v in at]
        relations = [complete(s, len(c)) for s, c in zip(statistics, classes, strict=True)]
        self.figures = Figures(self.tree, relations)
        self._notes = dict.fromkeys(f"table {v}: {n}" for v, r in enumerate(relations) for n in r.assumptions)
        self._seen = seen
        self._predictor = DistinctPredictor(
            self.figures, self._of_synopsis, objective.confidence, dict(objective.groups)
        )
        self._linear = any(a.function != "count_distinct" for a in query.aggregates)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the figures rest on; after the candidates are made."""
        return tuple(self._notes)

    def _of_synopsis(self, synopsis: Synopsis) -> Relation:
        known = self._seen.get(seen_key(synopsis), RelationStatistics())
        relation = complete(known, len(synopsis.attributes))
        columns = ", ".join(k for a in synopsis.attributes for k in a.keys)
        self._notes |= dict.fromkeys(f"({columns}) of {synopsis.table}: {n}" for n in relation.assumptions)
        if synopsis.method == PAIRS:
            self._notes["counted columns are independent of join keys but for the number of pairs"] = None
        return relation

    def draft(self, buckets: int) -> _Draft:
        """What is built at a size."""
        numbers: dict[Synopsis, int] = {}
        planner = DistinctPlanner(
            self.query,
            buckets,
            self.sparse,
            lambda s: numbers.setdefault(s, len(numbers)),
            grouped_vertices(self.query),
            self.too_large,
        )
        counts = tuple(planner.plan(a) for a in self.query.aggregates if a.function == "count_distinct")
        residual = set_tree(self.query).residual if self.query.sets is not None else planner.folded
        return _Draft(counts, tuple(numbers), residual or whole(self.tree))

    def candidate(self, buckets: int) -> Candidate:
        """The synopses of one size."""
        draft, objective = self.draft(buckets), self.objective
        errors = [self._predictor.error(c, draft.synopses) for c in draft.counts]
        worst = max(errors, key=lambda e: (e.width, e.error))
        predicted = DistinctPredicted(worst.value, _variance(worst), 0.0, worst.width)
        groups, folds = dict(objective.groups), draft.residual
        nbytes = sum(
            e.nbytes * _mean([groups.get(p.vertex, 1) for p in parts_of(c)])
            for e, c in zip(errors, draft.counts, strict=True)
        )
        tables = dict.fromkeys(s.table for s in draft.synopses)
        relations = [self._predictor._known(n, s) for n, s in enumerate(draft.synopses)]
        kinds = [s.method for s in draft.synopses]
        read = [
            max((r for r, s in zip(relations, draft.synopses, strict=True) if s.table == t), key=_scanned)
            for t in tables
        ]
        cost = scans(read).plus(distinct_synopses(relations, kinds, len(tables)))
        sends = {s.messages for s in draft.synopses if s.messages}
        if folds.folds or sends:
            folded = folds if folds.folds else self._folded()
            cost = cost.plus(messages_cost(self.figures, folded))
            nbytes += messages_bytes(self.figures, folded, objective)
        if self._linear and len(folds.vertices) > 1 and self.query.sets is None:
            own = [self.figures.relations[v] for v in folds.vertices]
            attributes = [len(folds.classes_of(v)) for v in folds.vertices]
            of_a_row = tree_variance(self.figures, folds)
            variance = convolution_variance(of_a_row, len(folds.vertices), objective.rows, buckets)
            linear = Predicted(self.figures.total, variance)
            # Of the tuples of a group, a part of all, so much less is known.
            width = linear.half_width(objective.confidence) * math.sqrt(objective.most_groups)
            if width > predicted.width:
                predicted = DistinctPredicted(linear.answer, variance, 0.0, width)
            kind = "hash" if len(own) == 2 else "convolution"
            cost = cost.plus(sketches(own, attributes, kind, objective.rows * buckets))
            nbytes += 8.0 * objective.rows * buckets * objective.sketches(folds.vertices) * objective.columns
        method = "join_distinct" if PAIRS in kinds else "distinct"
        return Candidate(method, folds, nbytes, predicted, cost, rows=objective.rows, buckets=buckets)

    def _folded(self) -> Residual:
        """The tree with all folded but the tables of the first count's synopses."""
        residual = whole(self.tree)
        counted = {s.table for s in self.draft(LEAST_BUCKETS).synopses}
        while len(residual.vertices) > 1:
            leaf = next(
                (v for v in residual.leaves if self.query.graph.vertices[v].table not in counted), None
            )
            if leaf is None:
                break
            near = residual.members(residual.classes_of(leaf)[0])
            residual = residual.without(leaf, next(v for v in near if v != leaf))
        return residual

    def sized(self) -> Candidate:
        """The least size that meets the target, or the largest within the bytes asked."""
        objective = self.objective
        if objective.size_bytes is not None:
            within = self._largest(objective.size_bytes)
            if within is None:
                least = self._most_bytes(self.draft(2))
                reason = f"{bytes_text(objective.size_bytes)} are too few; {bytes_text(least)} would do"
                return replace(self.candidate(2), refused=reason)
            # Planned for all their levels; what they are predicted to take is told.
            found = self.candidate(within)
            return replace(found, nbytes=min(found.nbytes, float(objective.size_bytes)))
        asked = objective.relative_error or 0.0
        sampled = any(s.method == PAIRS for s in self.draft(LEAST_BUCKETS).synopses)
        target = asked / (SAMPLE_ROOM if sampled else ROOM)
        low, high = LEAST_BUCKETS, self._largest(objective.max_bytes) or LEAST_BUCKETS
        best = self.candidate(high)
        if best.half_width(objective.confidence) > target:
            width = best.half_width(objective.confidence)
            reason = f"predicted +-{width:.2g} of the answer at {bytes_text(best.nbytes)}: misses {asked:.2g}"
            return replace(best, refused=reason)
        while high > SAME_SIZE * low and high > low + 1:
            middle = round(math.sqrt(low * high))
            tried = self.candidate(middle)
            if tried.half_width(objective.confidence) <= target:
                high, best = middle, tried
            else:
                low = middle
        return best

    def _largest(self, nbytes: int) -> int | None:
        """The most buckets whose synopses, with all that they may take, fit in the bytes; at most `MOST_BUCKETS`."""

        def needed(buckets: int) -> int:
            return self._most_bytes(self.draft(buckets))

        if needed(2) > nbytes:
            return None
        low, high = 2, MOST_BUCKETS
        if needed(high) <= nbytes:
            return high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if needed(middle) <= nbytes else (low, middle)
        return low

    def _most_bytes(self, draft: _Draft) -> int:
        """What the synopses may take: of a grouped vertex one for each group."""
        groups = dict(self.objective.groups)
        parts = (p for count in draft.counts for p in parts_of(count))
        read = dict.fromkeys((p.vertex if p.vertex in groups else None, p.synopsis) for p in parts)
        return sum(groups.get(-1 if v is None else v, 1) * most_bytes(draft.synopses[i]) for v, i in read)

    def exact(self) -> Candidate:
        """Spark's own run: a join, and all distinct values grouped."""
        order: Sequence[int] = range(len(self.figures.relations))
        sizes: Sequence[float] = ()
        if self.query.sets is None:
            order = self.tree.joined_order()
            sizes = self.figures.sizes(order)
        draft = self.draft(LEAST_BUCKETS)
        groups = self.objective.most_groups
        values = [groups * self._predictor.grouped(c, draft.synopses) for c in draft.counts]
        cost = exact_distinct([self.figures.relations[v] for v in order], sizes, values)
        return Candidate(
            "exact_run",
            whole(self.tree),
            0.0,
            EXACT,
            cost,
            sizes=tuple(sizes),
            refused=too_long(cost, sizes, self.objective),
        )


def _mean(numbers: Sequence[int]) -> float:
    return sum(numbers) / len(numbers)


def _variance(error: DistinctError) -> float:
    return (error.error * error.value) ** 2 if math.isfinite(error.error) else math.inf


def _scanned(relation: Relation) -> float:
    return relation.scanned


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
