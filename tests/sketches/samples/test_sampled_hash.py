"""The hashes of samples: as many as the rate says, others for each class and draw."""

import numpy as np
import pytest

from skimql.sketches.samples.sampled_hash import HASH_BITS, draw_family, sample_family, seed_text

KEYS = np.arange(20_000, dtype=np.int64)


def kept(family, rate):
    return family.values(KEYS, 1, HASH_BITS)[0] < np.uint64(round(rate * (1 << HASH_BITS)))


@pytest.mark.parametrize("rate", [0.5, 0.1, 0.01])
def test_a_rate_keeps_so_many_of_the_keys(rate):
    found = kept(sample_family(3, "k"), rate).mean()
    assert found == pytest.approx(rate, abs=4 * (rate * (1 - rate) / KEYS.size) ** 0.5)


def test_classes_seeds_and_draws_keep_others():
    one, *others = (
        sample_family(3, "k"),
        sample_family(4, "k"),
        sample_family(3, "l"),
        draw_family(3, "k", 0),
    )
    same = kept(one, 0.1)
    for other in (*others, draw_family(3, "k", 1)):
        both = (same & kept(other, 0.1)).mean()
        assert both == pytest.approx(0.01, abs=4 * (0.01 / KEYS.size) ** 0.5)
    assert (kept(sample_family(3, "k"), 0.1) == same).all()


def test_a_seed_is_eight_letters_which_any_text_may_hold():
    assert seed_text(sample_family(3, "k")).isalnum()
    assert len(seed_text(draw_family(2**63, "c", 7))) == 8
