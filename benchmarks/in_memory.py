"""A planner's choice, carried out on Arrow tables by the product's own plan and backend."""

from __future__ import annotations

from dataclasses import replace

from skimql import Settings
from skimql.engine.catalog.form import Groups, Head
from skimql.engine.materialized.apart import Apart
from skimql.engine.memory_backend.backend import MemoryBackend
from skimql.engine.memory_backend.build import build_from
from skimql.engine.memory_backend.relations import Relations
from skimql.engine.memory_backend.samples import run_sample
from skimql.engine.queries.apart_plan import of_tables
from skimql.engine.queries.backend import Ints
from skimql.engine.results.answer import answer_plan
from skimql.engine.results.estimator import Joined, SketchJoin
from skimql.engine.synopses import Built
from skimql.optimizer.candidates.candidate import Candidate, Choice
from skimql.optimizer.choose import plan_of
from skimql.optimizer.physical import Predicted
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


def run_alone(query: JoinQuery, candidate: Candidate, seed: int, budget_bytes: int) -> tuple[Estimate, int]:
    """As `run_choice`, of a candidate whose synopses are made of each table by itself, as the catalog keeps them."""
    settings = Settings(seed=seed, size_bytes=budget_bytes)
    attempt = of_tables(query.query, settings, candidate, Predicted(), {})
    backend = MemoryBackend(query.tables)

    def build(head: Head, dense: Ints | None) -> tuple[Groups | None, tuple[Built, ...]]:
        return backend.apart(head, dense, 1, query.query.sql)

    answer, joined, _ = Apart(query.query, attempt, settings, None).answer(build)
    ((cell,),) = answer_plan(replace(answer.plan, query=query.query), joined[()], CONFIDENCE).rows
    return cell, joined[()].nbytes


def _joined(query: JoinQuery, plan: Plan) -> tuple[Joined, int]:
    if plan.sample is not None:
        sampled = run_sample(plan, query.tables)[()]
        return sampled, sampled.nbytes
    relations = Relations(plan, query.tables, None)
    sketches = SketchJoin(plan, build_from(plan, relations))
    return sketches, sketches.nbytes + relations.nbytes
