"""Frequency vectors and tuples with known joins."""

from __future__ import annotations

import numpy as np


def zipf(domain, z, tuples, shift=0):
    """Frequencies of a Zipf law with exponent z on [0, domain), rounded, the ranks moved by `shift`."""
    weights = 1.0 / np.arange(1, domain + 1) ** z
    frequencies = np.floor(weights / weights.sum() * tuples + 0.5).astype(np.int64)
    return np.roll(frequencies, shift)


def join_size(left_keys, right_keys, left_weights=None):
    """Exact size (or sum) of an equi-join of two key arrays."""
    left_keys, right_keys = np.asarray(left_keys), np.asarray(right_keys)
    _, inverse = np.unique(np.concatenate([left_keys, right_keys]), return_inverse=True)
    f = np.bincount(inverse[: len(left_keys)], weights=left_weights, minlength=inverse.max() + 1)
    g = np.bincount(inverse[len(left_keys) :], minlength=inverse.max() + 1)
    return float(f @ g)
