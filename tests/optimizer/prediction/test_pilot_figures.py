"""From a pilot's counts to figures."""

import numpy as np
import pytest

from skimql.engine.statistics.pilot import Counts, Pilot, Rates
from skimql.optimizer.prediction.pilot_figures import most_tuples, relation_statistics


def whole(keys, counts):
    """A pilot that has looked at everything."""
    seen = Counts(np.array(keys, np.int64), np.array(counts, np.int64))
    return Pilot(Rates(1.0, 1.0), (seen,), (seen,))


def test_where_all_was_looked_at_the_figures_are_exact():
    figures = relation_statistics(whole([1, 2, 9], [5, 1, 2]), 1, 8.0, 0.0)
    assert figures.tuples == pytest.approx(8)
    assert figures.attributes[0].distinct == pytest.approx(3)
    assert figures.attributes[0].self_join_size == pytest.approx(25 + 1 + 4)


def test_a_bound_on_tuples_is_above_what_was_seen():
    assert most_tuples(whole([1, 2], [500, 500])) >= 1000


def test_rates_keep_about_as_many_as_are_wanted():
    rates = Rates.for_tuples(1e6, 1000)
    assert 0 < rates.keys <= 1
    assert rates.tuples * 1e6 == pytest.approx(1000, rel=0.5)
    assert Rates.for_tuples(10, 1000) == Rates(1.0, 1.0)
