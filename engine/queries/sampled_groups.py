"""What estimates each group of a query that was run on a sample of keys."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ...parser.expressions import Aggregated, has_aggregate
from ...parser.measures import measure_of
from ...sketches.intervals.interval import Estimate
from ..results.answer import misses
from ..results.clusters import ClusterEvaluator, Clusters
from ..results.having_order_limit import is_cut
from ..results.rows import Estimated, GroupNumbers

if TYPE_CHECKING:
    from ...optimizer.plan import Plan
    from ...parser.join_graph import Query
    from ..execution.sampled_query import Sampled
    from ..results.expressions import Evaluator


# A group of which fewer keys were drawn is marked as uncertain.
LEAST_KEYS = 8

# A note bounds so many aggregates of a group that was not met.
MOST_TOLD = 3


def evaluators_of(
    query: Query,
    plan: Plan,
    found: Sampled,
    confidence: float,
    extremes: Mapping[str, int] | None = None,
) -> dict[GroupNumbers, Evaluator]:
    """By the number of each group that was met; of an ungrouped query one, of no numbers.

    `extremes` are the measures that files tell.
    """
    told = {n: extremes[m] for n, m in enumerate(_measures(query)) if extremes and m in extremes}
    evaluators: dict[GroupNumbers, Evaluator] = {}
    for number, (values, joined, lists) in enumerate(found.groups):
        known = joined.contributions
        clusters = Clusters(known.terms, known.probabilities, lists, told)
        evaluators[(number,) if query.groups else ()] = ClusterEvaluator(
            plan, joined, confidence, values, clusters=clusters
        )
    return evaluators


def unseen_keys(rate: float, confidence: float) -> int:
    """How many keys a group has at most, but for a chance, of which none is in the sample."""
    if rate == 1.0:
        return 0
    return math.ceil(math.log(1 - confidence) / math.log1p(-rate))


def most_unseen(found: Sampled, keys: int) -> list[float]:
    """What a group of so many keys has of each measure at most; where nothing bounds it by the most that was met."""
    known = [joined.contributions for _, joined, _ in found.groups]
    # Keys that are there for certain are none of those that were not met.
    columns = [k.terms[:, k.probabilities < 1.0] for k in known]
    if not columns:
        return []
    met = np.max([np.abs(c).max(axis=1, initial=0.0) for c in columns], axis=0)
    bounds = (max(abs(low), abs(high)) for low, high in found.added)
    return [keys * (b if math.isfinite(b) else float(m)) for b, m in zip(bounds, met, strict=True)]


def uncertain_groups(
    query: Query, found: Sampled, evaluators: Mapping[GroupNumbers, Evaluator], most: list[float]
) -> frozenset[int]:
    """The places of those groups of which little was met, or before which one that was not met may come."""
    weak = set()
    cut = is_cut(query) and any(has_aggregate(o.expression) for o in query.order)
    for number, evaluator in enumerate(evaluators.values()):
        few = evaluator.known is None and _is_of_few(found, number)
        if few or (cut and not _is_beyond(query, evaluator, most)):
            weak.add(number)
    return frozenset(weak)


def _is_of_few(found: Sampled, number: int) -> bool:
    """Whether few keys of a group were drawn."""
    _, joined, _ = found.groups[number]
    return int(np.count_nonzero(joined.contributions.probabilities < 1.0)) < LEAST_KEYS


@dataclass(frozen=True)
class SampledGroups(Estimated):
    """The groups that a sample has met, of which some may be run exactly.

    Attributes
    ----------
    found : Sampled or None
    most : sequence of float
        What a group that was not met has of each measure at most.
    """

    found: Sampled | None = None
    most: Sequence[float] = ()

    def missed(self, target: float) -> list[GroupNumbers]:
        """The groups that may be shown and of which few keys were drawn, or whose intervals are wider than asked."""
        assert self.found is not None, "it was sampled"
        may_be_shown = {r.number for r in self.shown_rows} | {self.rows[n].number for n in self.at_edge()}
        if not is_cut(self.query):
            may_be_shown = {r.number for r in self.rows.values() if r.passes.may_hold}
        return [
            n
            for n, r in self.rows.items()
            if r.number in may_be_shown
            and (_is_of_few(self.found, r.number) or any(misses(c, target) for c in r.cells))
        ]

    def with_known(self, known: Mapping[GroupNumbers, Sequence[Estimate]]) -> SampledGroups:
        """See `Estimated.with_known`: what is known is not of few keys any more."""
        again = super().with_known(known)
        assert isinstance(again, SampledGroups), "as it was"
        assert self.found is not None, "it was sampled"
        weak = uncertain_groups(self.query, self.found, again.evaluators, list(self.most))
        return replace(again, weak=weak)


def _is_beyond(query: Query, evaluator: Evaluator, most: list[float]) -> bool:
    """Whether a group comes before any that was not met."""
    first = query.order[0]
    if not isinstance(first.expression, Aggregated) or not first.descending:
        return False
    planned = evaluator.plan.aggregates[first.expression.index]
    cell = evaluator.cell(first.expression)
    if planned.function not in ("count", "sum") or not isinstance(cell, Estimate):
        return False
    return cell.low > sum(abs(t.coefficient) * most[t.synopses[0]] for t in planned.total)


def told_of_groups(query: Query, found: Sampled, rate: float, confidence: float) -> tuple[str, ...]:
    """What a reader should know of groups that the sample may not have met."""
    keys = unseen_keys(rate, confidence)
    if not keys:
        return ()
    most = dict(zip(_measures(query), most_unseen(found, keys), strict=False))
    known = dict(zip(_measures(query), found.added, strict=True))
    sums = [a for a in query.aggregates if a.function in ("count", "sum") and a.asked and a.total][:MOST_TOLD]
    bounds = [f"{a.name} up to {most[measure_of(a.total[0])]:,.4g}" for a in sums if found.groups]
    certain = all(map(math.isfinite, (end for a in sums for end in known[measure_of(a.total[0])])))
    beside = (
        f" ({', '.join(bounds)}{'' if certain else ', by the most that a key adds to one'})" if bounds else ""
    )
    told: tuple[str, ...] = (f"groups of fewer than about {keys:,} keys{beside} may not have been met",)
    alone = sum(joined.contributions.keys.size == 1 for _, joined, _ in found.groups)
    if alone:
        told += (f"{alone:,} of the groups were met with one key alone: there may be many more like them",)
    return told


def _measures(query: Query) -> tuple[str, ...]:
    return tuple(dict.fromkeys(measure_of(t) for a in query.aggregates for t in (*a.total, *a.presence)))
