"""Values of GROUP BY as texts, and back."""

import datetime as dt
from decimal import Decimal

import pytest

from skimql.engine.catalog.texts import as_text, from_text, has_texts

MOMENT = dt.datetime(2024, 2, 29, 12, 0, 0, 1, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (True, "boolean", "true"),
        (-(2**63), "bigint", "-9223372036854775808"),
        (0.1, "double", "0.1"),
        (float("inf"), "double", "inf"),
        ("", "string", ""),
        (b"\x00\xff", "binary", "00ff"),
        (dt.date(1, 1, 1), "date", "0001-01-01"),
        (Decimal("-0.10"), "decimal(9,2)", "-0.10"),
        (MOMENT, "timestamp", "1709208000000001"),
        (MOMENT.replace(tzinfo=None), "timestamp_ntz", "1709208000000001"),
        (None, "int", None),
    ],
)
def test_a_value_is_the_same_after_its_text(value, kind, text):
    assert has_texts(kind)
    assert as_text(value, kind) == text
    assert from_text(text, kind, "UTC") == value


def test_a_moment_is_the_same_in_every_zone():
    text = as_text(MOMENT.astimezone(dt.timezone(dt.timedelta(hours=5))), "timestamp")
    assert from_text(text, "timestamp", "America/New_York") == MOMENT
    assert from_text(text, "timestamp", "no such zone") == MOMENT


@pytest.mark.parametrize(
    ("value", "kind"),
    [((1, 2), "array<int>"), ("12345-01-01", "date"), (1.5, "decimal(3,1)"), ("now", "timestamp")],
)
def test_what_has_no_text(value, kind):
    with pytest.raises(ValueError, match="has no text"):
        as_text(value, kind)
    assert not has_texts("array<int>")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("yes", "boolean"),
        ("1.", "decimal(3,1)"),
        ("1e5", "decimal(3,1)"),
        ("9" * 40, "timestamp"),
        ("x", "map<int,int>"),
    ],
)
def test_what_a_foreign_file_may_say_is_no_value(text, kind):
    with pytest.raises(ValueError, match=r"is no|not"):
        from_text(text, kind, "UTC")
