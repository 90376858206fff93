"""One candidate beside another: what is taken, and how figures are told."""

import math

import pytest
from support.column_figures import one_class

from skimql.optimizer.candidates.candidate import Candidate, best_of, bytes_text, checked, count_text
from skimql.optimizer.messages import whole
from skimql.optimizer.objective import Objective
from skimql.optimizer.prediction.cost import Cost
from skimql.optimizer.prediction.variance import Predicted


def candidate(error=0.01, seconds=1.0, nbytes=1e6, method="hash"):
    return Candidate(method, whole(one_class(2)), nbytes, Predicted(100.0, 100.0 * error), Cost(seconds))


def test_within_the_error_the_cheapest_ranks_first_and_within_a_size_the_most_accurate():
    cheap, accurate = candidate(0.02, 1.0), candidate(0.001, 5.0)
    by_error, by_size = Objective(relative_error=0.05), Objective(size_bytes=1 << 21)
    assert best_of([accurate, cheap], by_error) is cheap
    assert best_of([accurate, cheap], by_size) is accurate


def test_of_what_costs_a_tenth_more_at_the_most_the_smaller_is_taken():
    cheap, small, dear = candidate(), candidate(seconds=1.09, nbytes=1e3), candidate(seconds=1.11, nbytes=10)
    assert best_of([cheap, small, dear], Objective(relative_error=0.05)) is small


def test_what_is_too_large_or_too_inaccurate_is_refused_with_its_reason():
    assert checked(candidate(nbytes=1e12), Objective(relative_error=0.05)).refused
    assert checked(candidate(error=0.5), Objective(relative_error=0.05)).refused
    assert not checked(candidate(), Objective(relative_error=0.05)).refused


def test_half_widths_grow_with_confidence():
    assert candidate().half_width(0.99) > candidate().half_width(0.9) > candidate().error


@pytest.mark.parametrize(("nbytes", "text"), [(24e6, "24 MB"), (16_000, "16 KB")])
def test_bytes_as_people_read_them(nbytes, text):
    assert bytes_text(nbytes) == text
    assert count_text(1.5e6) == "1.5M"
    assert math.isfinite(candidate().nbytes)
