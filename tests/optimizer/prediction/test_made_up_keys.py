"""Keys made up by cells have the moments of their cells, whatever their number."""

import math

import numpy as np
import pytest

from skimql.optimizer.prediction.figures import PerTuple
from skimql.optimizer.prediction.made_up_keys import (
    Keys,
    Values,
    combined_mean,
    heaviest_beyond,
    heaviest_of,
    received,
)

RNG = np.random.default_rng(41)


def keys(counts, tuples, squares):
    many = len(counts)
    return Keys(
        np.array(counts, float),
        np.array([tuples], float),
        np.array([squares], float),
        (PerTuple(),),
        np.zeros(many, bool),
    )


@pytest.mark.parametrize(("mean", "square"), [(1.0, 1.0), (5.0, 30.0), (40.0, 1600.0), (40.0, 4000.0)])
def test_tuples_have_the_moments_of_their_cell(mean, square):
    found = keys([1e5], [mean], [square]).sampled(lambda t: np.full(t.shape[1], 0.02), RNG)
    assert np.average(found.tuples[0], weights=found.times) == pytest.approx(mean, rel=0.1)
    assert np.average(found.tuples[0] ** 2.0, weights=found.times) == pytest.approx(square, rel=0.25)
    assert found.times.sum() == pytest.approx(2000, rel=0.1)


def test_a_key_that_may_not_be_there_is_there_as_often_as_its_count_says():
    one = keys([0.25], [1e4], [1e8])
    there = [
        one.sampled(lambda t: np.ones(t.shape[1]), np.random.default_rng(n)).times.sum() for n in range(400)
    ]
    assert np.mean(there) == pytest.approx(0.25, abs=0.07)


def test_a_group_has_its_part_of_the_tuples_and_not_of_the_keys():
    whole = keys([1000.0], [8.0], [72.0])
    part = whole.shares(0, 4.0)
    assert part.tuples[0, 0] == 2.0
    # Binomial of the tuples: variance of the mean number, and that of the number itself.
    assert part.squares[0, 0] == pytest.approx(8 * 0.25 * 0.75 + 72 / 16)


def test_a_key_of_a_group_is_sampled_by_all_of_its_tuples():
    part = keys([50.0], [100.0], [1e4]).shares(0, 2.0).shares(0, 5.0)
    assert part.beside[0, 0] == pytest.approx(90.0)
    found = part.sampled(lambda t: np.where(t[0] >= 40, 1.0, 0.01), RNG)
    assert found.probabilities.tolist() == [1.0] * found.times.sum()
    assert found.tuples[0].mean() == pytest.approx(10.0, rel=0.2)


@pytest.mark.parametrize("tuples", [3, 500])
def test_sums_are_of_the_values_looked_at_and_null_adds_nothing(tuples):
    values = Values(np.r_[RNG.normal(10.0, 2.0, 300), np.full(100, np.nan)])
    sums, present = values.added(np.full(4000, tuples), RNG)
    assert sums.mean() == pytest.approx(7.5 * tuples, rel=0.05)
    assert present.mean() == pytest.approx(0.75 * tuples, rel=0.05)
    assert np.corrcoef(sums, present)[0, 1] > 0.5


def test_what_few_tuples_receive_keeps_both_moments():
    taking, each = received(np.full(20_000, 50), PerTuple(0.5, 10.0, 400.0), RNG)
    assert (taking * each).mean() == pytest.approx(25.0, rel=0.05)
    assert (taking * each**2).mean() == pytest.approx(500.0, rel=0.05)


def test_the_heaviest_of_many_keys_has_what_chance_gives_it():
    seen = [np.bincount(RNG.integers(0, 10_000, 30_000)).max() for _ in range(20)]
    assert heaviest_of(10_000, 30_000) == pytest.approx(np.median(seen), abs=1.5)
    assert heaviest_of(10_000, 9_000) == 1.0
    # A filter leaves several tuples to some of those that have more than one.
    assert heaviest_of(10_000, 40_000, 0.01) == pytest.approx(2.5, abs=0.5)
    assert heaviest_of(10_000, 10_000, 0.01) == 1.0


def test_one_value_that_nobody_has_looked_at_may_make_the_spread():
    seen = np.ones(1000)
    assert Values(seen, 0.0, 100.0).is_spread
    assert not Values(seen, 0.0, 1000.0).is_spread
    assert Values(seen, 0.0, math.inf).is_spread


@pytest.mark.parametrize(("mean", "square"), [(0.4, 0.4), (0.4, 0.56), (0.9, 1.71), (0.05, 0.0525)])
def test_keys_of_less_than_one_tuple_may_have_two(mean, square):
    """Of a group: had each that is there one tuple, its sum would vary by too little."""
    found = keys([1e6], [mean], [square])
    seen = found.sampled(lambda t: np.full(t.shape[1], 0.1), RNG)
    for power, moment in ((1, mean), (2, square)):
        total = float(seen.times @ (seen.tuples[0] ** power)) / 0.1
        assert total == pytest.approx(1e6 * moment, rel=0.1)
    assert found.joining == pytest.approx(1e6 * found.present[0])
    assert mean / 2 < found.present[0, 0] <= mean


def test_the_heaviest_of_all_keys_is_told_by_the_heaviest_of_some():
    met, most = [], []
    for _ in range(40):
        tuples = RNG.poisson(2.0, 10_000).astype(float)
        some = tuples[RNG.random(tuples.size) < 1 / 16]
        met.append(some.max())
        most.append(heaviest_beyond(some, np.full(some.size, 16.0)) - tuples.max())
    assert np.mean(most) == pytest.approx(0.0, abs=0.75), "those that have been met are two tuples short"
    assert np.mean(met) < 8.5 < 9.0
    assert heaviest_beyond(np.ones(50), np.full(50, 16.0)) == 1.0
    assert heaviest_beyond(np.arange(50.0), np.ones(50)) == 49.0
    assert heaviest_beyond(np.arange(5.0), np.full(5, 16.0)) == 4.0
    assert heaviest_beyond(np.empty(0), np.empty(0)) == 0.0


def test_terms_that_cancel_have_a_mean_that_may_be_off_by_more_than_it():
    rng = np.random.default_rng(9)
    one, other = (Values(np.r_[rng.lognormal(0, 1, 400), np.nan]) for _ in range(2))
    half = Values(np.array([0.0, 1.0] * 200))
    sizes = [np.nan_to_num(v.seen) for v in (one, other)]
    mean, error = combined_mean([(1.0, [one]), (-1.0, [other])])
    assert mean == pytest.approx(sizes[0].mean() - sizes[1].mean())
    assert error == pytest.approx(4 * np.sqrt(sum(s.var() / s.size for s in sizes)))
    assert error > abs(mean)
    mean, error = combined_mean([(2.0, [one, half]), (1.0, [other])])
    assert mean == pytest.approx(sizes[0].mean() + sizes[1].mean())
    off = (
        (2 * 0.5) ** 2 * sizes[0].var() / 401 + (2 * sizes[0].mean()) ** 2 * 0.25 / 400 + sizes[1].var() / 401
    )
    assert error == pytest.approx(4 * np.sqrt(off))
    assert error < mean
