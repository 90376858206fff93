"""Answers for people."""

import datetime
from dataclasses import replace

import pytest

from skimql import Estimate
from skimql.engine.results.answer import Answer
from skimql.engine.results.display import as_html, as_text, cell_text, format_cell, grid, number_text

CELL = Estimate(1234.5678, 1134.0, 1335.0, 0.95, True, "theorem")
ANSWER = Answer(
    ("g", "n"), (("a<b", CELL), ("c", CELL)), notes=("so",), uncertain=(False, True), aggregated=(False, True)
)


def test_an_estimate_has_the_digits_that_its_interval_supports():
    assert format_cell(CELL) == "1,230 ± 110"
    assert format_cell(Estimate(5.0, 5.0, 5.0, 1.0, True, "exact")) == "5"
    assert format_cell(Estimate(5.0, 0.0, float("inf"), 0.95, False, "theorem")) == "5 (no bound)"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "NULL"),
        (True, "true"),
        (float("nan"), "NaN"),
        (datetime.datetime(2020, 1, 2, 3), "2020-01-02 03:00:00"),
        (b"\x01", "01"),
    ],
)
def test_values_are_shown_as_spark_does(value, text):
    assert cell_text(value) == number_text(value) == text


def test_a_table_has_its_numbers_to_the_right_and_says_what_is_uncertain():
    table = grid(ANSWER)
    assert table.header == ("g", "n", "uncertain")
    assert table.numeric == (False, True, False)
    assert [r[2] for r in table.rows] == ["no", "yes"]
    certain = replace(ANSWER, uncertain=(False, False))
    assert grid(certain).header == ("g", "n")
    assert "uncertain" in certain.records()[0]


def test_text_and_html_have_the_notes_and_nothing_unescaped():
    assert as_text(ANSWER).endswith("note: so")
    assert "a&lt;b" in as_html(ANSWER)
    assert "<svg" in as_html(ANSWER)
