"""Contributions of the keys that synopses know together."""

import numpy as np
import pytest

from skimql.sketches.samples.known_keys import KnownKeys, combined, join_terms, with_certain


def known(keys, weights, certain, probability):
    n = len(keys)
    return KnownKeys(
        np.array(keys),
        np.array([weights]),
        np.full(n, certain),
        probability,
        np.zeros((1, 2)),
        np.zeros(n),
        np.array([np.nan]),
    )


def test_certain_keys_give_the_join_itself():
    terms = join_terms([known([1, 2, 5], [3, 4, 9], True, 1.0), known([2, 5], [10, -1], True, 1.0)])
    assert terms.keys.tolist() == [2, 5]
    assert (terms.total(), terms.variance()) == (31.0, 0.0)


def test_sampled_keys_stand_for_those_that_were_not():
    sampled = join_terms([known([2, 5], [4, 9], False, 0.5), known([2, 5], [10, -1], False, 0.25)])
    assert sampled.total() == pytest.approx(31.0 / 0.25)
    assert sampled.variance() > 0
    exact = join_terms([known([2], [4], True, 1.0), known([2], [10], True, 1.0)])
    assert with_certain(sampled, exact, np.array([2])).total() == pytest.approx(40 - 9 / 0.25)


def test_columns_combine():
    terms = join_terms([known([2], [4], True, 1.0), known([2], [10], True, 1.0)])
    assert combined(terms, [np.array([2.0]), np.array([-1.0])]).terms.tolist() == [[80.0], [-40.0]]


def test_presence_counts_keys():
    assert known([1, 2], [0, 7], True, 1.0).present().weights.tolist() == [[0, 1]]
