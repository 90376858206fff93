"""Statements and clauses: what is ours, what goes to Spark, and where it stands in the text."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skimql.errors import ParseError, SkimqlError, UnsupportedQuery
from skimql.parser.join_graph import Accuracy
from skimql.parser.statement import (
    ApproximateSelect,
    EstimateRows,
    ExactSelect,
    Explain,
    PassThrough,
    SetOption,
    parse_statement,
    split_statements,
)


def test_semicolons_in_text_and_comments_do_not_split():
    script = "SELECT 'a;b'; -- c; d\n/* e; */ SELECT 1; SELECT 2;"
    pieces = split_statements(script)
    assert [p.sql for p in pieces] == ["SELECT 'a;b'", "-- c; d\n/* e; */ SELECT 1", "SELECT 2"]
    assert [script[p.start : p.start + len(p.sql)] for p in pieces] == [p.sql for p in pieces]
    assert all(p.terminated for p in pieces)


@pytest.mark.parametrize(
    "script",
    [
        "SELECT `a;b` FROM t",
        'SELECT "a;b" FROM t',
        r"SELECT 'it\'s; fine'",
        "SELECT 'it''s; fine'",
        r"SELECT r'\'",
        "SELECT 1 /* a /* nested; */ comment; */",
        "SELECT 1 -- to the end; of the line",
    ],
)
def test_one_statement_stays_one(script):
    (piece,) = split_statements(script)
    assert piece.sql == script
    assert not piece.terminated


@pytest.mark.parametrize("script", ["", " ;; \n", "-- only; a comment", "/* a */ ; /* b */"])
def test_blanks_and_comments_are_no_statements(script):
    assert split_statements(script) == ()


@settings(deadline=None)
@given(st.text(alphabet="ab ';`\"\\-/*\nr", max_size=30))
def test_splitting_loses_nothing_but_blanks_and_comments(script):
    try:
        pieces = split_statements(script)
    except ParseError:
        # Only a comment that is not closed stops the splitting.
        assert "/*" in script
        return
    for piece in pieces:
        assert script[piece.start :].startswith(piece.sql)
        assert [p.sql for p in split_statements(piece.sql)] == [piece.sql]


def test_all_clauses_are_read():
    text = (
        "SELECT APPROXIMATE COUNT(*) FROM a JOIN b USING (k)\n"
        "ERROR WITHIN 5% AT CONFIDENCE 95% USING agms OPTIONS (rows = 7, path = 'x y', off = -1) SEED 7 "
        "BEHAVIOR 'strict';"
    )
    statement = parse_statement(text)
    assert isinstance(statement, ApproximateSelect)
    assert statement.accuracy == Accuracy(0.05, 0.95, "strict")
    assert statement.method == "agms"
    assert dict(statement.options) == {"rows": "7", "path": "x y", "off": "-1"}
    assert statement.seed == 7
    assert statement.select_sql == "SELECT             COUNT(*) FROM a JOIN b USING (k)"
    shown = {name: text[s.start : s.end] for name, s in statement.clause_spans.items()}
    assert shown["error_within"] == "ERROR WITHIN 5% AT CONFIDENCE 95%"
    assert shown["seed"] == "SEED 7"


@pytest.mark.parametrize(
    ("clauses", "accuracy"),
    [
        ("ERROR WITHIN 5%", Accuracy(0.05)),
        ("error within 0.05", Accuracy(0.05)),
        ("ERROR WITHIN 5 % CONFIDENCE 99.5 %", Accuracy(0.05, 0.995)),
        ("WITH ERROR 0.1", Accuracy(0.1)),
        ("WITH ERROR .1 CONFIDENCE 0.9 BEHAVIOR 'LOCAL_OMIT'", Accuracy(0.1, 0.9, "local_omit")),
        ("CONFIDENCE 90% ERROR WITHIN 2%", Accuracy(0.02, 0.9)),
    ],
)
def test_both_spellings_of_accuracy_make_a_select_approximate(clauses, accuracy):
    statement = parse_statement(f"SELECT COUNT(*) FROM a {clauses}")
    assert isinstance(statement, ApproximateSelect)
    assert statement.accuracy == accuracy
    assert statement.select_sql == "SELECT COUNT(*) FROM a"


@pytest.mark.parametrize(
    "text",
    [
        "select 1",
        "SELECT error, seed, options, confidence FROM behavior",
        "SELECT approximate, b FROM t",
        "SELECT t.approx FROM t",
        "SELECT approximate FROM t",
        "SELECT a FROM t JOIN u USING (k)",
        "WITH error AS (SELECT 1) SELECT * FROM error",
        "CREATE TABLE t USING parquet OPTIONS (path 'p') AS SELECT 1",
        "INSERT INTO t SELECT approximate FROM u",
        "EXPLAIN SELECT 1",
        "EXPLAIN EXTENDED SELECT 1",
        "SET spark.sql.ansi.enabled = true",
        "SET",
        "SELECT 1)",
        "SELECT 'open",
        "exact",
        "(SELECT 1)",
        "DESCRIBE t",
    ],
)
def test_what_is_not_ours_goes_to_spark_unchanged(text):
    assert parse_statement(text) == PassThrough(text)


@pytest.mark.parametrize("word", ["APPROXIMATE", "approx", "Approximate"])
def test_ctes_may_come_first_and_comments_between(word):
    text = f"WITH c AS (SELECT 1 AS k) /* why */ SELECT -- here\n {word} COUNT(*) FROM c"
    statement = parse_statement(text)
    assert isinstance(statement, ApproximateSelect)
    assert statement.select_sql == text.replace(word, " " * len(word))


def test_exact_explain_estimate_and_set():
    exact = parse_statement("EXACT SELECT COUNT(*) FROM a ERROR WITHIN 5%;")
    assert exact == ExactSelect(exact.sql, "      SELECT COUNT(*) FROM a")
    explain = parse_statement("EXPLAIN FORMAT json SELECT APPROX COUNT(*) FROM a")
    assert isinstance(explain, Explain)
    assert explain.format == "json"
    assert explain.statement.select_sql.split() == ["SELECT", "COUNT(*)", "FROM", "a"]
    rows = parse_statement("ESTIMATE ROWS FOR SELECT * FROM a")
    assert isinstance(rows, EstimateRows)
    assert rows.select.select_sql.split() == ["SELECT", "*", "FROM", "a"]
    assert parse_statement("set skimql.Max_Bytes = '64 MB'").value == "64 MB"
    assert parse_statement("SET skimql.error = 0.05") == SetOption(
        "SET skimql.error = 0.05", "skimql.error", "0.05"
    )
    assert parse_statement("SET skimql.bounds = none;").value == "none"


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        ("SELECT APPROXIMATE COUNT(*) FROM a ERROR WITHIN 5% LIMIT 10", "LIMIT"),
        ("SELECT APPROXIMATE COUNT(*) FROM a ERROR WITHIN CONFIDENCE 5", "CONFIDENCE"),
        ("SELECT APPROXIMATE COUNT(*)) FROM a", ")"),
        ("SELECT APPROXIMATE 'a FROM x", "'a FROM x"),
        ("SELECT /* a /* b */ APPROX 1", "/*"),
        ("SELECT APPROXIMATE 1 ERROR WITHIN 5", "5"),
        ("SELECT APPROXIMATE 1 ERROR WITHIN 500%", "500%"),
        ("SELECT APPROXIMATE 1 USING hush", "hush"),
        ("SELECT APPROXIMATE 1 SEED 1.5", "1.5"),
        ("SELECT APPROXIMATE 1 SIZE 0 KB", "SIZE 0 KB"),
        ("SELECT APPROXIMATE 1 SEED 1 SEED 2", "SEED 2"),
        ("SELECT APPROXIMATE 1 OPTIONS (a = 1, A = 2)", "A"),
        ("SELECT APPROXIMATE 1 BEHAVIOR 'strickt'", "'strickt'"),
        ("SELECT APPROXIMATE 1; SELECT 2", ";"),
        ("EXPLAIN FORMAT dot SELECT APPROXIMATE 1", "dot"),
    ],
)
def test_a_mistake_in_our_words_is_shown_where_it_stands(text, marked):
    with pytest.raises(ParseError) as caught:
        parse_statement(text)
    start, end = caught.value.span
    assert text[start:end] == marked
    assert caught.value.hint


def test_approximate_inside_a_subquery_is_refused():
    with pytest.raises(UnsupportedQuery) as caught:
        parse_statement("SELECT APPROXIMATE COUNT(*) FROM (SELECT APPROX k FROM a)")
    assert caught.value.code == "SKIMQL_INNER_APPROXIMATE"


WORDS = st.sampled_from(
    [
        "SELECT",
        "APPROXIMATE",
        "FROM",
        "WITH",
        "ERROR",
        "WITHIN",
        "5",
        "%",
        "CONFIDENCE",
        "0.9",
        "USING",
        "agms",
        "OPTIONS",
        "(",
        ")",
        ",",
        "=",
        "SEED",
        ";",
        "'",
        "`",
        "/*",
        "*/",
        "EXACT",
        "EXPLAIN",
        "FORMAT",
        "json",
        "ESTIMATE",
        "ROWS",
        "FOR",
        "SET",
        "skimql.error",
        "BEHAVIOR",
        "'strict'",
        "COUNT(*)",
        "a",
        "--",
        "é",
    ]
)


@settings(deadline=None)
@given(st.lists(WORDS, max_size=12).map(" ".join))
def test_any_text_is_a_statement_or_an_error_of_ours(text):
    try:
        statement = parse_statement(text)
    except SkimqlError:
        return
    else:
        assert statement.sql == text
