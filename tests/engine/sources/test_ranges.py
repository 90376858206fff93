"""What an expression lies between, by what its columns do."""

from __future__ import annotations

import math

import pytest

from skimql.engine.sources.ranges import ANY, Range, weight_range
from skimql.optimizer.plan import Weight

COLUMNS = {
    "x": Range(-2.0, 5.0),
    "y": Range(1.0, 4.0),
    "n": Range(-3.0, 100.0, 32),
    "big": Range(0.0, 2.0**31 - 1, 32),
    "long": Range(0.0, 2.0**62, 64),
    "q": Range(0.5, 2.0),
}


def found(expression, **kinds):
    return weight_range(Weight(expression, **kinds), lambda name: COLUMNS.get(name, ANY))


@pytest.mark.parametrize(
    ("expression", "low", "high"),
    [
        ("x", -2, 5),
        ("y", 0, 4),
        ("-x", -5, 2),
        ("x + y", -1, 9),
        ("x - y", -6, 4),
        ("x * y", -8, 20),
        ("x * (1 - q)", -5, 2.5),
        ("x / q", -4, 10),
        ("abs(x)", 0, 5),
        ("n + 1", -2, 101),
        ("case when n > 1 then n else null end + 1", -2, 101),
        ("n * n", -300, 10_000),
        ("coalesce(x, 7)", -2, 7),
        ("greatest(x, n)", -3, 100),
        ("CASE WHEN x > 0 THEN y WHEN x < 0 THEN -9 END", -9, 4),
        ("CASE WHEN s LIKE 'a%' THEN x ELSE 0 END", -2, 5),
        ("if(x > 1, y, q)", 0, 4),
        ("CAST(x AS DOUBLE)", -2, 5),
        ("CAST(x AS INT)", -2, 5),
        ("CAST(q AS DECIMAL(10, 2))", -0.5, 3),
        ("`x` * 2.5", -5, 12.5),
        ("NULL", 0, 0),
    ],
)
def test_bounds_hold_and_are_tight(expression, low, high):
    least, most = found(expression)
    assert (least, most) == (pytest.approx(low, rel=1e-4), pytest.approx(high, rel=1e-4))
    assert least <= low
    assert most >= high


@pytest.mark.parametrize(
    "expression",
    [
        "z",
        "t.x",
        "x / (x - 1)",
        "sqrt(x)",
        "x % 3",
        "big + 1",
        "big * big",
        "long * 2",
        "exp(y)",
        "CAST(s AS DOUBLE)",
        "x =",
    ],
)
def test_what_is_not_known_is_not_bounded(expression):
    """Unknown columns, divisions by what may be zero, functions, and integers that may leave their type."""
    least, most = found(expression)
    assert math.isinf(least) or math.isinf(most)


def test_counts_add_one_or_nothing():
    assert weight_range(Weight(), lambda _: ANY) == (1.0, 1.0)
    assert found("z", presence=True) == (0.0, 1.0)


@pytest.mark.parametrize(
    "expression",
    [
        "case when big > 1 then big else null end + 2000000000",
        "if(big > 1, big, null) + 2000000000",
        "coalesce(big, null) + 2000000000",
    ],
)
def test_a_null_leaves_integers_in_their_type(expression):
    assert found(expression) == (-math.inf, math.inf)


def test_decimals_of_which_spark_keeps_few_digits_are_rounded_by_up_to_a_millionth():
    """DECIMAL(38, 18) 0.00072 * 0.00072 is 0.000001 in Spark."""
    tiny = Range(0.0, 0.00072)
    assert weight_range(Weight("a * a"), lambda name: tiny)[1] >= 0.000001
    assert weight_range(Weight("a / 10000000"), lambda name: Range(6.0, 6.0))[1] >= 0.000001
