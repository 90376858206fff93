"""Keys of one table as those of another's tuples."""

import numpy as np

from skimql.engine.execution.sample_rows import Counts, Drawn, Rows
from skimql.engine.execution.sent_keys import Sent
from skimql.sketches.samples.known_keys import KnownKeys

NONE = np.empty(0, np.int64)
ROWS = Rows(
    NONE[np.newaxis],
    np.empty((1, 0)),
    *(Counts(NONE, NONE),) * 2,
    Drawn(NONE[np.newaxis], np.empty((1, 0)), NONE, NONE),
)


def sent(*keys):
    keys = np.array(keys, np.int64)
    known = KnownKeys(
        keys,
        10.0 * keys[np.newaxis],
        np.zeros(len(keys), bool),
        0.1,
        np.zeros((1, 2)),
        keys / 100,
        np.full(1, np.nan),
    )
    return Sent(known, {(): known}, (), ROWS, {}, NONE)


def test_each_tuple_has_what_is_known_of_its_key_and_of_some_keys_what_another_scan_tells():
    found = sent(3, 5, 7).of(np.array([5, 4, 3, 5, 9]), None, NONE).parts[()]
    assert found.keys.tolist() == [0, 2, 3]
    assert found.weights.tolist() == [[50.0, 30.0, 50.0]]
    both = sent(3, 5).of(np.array([9, 5, 3, 8]), sent(5, 8, 9), np.array([8, 9])).parts[()]
    assert both.keys.tolist() == [0, 1, 2, 3]
    assert both.weights.tolist() == [[90.0, 50.0, 30.0, 80.0]]
