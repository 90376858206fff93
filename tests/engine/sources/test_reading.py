"""A statement read as Spark would read it."""

import pytest

from skimql.engine.sources.environment import Circumstances
from skimql.engine.sources.reading import read_statement
from skimql.engine.sources.settings_followed import DOUBLE_QUOTED
from skimql.parser.statement import ApproximateSelect, PassThrough

SELECT = 'SELECT APPROXIMATE COUNT(*) FROM a JOIN b ON a."k" = b.k OPTIONS (seed = 1)'


def read(text, *settings, ansi=True):
    return read_statement(text, lambda: Circumstances(ansi, "UTC", settings))


def test_what_stands_in_double_quotes_is_a_name_where_ansi_mode_and_the_setting_say_so():
    quoted = (DOUBLE_QUOTED, "true")
    assert "a.`k`" in read(SELECT, quoted).select_sql
    assert 'a."k"' in read(SELECT, quoted, ansi=False).select_sql
    assert 'a."k"' in read(SELECT).select_sql
    assert read(SELECT, quoted).sql == SELECT
    inner = read(f"EXPLAIN {SELECT}", quoted).statement
    assert isinstance(inner, ApproximateSelect)
    assert "a.`k`" in inner.select_sql
    rows = read(f"ESTIMATE ROWS FOR {SELECT[7:].replace('APPROXIMATE COUNT(*)', 'SELECT *')}", quoted)
    assert "a.`k`" in rows.select.select_sql


@pytest.mark.parametrize("text", ["SELECT 1", "EXPLAIN EXACT SELECT 1", "SHOW SKETCHES"])
def test_nothing_is_asked_of_spark_for_statements_without_expressions_of_ours(text):
    def never():
        raise AssertionError("asked")

    assert read_statement(text, never).sql == text


def test_what_is_spark_s_is_not_looked_into():
    assert isinstance(read('SELECT "x"', (DOUBLE_QUOTED, "true")), PassThrough)
