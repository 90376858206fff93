"""Functions of estimates."""

import math

import pytest

from skimql import Estimate
from skimql.engine.results.functions import apply


def between(low, value, high):
    return Estimate(value, low, high, 0.95, True, "theorem")


@pytest.mark.parametrize(
    ("name", "arguments", "value", "low", "high"),
    [
        ("floor", [between(1.2, 2.5, 3.9)], 2, 1, 3),
        ("ceil", [between(1.2, 2.5, 3.9)], 3, 2, 4),
        ("abs", [between(-3.0, -1.0, 2.0)], 1, 0, 3),
        ("greatest", [between(1.0, 2.0, 3.0), between(0.0, 2.5, 9.0)], 2.5, 1.0, 9.0),
        ("least", [between(1.0, 2.0, 3.0), between(0.0, 2.5, 9.0)], 2.0, 0.0, 3.0),
    ],
)
def test_the_ends_of_the_arguments_give_the_ends_of_the_value(name, arguments, value, low, high):
    found = apply(name, arguments)
    assert (found.value, found.low, found.high) == (value, low, high)


def test_coalesce_takes_what_is_there():
    assert apply("coalesce", [between(1.0, 2.0, 3.0), between(7.0, 8.0, 9.0)]).value == 2.0
    missing = Estimate(math.nan, math.nan, math.nan, 1.0, True, "exact")
    assert apply("coalesce", [missing, between(7.0, 8.0, 9.0)]).value == 8.0
