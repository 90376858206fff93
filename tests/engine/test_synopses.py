"""What one pass over a table gives."""

import pytest

from skimql.engine.synopses import Built, Tally
from skimql.sketches.distinct.level import LevelSpec
from skimql.sketches.distinct.sparse_level import SparseLevelSketch
from skimql.sketches.hashing.xi import make_family
from skimql.sketches.start import make_exact_first, make_hash_sketch


def test_tallies_add_up():
    tally = Tally(2, 3.5, 1)
    tally.add(Tally(1, 1.0, 0))
    assert tally == Tally(3, 4.5, 1)


def test_only_a_sketch_of_join_keys_is_linear():
    linear = make_exact_first(make_hash_sketch(seed=1).spec)
    assert Built(linear, Tally(), 1.0).linear is linear
    values = SparseLevelSketch(LevelSpec(make_family("tabulation", 1), 16))
    with pytest.raises(AssertionError):
        _ = Built(values, Tally(), 1.0).linear


def test_what_was_taken_out_was_added_up_too():
    sketch = make_exact_first(make_hash_sketch(seed=1).spec)
    assert Built(sketch, Tally(3, 9.0, 1), 1.0).additions == 3
    assert Built(sketch, Tally(3, 9.0, 1), 1.0, updates=70).additions == 70


def test_masses_that_leave_the_range_of_double_are_refused():
    tally = Tally(1, 1.5e308, 0, 1.0)
    with pytest.raises(ValueError, match="more than a DOUBLE holds"):
        tally.add(Tally(1, 1.5e308, 0, 2.0))
    assert tally.slack == 3.0


def test_more_tuples_than_64_bits_count_are_refused():
    tally = Tally(2**63 - 2, 1.0, 0)
    tally.add(Tally(1, 1.0, 0))
    with pytest.raises(OverflowError, match="number of tuples"):
        tally.add(Tally(1, 1.0, 0))
