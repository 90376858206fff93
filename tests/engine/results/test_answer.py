"""An answer: rows of cells, and what is made of them."""

import math
from dataclasses import replace
from fractions import Fraction

import pytest

from skimql import Estimate, Message
from skimql.engine.results.answer import (
    Answer,
    half_width,
    misses,
    uncertified_answer,
    with_confidence,
    with_target,
)
from skimql.sketches.intervals.interval import exact

CELL = Estimate(100.0, 90.0, 120.0, 0.95, True, "theorem")
ANSWER = Answer(("n",), ((CELL,),), aggregated=(True,))


def test_the_only_cell_has_a_value_and_an_interval():
    assert (ANSWER.value, ANSWER.low, ANSWER.high, ANSWER.estimate) == (100.0, 90.0, 120.0, CELL)
    with pytest.raises(ValueError):
        _ = Answer(("a", "b"), ((CELL, CELL),)).value


def test_records_iteration_and_length_agree():
    (record,) = ANSWER
    assert [record] == ANSWER.records()
    assert len(ANSWER) == 1
    assert tuple(record) == ANSWER.names
    assert (record["n"], record["certified"]) == (100.0, True)


def test_a_missed_target_is_told_and_can_be_omitted():
    assert (half_width(CELL), misses(CELL, 0.1), misses(CELL, 0.3)) == (20.0, True, False)
    told = with_target(ANSWER, 0.1)
    assert told.target == "missed"
    assert told.notes
    assert ANSWER.omitting(0.1).value is None
    assert with_target(ANSWER, 0.3) == replace(ANSWER, target="met", targets=("met",))
    assert told.records()[0]["target"] == "missed"
    assert list(told.arrow().column("target").to_pylist()) == list(told.to_pandas()["target"]) == ["missed"]
    assert "target" not in ANSWER.names


def test_a_narrow_interval_that_is_not_certified_is_not_known_to_meet_its_target():
    doubted = uncertified_answer(ANSWER)
    told = with_target(doubted, 0.3)
    assert told.target == "unknown"
    assert "not certified" in told.notes[0]
    assert doubted.omitting(0.3).value is None
    assert with_target(doubted, 0.1).target == "unknown", "nor is what a wide one misses known"


@pytest.mark.parametrize("value", [100, Fraction(1, 3), math.nan])
def test_what_was_exact_of_tables_that_have_changed_is_not_known_to_meet_a_target(value):
    answer = Answer(("n",), ((exact(value),),), aggregated=(True,))
    assert with_target(answer, 0.1).target == "met"
    doubted = uncertified_answer(answer)
    assert not doubted.rows[0][0].exact
    assert with_target(doubted, 0.1).target == "unknown"
    assert with_confidence(doubted, 0.95).rows[0][0].confidence == 0.95
    assert doubted.omitting(0.1).value is None


def test_nothing_is_certified_once_it_is_said_so():
    assert not uncertified_answer(ANSWER).records()[0]["certified"]


def test_a_message_has_no_rows():
    message = Message.of("skimql.seed = 3")
    assert (str(message), len(message)) == ("skimql.seed = 3", 0)
