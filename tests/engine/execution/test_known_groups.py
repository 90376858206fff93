"""The aggregates of a group from the sums of its terms."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

from support.questions import query
from support.schemas import schema, table

from skimql.engine.execution.known_groups import ABSOLUTE, JOINED, known_of

TABLES = schema(table("a", k="bigint", x="double", m="decimal(9,2)"))
ASKED = query("SUM(x), AVG(x), SUM(m), COUNT(*) FROM a", TABLES)


def row(mass):
    sums = {"s0_total_0": 8.0, "s1_total_0": 8.0, "s2_total_0": Decimal("0.30"), "s3_total_0": 4}
    present = {f"s{a}_presence_0": 4 for a in range(4)}
    return {**sums, **present, JOINED: 4, "s0_total_0" + ABSOLUTE: mass, "s1_total_0" + ABSOLUTE: mass}


def test_sums_of_doubles_have_the_reach_of_their_rounding_and_others_all_digits():
    total, mean, money, count = known_of(ASKED, row(1e15))
    assert total.high - 8 == 8 - total.low == 12 * 2.0**-52 * 1e15
    assert (mean.value, mean.high - mean.low) == (2.0, (total.high - total.low) / 4)
    assert (money.value, money.exact) == (Fraction(3, 10), True)
    assert (count.value, count.exact) == (4, True)


def test_a_group_that_joins_nothing_has_no_sums():
    total, mean, money, count = known_of(ASKED, None)
    assert all(math.isnan(e.value) for e in (total, mean, money))
    assert count.value == 0
