"""Where approximate SELECTs stand in a statement of Spark's."""

from __future__ import annotations

import pytest

from skimql.parser.embedded import embedded, in_place_of, inserts, is_explained, markers, stored_as, unquoted
from skimql.parser.join_graph import Span

Q = "SELECT APPROXIMATE COUNT(*) FROM a JOIN b USING (k)"


@pytest.mark.parametrize(
    "text",
    ["SELECT approx FROM t", "SELECT approx AS n FROM t", "SELECT 'SELECT APPROXIMATE COUNT(*)'", "SELECT `SELECT APPROXIMATE n` FROM t", "SELECT 1 -- SELECT APPROXIMATE n", "SELECT error FROM t", ""],
)  # fmt: skip
def test_there_is_none_where_the_words_are_names_or_texts(text):
    assert embedded(text) == ()


@pytest.mark.parametrize(
    ("before", "behind"),
    [("SELECT * FROM (", ") x"), ("CREATE VIEW v AS ", ""), ("CREATE VIEW v AS ", " ; "), ("INSERT INTO t ", ""), ("BEGIN ", "; SELECT 1; END"), ("SELECT f((", "))"), ("WITH c AS (", ") SELECT 1")],
)  # fmt: skip
@pytest.mark.parametrize(
    "query", [Q, f"WITH d AS (SELECT 1) {Q}", f"{Q} ERROR WITHIN 5%", "SELECT COUNT(*) FROM a WITH ERROR 0.1"]
)
def test_it_reaches_from_its_first_word_to_its_last(before, behind, query):
    (found,) = embedded(before + query + behind)
    assert (before + query + behind)[found.span.start : found.span.end] == query


def test_the_outermost_is_found_and_not_what_is_in_it():
    (found,) = embedded(f"CREATE VIEW v AS SELECT APPROXIMATE COUNT(*) FROM ({Q}) x")
    assert found.span.start == len("CREATE VIEW v AS ")


def test_parameters_are_found_and_parts_of_variants_are_not():
    text = "SELECT v:name, v::INT, ? FROM t WHERE k = :k AND s = ':no' -- :no\n LIMIT :n"
    assert [m.name for m in markers(text, Span(0, len(text)))] == [None, "k", "n"]


def test_pieces_are_laid_over_lines():
    assert (
        in_place_of("a <b\nccccc\nd> e", Span(2, 13), ["12345", "6"])
        == "a   \n123456\n   e"[:4] + "\n12345\n6  e"
    )
    assert in_place_of("a <> e", Span(2, 4), ["12345"]) == "a 12345 e"


def test_heads():
    assert [stored_as(t) for t in ("CREATE VIEW v", "CREATE OR REPLACE TEMP VIEW v", "CACHE TABLE t", "/* x */ ALTER VIEW v", "SELECT 1")] == ["view", "temporary view", "temporary view", "view", ""]  # fmt: skip
    assert [
        inserts(t) for t in ("INSERT INTO t", "WITH c AS (SELECT 1) INSERT INTO t", "SELECT 'INSERT'")
    ] == [True, True, False]
    assert is_explained("EXPLAIN SELECT 1")
    assert not is_explained("SELECT 1")
    assert unquoted("a 'b' `c") == "a       "
