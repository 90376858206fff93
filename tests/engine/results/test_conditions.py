"""Conditions on estimates as values: true or false where every value of the intervals says so, else open."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skimql import Estimate, Settings
from skimql.engine.memory_backend.backend import MemoryBackend
from skimql.engine.memory_backend.run import MemoryRun
from skimql.engine.memory_backend.tables import MemoryTables
from skimql.engine.results.conditions import OPEN, item_cell
from skimql.engine.results.expressions import Evaluator
from skimql.optimizer.plan import Plan
from skimql.parser.expressions import Aggregated, Constant, Operation
from skimql.parser.join_graph import JoinGraph, Query
from skimql.sketches.intervals.interval import exact

ASKED = Query("q", "q", (), JoinGraph((), ()))
PLAN = Plan(ASKED, 1, (), (), (), (), ())


def value_of(expression, cells, confidence=0.95):
    """The cell of an item whose aggregates are `cells`."""
    evaluator = Evaluator(PLAN, None, confidence, (), known=cells)
    return item_cell(evaluator, expression)


def estimate(ends, certified=True):
    low, value, high = ends
    return Estimate(value, low, high, 0.95, certified, "theorem")


comparisons = st.builds(
    Operation,
    st.sampled_from(["<", "<=", ">", ">=", "=", "<>"]),
    st.tuples(st.builds(Aggregated, st.integers(0, 1)), st.builds(Constant, st.integers(-2, 4))),
)
expressions = st.recursive(
    comparisons,
    lambda inner: (
        st.builds(lambda o, a, b: Operation(o, (a, b)), st.sampled_from(["and", "or"]), inner, inner)
        | st.builds(lambda a: Operation("not", (a,)), inner)
    ),
    max_leaves=3,
)
intervals = st.tuples(*[st.integers(-3, 5)] * 3).map(sorted)


@given(expressions, intervals, intervals)
def test_what_is_called_true_or_false_is_so_for_all_values_of_the_intervals(expression, one, two):
    found = value_of(expression, (estimate(one), estimate(two)))
    truths = {
        value_of(expression, (exact(a), exact(b))).value for a, b in itertools.product(set(one), set(two))
    }
    assert (found.low, found.high) in ((0.0, 0.0), (1.0, 1.0), (0.0, 1.0))
    assert all(found.low <= t <= found.high for t in truths)
    assert math.isnan(found.value) == (found.low < found.high)
    assert (OPEN in found.notes) == math.isnan(found.value)


def test_it_is_as_certain_as_what_it_compares():
    large = Operation(">", (Aggregated(0), Constant(3)))
    sure, unsure = estimate((5, 6, 7)), estimate((5, 6, 7), certified=False)
    assert value_of(large, (sure,)).certified
    assert not value_of(large, (unsure,)).certified
    assert value_of(large, (exact(4),)).exact


@dataclass(frozen=True)
class Wider:
    """Stands for an evaluator: what it estimates is wider where more confidence is asked."""

    confidence: float
    sql: str = "q"
    plan: Plan = PLAN

    def cell(self, expression):
        if isinstance(expression, Constant):
            return expression.value
        return (
            Estimate(10.0, 9.0, 11.0, 0.95, True, "theorem")
            if self.confidence <= 0.95
            else estimate((7, 10, 13))
        )


def test_all_that_is_compared_lies_in_its_interval_at_once():
    one = Operation(">", (Aggregated(0), Constant(8)))
    other = Operation(">", (Aggregated(1), Constant(8)))
    assert item_cell(Wider(0.95), one).value == 1.0
    assert item_cell(Wider(0.95), Operation("and", (one, one))).value == 1.0, (
        "of one estimate nothing is added"
    )
    both = item_cell(Wider(0.95), Operation("and", (one, other)))
    assert math.isnan(both.value)
    assert both.confidence == 0.95


TABLES = MemoryTables(
    {
        "a": pa.table({"k": [i % 700 for i in range(4000)], "x": list(range(4000))}),
        "b": pa.table({"k": [i % 700 for i in range(3000)]}),
    }
)


@pytest.mark.parametrize("way", ["USING hash OPTIONS (buckets = 128, sparse = false)", "USING key_sample SIZE 2 KB", "EXACT"])  # fmt: skip
def test_an_item_may_be_a_condition(way):
    items = "COUNT(*) > 9 AS more, SUM(x) < 0 AS less, COUNT(*) > 17143 AND AVG(x) > 1 AS open, COUNT(*) AS n"
    text = f"SELECT APPROXIMATE {items} FROM a JOIN b ON a.k = b.k"
    run = MemoryRun.of(
        f"{text} {'' if way == 'EXACT' else way}", MemoryBackend(TABLES), Settings(seed=2, error=None)
    )
    (row,) = (run.exact() if way == "EXACT" else run.answer()).arrow().to_pylist()
    n = 4000 * 3000 / 700
    assert (row["more"], row["less"]) == (True, False)
    assert row["open"] is (True if way == "EXACT" else None)
    assert abs(row["n"] - n) < n
