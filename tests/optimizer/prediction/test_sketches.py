"""Predicted variance of sketches falls with their size."""

import numpy as np
import pytest
from support.column_figures import exact_relation, figures_of, one_class

from skimql.optimizer.messages import whole
from skimql.optimizer.prediction.sketches import (
    agms_variance,
    convolution_variance,
    hash_variance,
    skimmed_variance,
    tree_variance,
)

TREE = one_class(2)
WEIGHTS = np.rint(1e5 / np.arange(1, 1001) ** 1.2).astype(int) + 1
FIGURES = figures_of(TREE, [exact_relation(WEIGHTS), exact_relation(np.roll(WEIGHTS, 50))])
CELLS = FIGURES.cells(0)
OF_A_ROW = tree_variance(FIGURES, whole(TREE))


@pytest.mark.parametrize(
    "variance",
    [
        lambda rows, buckets: hash_variance(CELLS, rows, buckets),
        lambda rows, buckets: skimmed_variance(CELLS, rows, buckets, 1000),
        lambda rows, buckets: convolution_variance(OF_A_ROW, 2, rows, buckets),
        lambda rows, buckets: agms_variance(OF_A_ROW, rows, buckets),
    ],
)
def test_more_counters_vary_less(variance):
    few, many = variance(11, 256), variance(11, 4096)
    assert 0 <= many < few
    assert variance(21, 256) <= few


def test_an_atomic_sketch_varies_most():
    assert agms_variance(OF_A_ROW, 11, 64) < OF_A_ROW
