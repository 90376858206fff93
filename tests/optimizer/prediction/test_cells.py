"""The keys of a join class as cells."""

import math
from dataclasses import replace

import numpy as np
import pytest
from support.column_figures import exact_relation, figures_of, one_class

from skimql.optimizer.prediction.cells import _of_each
from skimql.optimizer.prediction.relation import (
    Attribute,
    AttributeStatistics,
    RelationStatistics,
    RowSample,
)
from skimql.sketches.samples.two_level_plan import Candidates


def test_cells_of_known_keys_give_the_moments_of_the_join():
    a, b = np.array([5, 3, 0, 2]), np.array([1, 4, 7, 0])
    cells = figures_of(one_class(2), [exact_relation(a), exact_relation(b)]).cells(0)
    assert cells.total(cells.products) == pytest.approx(float(a @ b))
    assert cells.total(cells.products**2) == pytest.approx(float((a * b) @ (a * b)))


def test_keys_that_a_table_does_not_have_add_nothing():
    cells = figures_of(one_class(2), [exact_relation([1, 0]), exact_relation([0, 1])]).cells(0)
    assert cells.total(cells.products) == 0


def seen_of(tuples, share, rng):
    """An attribute of which the heavy keys are listed, and what a sample of the tuples has met of all."""
    drawn = rng.binomial(tuples, share)
    listed = np.flatnonzero(drawn >= 8)
    heavy = Candidates(listed, np.rint(drawn[listed] / share).astype(np.int64), math.inf)
    met = np.flatnonzero(drawn)
    rows = RowSample(met, drawn[met], share)
    statistics = AttributeStatistics(float(np.count_nonzero(tuples)), heavy=heavy, rows=rows)
    return RelationStatistics(float(tuples.sum()), (statistics,), source="pilot")


@pytest.mark.parametrize("theirs", [0, 1, 4, 30])
def test_keys_that_are_heavy_elsewhere_weigh_here_what_a_sample_of_the_tuples_says_of_them(theirs):
    """Forty heavy keys of one table, in a table of two tuples a key otherwise; by containment each would have two."""
    rng = np.random.default_rng(8)
    mine, other = np.ones(20_000, np.int64), np.full(20_000, 2)
    mine[:40], other[:40] = 2_000, theirs
    known = figures_of(one_class(2), [seen_of(mine, 1 / 16, rng), seen_of(other, 1 / 16, rng)]).cells(0)
    found = known.counts[known.heavy] @ known.products[known.heavy]
    # A Poisson number of tuples is met of all forty together: four standard deviations, and the half tuple that is added.
    met = 40 * theirs / 16
    assert found / 2_000 == pytest.approx(40 * theirs, abs=16 * (4 * math.sqrt(met) + 0.5) + 1)
    assert np.all(known.counts > 0.0)


def test_a_key_that_was_met_is_there_and_of_more_tuples_than_one_that_was_not():
    rows = RowSample(np.array([2, 5]), np.array([3, 1]), 0.1)
    attribute = Attribute(
        100.0, 1e4, Candidates(np.array([9]), np.array([80]), math.inf), None, None, 1.0, rows
    )
    assert rows.counted(np.array([1, 2, 5, 7])).tolist() == [0, 3, 1, 0]
    chances, sizes = _of_each(attribute, np.array([1, 2, 5]), 0.5, 4.0)
    mean = 4.5 / (0.1 * 3)
    assert (chances * sizes).tolist() == pytest.approx([n / (1 / mean + 0.1) for n in (1.0, 4.0, 2.0)])
    assert chances.tolist() == [0.5, 1.0, 1.0]
    without = replace(attribute, rows=None)
    assert [c.tolist() for c in _of_each(without, np.array([1, 2]), 0.5, 4.0)] == [[0.5, 0.5], [4.0, 4.0]]
