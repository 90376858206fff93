"""Sizes and predicted errors of samples of one key class."""

import numpy as np
import pytest
from support.column_figures import exact_relation, figures_of, one_class

from skimql.optimizer.messages import whole
from skimql.optimizer.prediction.samples import (
    SampledMessages,
    key_sample,
    scan_steps,
    two_level_alone,
    two_level_joint,
)

TREE = one_class(2)
WEIGHTS = np.rint(1e6 / np.arange(1, 4001) ** 1.1).astype(int) + 1
FIGURES = figures_of(TREE, [exact_relation(WEIGHTS), exact_relation(WEIGHTS[::-1])])


@pytest.mark.parametrize(
    "plan",
    [key_sample, two_level_alone, two_level_joint, lambda f, b: SampledMessages(f, whole(TREE), 0).plan(b)],
)
def test_more_bytes_err_less_and_are_not_exceeded(plan):
    small, large = plan(FIGURES, 20_000), plan(FIGURES, 80_000)
    assert small.nbytes <= 20_000 * 1.001
    assert large.predicted.error <= small.predicted.error
    assert 0 < small.probability <= 1


def test_every_vertex_is_scanned_once():
    assert sorted(s.vertex for s in scan_steps(FIGURES, whole(TREE), 0)) == [0, 1]
