"""Linear and skimmed sketches as arrays."""

from types import SimpleNamespace

import numpy as np
import pytest

from skimql.engine.catalog.kinds.counters import Linear, Skimmed
from skimql.engine.catalog.kinds.kind import Size
from skimql.sketches.hashing.xi import make_family

FAMILY = make_family("tabulation", 5)
KEYS = np.array([3, 3, 9, -4])


def size(**changes):
    return Size(**{"families": (FAMILY,), "rows": 3, "buckets": 16, "limit_bytes": 0} | changes)


@pytest.mark.parametrize(
    "kind", [Linear("hash", 1, 1), Linear("agms", 1, 1), Skimmed()], ids=lambda k: k.method
)
def test_counters_are_arrays_of_the_declared_shapes_and_come_back(kind):
    own = size(parameters=tuple(sorted(kind.defaults().items())))
    sketch = kind.empty(own)
    kind.update([sketch], [KEYS], [None])
    arrays = kind.arrays(sketch)
    declared = {n: SimpleNamespace(dtype=str(a.dtype), shape=a.shape) for n, a in arrays.items()}
    kind.check(own, False, declared)
    assert 8 * sum(a.size for a in arrays.values()) == kind.most_bytes(own)
    again = kind.arrays(kind.restored(own, arrays))
    assert all((again[n] == a).all() for n, a in arrays.items())
    with pytest.raises(ValueError, match="not"):
        kind.check(own, False, {**declared, "more": SimpleNamespace(dtype="int64", shape=(1,))})


def test_a_map_is_exact_until_it_is_larger_than_its_counters():
    kind, own = Linear("hash", 1, 1), size(limit_bytes=None)
    sketch = kind.empty(own)
    kind.update([sketch], [KEYS], [None])
    assert kind.exact(sketch)
    assert kind.arrays(sketch).keys() == {"keys.0", "weights"}
    kind.update([sketch], [np.arange(1000)], [None])
    assert not kind.exact(sketch)
    assert kind.families(sketch) == (FAMILY,)


def test_a_skimmed_sketch_is_never_a_map():
    with pytest.raises(ValueError, match="no exact map"):
        Skimmed().check(size(), True, {})
