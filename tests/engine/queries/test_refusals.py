"""What Spark refuses, in our words; the texts are Spark's."""

from __future__ import annotations

import pytest

from skimql.cli.shell.corrections import correction
from skimql.cli.shell.names import Names, Table
from skimql.engine.queries.refusals import refusal

NAMES = Names((Table("flights", (("dep_delay", "int"),)),))


@pytest.mark.parametrize(
    ("sql", "said", "message", "marked", "hint", "meant"),
    [
        (
            "SELECT\n  dep_dlay FROM flights",
            "A column, variable, or function parameter with name `dep_dlay` cannot be resolved. Did you mean one of the"
            " following? [`dep_delay`, `a b`.`c.d`]. SQLSTATE: 42703; line 2 pos 2;",
            "A column, variable, or function parameter with name `dep_dlay` cannot be resolved.",
            "dep_dlay",
            "dep_delay, `a b`.`c.d`",
            "SELECT\n  dep_delay FROM flights",
        ),
        (
            "SELECT f.dep_dlay FROM flights f",
            "A column with name `f`.`dep_dlay` cannot be resolved. Did you mean one of the following? [`f`.`dep_delay`]."
            " SQLSTATE: 42703; line 1 pos 7;",
            "A column with name `f`.`dep_dlay` cannot be resolved.",
            "f.dep_dlay",
            "f.dep_delay",
            "SELECT f.dep_delay FROM flights f",
        ),
        (
            "SELCT 1",
            "Syntax error at or near 'SELCT'. SQLSTATE: 42601 (line 1, pos 0)",
            "Syntax error at or near 'SELCT'.",
            "SELCT",
            "SELECT",
            "SELECT 1",
        ),
        (
            "SELECT sum(値段) FROM flights",
            "The unquoted identifier 値段 is invalid and must be back quoted as: `値段`.",
            "The unquoted identifier 値段 is invalid and must be back quoted as: `値段`.",
            "値段",
            "`値段`",
            "SELECT sum(`値段`) FROM flights",
        ),
        (
            "SELECT 1 FROM flihgts",
            "The table or view `flihgts` cannot be found. Verify the spelling. SQLSTATE: 42P01; line 1 pos 14;",
            "The table or view `flihgts` cannot be found. Verify the spelling.",
            "flihgts",
            "flights",
            "SELECT 1 FROM flights",
        ),
        ("SELECT 1 +", "Syntax error at or near end of input. SQLSTATE: 42601 (line 1, pos 10)",
         "Syntax error at or near end of input.", "", "", None),
        ("SHOW x", "something else", "something else", None, "", None),
    ],
)  # fmt: skip
def test_a_refusal_has_a_place_near_names_and_a_correction(sql, said, message, marked, hint, meant):
    fault = refusal(said, sql, sql, ["flights"])
    assert (fault.message, fault.hint, fault.code) == (message, hint, "SKIMQL_SPARK_REFUSES")
    assert marked == (None if fault.span is None else sql[slice(*fault.span)])
    assert correction(fault, sql, NAMES) == meant


def test_a_part_of_a_statement_has_its_place_in_the_whole():
    fault = refusal("no. SQLSTATE: 42601 (line 1, pos 7)", "EXACT SELECT q", "SELECT q")
    assert fault.span == (13, 14)


def test_a_text_in_which_our_words_are_blanked_has_its_place_in_the_statement():
    sql = "SELECT APPROXIMATE q ERROR WITHIN 5%"
    fault = refusal("no. SQLSTATE: 42703; line 1 pos 19;", sql, "SELECT             q")
    assert fault.span == (19, 20)
