"""From a sample of distinct keys to how many have a property."""

import pytest

from skimql.sketches.distinct.witness import share_interval


@pytest.mark.parametrize(("hits", "sample"), [(0, 10), (3, 10), (10, 10)])
def test_the_interval_of_a_share_holds_it_and_narrows_with_the_sample(hits, sample):
    low, high = share_interval(hits, sample, 0.95)
    assert 0 <= low <= hits / sample <= high <= 1
    closer = share_interval(100 * hits, 100 * sample, 0.95)
    assert closer[1] - closer[0] < high - low


def test_clopper_and_pearson_of_no_hits():
    assert share_interval(0, 10, 0.95) == (0.0, pytest.approx(1 - 0.025 ** (1 / 10)))
