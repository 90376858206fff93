"""The handler's side of a call, without a JVM: values for parameters, places, faults as values."""

from __future__ import annotations

import json

import pytest

from skimql import Answer, Estimate, ParseError, UnsupportedQuery
from skimql.engine.extension.handler import Handler, _Part, _say, told
from skimql.parser.join_graph import Span


def test_values_stand_in_the_places_of_parameters():
    text = "SELECT * FROM (SELECT APPROXIMATE COUNT(*) FROM a WHERE k = :k ERROR WITHIN ?) x"
    asked = {
        "text": text,
        "start": 15,
        "end": 77,
        "markers": [(60, 62, "k"), (76, 77, None)],
        "literals": ["'long text'", "0.05D"],
    }
    part = _Part.of(asked)
    assert (
        part.text == " " * 15 + "SELECT APPROXIMATE COUNT(*) FROM a WHERE k = 'long text' ERROR WITHIN 0.05"
    )


@pytest.mark.parametrize(("place", "expected"), [((34, 42), (34, 42)), ((72, 77), (63, 68))])
def test_the_place_of_a_fault_is_that_in_the_whole_text(place, expected):
    text = "SELECT * FROM (SELECT APPROXIMATE COUNT(*) FROM a WHERE k = :k ERROR WITHIN 5%) x"
    part = _Part(text, Span(15, 78), [(Span(60, 62), "'long text'")])
    fault = part.located(ParseError("wrong", sql=part.text, span=place))
    assert (fault.sql, fault.span) == (text, expected)


def test_a_fault_is_told_as_spark_counts():
    about = told(UnsupportedQuery("no", "SKIMQL_X", "SELECT\n  a <\n b", (9, 12), "try this"), "")
    assert about["line"] == 2
    assert (about["position"], about["start"], about["stop"]) == (2, 9, 11)
    assert about["message"] == "no\n  try: try this"
    assert not about["parse"]


def test_nothing_is_raised():
    handler = Handler()
    assert json.loads(handler.apply("no JSON", None))["error"]["code"] == "SKIMQL_FAILED"
    assert (
        json.loads(handler.apply('{"op": "read", "text": "x"}', None))["error"]["code"]
        == "SKIMQL_NOT_ENABLED"
    )
    assert handler.apply('{"op": "ping"}', None) == "{}"


@pytest.mark.parametrize(
    ("bounds", "certified", "level"),
    [(True, False, "INFO"), (False, True, "INFO"), (False, False, "WARNING")],
)
def test_what_no_column_says_is_a_warning_of_the_log(bounds, certified, level, caplog):
    cell = Estimate(5.0, 4.0, 6.0, 0.95, certified, "theorem")
    with caplog.at_level("INFO", logger="skimql"):
        _say(Answer(("n",), ((cell,),), notes=("a note",), bounds=bounds))
    assert [(r.levelname, r.message) for r in caplog.records] == [(level, "a note")]
