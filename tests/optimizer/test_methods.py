"""The registry of methods: what one can follows from what another says of it."""

import pytest

from skimql.optimizer.methods import (
    ANSWERED,
    CANDIDATES,
    CHOSEN,
    DISTINCT,
    METHODS,
    NAMED,
    STORED,
    counts_distinct,
    is_linear,
)
from skimql.parser.join_graph import FEATURES


def test_every_method_is_under_its_own_name_and_says_what_it_is():
    assert all(name == method.name and method.what for name, method in METHODS.items())


def test_what_the_planner_takes_of_itself_it_weighs():
    assert set(CHOSEN) < set(CANDIDATES)
    assert {"hash", "exact_run"} <= set(CHOSEN)
    assert "skimmed" not in CHOSEN


def test_what_statistics_size_is_a_candidate():
    sized = {n for n, m in METHODS.items() if m.error == "planned"}
    assert sized <= set(CANDIDATES)
    assert {"hash", "agms", "key_sample"} <= sized
    assert "total" not in sized


def test_every_stored_method_but_the_total_can_be_asked_for():
    assert set(STORED) - set(NAMED) == {"total"}


@pytest.mark.parametrize(
    ("name", "distinct", "linear"),
    [("distinct", True, False), ("level", True, False), ("hash", False, True), ("constant", False, False)],
)
def test_what_a_method_counts_and_how(name, distinct, linear):
    assert (counts_distinct(name), is_linear(name)) == (distinct, linear)


def test_what_needs_python_workers_alone_names_no_other_route():
    workers = {n for n, m in METHODS.items() if m.routes == {"arrow"}}
    assert workers == {"agms", "distinct", "join_distinct", "level", "pairs", "sample_sketch"}
    assert all(m.routes for m in METHODS.values())


def test_what_is_answered_is_part_of_the_language():
    assert set(FEATURES) >= ANSWERED >= DISTINCT
    assert set(FEATURES) - ANSWERED == {"cyclic join", "cross product"}
