"""A planner's choice, carried out on Arrow tables by the product's own plan and backend."""

from __future__ import annotations

from dataclasses import replace

from skimql.engine.memory_backend.build import build_from
from skimql.engine.memory_backend.relations import Relations
from skimql.engine.memory_backend.samples import run_sample
from skimql.engine.results.answer import answer_plan
from skimql.engine.results.estimator import Joined, SketchJoin
from skimql.optimizer.candidates.candidate import Choice
from skimql.optimizer.choose import plan_of
from skimql.optimizer.plan import Plan
from skimql.sketches.intervals.interval import Estimate

from .join_queries import JoinQuery

CONFIDENCE = 0.95
LEAST_RATE = 1e-9  # below it a sample holds nothing but its dense keys


def run_choice(query: JoinQuery, choice: Choice, seed: int, budget_bytes: int) -> tuple[Estimate, int]:
    """The estimate of a choice, and the bytes of what it holds: sketches, samples and messages together.

    A sample that takes more than the budget is taken again, smaller, as the engine does.
    """
    plan = plan_of(query.query, choice, seed)
    joined, held = _joined(query, plan)
    while held > budget_bytes and plan.sample is not None and plan.sample.rate > LEAST_RATE:
        plan = replace(plan, sample=plan.sample.smaller(0.9 * plan.sample.rate * budget_bytes / held))
        joined, held = _joined(query, plan)
    ((cell,),) = answer_plan(plan, joined, CONFIDENCE).rows
    return cell, held


def _joined(query: JoinQuery, plan: Plan) -> tuple[Joined, int]:
    if plan.sample is not None:
        sampled = run_sample(plan, query.tables)[()]
        return sampled, sampled.nbytes
    relations = Relations(plan, query.tables, None)
    sketches = SketchJoin(plan, build_from(plan, relations))
    return sketches, sketches.nbytes + relations.nbytes
