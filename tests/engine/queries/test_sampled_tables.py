"""What some tuples of a table tell before a sample of keys is drawn."""

from __future__ import annotations

import numpy as np
import pytest

from skimql.engine.queries.sampled_tables import MOST_DENSE, heavy_keys
from skimql.optimizer.prediction.first_class import SeenKeys


def dense(keys):
    """The keys that are there far more often than others, of tuples with these."""
    return dict(heavy_keys(SeenKeys.of(np.asarray(keys), len(keys))))


def test_a_key_is_dense_that_is_far_from_the_others():
    rng = np.random.default_rng(2)
    flat = rng.integers(0, 5000, 10_000)
    assert dense(flat) == {}
    assert dense(rng.integers(0, 20, 10_000)) == {}
    assert dense(np.where(rng.random(10_000) < 0.3, 7, flat)).keys() == {7}
    assert dense(np.sort(np.where(rng.random(10_000) < 0.3, 7, flat))) == {}
    assert 3 < len(dense(rng.zipf(1.5, 10_000))) < MOST_DENSE


def test_its_share_is_told_with_it():
    keys = np.random.default_rng(1).permutation([7] * 3000 + list(range(8, 7008)))
    assert dense(keys)[7] == pytest.approx(0.3, abs=0.001)
