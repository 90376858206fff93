"""Corrections that Enter takes."""

from __future__ import annotations

import pytest

from skimql import ParseError, SkimqlError, UnknownName
from skimql.cli.shell.corrections import correction
from skimql.cli.shell.names import Names, Table

NAMES = Names((Table("flights", (("tailnum", "string"),)), Table("order items", ())))


@pytest.mark.parametrize(
    ("text", "fault", "meant"),
    [
        ("SELECT 1 FROM flihgts", UnknownName("", "SKIMQL_UNKNOWN_TABLE", "SELECT 1 FROM flihgts", (14, 21), "flights, planes"), "SELECT 1 FROM flights"),
        ("SELECT f.talnum FROM f", UnknownName("", "SKIMQL_UNKNOWN_COLUMN", "SELECT f.talnum FROM f", (7, 15), "tailnum"), "SELECT f.tailnum FROM f"),
        ("SELECT x FROM f", UnknownName("", "SKIMQL_UNKNOWN_COLUMN", "SELECT x FROM f", (7, 8), "tailnum, year"), None),
        ("SELECT 1 FROM q", UnknownName("", "SKIMQL_UNKNOWN_TABLE", "SELECT 1 FROM q", (14, 15), "register one first"), None),
        ("SELECT * FROM fligths", ParseError("The table or view `fligths` cannot be found.", "SKIMQL_SPARK_REFUSES"), "SELECT * FROM flights"),
        ("SELCT 1", ParseError("Syntax error", "SKIMQL_SPARK_REFUSES"), "SELECT 1"),
        ("SELECT APROXIMATE COUNT(*) FROM t", ParseError("Syntax error", "SKIMQL_SPARK_REFUSES"), "SELECT APPROXIMATE COUNT(*) FROM t"),
        ("SELECT 1", SkimqlError("x"), None),
    ],
)  # fmt: skip
def test_a_near_name_takes_the_place_of_the_unknown_one(text, fault, meant):
    assert correction(fault, text, NAMES) == meant
