"""Which values of two relations join, by figures: against closed forms."""

from __future__ import annotations

import numpy as np
import pytest

from skimql.optimizer.prediction.joined_values import Shares, Side, distinct_keys, effective, joined_figures
from skimql.optimizer.prediction.values import Values


def test_a_rare_hub_is_no_part_of_what_a_sample_usually_holds():
    shares = Shares.of(np.array([1.0, 2.0, 1_000.0]), np.array([500.0, 499.0, 1.0]))
    assert float(shares.parts @ shares.figures) == pytest.approx(1.0)
    assert shares.variance > 100
    variance, mean = shares.typical(50)
    assert variance < 0.2
    assert mean == pytest.approx(1_498 / 2_498, rel=0.01)
    assert shares.typical(10_000) == (pytest.approx(shares.variance), pytest.approx(1.0))


def test_a_share_of_pairs_joins_as_so_many_independent_draws_of_keys_meet():
    counts = np.array([1_000.0])
    sides = [
        Side(Values(np.array([t]), np.array([200.0])), np.array([200.0 * t / 1_000])) for t in (3.0, 7.0)
    ]
    found = joined_figures(*sides, counts)
    # Of 21 pairs of keys none is the same with a chance of (1 - 1/1000)^21.
    assert found.share == pytest.approx(1.0 - 0.999**21, rel=0.05)
    assert found.partners[0].weights[0] == pytest.approx(1_000 * (1 - (1 - 1 / 1_000) ** 3), rel=0.01)


def test_nothing_joins_where_no_key_is_of_both():
    own = Values(np.array([4.0]), np.array([50.0]))
    counts = np.array([100.0, 100.0])
    found = joined_figures(Side(own, np.array([2.0, 0.0])), Side(own, np.array([0.0, 2.0])), counts)
    assert found.share == 0.0


def test_a_known_number_of_pairs_is_what_the_draws_make():
    """Tuples of one value that repeat a key are as many draws fewer."""
    values, keys, counts = Values(np.array([10.0]), np.array([100.0])), np.array([1.0]), np.array([1_000.0])
    assert effective(Side(values, keys, 300.0), counts).weights[0] == pytest.approx(3.0, rel=0.05)
    assert effective(Side(values, keys), counts) is values
    assert distinct_keys(np.array([1e9]), keys, counts)[0] == pytest.approx(1_000, rel=0.01)
