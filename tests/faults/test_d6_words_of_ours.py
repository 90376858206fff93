"""Statements with our words where Spark would read them as something else; pure."""

from __future__ import annotations

import pytest

from skimql.errors import SkimqlError
from skimql.parser.statement import ApproximateSelect, PassThrough, parse_statement
from skimql.parser.syntax import DropSketch, ShowSketches


@pytest.mark.parametrize(
    "head",
    ["CREATE TABLE z AS", "INSERT INTO z", "CREATE OR REPLACE TEMP VIEW v AS", "CACHE TABLE z AS", "FROM a"],
)
def test_select_approximate_behind_anything_is_refused_with_a_way_out(head):
    with pytest.raises(SkimqlError) as caught:
        parse_statement(f"{head} SELECT APPROXIMATE COUNT(*) FROM a")
    assert caught.value.code == "SKIMQL_INNER_APPROXIMATE"
    assert "SELECT APPROXIMATE" in caught.value.hint or "skimql.enable(spark)" in caught.value.hint


@pytest.mark.parametrize(
    "text",
    ["INSERT INTO z SELECT approx FROM a", "CREATE VIEW v AS SELECT 'SELECT APPROX x' FROM a", "CREATE TABLE z AS SELECT approximate, k FROM a",
     "CREATE VIEW v AS SELECT 1 -- SELECT APPROXIMATE COUNT(*)\n", "DROP TABLE sketches", "DESCRIBE sketches", "SHOW TABLES"],
)  # fmt: skip
def test_what_only_looks_like_ours_goes_to_spark(text):
    assert isinstance(parse_statement(text), PassThrough)


def test_parentheses_around_the_whole_statement_change_nothing():
    plain = parse_statement("SELECT APPROXIMATE COUNT(*) FROM a WHERE (k = ')')")
    wrapped = parse_statement("((SELECT APPROXIMATE COUNT(*) FROM a WHERE (k = ')')))")
    assert isinstance(wrapped, ApproximateSelect)
    assert wrapped.select_sql.split() == plain.select_sql.split()


@pytest.mark.parametrize(
    "text",
    ["REFRESH SKETCHES w", "DESCRIBE SKETCHES w", "EXPORT SKETCHES w TO 'x'", "IMPORT SKETCHES w FROM 'x'", "ALTER SKETCH s RENAME TO t",
     "SHOW SKETCH s", "APPEND SKETCHES w FROM a", "SHOW STREAM s", "CREATE OR REPLACE STREAMS s"],
)  # fmt: skip
def test_statements_about_sketches_that_do_not_exist_are_refused_by_us(text):
    with pytest.raises(SkimqlError) as caught:
        parse_statement(text)
    assert caught.value.code == "SKIMQL_PARSE_ERROR"
    assert caught.value.hint


def test_statements_about_sketches_that_people_expect_are_read():
    assert isinstance(parse_statement("DROP SKETCHES IF EXISTS w"), DropSketch)
    assert parse_statement("SHOW SKETCHES LIKE 'a*|b'") == ShowSketches("", "a*|b")
    assert parse_statement("SHOW SKETCHES 'a*'") == ShowSketches("", "a*")
