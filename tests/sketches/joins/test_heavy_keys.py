"""The keys that stand most often in a batch."""

from __future__ import annotations

import numpy as np

from skimql.sketches.joins.heavy_keys import HeavyKeys, HeavyKeysSpec


def test_frequent_keys_are_found_whatever_the_parts():
    random = np.random.default_rng(1)
    keys = np.concatenate([np.repeat([5, -7, 1 << 60], 4_000), np.arange(100_000)])
    random.shuffle(keys)
    whole = HeavyKeys(HeavyKeysSpec(3))
    for start in range(0, len(keys), 20_000):
        part = HeavyKeys(HeavyKeysSpec(3))
        part.update(keys[start : start + 20_000])
        whole.merge(HeavyKeys.from_state(part.spec, part.state()))
    assert whole.keys.tolist() == [-7, 5, 1 << 60]
    assert whole.nbytes <= 3 * 4 * 16


def test_of_keys_that_stand_once_none_is_kept():
    flat = HeavyKeys(HeavyKeysSpec(3))
    flat.update(np.arange(1 << 21))
    assert flat.keys.tolist() == []
