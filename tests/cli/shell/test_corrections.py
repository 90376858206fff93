"""Corrections that Enter takes."""

from __future__ import annotations

import pytest
from support.kept_catalog import two_sketches

from skimql import ParseError, Session, SkimqlError, UnknownName
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
        ("SELECT talnum FROM 'f.csv'", UnknownName("", "SKIMQL_UNKNOWN_COLUMN", "SELECT talnum FROM `f.csv`", (7, 13), "tailnum"), "SELECT tailnum FROM 'f.csv'"),
    ],
)  # fmt: skip
def test_a_near_name_takes_the_place_of_the_unknown_one(text, fault, meant):
    assert correction(fault, text, NAMES) == meant


ALL = Names((Table("orders", (("id", "bigint"),)), Table("lines", (("oid", "bigint"),))), ("s_lines",))
JOIN = "SELECT APPROXIMATE COUNT(*) FROM orders o JOIN lines l ON o.id = l.oid "


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    return Session(catalog=two_sketches(tmp_path_factory.mktemp("kept")))


def refused(session, text):
    """What SkimQL says of a text before it looks at anything."""
    with pytest.raises(SkimqlError) as found:
        session.sql(text)
    return found.value


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        (JOIN + "ERROR WITHIN 5", JOIN + "ERROR WITHIN 5%"),
        (JOIN + "ERORR WITHIN 5%", JOIN + "ERROR WITHIN 5%"),
        (JOIN + "ERROR WITHN 5%", JOIN + "ERROR WITHIN 5%"),
        (JOIN + "USING hsh", JOIN + "USING hash"),
        (JOIN + "SIZ 64 KB", JOIN + "SIZE 64 KB"),
        (JOIN + "BEHAVIOR 'stric'", JOIN + "BEHAVIOR 'strict'"),
        (JOIN + "CONFIDENCE 95", JOIN + "CONFIDENCE 95%"),
        ("SELECT APPROXIMATE COUNT(*) FORM orders", "SELECT APPROXIMATE COUNT(*) FROM orders"),
        (
            "SELECT APPROXIMATE COUNT(*) FROM orders WHER id > 1",
            "SELECT APPROXIMATE COUNT(*) FROM orders WHERE id > 1",
        ),
        (JOIN.replace("JOIN", "JION"), JOIN),
        ("SELECT APPROXIMATE CUONT(*) FROM orders", "SELECT APPROXIMATE COUNT(*) FROM orders"),
        ("EXPLAIN FORMAT JSN " + JOIN, "EXPLAIN FORMAT JSON " + JOIN),
    ],
)
def test_misspelt_words_and_values_are_corrected(session, text, meant):
    assert correction(refused(session, text), text, ALL) == meant


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("CREATE SKETHC x ON orders (id)", "CREATE SKETCH x ON orders (id)"),
        ("SHOW SKETCHS", "SHOW SKETCHES"),
        ("SHOW xyzzy", None),
    ],
)
def test_words_that_spark_does_not_know(text, meant):
    assert correction(ParseError("Syntax error", "SKIMQL_SPARK_REFUSES", text), text, ALL) == meant


@pytest.mark.parametrize(
    ("command", "message", "hint", "meant"),
    [
        ("\\skteches s*", "there is no command \\skteches", "\\sketches", "\\sketches s*"),
        ("\\xyz", "there is no command \\xyz", "\\?", None),
        ("\\set thme dark", "there is no setting 'thme'", "theme", "\\set theme dark"),
        ("\\set theme drak", "theme = drak is none of dark", "theme = dark", "\\set theme dark"),
        ("\\theme drak", "theme = drak is none of dark", "theme = dark", "\\theme dark"),
        ("\\d ordrs", "there is no table 'ordrs'", "\\d orders", "\\d orders"),
        ("\\n", "there is no query yet", "SELECT APPROXIMATE ...", None),
    ],
)
def test_commands_are_corrected(command, message, hint, meant):
    assert correction(SkimqlError(message, "SKIMQL_UNKNOWN_COMMAND", hint=hint), command, ALL) == meant
