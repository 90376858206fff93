"""One call for a sketch of named keys."""

import pytest

from skimql.sketches import Edge, join_estimate
from skimql.sketches.start import (
    make_agms_sketch,
    make_convolution_sketch,
    make_exact_first,
    make_hash_sketch,
    make_key_sample,
    make_level_sketch,
)


@pytest.mark.parametrize(
    "make",
    [
        make_hash_sketch,
        lambda key, seed: make_exact_first(make_hash_sketch(key, seed=seed).spec),
        make_agms_sketch,
    ],
)
def test_sketches_of_one_key_and_seed_belong_together(make):
    one, other = make("user", seed=7), make("user", seed=7)
    one.update([1, 2, 2])
    other.update([2, 3])
    assert join_estimate([one, other], [Edge(0, 1)]).value == pytest.approx(2, abs=1)


def test_a_convolution_stands_between_its_keys():
    assert len(make_convolution_sketch(["a", "b"], seed=1).spec.families) == 2


def test_counts_and_samples_start_empty_and_exact():
    level, sample = make_level_sketch(seed=1), make_key_sample(seed=1)
    level.update([1, 2, 2])
    assert level.estimate().value == 2
    assert sample.spec.capacity == 1024
