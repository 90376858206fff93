"""Statistics: what is missing is assumed and named, what is given is kept."""

import numpy as np
import pytest

from skimql.optimizer.prediction.histograms import equi_depth
from skimql.optimizer.prediction.relation import AttributeStatistics, RelationStatistics, complete
from skimql.sketches.samples.two_level_plan import Candidates


def test_nothing_known_is_a_million_tuples_each_with_a_key_of_its_own():
    found = complete(RelationStatistics(), 2)
    assert found.tuples == 1e6
    assert [a.distinct for a in found.attributes] == [1e6, 1e6]
    assert "1,000,000 tuples" in found.assumptions
    assert "every tuple has a key of its own" in found.assumptions
    assert "independent join attributes" in found.assumptions


def test_what_is_given_is_kept():
    heavy = Candidates(np.array([7]), np.array([500]), 3.0)
    given = RelationStatistics(1000.0, (AttributeStatistics(80.0, 260_000.0, heavy),), 5000.0, source="exact")
    found = complete(given, 1)
    assert (found.tuples, found.scanned) == (1000.0, 5000.0)
    assert (found.attributes[0].distinct, found.attributes[0].self_join_size) == (80.0, 260_000.0)
    assert found.assumptions == ()


def test_heavy_keys_and_geometric_weights_of_the_others_make_f2():
    heavy = Candidates(np.array([7]), np.array([500]), np.inf)
    (found,) = complete(RelationStatistics(1000.0, (AttributeStatistics(51.0, None, heavy),)), 1).attributes
    assert found.self_join_size == pytest.approx(500**2 + 50 * (2 * 10**2 - 10))


def test_a_key_column_has_a_weight_of_one_for_each_key():
    (found,) = complete(RelationStatistics(1000.0, (AttributeStatistics(1000.0),)), 1).attributes
    assert found.self_join_size == 1000.0


def test_a_histogram_tells_tuples_keys_and_f2():
    histogram = equi_depth(np.arange(100), np.full(100, 5), 10)
    found = complete(RelationStatistics(attributes=(AttributeStatistics(histogram=histogram),)), 1)
    assert found.tuples == 500.0
    assert found.attributes[0].distinct == pytest.approx(100.0)
    assert found.attributes[0].self_join_size == pytest.approx(2500.0)


def test_counts_of_a_part_of_the_rows_are_scaled_up():
    heavy = Candidates(np.array([7]), np.array([50]), 2.0)
    given = RelationStatistics(
        1000.0, (AttributeStatistics(80.0, None, heavy),), row_fraction=0.1, source="pilot"
    )
    (found,) = complete(given, 1).attributes
    assert (found.heavy.weights[0], found.heavy.largest_other) == (500, 20.0)


def test_impossible_figures_are_refused():
    with pytest.raises(ValueError, match="distinct"):
        AttributeStatistics(distinct=-1.0)
    with pytest.raises(ValueError, match="tuples"):
        RelationStatistics(tuples=np.nan)
    with pytest.raises(ValueError, match="come from"):
        RelationStatistics(source="hearsay")
    with pytest.raises(ValueError, match="join attributes"):
        complete(RelationStatistics(attributes=(AttributeStatistics(),)), 2)


def test_statistics_carry_their_age():
    assert RelationStatistics(gathered_at=100.0).age(160.0) == 60.0
    assert RelationStatistics().age(160.0) is None
