"""Statements as frozen values."""

from skimql.parser.statement import parse_statement
from skimql.parser.syntax import BEHAVIORS, FORMATS, METHODS, CreateSketch, SetOption


def test_statements_are_compared_by_what_they_say_not_by_their_text():
    one, other = (parse_statement(t) for t in ("SET skimql.seed = 3", "set  skimql.seed=3"))
    assert one == other == SetOption("", "skimql.seed", "3")


def test_parts_are_compared_without_their_places():
    one, other = (parse_statement(t) for t in ("CREATE SKETCH s ON t (k)", "CREATE  SKETCH `s`  ON t  (k)"))
    assert isinstance(one, CreateSketch)
    assert one == other


def test_words_of_the_language_are_listed_once():
    for words in (BEHAVIORS, FORMATS, METHODS):
        assert len(set(words)) == len(words)
