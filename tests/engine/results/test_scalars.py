"""Values that no estimate is part of."""

import math
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from skimql import SkimqlError
from skimql.engine.results.scalars import compare, scalar_value
from skimql.parser.expressions import Constant, Grouped, Operation


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        (Operation("+", (Grouped(0), Constant(2))), 9),
        (Operation("/", (Grouped(0), Constant(2))), 3.5),
        (Operation("neg", (Grouped(0),)), -7),
        (Operation("-", (Grouped(0), Constant(None))), None),
        (Grouped(1), "a"),
    ],
)
def test_numbers_of_a_group_are_added_and_multiplied(expression, value):
    assert scalar_value(expression, (7, "a"), "SELECT") == value


@pytest.mark.parametrize(
    "operands", [(Grouped(1), Constant(1)), (Grouped(0), Constant(0)), (Constant(1 << 62), Constant(1 << 62))]
)
def test_what_spark_might_compute_otherwise_is_refused(operands):
    for operator in ("/", "*"):
        if operator == "*" and operands[1] == Constant(0):
            continue
        if operator == "/" and operands[0] == operands[1]:
            continue
        with pytest.raises(SkimqlError):
            scalar_value(Operation(operator, operands), (7, "a"), "SELECT")


def test_values_are_ordered_as_spark_orders_them():
    assert [compare(1, 2, ""), compare("b", "a", ""), compare(math.nan, math.inf, "")] == [-1, 1, 1]
    with pytest.raises(SkimqlError):
        compare(1, "a", "SELECT 1")


def test_times_are_ordered_as_instants_where_clocks_are_set_back():
    zone = ZoneInfo("America/New_York")
    first = datetime(2024, 11, 3, 1, 45, tzinfo=zone)
    second = datetime(2024, 11, 3, 1, 15, tzinfo=zone, fold=1)
    assert second.astimezone(UTC) - first.astimezone(UTC) == timedelta(minutes=30)
    assert [compare(first, second, ""), compare(second, first, ""), compare(first, first, "")] == [-1, 1, 0]
    assert compare(first, first.replace(fold=1), "") == -1
    # One without a zone is cast by Spark.
    with pytest.raises(SkimqlError, match="2024-11-03 01:45:00-04:00 and 2024-11-03 01:45:00 are of kinds"):
        compare(first, first.replace(tzinfo=None), "")
