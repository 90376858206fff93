"""SELECT text to a tree in which every node knows its place."""

import pytest
from support.questions import query

from skimql.errors import ParseError, UnsupportedQuery
from skimql.parser.join_graph import Span
from skimql.parser.select import parse_expression, parse_select

TEXT = "SELECT SUM(a.n * (1 - b)) AS s FROM t a WHERE n IN (1, 2)"


def test_nodes_know_their_text():
    source = parse_select(TEXT)
    total = source.tree.expressions[0].this
    assert source.text_of(total) == "SUM(a.n * (1 - b))"
    assert source.text_of(source.tree.args["where"].this) == "n IN (1, 2)"
    span = source.span_of(total)
    assert TEXT[span.start : span.end] == "SUM(a.n * (1 - b))"


def test_an_expression_within_a_statement_has_the_statements_offsets():
    source = parse_expression(TEXT, Span(11, 24))
    span = source.span_of(source.tree)
    assert TEXT[span.start : span.end].startswith("a.n * (1 - b)")


@pytest.mark.parametrize("text", ["SELECT FROM WHERE", "SELECT (1", "SELECT 1 FROM t WHERE", "SELECT 1 2 3"])
def test_what_is_no_select_is_refused_in_a_line_of_ours(text):
    with pytest.raises(ParseError) as fault:
        parse_select(text)
    assert fault.value.line == 1


def test_pipe_syntax_is_refused_at_its_place():
    # `v` is the count there, and would be taken for a column of t.
    text = "SELECT COUNT(*) AS v FROM t |> WHERE v > 3"
    with pytest.raises(UnsupportedQuery, match="pipe syntax is not read") as fault:
        parse_select(text)
    assert text[slice(*fault.value.span)] == "|>"


@pytest.mark.parametrize(
    ("behind", "place", "hint"),
    [
        ("GROUP r.b", "GROUP", "GROUP BY r.b"),
        ("GROUP BY r.b ORDER r.b DESC", "ORDER", "ORDER BY r.b"),
        ("USING", "USING", "USING key_sample"),
        ("BEHAVIOR strict", "BEHAVIOR", "BEHAVIOR 'strict'"),
        ("SIZE 64 KX", "KX", "SIZE 64 KB"),
        ("SIZE 64 K B", "K", "SIZE 64 KB"),
        ("ERROR WITHIN 5% CONFIDENCE", "CONFIDENCE", "CONFIDENCE 95%"),
    ],
)
def test_a_clause_of_which_a_word_is_missing_is_shown_as_it_is_written(behind, place, hint):
    with pytest.raises(ParseError) as fault:
        query(f"COUNT(*) FROM r JOIN s ON r.a = s.a {behind}", {})
    assert fault.value.sql[slice(*fault.value.span)] == place
    assert fault.value.hint.startswith(hint)
