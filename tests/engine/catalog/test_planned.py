"""The plans that a catalog keeps of a workload."""

import copy

import pytest

from skimql.engine.catalog.planned import check_plans, made_of

PLANS = {
    "stages": "",
    "gathered_at": None,
    "queries": [
        {"question": "q", "edges": [[0, 1, 0, 0, "k"]], "aggregates": [["count", "n", [[1.0, [0, 1]]], []]]}
    ],
}


def test_plans_over_the_sketches_there_are_pass():
    assert check_plans(PLANS, 2) == PLANS


@pytest.mark.parametrize("spoil", [{"stages": 1}, {"gathered_at": -1}, {"queries": [{}]}, {"queries": [7]}])
def test_others_are_refused(spoil):
    with pytest.raises((ValueError, KeyError)):
        check_plans(copy.deepcopy(PLANS) | spoil, 2)
    with pytest.raises(ValueError):
        check_plans(PLANS, 1)


def test_another_order_of_files_is_another_workload():
    assert made_of(["a", "b"]) != made_of(["b", "a"])
