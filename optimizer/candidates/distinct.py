"""The ways to answer a query that counts distinct values: synopses of predicted error and size, or the exact run.

What the synopses are follows from the query (`distinct`); here they are sized: the least size whose predicted intervals
meet an error target, or the largest within the bytes asked; and compared with the exact run. Nothing is run.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from ...parser.join_graph import Query
from ..distinct import DistinctPlanner, set_tree
from ..distinct_count import DistinctCount, parts_of
from ..groups import grouped_vertices
from ..messages import JoinTree, Residual, tree_of, whole
from ..methods import PAIRS
from ..objective import Objective
from ..plan import Synopsis, most_bytes
from ..prediction.cost import distinct_synopses, exact_distinct, scans, sketches
from ..prediction.distinct import DistinctError
from ..prediction.distinct_counts import DistinctPredictor
from ..prediction.figures import Figures
from ..prediction.most_of_key import of_count
from ..prediction.relation import Relation, RelationStatistics, complete
from ..prediction.sketches import convolution_variance, exact_maps, tree_variance
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
    """Predicted answer and error of the least certain aggregate, and the half-width of its interval.

    `widths` are those of all aggregates of the query.
    """

    width: float = 0.0
    widths: tuple[float, ...] = ()

    def half_width(self, confidence: float) -> float:
        """See `Predicted.half_width`; at the confidence that it was predicted for."""
        return self.width


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
    return Choice(taken, tuple(candidates), (), run.assumptions, objective, run.figures)


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
        errors = [self._predictor.error(of_count(self.figures, c), draft.synopses) for c in draft.counts]
        worst = max(errors, key=lambda e: (e.width, e.error))
        predicted = DistinctPredicted(worst.value, _variance(worst), width=worst.width)
        groups, folds = dict(objective.groups), draft.residual
        times = [_mean([groups.get(p.vertex, 1) for p in parts_of(c)]) for c in draft.counts]
        nbytes = sum(e.nbytes * n for e, n in zip(errors, times, strict=True))
        entries = sum(e.entries * n for e, n in zip(errors, times, strict=True))
        tables = dict.fromkeys(s.table for s in draft.synopses)
        relations = [self._predictor.known(n, s) for n, s in enumerate(draft.synopses)]
        kinds = [s.method for s in draft.synopses]
        read = [
            max((r for r, s in zip(relations, draft.synopses, strict=True) if s.table == t), key=_scanned)
            for t in tables
        ]
        cost = scans(read).plus(distinct_synopses(relations, kinds, len(tables), entries))
        sends = {s.messages for s in draft.synopses if s.messages}
        if folds.folds or sends:
            folded = folds if folds.folds else self._folded()
            cost = cost.plus(messages_cost(self.figures, folded))
            nbytes += messages_bytes(self.figures, folded, objective)
        of_rows = 0.0
        if self._linear and len(folds.vertices) > 1 and self.query.sets is None:
            own = [self.figures.relations[v] for v in folds.vertices]
            attributes = [len(folds.classes_of(v)) for v in folds.vertices]
            of_a_row = tree_variance(self.figures, folds)
            variance = convolution_variance(of_a_row, len(folds.vertices), objective.rows, buckets)
            linear = Predicted(self.figures.total, variance)
            # Of the tuples of a group, a part of all, so much less is known.
            if not (
                self.sparse
                and exact_maps(self.figures, folds.vertices, attributes, objective.rows * buckets, groups)
            ):
                of_rows = linear.half_width(objective.confidence) * math.sqrt(objective.most_groups)
            if of_rows > predicted.width:
                predicted = DistinctPredicted(linear.answer, variance, width=of_rows)
            kind = "hash" if len(own) == 2 else "convolution"
            cost = cost.plus(sketches(own, attributes, kind, objective.rows * buckets))
            nbytes += 8.0 * objective.rows * buckets * objective.sketches(folds.vertices) * objective.columns
        counted = iter(errors)
        widths = tuple(
            next(counted).width if a.function == "count_distinct" else of_rows for a in self.query.aggregates
        )
        predicted = replace(predicted, widths=widths)
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
