"""The columns of a result: names, types, values."""

from decimal import Decimal

import pyarrow as pa
import pytest

from skimql import Estimate
from skimql.engine.results.columns import (
    Names,
    ResultColumn,
    arrow_type,
    columns_by_rows,
    ends,
    relative_error,
    typed,
    unique,
)


def test_names_are_unique_whatever_their_case():
    names = Names({"n"})
    assert [names.free("N"), names.free("n"), names.free("m")] == ["N_2", "n_3", "m"]
    assert unique(["a", "A", "a_2"])[0] == ("a", "A_3", "a_2")


@pytest.mark.parametrize(
    ("name", "kind"),
    [("bigint", pa.int64()), ("decimal(10,2)", pa.decimal128(10, 2)), ("struct<a:int>", None), (None, None)],
)
def test_types_are_sparks(name, kind):
    assert arrow_type(name) == kind


def test_values_are_rounded_into_their_type_and_ends_hold_them():
    cell = Estimate(10.4, 10.2, 12.0, 0.95, True, "theorem")
    assert typed(cell, pa.int64()) == 10
    assert typed(cell, pa.decimal128(10, 1)) == Decimal("10.4")
    low, high = ends(cell, 10)
    assert low <= 10 <= high == 12.0


def test_columns_become_rows():
    columns = [ResultColumn("a", pa.int64(), [1, 2]), ResultColumn("b", None, ["x", None])]
    assert columns_by_rows(columns) == [{"a": 1, "b": "x"}, {"a": 2, "b": None}]
    assert columns[0].array().type == pa.int64()


@pytest.mark.parametrize(
    ("value", "truth", "error"),
    [(11, 10, 0.1), (0, 0, 0.0), (1, 0, None), (None, 3, None), (1, float("nan"), None)],
)
def test_relative_errors(value, truth, error):
    assert relative_error(value, truth) == error
