"""What is asked of an answer."""

import pytest

from skimql.optimizer.objective import METHODS, SKETCHES, Objective


def test_a_size_bounds_the_state_and_max_bytes_bounds_whatever_is_asked():
    assert Objective(size_bytes=1 << 20).most_bytes == 1 << 20
    assert Objective(max_bytes=1 << 10, relative_error=0.1).most_bytes == 1 << 10


def test_a_key_with_more_weights_takes_more_bytes():
    assert Objective(size_bytes=1, columns=2).entry_bytes > Objective(size_bytes=1).entry_bytes


@pytest.mark.parametrize("method", SKETCHES)
def test_sketches_are_methods(method):
    assert method in METHODS
