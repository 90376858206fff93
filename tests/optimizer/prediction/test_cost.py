"""CPU seconds of a candidate: more of anything costs no less."""

import pytest
from support.statistics import counted

from skimql.optimizer.prediction import cost
from skimql.optimizer.prediction.relation import complete

SMALL, LARGE = (complete(counted(n, n / 10), 1) for n in (1e5, 1e8))


def test_parts_add_up():
    both = cost.scans([SMALL]).plus(cost.scans([LARGE]))
    assert both.seconds == pytest.approx(cost.scans([SMALL, LARGE]).seconds, rel=0.5)
    assert both.seconds == pytest.approx(sum(seconds for _, seconds in both.parts) or both.seconds)


@pytest.mark.parametrize(
    "of",
    [
        lambda r: cost.scans([r]),
        lambda r: cost.message(r, 1000, 0),
        lambda r: cost.received(r, 1),
        lambda r: cost.sample([r, r], 0.01, 0),
        lambda r: cost.sketches([r, r], [1, 1], "hash", 0),
        lambda r: cost.exact_join([r, r], 1e5),
    ],
)
def test_larger_tables_cost_more(of):
    assert of(LARGE).seconds > of(SMALL).seconds


def test_an_exact_join_costs_what_it_puts_out():
    assert cost.exact_join([SMALL, SMALL], 1e10).seconds > 10 * cost.exact_join([SMALL, SMALL], 1e5).seconds
