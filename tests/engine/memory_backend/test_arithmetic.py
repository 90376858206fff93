"""Arithmetic in the types that Spark gives it."""

import math
from decimal import Decimal as D

import pyarrow as pa
import pytest

from skimql.engine.memory_backend.arithmetic import absolute, arithmetic, negative, rounded, widest
from skimql.engine.memory_backend.values import Value, ValueFault
from skimql.errors import UnsupportedQuery


def ints(*values):
    return Value("int", pa.array(values, pa.int32()))


def decimals(precision, scale, *values):
    return Value(
        f"decimal({precision},{scale})", pa.array([D(v) for v in values], pa.decimal128(precision, scale))
    )


@pytest.mark.parametrize(
    ("sign", "found"),
    [("+", [9, -5]), ("-", [5, -9]), ("*", [14, -14]), ("%", [1, -1]), ("div", [3, -3])],
)
def test_whole_numbers_cut_off_towards_zero(sign, found):
    assert arithmetic(sign, ints(7, -7), ints(2, 2)).data.to_pylist() == found


def test_whole_numbers_that_leave_their_type_are_a_fault():
    with pytest.raises(ValueFault):
        arithmetic("+", ints(2**31 - 1), ints(1))
    with pytest.raises(ValueFault):
        negative(ints(-(2**31)))
    with pytest.raises(ValueFault):
        arithmetic("/", ints(1), ints(0))


def test_decimals_have_the_digits_of_spark_s_rules():
    product = arithmetic("*", decimals(10, 2, "0.05"), decimals(10, 3, "0.005"))
    assert (product.kind, product.data.to_pylist()) == ("decimal(21,5)", [D("0.00025")])
    total = arithmetic("+", decimals(10, 2, "1.25"), decimals(5, 4, "0.0001"))
    assert (total.kind, total.data.to_pylist()) == ("decimal(13,4)", [D("1.2501")])
    quotient = arithmetic("/", decimals(4, 1, "1.0"), decimals(4, 1, "3.0"))
    assert str(quotient.data[0].as_py()).startswith("0.33333")


def test_fractions_and_signs():
    halves = Value("double", pa.array([1.0, math.nan]))
    assert arithmetic("/", halves, Value("double", pa.array([2.0, 1.0]))).data[0].as_py() == 0.5
    assert absolute(ints(-3, None)).data.to_pylist() == [3, None]
    assert negative(halves).data[0].as_py() == -1.0


@pytest.mark.parametrize(
    ("kinds", "kind"),
    [
        (["int", "bigint"], "bigint"),
        (["int", "double"], "double"),
        (["void", "date"], "date"),
        (["decimal(5,2)", "decimal(10,0)"], "decimal(12,2)"),
    ],
)
def test_the_type_that_values_have_in_common(kinds, kind):
    assert widest(kinds) == kind
    assert widest(kinds[::-1]) == kind


def test_types_with_nothing_in_common_are_refused():
    with pytest.raises(UnsupportedQuery):
        widest(["boolean", "date"])


def test_a_decimal_is_rounded_half_up_and_gains_a_digit():
    found = rounded(decimals(4, 2, "9.95", "-0.05"), 1, "half_towards_infinity")
    assert (found.kind, found.data.to_pylist()) == ("decimal(4,1)", [D("10.0"), D("-0.1")])
