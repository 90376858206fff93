"""What a pilot is asked and counts."""

import numpy as np
import pytest
from support.questions import query
from support.schemas import XYZ

from skimql.optimizer.prediction.pilot_counts import Counts, Rates, relations_of


@pytest.mark.parametrize(("tuples", "share"), [(0.0, 1.0), (1_000.0, 1.0), (4_000.0, 0.25), (1e18, 1e-15)])
def test_rates_keep_about_the_wanted_tuples_and_never_nothing(tuples, share):
    rates = Rates.for_tuples(tuples, 1_000)
    assert rates.tuples == share
    assert 0.0 < rates.keys <= 1.0
    assert rates.keys == pytest.approx(share, abs=2.0**-40)


def test_tuples_are_those_of_all_keys():
    assert Counts(np.array([3, 9]), np.array([2, 5])).tuples == 7


def test_relations_of_a_query_know_no_aliases_and_no_class_names():
    left, right = relations_of(query("COUNT(*) FROM x a JOIN y b ON a.id = b.m WHERE a.n > 1", XYZ).graph)
    assert (left.table, left.filter, right.table, right.filter) == ("x", "`n` > 1", "y", None)
    assert [(a.keys, a.class_name) for a in (*left.attributes, *right.attributes)] == [
        (("`id`",), ""),
        (("`m`",), ""),
    ]
    same = relations_of(query("COUNT(*) FROM x JOIN x z ON x.id = z.id", XYZ).graph)
    assert same[0] == same[1]
