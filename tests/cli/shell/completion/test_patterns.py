"""Where in a statement a text stops."""

from __future__ import annotations

from skimql.cli.shell.completion.patterns import Piece, following


def after(*words):
    return following([Piece("name" if w.islower() else "group" if w == "()" else "word", w) for w in words])


def test_words_that_nothing_can_follow_but_one_are_one_phrase():
    assert "ERROR WITHIN" in after("SELECT", "x", "FROM", "t")
    assert "OR REPLACE SKETCH" in after("CREATE")
    assert after("CREATE", "SKETCH", "s") == ["ON"]


def test_a_phrase_ends_where_the_statement_may():
    assert "SKETCHES" in after("SHOW")


def test_what_begins_nothing_is_followed_by_nothing():
    assert after("x", "y") == []
