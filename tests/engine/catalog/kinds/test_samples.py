"""Samples of keys as arrays."""

from types import SimpleNamespace

import numpy as np
import pytest

from skimql.engine.catalog.kinds.kind import Size
from skimql.engine.catalog.kinds.samples import KeySample, TwoLevel
from skimql.sketches.hashing.xi import make_family

FAMILY = make_family("tabulation", 5)
KEYS = np.arange(500)
CASES = [(KeySample(), None, ()), (TwoLevel(), np.array([3, 400]), (("dense", 2),))]


@pytest.mark.parametrize(("kind", "dense", "parameters"), CASES, ids=["key_sample", "two_level"])
@pytest.mark.parametrize("room", [64, 1000])
def test_a_sample_comes_back_and_takes_no_more_than_it_says(kind, dense, parameters, room):
    own = Size((FAMILY,), 1, room, columns=2, parameters=parameters)
    sample = kind.empty(own, dense)
    kind.update([sample], [KEYS], [None, KEYS % 5])
    assert kind.exact(sample) is (room == 1000)
    arrays = kind.arrays(sample)
    declared = {n: SimpleNamespace(dtype=str(a.dtype), shape=a.shape) for n, a in arrays.items()}
    kind.check(own, kind.exact(sample), declared)
    assert 8 * sum(a.size for a in arrays.values()) <= kind.most_bytes(own)
    again = kind.arrays(kind.restored(own, arrays))
    assert all((again[n] == a).all() for n, a in arrays.items())
    name = next(n for n, a in arrays.items() if a.ndim == 2)
    with pytest.raises(ValueError, match=r"not|has"):
        kind.check(own, False, {**declared, name: SimpleNamespace(dtype="int64", shape=(9, room + 1))})
