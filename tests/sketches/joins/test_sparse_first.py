"""One container for three kinds: what it turns into, and when, cannot be told from the dense form."""

import numpy as np
import pytest

from skimql.sketches.distinct.level import LevelSpec
from skimql.sketches.distinct.pair_sample import PairSampleSpec
from skimql.sketches.distinct.sparse_level import SparseLevelSketch
from skimql.sketches.distinct.sparse_pairs import SparsePairSample
from skimql.sketches.hashing.xi import make_family
from skimql.sketches.joins.convolution import ConvolutionSpec
from skimql.sketches.joins.sparse import SparseFirstSketch
from skimql.sketches.joins.sparse_first import BLOCK

FAMILY = make_family(seed=5)
KINDS = [
    (lambda limit=None: SparseFirstSketch(ConvolutionSpec((FAMILY,), 3, 16), limit), 1),
    (lambda limit=None: SparseLevelSketch(LevelSpec(FAMILY, 16, 4), limit), 1),
    (lambda limit=None: SparsePairSample(PairSampleSpec(FAMILY, 4, 16, 4), limit), 2),
]
KEYS = np.arange(BLOCK + 5_000) % 300


def arrays(sketch):
    return {name: array.tobytes() for name, array in sketch.state().items()}


@pytest.mark.parametrize(("make", "columns"), KINDS, ids=["linear", "level", "pairs"])
def test_every_kind_turns_and_merges_alike(make, columns):
    for limit in (0, 100 * 8 * (columns + 1), 1 << 20):
        whole, parts = make(limit), [make(limit) for _ in range(3)]
        keys = [KEYS] * columns
        whole.update(*keys)
        for part, piece in zip(parts, np.array_split(KEYS, 3), strict=True):
            part.update(*[piece] * columns)
        parts[1].merge(parts[2])
        parts[0].merge(parts[1])
        assert arrays(parts[0].dense()) == arrays(whole.dense())
        assert (whole.exact is None) == (limit < 1 << 20)
        assert limit < 1 << 20 or arrays(parts[0]) == arrays(whole)
        # A batch of more than a block, most of it after the change; then everything is deleted.
        restored = type(whole).from_state(whole.spec, whole.state(), limit)
        restored.update(*keys, np.full(len(KEYS), -1))
        empty = make(0)
        assert arrays(restored.dense()) == arrays(empty.dense())
        assert (restored.exact is None) == (whole.exact is None)


@pytest.mark.parametrize(("make", "columns"), KINDS, ids=["linear", "level", "pairs"])
def test_the_dense_form_of_a_map_is_made_anew_when_the_map_changes(make, columns):
    sketch, both = make(), make()
    sketch.update(*[np.arange(3)] * columns)
    assert sketch.dense() is sketch.dense()
    sketch.update(*[np.arange(3, 5)] * columns)
    both.update(*[np.arange(5)] * columns)
    assert arrays(sketch.dense()) == arrays(both.dense())
    twin = sketch.copy()
    twin.subtract(both)
    assert len(twin.exact) == 0
    assert len(sketch.exact) == 5
    with pytest.raises(OverflowError):
        twin.update(*[[1, 1]] * columns, [2**62, 2**62])
    assert len(twin.exact) == 0
