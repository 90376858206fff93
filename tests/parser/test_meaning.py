"""A resolved query means what its SQL means: both computed exactly by DuckDB on small random tables.

The graph, filters and terms are put together again from the `Query` alone. A join class lost, a filter dropped,
a NULL counted, a term with the wrong sign or an outer join wrongly made inner gives another number.
"""

from __future__ import annotations

import math

import duckdb
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from support.meaning import Meaning, in_duckdb
from support.questions import query
from support.schemas import schema, table

from skimql.errors import UnsupportedQuery

TABLES = schema(
    *(table(name, k="int", l="int", m="int") for name in "abc"),
    table("v", k="int", l="int", m="int", view="SELECT k, m AS l, l + 1 AS m FROM a WHERE k > 0"),
)
COLUMNS = ("k", "l", "m")
CELLS = st.none() | st.integers(0, 2)
ROWS = st.lists(st.tuples(CELLS, CELLS, CELLS), max_size=5)


@pytest.fixture(scope="module")
def connection():
    with duckdb.connect() as made:
        yield made


@st.composite
def relations(draw, alias):
    """An item of FROM under an alias: a table, a view, or a subquery over one."""
    name = draw(st.sampled_from(["a", "b", "c", "v"]))
    kind = draw(st.sampled_from(["table", "table", "subquery", "renamed", "starred"]))
    if kind == "subquery":
        return f"(SELECT k, l * 2 AS l, m + k AS m FROM {name} WHERE m IS NOT NULL OR l = 1) {alias}"
    if kind == "renamed":
        return f"(SELECT m, k FROM {name}) {alias}(k, l)"
    return f"(SELECT * FROM (SELECT * FROM {name}) q) {alias}" if kind == "starred" else f"{name} {alias}"


@st.composite
def conditions(draw, alias):
    """A condition on one table."""
    column, other = (f"{alias}.{draw(st.sampled_from(['k', 'l']))}" for _ in range(2))
    value = draw(st.integers(0, 2))
    return draw(
        st.sampled_from(
            [
                f"{column} > {value}",
                f"({column} = {value} OR {other} IS NULL)",
                f"{column} BETWEEN {value} AND 2",
                f"NOT ({column} = {value} AND {other} = 1)",
                f"{column} IN (0, {value})",
                f"{value} <= {column}",
                f"{column} <=> {other}",
                f"CASE WHEN {column} > 0 THEN {other} ELSE 1 END = {value}",
                f"{column} IN (SELECT k FROM b WHERE l = {value})",
                f"{column} = {value}",
            ]
        )
    )


@st.composite
def arguments(draw, aliases):
    """An arithmetic expression over the tables, with CASE and constants."""

    def leaf():
        return draw(
            st.sampled_from([f"{draw(st.sampled_from(aliases))}.{c}" for c in ("k", "l")] + ["2", "0"])
        )

    one, two, three = leaf(), leaf(), leaf()
    test = f"{draw(st.sampled_from(aliases))}.k > 0"
    return draw(
        st.sampled_from(
            [
                one,
                f"{one} * {two}",
                f"{one} * (1 - {two}) + {three}",
                f"-({one} + {two}) * {three}",
                f"{one} - {two} - 1",
                f"CASE WHEN {test} THEN {one} * {two} ELSE {three} END",
                f"CASE WHEN {test} THEN {one} WHEN {aliases[0]}.l = 1 THEN {two} END",
                f"IF({test}, {one}, {two})",
            ]
        )
    )


@st.composite
def aggregates(draw, aliases):
    argument = draw(arguments(aliases))
    column, other = (
        f"{draw(st.sampled_from(aliases))}.{draw(st.sampled_from(['k', 'l']))}" for _ in range(2)
    )
    return draw(
        st.sampled_from(
            [
                "COUNT(*)",
                f"COUNT({argument})",
                f"SUM({argument})",
                f"AVG({argument})",
                f"COUNT(DISTINCT {column}, {other})",
                f"COUNT(*) FILTER (WHERE {column} > 0)",
                f"SUM({argument}) FILTER (WHERE {column} = 1)",
            ]
        )
    )


@st.composite
def questions(draw):
    """A SELECT over one to four relations, joined in any style."""
    aliases = [f"t{i}" for i in range(draw(st.integers(1, 4)))]
    text, where = draw(relations(aliases[0])), []
    for i, alias in enumerate(aliases[1:], 1):
        parent = draw(st.sampled_from(aliases[:i]))
        pairs = draw(
            st.lists(
                st.tuples(st.sampled_from(["k", "l"]), st.sampled_from(["k", "l"])), min_size=1, max_size=2
            )
        )
        equal = " AND ".join(f"{parent}.{a} = {alias}.{b}" for a, b in pairs)
        style = draw(st.sampled_from([",", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN"]))
        item = draw(relations(alias))
        if style in (",", "CROSS JOIN"):
            # A comma before a JOIN would hide the tables before it from ON in DuckDB, not in Spark.
            text += f" CROSS JOIN {item}"
            where.append(equal)
        else:
            text += f" {style} {item} ON {equal}"
            if style != "JOIN":
                where += [f"{parent}.k >= 0", f"{alias}.{draw(st.sampled_from(['k', 'l']))} IS NOT NULL"]
    if len(aliases) > 2 and draw(st.booleans()):
        where.append(f"{aliases[0]}.k = {aliases[-1]}.{draw(st.sampled_from(['k', 'l']))}")
    where += [draw(conditions(draw(st.sampled_from(aliases)))) for _ in range(draw(st.integers(0, 3)))]
    items = [draw(aggregates(aliases)) for _ in range(draw(st.integers(1, 3)))]
    group = draw(st.sampled_from(["", f"{draw(st.sampled_from(aliases))}.l"]))
    condition = f" WHERE {' AND '.join(where)}" if where else ""
    return f"SELECT {', '.join([group] * bool(group) + items)} FROM {text}{condition}" + (
        f" GROUP BY {group}" if group else ""
    )


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
@given(questions(), st.tuples(ROWS, ROWS, ROWS))
def test_the_query_means_what_its_text_means(connection, text, rows):
    try:
        resolved = query(text.replace("SELECT", "SELECT APPROXIMATE", 1), TABLES)
    except UnsupportedQuery as error:
        assume(error.code not in {"SKIMQL_CYCLIC_JOIN", "SKIMQL_CROSS_EXPRESSION", "SKIMQL_OUTER_JOIN"})
        raise
    for name, table_rows in zip("abc", rows, strict=True):
        values = ", ".join(str(row).replace("None", "NULL") for row in [(None, None, None), *table_rows])
        connection.execute(
            f"CREATE OR REPLACE TABLE {name} AS SELECT k::INT AS k, l::INT AS l, m::INT AS m "
            f"FROM (VALUES {values}) AS t(k, l, m) OFFSET 1"
        )
    connection.execute(f"CREATE OR REPLACE VIEW v AS {TABLES['v'].view}")
    expected = connection.execute(in_duckdb(text)).fetchall()
    meaning = Meaning(connection, resolved).rows()
    assert same_rows(meaning, expected), (text, meaning, expected)
    if resolved.empty and not resolved.groups:
        assert all(v in (0, None) for v in expected[0])
