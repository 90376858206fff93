"""Choosing how to count distinct tuples."""

import numpy as np
import pytest
from support.statistics import counted, exact_relation, one_class

from skimql.optimizer.candidates import NoMethod, Objective
from skimql.optimizer.choose_distinct import choose_distinct
from skimql.optimizer.messages import JoinTree

ALONE = JoinTree(1, ())


def test_one_table_takes_a_level_sketch_of_its_error():
    choice = choose_distinct(ALONE, [counted(1e9)], "single", Objective(size_bytes=1 << 20))
    assert choice.taken.method == "level_sketch"
    assert choice.taken.error == pytest.approx(0.479 / np.sqrt(choice.taken.buckets), rel=1e-3)
    assert choice.taken.nbytes <= 1 << 20


def test_a_target_sizes_the_level_sketch():
    choice = choose_distinct(ALONE, [counted(1e9)], "single", Objective(relative_error=0.05))
    assert choice.taken.method == "level_sketch"
    assert 0.04 < choice.taken.half_width(0.95) <= 0.05


# Distinct degrees d: the variance of a sample is (1 - p) / p * sum(d^2) where every key has a partner.
def test_one_sided_projections_sample_the_join_key():
    degrees = np.random.default_rng(1).geometric(0.2, 5000)
    tables = [exact_relation(degrees), exact_relation(np.full(5000, 3))]
    choice = choose_distinct(one_class(2), tables, "one_sided", Objective(size_bytes=32_000))
    p = 1000 / 5000
    expected = np.sqrt((1 - p) / p * np.sum(degrees**2.0)) / degrees.sum()
    assert choice.taken.method == "join_distinct"
    assert choice.taken.error == pytest.approx(expected, rel=1e-6)


def test_full_projections_multiply_the_degrees():
    degrees = np.random.default_rng(1).geometric(0.2, 5000)
    tables = [exact_relation(degrees), exact_relation(np.full(5000, 3))]
    choice = choose_distinct(one_class(2), tables, "full", Objective(size_bytes=32_000))
    assert choice.taken.predicted.answer == 3 * degrees.sum()


def test_two_sided_errors_fall_with_the_root_of_the_space():
    tables = [counted(1e6, 1e5), counted(1e6, 1e5)]
    errors = [
        choose_distinct(one_class(2), tables, "two_sided", Objective(size_bytes=size)).taken.error
        for size in (100_000, 400_000)
    ]
    assert errors[0] == pytest.approx(2 * errors[1])


def test_distinct_tuples_of_three_tables_are_refused():
    with pytest.raises(NoMethod, match="a join of two"):
        choose_distinct(one_class(3), [counted(1e6, 1e5)] * 3, "full", Objective(size_bytes=100_000))
