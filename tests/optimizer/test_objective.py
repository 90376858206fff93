"""What is asked of an answer."""

import pytest

from skimql.optimizer.methods import CANDIDATES
from skimql.optimizer.objective import Objective


def test_a_size_bounds_the_state_and_max_bytes_bounds_whatever_is_asked():
    assert Objective(size_bytes=1 << 20).most_bytes == 1 << 20
    assert Objective(max_bytes=1 << 10, relative_error=0.1).most_bytes == 1 << 10


def test_a_key_with_more_weights_takes_more_bytes():
    assert Objective(size_bytes=1, columns=2).entry_bytes > Objective(size_bytes=1).entry_bytes


@pytest.mark.parametrize("method", CANDIDATES)
def test_a_method_may_be_forced(method):
    assert Objective(size_bytes=1, method=method).method == method


def test_grouped_vertices_send_nothing_and_have_a_sketch_for_each_group():
    asked = Objective(size_bytes=1, groups=((1, 5),))
    assert (asked.senders(3), asked.sketches((0, 1, 2)), asked.most_groups) == ((0, 2), 7, 5)
