"""The coercion table against the types that Spark's analyser gives, and the warnings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from skimql.parser.types import common_type

# What Spark 4.0 to 4.3 compare each pair of types in: "type | type" -> type, or "" where Spark refuses.
SPARK = json.loads((Path(__file__).parents[1] / "fixtures" / "spark_comparison_types.json").read_text())

# Spark compares these; as join keys they are refused: equal values may have unequal bytes.
REFUSED = ("array<", "struct<", "map<", "string collate")


@pytest.mark.parametrize("mode", ["ansi", "legacy"])
def test_the_table_agrees_with_spark_for_every_pair(mode):
    for pair, expected in SPARK[mode].items():
        left, right = pair.split(" | ")
        compared = common_type(left, right, ansi=mode == "ansi")
        if expected.startswith(REFUSED):
            assert compared.type is None, pair
            assert compared.reason
            assert compared.way_out == "EXACT SELECT ...", pair
        else:
            assert compared.type == (expected or None), pair
            assert bool(compared.reason) == (not expected)
            if not expected and "<" not in left and "collate" not in pair:
                # Spark refuses it too, whatever the method.
                assert compared.way_out == "CAST one side to the type of the other", pair


@pytest.mark.parametrize("ansi", [True, False])
@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("char(3)", "char(3)", "char"),
        ("char(3)", "CHAR(5)", "char"),
        ("char", "char(5)", "char"),
        ("char(3)", "varchar(5)", "string"),
        ("char(3)", "string", "string"),
        ("varchar(3)", "varchar(5)", "string"),
        ("varchar(3)", "string", "string"),
        ("void", "char(3)", "string"),
        ("char(3)", "binary", "binary"),
        ("char(3)", "date", "date"),
        ("char(3) collate UTF8_LCASE", "string", None),
        ("varchar(3) collate UTF8_BINARY", "char(3)", "string"),
    ],
)
def test_char_is_compared_with_char_without_its_blanks_and_with_anything_else_as_text(
    left, right, ansi, expected
):
    assert common_type(left, right, ansi).type == expected
    assert common_type(right, left, ansi).type == expected


@pytest.mark.parametrize("other", [t.split(" | ")[1] for t in SPARK["ansi"] if t.startswith("string | ")])
@pytest.mark.parametrize("mode", ["ansi", "legacy"])
def test_char_and_varchar_beside_other_types_are_text(mode, other):
    for text in ("char(3)", "varchar(3)"):
        expected = common_type("string", other, mode == "ansi")
        assert common_type(text, other, mode == "ansi") == expected
        assert common_type(other, text, mode == "ansi") == common_type(other, "string", mode == "ansi")


@pytest.mark.parametrize(
    ("left", "right", "ansi", "warns"),
    [
        ("bigint", "double", True, "2^53"),
        ("double", "bigint", True, "2^53"),
        ("int", "double", True, ""),
        ("int", "float", False, "2^24"),
        ("decimal(20,0)", "string", True, "15 digits"),
        ("decimal(10,2)", "string", True, ""),
        ("decimal(38,0)", "decimal(5,5)", True, "behind the point"),
        ("int", "bigint", True, ""),
    ],
)
def test_comparisons_that_lose_information_warn(left, right, ansi, warns):
    warning = common_type(left, right, ansi).warning
    assert warns in warning
    assert bool(warning) == bool(warns)


def test_binary_collation_is_plain_text():
    assert common_type("string collate UTF8_BINARY", "string", ansi=True).type == "string"


@pytest.mark.parametrize("left", ["date", "string", "timestamp_ntz"])
def test_comparisons_with_timestamps_depend_on_the_time_zone(left):
    assert common_type(left, "timestamp", ansi=True).zoned
    assert common_type("timestamp", left, ansi=False).zoned
    assert not common_type(left, "timestamp_ntz", ansi=True).zoned
    assert not common_type("timestamp", "timestamp", ansi=True).zoned
