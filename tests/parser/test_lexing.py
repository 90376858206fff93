"""Small things that every reader of a statement needs."""

from skimql.parser.join_graph import Span
from skimql.parser.lexing import blank, grammar, identifiers, unquote, with_quoted_names


def test_identifiers_are_words_and_quoted_names_not_texts():
    assert {"select", "a b", "t"} <= identifiers("SELECT `A b` FROM t WHERE x = 'no name'")
    assert "no name" not in identifiers("SELECT 'no name'")


def test_double_quotes_around_names_become_backticks_and_texts_stay():
    assert with_quoted_names('SELECT "a" FROM t WHERE b = \'x"y"\'') == "SELECT `a` FROM t WHERE b = 'x\"y\"'"


def test_blanks_keep_offsets_and_line_ends():
    assert blank("ab\ncd", Span(1, 4)) == "a \n d"


def test_literals_lose_their_quotes():
    assert [unquote(t) for t in ("'a'", '"a b"')] == ["a", "a b"]


def test_a_grammar_is_built_once():
    assert grammar("clauses") is grammar("clauses")
