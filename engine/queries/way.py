"""How a SELECT would be answered, as values: what a statement asks can be held against it without a job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...optimizer.methods import is_grouped
from ...optimizer.plan import Plan, most_bytes
from ...optimizer.route import TABULATION
from ..materialized.lookup import KeptSketches, keepable
from ..statistics.gather import gather

if TYPE_CHECKING:
    from .run import SelectRun


@dataclass(frozen=True, slots=True)
class Way:
    """By what a SELECT would be answered.

    Attributes
    ----------
    method : str
        A name of the registry.
    source : str
        ``built``, ``kept``, ``partly kept``, or ``none`` where no synopsis is read.
    route : str
        ``arrow`` where Python workers take part, else ``jvm``.
    error : float or None
        The relative error for which it is planned; None where an asked error is only held against the answer.
    nbytes : float
        Most bytes of synopses, as planned.
    keeps : bool
        Whether the catalog keeps what is built.
    """

    method: str
    source: str
    route: str
    error: float | None = None
    nbytes: float = 0.0
    keeps: bool = False


def way_of(run: SelectRun) -> Way:
    """The way of a SELECT, by what is known without a job.

    Raises
    ------
    SkimqlError
        As the run itself, where it would refuse to begin.
    """
    run.check()
    if run.query.empty:
        return Way("constant", "none", "jvm")
    if is_grouped(run.query):
        return _of_sketches(run, run.sketch_plan(), "built")
    lookup = KeptSketches(run.session.context)
    standing = lookup.standing(run.select, run.typed, run.settings)
    if standing is not None:
        return Way(standing[1].method, "kept", "jvm", nbytes=_bytes(standing[1]))
    found = lookup.usable(run.select, run.typed, run.settings)
    if found is not None:
        return _of_sketches(run, found.plan, "partly kept" if found.missing else "kept")
    if not run.is_planned:
        return _of_sketches(run, run.sketch_plan(), "built")
    return _of_planner(run)


def _of_planner(run: SelectRun) -> Way:
    if run.is_target_alone:
        sampling = run.sample_run()
        if sampling.applies():
            sample = sampling.first_by_files()
            if sample is not None:
                return Way(sampling.plan(sample).method, "none", "jvm", run.settings.error)
            if sampling.may_run_exactly():
                return Way("exact_run", "none", "jvm", run.settings.error)
    planned, session = run.planned_run(), run.session
    known = gather(session.own_spark, session.tables, run.typed, session.statistics, pilot=False)
    choice = planned.choice(known, planned.fold_bytes)
    taken, error = choice.taken, run.settings.error
    if taken.method == "exact_run":
        return Way("exact_run", "none", "jvm", error)
    plan = planned.plan(choice)
    keeps = run.settings.cache and keepable(plan, session.memory.own_functions)
    jvm = plan.sample is not None or plan.family != TABULATION
    method = run.query.method or taken.method
    return Way(method, "built", "jvm" if jvm else "arrow", error, taken.nbytes, keeps)


def _of_sketches(run: SelectRun, plan: Plan, source: str) -> Way:
    keeps = run.settings.cache and keepable(plan, run.session.memory.own_functions)
    route = "jvm" if source == "kept" or plan.family != TABULATION else "arrow"
    return Way(plan.method, source, route, None, _bytes(plan), keeps)


def _bytes(plan: Plan) -> float:
    return float(sum(most_bytes(s) for s in plan.synopses))
