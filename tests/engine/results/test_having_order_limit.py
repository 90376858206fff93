"""HAVING, ORDER BY and LIMIT on intervals: what is called certain holds whatever the true values are."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skimql import Estimate, UnsupportedQuery
from skimql.engine.results import having_order_limit as decide
from skimql.engine.results.conditions import Truth, condition
from skimql.engine.results.expressions import Evaluator
from skimql.engine.results.having_order_limit import Row, show
from skimql.engine.results.scalars import compare, scalar_value
from skimql.optimizer.plan import Plan
from skimql.parser.expressions import Aggregated, Constant, Grouped, Operation
from skimql.parser.join_graph import JoinGraph, Order, Query, Span
from skimql.sketches.intervals.interval import exact

SPAN = Span(0, 0)
N, G = Aggregated(0), Grouped(0)


def estimate(low, value, high):
    """An estimate with its interval."""
    basis = "exact" if low == high else "theorem"
    return Estimate(value, low, high, 1.0 if low == high else 0.95, True, basis)


def query(having=None, order=(), limit=None, offset=0):
    """A query on one aggregate and one group column."""
    return Query("q", "q", (), JoinGraph((), ()), having=having, order=order, limit=limit, offset=offset)


def evaluator(asked, cell, group=None):
    """An evaluator of one group whose aggregate is `cell`."""
    return Evaluator(Plan(asked, 1, (), (), (), (), ()), None, 0.95, (group,), known=(cell,))


def rows_of(asked, cells):
    """The rows of groups with these aggregates."""
    rows = []
    for number, cell in enumerate(cells):
        made = evaluator(asked, cell, number)
        passes = condition(made, asked.having) if asked.having else Truth(True, frozenset((True,)))
        rows.append(Row(number, (cell,), passes, tuple(made.cell(o.expression) for o in asked.order)))
    return rows


def exactly(value):
    return estimate(value, value, value)


intervals = st.tuples(*[st.integers(-3, 5)] * 3).map(sorted)
asked_queries = st.builds(
    query,
    st.none()
    | st.builds(
        Operation,
        st.sampled_from(["<", "<=", ">", ">=", "=", "<>"]),
        st.builds(lambda c: (N, Constant(c)), st.integers(-2, 4)),
    ),
    st.lists(
        st.builds(Order, st.sampled_from([N, G]), st.booleans(), st.booleans(), st.just(SPAN)), max_size=2
    ).map(tuple),
    st.none() | st.integers(0, 3),
    st.integers(0, 2),
)


def broken_promises(asked, triples):
    """Rows called certain that some choice of true values inside the intervals leaves out."""
    shown = show(rows_of(asked, [estimate(*t) for t in triples]), asked)
    certain = [r.number for r, unsure in zip(shown.rows, shown.uncertain, strict=True) if not unsure]
    worlds = itertools.product(*({low, value, high} for low, value, high in triples))
    for truths in worlds:
        there = {r.number for r in show(rows_of(asked, [exactly(t) for t in truths]), asked).rows}
        if asked.order or (asked.limit is None and not asked.offset):
            yield from (n for n in certain if n not in there)


@given(asked_queries, st.lists(intervals, min_size=1, max_size=4))
def test_a_certain_row_is_in_the_answer_whatever_the_truth(asked, triples):
    assert not list(broken_promises(asked, triples))


def test_exact_rows_are_all_certain():
    asked = query(Operation(">", (N, Constant(1))), (Order(N, True, False, SPAN),), limit=2, offset=1)
    shown = show(rows_of(asked, [exactly(v) for v in (5, 1, 7, 3, 3)]), asked)
    assert [r.number for r in shown.rows] == [0, 3]
    assert shown.uncertain == (False, False)


def test_calling_everything_certain_is_seen(monkeypatch):
    asked = query(None, (Order(N, True, False, SPAN),), limit=1)
    triples = [(0, 2, 4), (1, 3, 5)]
    assert not list(broken_promises(asked, triples))
    monkeypatch.setattr(decide, "surely_within", lambda *_: True)
    assert list(broken_promises(asked, triples))


def test_a_threshold_inside_the_interval_is_uncertain_and_a_left_out_row_is_counted():
    asked = query(Operation(">=", (N, Constant(10))))
    shown = show(rows_of(asked, [estimate(9, 11, 13), estimate(7, 9, 10), estimate(10, 11, 12)]), asked)
    assert [r.number for r in shown.rows] == [0, 2]
    assert shown.uncertain == (True, False)
    assert shown.doubtful == 1


@pytest.mark.parametrize("descending", [True, False])
@pytest.mark.parametrize("nulls_first", [True, False])
def test_nulls_are_where_the_query_wants_them(descending, nulls_first):
    asked = query(None, (Order(N, descending, nulls_first, SPAN),), limit=3)
    shown = show(rows_of(asked, [exactly(1), exactly(math.nan), exactly(2)]), asked)
    assert [r.number for r in shown.rows].index(1) == (0 if nulls_first else 2)
    assert shown.uncertain == (False,) * 3


def test_logic_is_of_three_values():
    asked = query()
    unknown, yes, maybe = (
        Operation("<", (Constant(None), Constant(1))),
        Operation("<", (Constant(0), Constant(1))),
        Operation("<", (N, Constant(1))),
    )
    made = evaluator(asked, estimate(0, 0, 2))
    decided = {
        "null and maybe": (Operation("and", (unknown, maybe)), None, {None, False}),
        "null or yes": (Operation("or", (unknown, yes)), True, {True}),
        "not maybe": (Operation("not", (maybe,)), False, {True, False}),
        "is null": (Operation("is_null", (N,)), False, {True, False}),
        "group is null": (Operation("is_null", (G,)), True, {True}),
    }
    for name, (expression, value, possible) in decided.items():
        truth = condition(made, expression)
        assert (truth.value, truth.possible) == (value, possible), name


def test_no_number_beside_an_estimate_and_no_cast_of_a_group_is_guessed():
    made = evaluator(query(), estimate(0, 1, 2), "7")
    for expression in (
        Operation(">", (N, Constant("x"))),
        Operation(">", (G, Constant(3))),
        Operation(">", (Operation("+", (N, G)), Constant(3))),
        N,
    ):
        with pytest.raises(UnsupportedQuery):
            condition(made, expression)
    with pytest.raises(UnsupportedQuery):
        scalar_value(Operation("+", (G, Constant(1))), ("7",), "q")
    with pytest.raises(UnsupportedQuery):
        scalar_value(Operation("*", (G, Constant(2))), (2**62,), "q")
    assert scalar_value(Operation("neg", (Operation("*", (G, Constant(2))),)), (3,), "q") == -6


def test_plain_values_compare_as_spark_compares_them():
    from decimal import Decimal

    assert compare(math.nan, math.inf, "q") == 1
    assert compare(math.nan, math.nan, "q") == 0
    assert compare(Decimal("0.10"), 0.1, "q") == 0
    assert compare(2, 2.5, "q") == -1
    with pytest.raises(UnsupportedQuery):
        compare({"a": 1}, {"a": 2}, "q")


@given(st.lists(intervals, min_size=1, max_size=7), st.integers(0, 3), st.integers(0, 2), st.booleans())
def test_a_row_is_at_the_edge_of_limit_where_its_place_is_not_certain(cells, limit, offset, descending):
    asked = query(order=(Order(N, descending, not descending, SPAN),), limit=limit, offset=offset)
    rows = rows_of(asked, [estimate(*c) for c in cells])
    found = decide.edge(rows, asked)
    for row in rows:
        others = [r.cells[0] for r in rows if r is not row]
        own = row.cells[0]
        before = [(-c.high, -c.low) if descending else (c.low, c.high) for c in others]
        low, high = (-own.high, -own.low) if descending else (own.low, own.high)
        least, most = sum(h < low for _, h in before), sum(o <= high for o, _ in before)
        within = least >= offset and most < offset + limit
        without = most < offset or least >= offset + limit
        assert (row.number in found) == (not within and not without)


def test_without_an_estimate_that_is_ordered_by_no_row_is_at_the_edge():
    rows = rows_of(query(order=(Order(G, False, True, SPAN),), limit=1), [estimate(0, 1, 2)] * 3)
    assert decide.edge(rows, query(order=(Order(G, False, True, SPAN),), limit=1)) == frozenset()
    asked = query(order=(Order(N, True, False, SPAN),), limit=1)
    unknown = Estimate(math.nan, -math.inf, math.inf, 0.95, False, "measured")
    rows = rows_of(asked, [exactly(5), unknown, exact(math.nan), exactly(3)])
    assert decide.edge(rows, asked) == {0, 1}
