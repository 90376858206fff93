"""What is ours in a text that Spark refuses, and what Spark reads in its place; no Spark here."""

from __future__ import annotations

import re

import pytest

from skimql import SkimqlError
from skimql.engine.extension.reading import read

Q = "SELECT APPROXIMATE COUNT(*) FROM a JOIN b USING (k)"


@pytest.mark.parametrize(
    ("text", "purpose"),
    [
        (Q, ""),
        (f"  {Q} ERROR WITHIN 5% ; -- so", ""),
        ("SELECT COUNT(*) FROM a JOIN b USING (k) WITH ERROR 0.05", ""),
        (f"({Q})", ""),
        (f"EXPLAIN {Q}", "statement"),
        ("ESTIMATE ROWS FOR SELECT * FROM a JOIN b USING (k)", "statement"),
        ("SHOW SKETCHES", "statement"),
        ("CREATE OR REPLACE SKETCH s ON a (k)", "statement"),
        (f"EXPLAIN SELECT * FROM ({Q})", "explain"),
        (f"{Q} WHERE a.x < :n ERROR WITHIN :e", ""),
        ("CREATE SKETCH s ON a (k) WHERE x < :n", "statement"),
    ],
)
def test_what_is_ours_becomes_a_call_of_the_same_length(text, purpose):
    found = read(text, 64)
    assert len(found.text) == max(len(text), len("SELECT*FROM __skimql(64)"))
    assert "SELECT*FROM __skimql(64" in found.text
    assert [r["purpose"] for r in found.requests.values()] == [purpose]


@pytest.mark.parametrize(
    "text",
    ["SELEC 1", "SELECT approx FRM t", "SELECT 'SELECT APPROXIMATE COUNT(*)' FRM t x", "-- SHOW SKETCHES\nSELEC 1", "/* open", "SHOW SKETHES", "SELECT 'ERROR WITHIN", "CREATE TABLE t (", ""],
)  # fmt: skip
def test_what_is_none_of_ours_is_left(text):
    assert read(text, 64) is None


def test_what_stands_behind_keeps_its_line_and_column():
    text = f"SELECT *\nFROM (SELECT APPROXIMATE\n COUNT(*)\nFROM a JOIN b USING (k)) x,\n  y WHERE ({Q}) > :n"
    found = read(text, 64)
    assert len(found.text) == len(text)
    assert [i for i, c in enumerate(found.text) if c == "\n"] == [i for i, c in enumerate(text) if c == "\n"]
    for word in (") x,", "y WHERE (", ") > :n"):
        assert found.text.index(word) == text.index(word)
    assert [r["bounds"] for _, r in sorted(found.requests.items())] == [True, False]


@pytest.mark.parametrize(
    ("text", "bounds"),
    [
        (f"INSERT INTO t {Q}", False),
        (f"WITH c AS (SELECT 1) INSERT INTO t (n) {Q}", False),
        (f"CREATE TABLE t USING parquet AS {Q}", True),
        (f"SELECT * FROM x JOIN ({Q}) ON true", True),
        (f"SELECT * FROM x, ({Q}) y", True),
        (f"SELECT * FROM x WHERE n IN ({Q})", False),
        (f"SELECT coalesce(({Q}), 0)", False),
        (f"WITH c AS ({Q}) SELECT * FROM c", True),
        (f"({Q}) UNION ALL (SELECT 1)", True),
    ],
)
def test_only_the_asked_columns_stand_where_there_is_no_room_for_more(text, bounds):
    assert [r["bounds"] for r in read(text, 64).requests.values()] == [bounds]


def test_a_view_keeps_the_select_itself():
    found = read(f"CREATE TEMP VIEW v AS {Q} WHERE s = 'it'", 64)
    assert found.text == (
        f"CREATE TEMP VIEW v AS SELECT * FROM skimql_answer('{Q} WHERE s = \\'it\\'', 'temporary view')"
    )
    assert read(f"CREATE VIEW v AS {Q}", 64).text.endswith("'view')")


def test_statements_of_a_script_are_taken_one_by_one():
    found = read(f"BEGIN {Q}; SELECT 1; {Q}; END", 64)
    assert found.text.count("__skimql(") == 2
    assert "; SELECT 1; " in found.text


def test_each_part_of_a_script_is_read_as_if_it_stood_alone():
    text = (
        f"BEGIN FOR r AS {Q} DO SELECT r.n; END FOR; INSERT INTO t {Q}; CREATE SKETCH s ON a (k);"
        f" CREATE VIEW v AS {Q}; IF ({Q}) > 1 THEN EXACT SELECT 1; END IF; END"
    )
    found = read(text, 64)
    asked = [(r["purpose"], r["bounds"], r["text"] == text) for _, r in sorted(found.requests.items())]
    assert asked == [("", False, True), ("statement", True, True), ("", False, True), ("", True, True)]
    shown = re.sub(r"__skimql\(\d+\) *", "ours", found.text)
    ours = "SELECT*FROM ours"
    assert shown == (
        f"BEGIN FOR r AS {ours}DO SELECT r.n; END FOR; INSERT INTO t {ours}; {ours};"
        f" CREATE VIEW v AS SELECT * FROM skimql_answer('{Q}', 'view'); IF ({ours}) > 1 THEN       SELECT 1; END IF; END"
    )
    with pytest.raises(SkimqlError) as fault:
        read("BEGIN SELECT 1; CREATE SKETCH s ON; END", 64)
    assert fault.value.sql.startswith("BEGIN")
    assert read(f"{Q} ; ;", 64) is not None


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("CREATE SKETCH s ON", "SKIMQL_PARSE_ERROR"),
        (f"{Q}; SELECT 1", "SKIMQL_SEVERAL_STATEMENTS"),
        (f"SELECT * FROM (SELECT 1 UNION {Q})", "SKIMQL_INNER_APPROXIMATE"),
        (f"WITH a AS (SELECT 1) SELECT * FROM a, ({Q})", "SKIMQL_INNER_APPROXIMATE"),
        (f"CREATE VIEW v AS {Q} WHERE a.x < :n", "SKIMQL_PARAMETERS"),
        (f"CREATE OR REPLACE TEMPORARY FUNCTION f() RETURNS BIGINT RETURN ({Q})", "SKIMQL_INNER_APPROXIMATE"),
        (f"BEGIN CREATE FUNCTION f() RETURNS TABLE (n BIGINT) RETURN {Q}; END", "SKIMQL_INNER_APPROXIMATE"),
    ],
)
def test_what_cannot_stand_there_is_refused(text, code):
    with pytest.raises(SkimqlError) as fault:
        read(text, 64)
    assert fault.value.code == code
