"""The hashes of samples: as many as the rate says, others for each class and draw."""

import numpy as np
import pytest

from skimql.sketches.samples.sampled_hash import HASH_BITS, draw_family, sample_family, seed_text

KEYS = np.arange(20_000, dtype=np.int64)

# What real keys look like: numbers in order, steps, high bits alone, differences in few bits, both signs.
KINDS = {
    "in order": KEYS,
    "negative": -KEYS,
    "even": 2 * KEYS,
    "thousands": 1000 * KEYS,
    "high bits": KEYS << np.int64(40),
    "dates and numbers": (20_240_000 + KEYS % 365) * 1_000_000 + KEYS // 365,
    "doubles": KEYS.astype(np.float64).view(np.int64),
}


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


@pytest.mark.parametrize("kind", KINDS)
def test_any_kind_of_keys_is_sampled_as_by_chance(kind):
    """Shares, pairs of neighbours, buckets of sixteen bits and two seeds: within five standard deviations."""
    keys = KINDS[kind]
    for seed in (0, 1, 7, 2**62 + 1, 2**63 - 1):
        words = sample_family(seed, "k").values(keys, 1, HASH_BITS)[0]
        drawn = words < np.uint64(round(0.1 * (1 << HASH_BITS)))
        other = sample_family(seed ^ 1, "k").values(keys, 1, HASH_BITS)[0] < np.uint64(
            round(0.1 * (1 << HASH_BITS))
        )
        pairs = drawn[1:] & drawn[:-1]
        for found, share in ((drawn, 0.1), (pairs, 0.01), (drawn & other, 0.01)):
            assert abs(found.mean() - share) < 5 * (share * (1 - share) / len(found)) ** 0.5, seed
        for shift in (0, HASH_BITS - 8):
            counts = np.bincount((words >> np.uint64(shift) & np.uint64(255)).astype(int), minlength=256)
            chi = float(((counts - len(keys) / 256) ** 2).sum() / (len(keys) / 256))
            assert abs(chi - 255) < 6 * (2 * 255) ** 0.5, (seed, shift)


def test_every_bit_of_a_key_moves_half_of_the_bits_of_its_hash():
    family = sample_family(12345, "k")
    words = family.values(KEYS[:2000], 1, HASH_BITS)[0]
    for bit in range(64):
        flipped = family.values(KEYS[:2000] ^ np.uint64(1 << bit).view(np.int64), 1, HASH_BITS)[0]
        moved = np.unpackbits((words ^ flipped).view(np.uint8)).sum() / (2000 * HASH_BITS)
        assert abs(moved - 0.5) < 0.02, bit


def test_a_weaker_hash_is_told():
    """What the tests above are worth: a product alone keeps the order of the low bits."""
    counts = np.bincount(
        (KEYS.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) & np.uint64(255)).astype(int)
    )
    assert abs(float(((counts - 78.125) ** 2).sum() / 78.125) - 255) > 6 * (2 * 255) ** 0.5
