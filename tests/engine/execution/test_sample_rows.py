"""What scans send, grouped by keys, with the tuples that were drawn for their values each by itself."""

import numpy as np
import pyarrow as pa
import pytest

from skimql.engine.execution.sample_rows import LOOKED_AT, SAMPLED, VALUED, rows_of
from skimql.optimizer.plan import Synopsis, Weight

SYNOPSES = [Synopsis("t", None, (), Weight(e), "key_sample", 0, 0) for e in (None, "x")]
WHY = np.array([SAMPLED, SAMPLED | VALUED, LOOKED_AT, VALUED | LOOKED_AT, VALUED << 1 | VALUED, SAMPLED])
KEYS = pa.array([1, 1, 2, 3, 4, 5])


def rows(values):
    weights = {SYNOPSES[0]: (np.ones(6, np.int64), 1.0), SYNOPSES[1]: (np.array(values), 1.0)}
    sizes = np.abs(values).astype(np.float64)
    return rows_of(WHY, [KEYS], weights, SYNOPSES, sizes={0: sizes, 1: 2 * sizes})


def test_sampled_tuples_are_added_up_and_those_drawn_for_a_value_stay_single():
    found = rows([1, -20, 3, 40, 50, 6])
    assert found.keys.tolist() == [[1, 5]]
    assert found.weights.tolist() == [[2.0, 1.0], [-19.0, 6.0]]
    assert found.hits.keys.tolist() == [2, 3]
    drawn = found.drawn
    assert drawn.keys.tolist() == [[1, 3, 4, 4]]
    assert drawn.draws.tolist() == [0, 0, 0, 1]
    assert drawn.weights.tolist() == [[1.0] * 4, [-20.0, 40.0, 50.0, 50.0]]
    assert drawn.sizes.tolist() == [20.0, 40.0, 50.0, 100.0]


def test_a_drawn_value_that_is_no_number_is_a_fault():
    with pytest.raises(ValueError, match="not finite"):
        rows([1, 2, 3, np.nan, 5, 6])
