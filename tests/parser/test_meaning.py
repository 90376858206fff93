"""A resolved query means what its SQL means: both computed exactly by DuckDB on small random tables.

The graph, filters and terms are put together again from the `Query` alone. A join class lost, a filter dropped,
a NULL counted, a term with the wrong sign or an outer join wrongly made inner gives another number. Seen red with
planted bugs: NULLs of a sum's other terms ignored, CASE branches not exclusive, FULL JOIN made inner by one side,
two keys of one table in one class not equated.
"""

from __future__ import annotations

import math

import duckdb
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from support.meaning import Meaning, in_duckdb
from support.questions import query
from support.random_queries import TABLES, contents, questions

from skimql.errors import UnsupportedQuery


@pytest.fixture(scope="module")
def connection():
    with duckdb.connect() as made:
        yield made


def approximately(one, other):
    if one is None or other is None:
        return one is other
    return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)


def same_rows(rows, expected):
    """Equal as bags, numbers within rounding."""
    key = lambda row: tuple((v is not None, v if v is not None else 0) for v in row)  # noqa: E731
    pairs = list(zip(sorted(rows, key=key), sorted(expected, key=key), strict=False))
    return len(rows) == len(expected) and all(all(map(approximately, a, b)) for a, b in pairs)


@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@given(questions(), st.integers(0, 9))
def test_the_query_means_what_its_text_means(connection, text, data_seed):
    try:
        resolved = query(text.replace("SELECT", "SELECT APPROXIMATE", 1), TABLES)
    except UnsupportedQuery as error:
        assume(error.code not in {"SKIMQL_CYCLIC_JOIN", "SKIMQL_CROSS_EXPRESSION", "SKIMQL_OUTER_JOIN"})
        raise
    for name, table_rows in zip("abc", contents(data_seed), strict=True):
        values = ", ".join(str(row).replace("None", "NULL") for row in table_rows)
        connection.execute(
            f"CREATE OR REPLACE TABLE {name} AS SELECT k::INT AS k, l::INT AS l, m::INT AS m "
            f"FROM (VALUES {values}) AS t(k, l, m)"
        )
    connection.execute(f"CREATE OR REPLACE VIEW v AS {TABLES['v'].view}")
    expected = connection.execute(in_duckdb(text)).fetchall()
    meaning = Meaning(connection, resolved).rows()
    assert same_rows(meaning, expected), (text, meaning, expected)
    if resolved.empty and not resolved.groups:
        assert all(v in (0, None) for v in expected[0])
