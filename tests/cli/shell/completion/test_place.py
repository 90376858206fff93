"""Where in a text the cursor is."""

from __future__ import annotations

from support.completion_cases import NAMES

from skimql import tokens
from skimql.cli.shell.completion.place import after_semicolon, find_place, pieces_of, typed_path


def test_the_level_and_the_word_of_the_cursor():
    text = "SELECT 1; SELECT sum(f.di FROM flights f"
    place = find_place(text, text.index("di") + 2, NAMES)
    assert (place.prefix, place.qualifier) == ("di", "f")
    assert [t.text for t in place.outer] == ["SELECT", "sum"]
    assert place.start == text.index("di")


def test_a_text_is_a_word_while_it_is_open_and_a_path_where_one_may_stand():
    assert find_place("SELECT 'a'", 9, NAMES) is None
    assert find_place("SELECT 'a b", 11, NAMES).prefix == "'a b"
    assert typed_path(find_place("SELECT 'a", 9, NAMES)) is None
    assert typed_path(find_place("SELECT 1 FROM 'd/f", 18, NAMES)) == ("d/f", "'")
    assert typed_path(find_place("SELECT 1 FROM parquet.`d/f", 26, NAMES)) == ("d/f", "`")


def test_in_comments_there_is_no_place():
    assert find_place("SELECT 1 -- a", 13, NAMES) is None


def test_pieces_are_whole_names_and_parentheses():
    assert [p.word for p in pieces_of(tokens("SELECT a.b, count(x + 1) FROM t ERROR WITHIN 5%"))] == [
        "SELECT", ".B", ",", "COUNT", "()", "FROM", "T", "ERROR", "WITHIN", "%",
    ]  # fmt: skip
    assert [t.text for t in after_semicolon(tokens("a; (b; c) d"))] == ["(", "b", ";", "c", ")", "d"]
