"""Averages of sampled keys lie within what their values lie between."""

import pytest
from support.drawn_values import TWO, estimates

# Each AVG with between what its values lie that count, by the tables.
CASES = {
    "AVG(r.x)": (1, 999),
    "AVG(s.y)": (-99, 99),
    "AVG(-r.x)": (-999, -1),
    "AVG(r.x + 10)": (11, 1009),
    "AVG(r.x - s.y)": (1 - 99, 999 + 99),
    "AVG(r.x * s.y)": (-99 * 999, 99 * 999),
    "AVG(CASE WHEN r.g = 1 THEN r.x END)": (1, 999),
    "AVG(coalesce(r.x, 2000))": (1, 2000),
    "AVG(r.x) FILTER (WHERE s.y > 90)": (1, 999),
}
# What is not known to lie within its values, and the largest of these: of a function, and where NULLs count.
UNBOUNDED = {"AVG(sqrt(r.x))": 32, "SUM(r.x) / COUNT(*)": 999}


@pytest.mark.parametrize("item", CASES)
def test_no_average_is_outside_of_what_its_values_lie_between(item):
    lows, highs = [], []
    for seed in range(3):
        cells, _ = estimates(f"{item} {TWO}", (), seed)
        ((cell,),) = cells.values()
        lows, highs = [*lows, cell.low], [*highs, cell.high]
        assert cell.low <= cell.value <= cell.high
    # So few keys tell nothing more than that.
    assert (min(lows), max(highs)) == pytest.approx(CASES[item], rel=1e-8)


@pytest.mark.parametrize("item", UNBOUNDED)
def test_a_ratio_of_which_nothing_is_certain_may_be_anything(item):
    highs = [estimates(f"{item} {TWO}", (), seed)[0][()][0].high for seed in range(3)]
    assert max(highs) > UNBOUNDED[item]


def test_decimals_and_tables_beyond_bound_an_average_too():
    cells, _ = estimates("AVG(q.x) FROM q JOIN s ON q.k = s.k JOIN c ON q.l = c.l", (), 1)
    ((cell,),) = cells.values()
    assert (cell.low, cell.high) == pytest.approx((1, 999), rel=1e-8)
