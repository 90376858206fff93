"""Values that stand in files, checked."""

import pytest

from skimql.engine.catalog import checks


@pytest.mark.parametrize(
    "data", [b"", b"{", b'{"a": NaN}', b'{"a": 1, "a": 2}', b"[" * 100_000, b"\xff", b"1e999"]
)
def test_only_json_is_json(data):
    with pytest.raises(ValueError):
        checks.number(checks.parse_json(data), 0, "it")


@pytest.mark.parametrize(
    "check",
    [
        lambda: checks.mapping([], "m"),
        lambda: checks.items({}, "l"),
        lambda: checks.items([1, 2], "l", 1),
        lambda: checks.row([1], 2, "r"),
        lambda: checks.text(1, "t"),
        lambda: checks.text("abc", "t", 2),
        lambda: checks.text("\ud800", "t"),
        lambda: checks.integer(True, 0, 1, "i"),
        lambda: checks.integer(1.0, 0, 1, "i"),
        lambda: checks.integer(2, 0, 1, "i"),
        lambda: checks.number(float("inf"), 0, "n"),
        lambda: checks.number(-1, 0, "n"),
        lambda: checks.boolean(1, "b"),
        lambda: checks.one_of("c", ("a", "b"), "o"),
    ],
)
def test_values_are_of_just_the_type_that_is_meant(check):
    with pytest.raises(ValueError):
        check()


def test_what_is_meant_passes():
    assert checks.text_pairs({"b": "2", "a": "1"}, "p") == (("a", "1"), ("b", "2"))
    assert checks.texts(["x"], "t") == ("x",)
    assert checks.optional(None, lambda v: checks.number(v, 0, "n")) is None
    assert checks.optional(3, lambda v: checks.number(v, 0, "n")) == 3
