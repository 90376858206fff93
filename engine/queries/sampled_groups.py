"""What estimates each group of a query that was run on a sample of keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..results.clusters import ClusterEvaluator, Clusters
from ..results.rows import GroupNumbers

if TYPE_CHECKING:
    from ...optimizer.plan import Plan
    from ...parser.join_graph import Query
    from ..execution.sampled_query import Sampled
    from ..results.expressions import Evaluator


def evaluators_of(
    query: Query, plan: Plan, found: Sampled, confidence: float
) -> dict[GroupNumbers, Evaluator]:
    """By the number of each group that was met; of an ungrouped query one, of no numbers."""
    evaluators: dict[GroupNumbers, Evaluator] = {}
    for number, (values, joined, lists) in enumerate(found.groups):
        known = joined.contributions
        clusters = Clusters(known.terms, known.probabilities, lists)
        evaluators[(number,) if query.groups else ()] = ClusterEvaluator(
            plan, joined, confidence, values, clusters=clusters
        )
    return evaluators
