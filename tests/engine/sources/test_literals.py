"""Values of Python as SQL that Spark reads as the same."""

import datetime as dt
from decimal import Decimal

import pytest

from skimql.engine.sources.literals import literal
from skimql.errors import UnsupportedQuery


def test_each_value_has_a_literal_of_its_type():
    zone = dt.timezone(dt.timedelta(hours=5, minutes=30))
    for value, text in (
        (None, "NULL"),
        (True, "TRUE"),
        (-3, "-3"),
        (Decimal("1E+2"), "100BD"),
        (0.5, "0.5D"),
        ("it's \\", "'it\\'s \\\\'"),
        (dt.date(2026, 1, 2), "DATE '2026-01-02'"),
        (dt.datetime(2026, 1, 2, 3, tzinfo=zone), "TIMESTAMP '2026-01-02 03:00:00+05:30'"),
    ):
        assert literal("v", value) == text
    for value in (float("nan"), b"x", [1]):
        with pytest.raises(UnsupportedQuery, match="v} is a") as raised:
            literal("v", value)
        assert raised.value.code == "SKIMQL_BAD_VALUE"
