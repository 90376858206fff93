"""Better and better answers: what looks cost together, and intervals that hold wherever one stops."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
from scipy import stats
from support.sampled_queries import SCHEMA

from skimql.engine.execution.sampled_query import of_table
from skimql.engine.queries.adaptive import AdaptiveRun
from skimql.engine.queries.sampled_groups import evaluators_of
from skimql.engine.queries.sampled_plan import FIRST_RATE, MOST_RATE, SCAN_SHARE, SampledPlan, least_rate
from skimql.engine.queries.sampled_tables import SampledTables
from skimql.engine.results.answer import Answer
from skimql.engine.results.rows import Estimated
from skimql.engine.settings import Settings
from skimql.optimizer.candidates.spending import SPENT
from skimql.optimizer.physical import PhysicalPlan
from skimql.parser.sampled_select import resolve_sampled
from skimql.parser.statement import parse_statement
from skimql.sketches.intervals.interval import exact

SEEDS, KEYS, ERROR = 500, 12_000, 0.2
TEXT = "SELECT APPROXIMATE SUM(a.v) AS s FROM a LEFT JOIN b ON a.k = b.k AND a.v < b.v USING sampled_query"
SELECT = parse_statement(TEXT)
QUERY = resolve_sampled(SELECT, SCHEMA)
BOUND = stats.binom.isf(0.01, SEEDS, 0.05)


class Looks(AdaptiveRun):
    """The run of a query on keys in memory, each with a place that decides in which samples it is."""

    def _run(self, attempt):
        if attempt.rate == 1.0:
            return Answer(("s",), ((exact(float(self.sums.sum())),),)), None
        kept = np.flatnonzero(self.places < attempt.rate)
        query = self.planner.query
        columns = [np.ones(kept.size) if m.startswith("COUNT") else self.sums[kept] for m in query.measures]
        table = pa.table({"__k": pa.array(kept), **{f"__m{n}": c for n, c in enumerate(columns)}})
        confidence = 1 - 0.05 * SPENT[self._taken(attempt)]
        found = Estimated(
            query, evaluators_of(query, attempt.plan, of_table(query, table, attempt.rate), confidence)
        )
        return found.answer(), found


def looks(sums, seed, error):
    settings = Settings(error=error, seed=seed)
    sizes = SampledPlan(None, QUERY, settings, jobs=False)
    first = replace(sizes._of(0, FIRST_RATE, seed), enlarges=True)
    planner = SimpleNamespace(
        query=QUERY,
        settings=settings,
        select=SELECT,
        sampled=lambda jobs: sizes,
        plan=lambda groups: PhysicalPlan(QUERY, (), first, error),
    )
    run = Looks(planner, lambda: None, lambda: None, refines=True)
    run.sums, run.places = sums, np.random.default_rng(seed).random(sums.size)
    return run


def test_all_looks_together_cost_twice_the_last_at_most():
    def cost(rate):
        return SCAN_SHARE + (1 - SCAN_SHARE) * rate

    for first in (0.001, FIRST_RATE, 0.1, MOST_RATE):
        tried = [first]
        while tried[-1] < 1.0:
            tried.append(max(tried[-1] * 1.3, least_rate(tried)) if least_rate(tried) < 1.0 else 1.0)
            assert sum(map(cost, tried)) <= 2 * cost(tried[-1]) * 1.001
        assert len(tried) <= len(SPENT) + 1


def test_the_answer_at_which_one_stops_is_as_sure_as_one_that_was_not_looked_for():
    sums = np.random.default_rng(1).gamma(0.25, 10.0, KEYS)
    truth, misses, looked = sums.sum(), 0, []
    for seed in range(SEEDS):
        answers = list(looks(sums, seed, ERROR).answers())
        (cell,) = answers[-1].rows[0]
        assert max(cell.high - cell.value, cell.value - cell.low) <= ERROR * cell.value
        misses += not cell.low <= truth <= cell.high
        looked.append(len(answers))
    assert misses <= BOUND
    # Some stop at the first look and some go on: it is for what was seen.
    assert len(set(looked)) > 1


def test_an_answer_that_is_not_stopped_before_the_error_is_met_is_exact():
    sums = np.random.default_rng(1).gamma(0.25, 10.0, KEYS)
    answers = list(looks(sums, 3, 0.01).answers())
    assert [a.rows[0][0].exact for a in answers] == [False] * (len(answers) - 1) + [True]
    assert [a.target for a in answers[:-1]] == ["unknown"]
    assert all(len(a.attempts) == n + 1 for n, a in enumerate(answers))


def test_a_first_sample_that_would_be_a_large_share_is_not_taken_where_an_error_is_asked(monkeypatch):
    keys = [1e9]
    held = {"tuples": 6e6}
    monkeypatch.setattr(SampledTables, "most_keys", lambda self, role: keys[0])
    monkeypatch.setattr(SampledTables, "tuples", lambda self, table: held["tuples"])
    rates = {}
    for error in (None, 0.05):
        for tuples in (1e5, 6e5, 6e6):
            held["tuples"] = tuples
            plan = SampledPlan(None, QUERY, Settings(error=error), jobs=False)
            rates[error, tuples] = plan._first_rate(QUERY.ways[0])
    assert [rates[0.05, t] for t in (1e5, 6e5, 6e6)] == [1.0, 1.0, FIRST_RATE]
    assert [rates[None, t] for t in (1e5, 6e5, 6e6)] == [1.0, 1 / 6, 1 / 16]

    def first(error, number):
        keys[0] = number
        plan = SampledPlan(None, QUERY, Settings(error=error), jobs=False)
        return plan._first_rate(QUERY.ways[0])

    # Were all keys alike, no smaller share would do: two tables have twice as many keys at most.
    assert first(0.05, 3e5) == FIRST_RATE
    assert FIRST_RATE < first(0.03, 4e4) < 1 / 16
    assert first(0.03, 2e4) == 1.0
    # Who looks at each answer sees a first one soon.
    refined = SampledPlan(None, QUERY, Settings(error=0.03), jobs=False, refines=True)
    assert refined._first_rate(QUERY.ways[0]) == FIRST_RATE


def test_who_looks_at_the_samples_of_an_answer_has_intervals_that_hold_and_changes_nothing():
    sums = np.random.default_rng(1).gamma(0.25, 10.0, KEYS)
    alone, looked, seen = looks(sums, 3, 0.15), looks(sums, 3, 0.15), []
    for run in (alone, looked):
        run.refines = False
    looked.shown = seen.append
    last = looked.answer()
    assert last.rows == alone.answer().rows
    assert [a.attempt.rate for a in last.attempts] == [a.attempt.rate for a in alone.record]
    # Of each sample but the last one, with its part of the confidence.
    spent = [1 - 0.05 * SPENT[n] for n in range(len(last.attempts) - 1)]
    assert spent
    assert [a.rows[0][0].confidence for a in seen] == spent
    assert [len(a.attempts) for a in seen] == list(range(1, len(last.attempts)))
    assert all(a.target in ("missed", "unknown") for a in seen)


def test_where_no_interval_says_how_many_keys_are_needed_eight_times_as_many_follow():
    plan = SampledPlan(None, QUERY, Settings(error=0.05), jobs=False)
    rates = {r: plan.enlarged(plan._of(0, r, 1), float("inf")).rate for r in (1 / 128, 1 / 32, 1 / 8, 0.2)}
    assert rates == {1 / 128: 1 / 16, 1 / 32: 1 / 4, 1 / 8: 1 / 4, 0.2: 1.0}
