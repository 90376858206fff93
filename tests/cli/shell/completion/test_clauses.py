"""Where in an expression a text stops."""

from __future__ import annotations

import pytest

from skimql import tokens
from skimql.cli.shell.completion.clauses import clause, in_expression, ordered, wants_operand
from skimql.cli.shell.completion.place import pieces_of


def pieces(text):
    return pieces_of(tokens(text))


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("SELECT a FROM t WHERE a BETWEEN 1", "AND"),
        ("SELECT a FROM t WHERE a BETWEEN 1 AND 2", None),
        ("SELECT a FROM t WHERE a", "="),
        ("SELECT a FROM t WHERE a IS", "NULL"),
        ("SELECT a FROM t WHERE a NOT", "IN"),
        ("SELECT CASE a", "WHEN"),
        ("SELECT CASE WHEN a = 1", "THEN"),
        ("SELECT CASE WHEN a = 1 THEN 2", "ELSE"),
        ("SELECT CASE WHEN a = 1 THEN 2 ELSE 3", "END"),
        ("SELECT CASE WHEN a = 1 THEN 2 END", None),
        ("SELECT a FROM t WHERE a =", None),
    ],
)
def test_what_must_follow_within_an_expression(text, first):
    assert in_expression(pieces(text))[:1] == (() if first is None else (first,))


def test_a_case_is_no_clause():
    assert clause(pieces("SELECT a FROM t WHERE CASE WHEN a = 1 THEN 2 END")) == "WHERE"
    assert clause(pieces("SELECT CASE WHEN a = 1")) == "SELECT"


def test_a_star_is_an_operator_behind_a_value_only():
    assert wants_operand(pieces("SELECT a *"))
    assert not wants_operand(pieces("SELECT *"))


def test_accuracy_is_offered_where_something_is_estimated():
    words = ("WHERE", "ERROR WITHIN", "SIZE", "UNION", "JOIN")
    assert ordered(words, pieces("SELECT a FROM t"), nested=False) == ["JOIN", "WHERE", "UNION"]
    assert ordered(words, pieces("SELECT COUNT(*) FROM t"), nested=False)[2] == "ERROR WITHIN"
    assert "SIZE" not in ordered(words, pieces("SELECT APPROXIMATE COUNT(*) FROM t"), nested=True)
