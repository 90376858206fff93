"""The rows of an exact run, with how far rounding may have moved sums of doubles in them."""

from __future__ import annotations

import math

import pytest
from support.questions import query
from support.schemas import schema, table

from skimql.engine.results.answer import Answer
from skimql.engine.results.rounding import UNTOLD, untold, with_rounding
from skimql.parser.absolutes import UNIT

TABLES = schema(table("a", k="bigint", x="double"))
ASKED = query("k, SUM(x), AVG(x), SUM(x) - SUM(x * x), SUM(x) * k FROM a GROUP BY k", TABLES)


def exact_row(sums, value=10.0, k=3):
    answer = Answer(("k", "s", "a", "d", "t"), ((k, value, value / 4, 4.0, value * k),), exact=True)
    return with_rounding(answer, ASKED, [sums], frozenset())


def sums_of(mass, value=10.0, other=6.0):
    told = (mass * UNIT, 4)
    return {0: (value, *told), 1: (value / 4, *told), 2: (other, *told)}


def test_what_rounding_does_not_show_is_as_spark_gives_it():
    assert exact_row(sums_of(20.0)).rows == ((3, 10.0, 2.5, 4.0, 30.0),)
    assert exact_row(sums_of(20.0)).notes == ()


def test_what_cancels_has_an_interval_in_everything_that_is_computed_from_it():
    ((k, total, mean, less, times),) = exact_row(sums_of(1e15)).rows
    assert k == 3
    assert total.low < 10 < total.high
    assert total.high - total.low == pytest.approx(2 * (4 + 8) * 2.0**-52 * 1e15)
    assert mean.high - mean.low == pytest.approx((total.high - total.low) / 4)
    assert less.high - less.low == pytest.approx(2 * (total.high - total.low))
    assert times.high - times.low == pytest.approx(3 * (total.high - total.low))
    assert (less.value, times.value, total.certified) == (4.0, 30.0, True)


def test_infinities_among_the_values_decide_and_those_of_adding_are_no_values():
    (row,) = exact_row(
        {0: (math.inf, math.inf, 4), 1: (math.inf, math.inf, 4), 2: (6.0, 1.0, 4)}, math.inf
    ).rows
    assert row[1] == math.inf
    (row,) = exact_row(sums_of(1e308, math.inf), math.inf).rows
    assert math.isnan(row[1].value)
    assert (row[1].low, row[1].high, row[1].certified) == (-math.inf, math.inf, False)


def test_nulls_stay_nulls():
    answer = Answer(("k", "s", "a", "d", "t"), ((3, None, None, None, None),), exact=True)
    nothing = {0: (None, None, 0), 1: (None, None, 0), 2: (None, None, 0)}
    assert with_rounding(answer, ASKED, [nothing], frozenset()).rows == answer.rows


def test_what_nothing_tells_is_not_certified():
    found = untold(Answer(("k", "s", "a", "d", "t"), ((3, 10.0, 2.5, None, math.inf),), exact=True), ASKED)
    k, total, mean, less, times = found.rows[0]
    assert (k, less, times) == (3, None, math.inf)
    assert not total.certified
    assert not mean.certified
    assert found.notes == (UNTOLD,)
