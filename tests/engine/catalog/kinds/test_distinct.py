"""Level sketches and pair samples as arrays."""

from types import SimpleNamespace

import numpy as np
import pytest

from skimql.engine.catalog.kinds.distinct import Level, Pairs
from skimql.engine.catalog.kinds.kind import Size
from skimql.sketches.hashing.xi import make_family

FAMILIES = (make_family("tabulation", 5), make_family("tabulation", 6))
VALUES = np.arange(5_000)
CASES = [(Level(), 1, 32, 64), (Pairs(), 2, 64, 256)]


@pytest.mark.parametrize(
    ("kind", "attributes", "rows", "buckets"), CASES, ids=lambda v: getattr(v, "method", None)
)
@pytest.mark.parametrize("sparse", [True, False])
def test_they_come_back_as_they_were(kind, attributes, rows, buckets, sparse):
    own = Size(FAMILIES[:attributes], rows, buckets, limit_bytes=1 << 30 if sparse else 0)
    sketch = kind.empty(own)
    kind.update([sketch], [VALUES, VALUES % 7][:attributes], [np.ones(VALUES.size, np.int64)])
    arrays = kind.arrays(sketch)
    assert kind.exact(sketch) is sparse
    assert {str(a.dtype) for a in arrays.values()} == {"int64"}
    declared = {n: SimpleNamespace(dtype=str(a.dtype), shape=a.shape) for n, a in arrays.items()}
    kind.check(own, sparse, declared)
    with pytest.raises(ValueError, match=r"not"):
        kind.check(own, sparse, {**declared, "99/counts": SimpleNamespace(dtype="int64", shape=(1,))})
    again = kind.arrays(kind.restored(own, arrays))
    assert all((again[n] == a).all() for n, a in arrays.items())
    assert sparse or 8 * sum(a.size for a in arrays.values()) <= kind.most_bytes(own)
