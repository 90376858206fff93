"""Columns by the whole name of their table."""

import pytest
from support.sampled_queries import SCHEMA

from skimql.errors import UnsupportedQuery
from skimql.parser.join_graph import TableSchema
from skimql.parser.sampled_select import resolve_sampled
from skimql.parser.statement import parse_statement

NAMES = ("d.a", "d.b", "e.a", "c.d.a")
HERE = {n: TableSchema(n, SCHEMA["a"].columns) for n in NAMES} | SCHEMA


def text_of(select):
    query = resolve_sampled(parse_statement(f"{select} USING sampled_query"), HERE)
    (way, *_) = query.ways
    text = query.by_key(way, lambda role: f"in {role.table}", query.measures, (way.key,))
    return " ".join(text.split()), query


def test_a_column_by_the_whole_name_of_its_table_is_that_of_the_filtered_table():
    text, query = text_of(
        "SELECT APPROXIMATE d.a.v % 2 AS g, SUM(`D`.`A`.v) AS s FROM d.a JOIN d.b ON d.a.k = d.b.k AND d.b.v > 1"
        " GROUP BY g"
    )
    assert text == (
        "SELECT a.v % 2 AS `__g0`, SUM(`A`.v), COUNT(`A`.v) "
        "FROM (SELECT * FROM d.a WHERE in d.a) AS `a` JOIN (SELECT * FROM d.b WHERE in d.b) AS `b`"
        " ON a.k = b.k AND b.v > 1 GROUP BY a.v % 2, `a`.`k`"
    )
    # Places are those of the text that was written.
    place = query.groups[0].span
    assert query.sql[place.start : place.end] == "g"
    longer, _ = text_of("SELECT APPROXIMATE COUNT(*) AS n FROM c.d.a JOIN b ON c.d.a.k = b.k WHERE d.a.v > 1")
    assert "ON a.k = b.k WHERE a.v > 1" in longer


@pytest.mark.parametrize(
    "select",
    [
        "SELECT APPROXIMATE COUNT(*) AS n FROM d.a JOIN e.a ON d.a.k = e.a.k",
        # The inner table would take the place of the outer one.
        "SELECT APPROXIMATE COUNT(*) AS n FROM d.a WHERE EXISTS (SELECT 1 FROM b AS a WHERE a.k = d.a.k)",
        "WITH a AS (SELECT * FROM b) SELECT APPROXIMATE COUNT(*) AS n FROM d.a JOIN a ON d.a.k = a.k",
    ],
)
def test_a_last_name_that_is_another_tables_too_is_refused_with_its_place(select):
    with pytest.raises(UnsupportedQuery, match="a is the name of several tables") as refused:
        text_of(select)
    fault = refused.value
    assert fault.code == "SKIMQL_NOT_DECOMPOSED"
    assert fault.sql[slice(*fault.span)] == "d.a.k"
    assert fault.hint == "an alias behind the table: FROM d.a AS t"
    # What the hint says is read.
    text_of(select.replace("FROM d.a", "FROM d.a AS t").replace("d.a.k", "t.k"))


def test_a_field_of_a_struct_is_left_as_it_is():
    text, _ = text_of("SELECT APPROXIMATE COUNT(*) AS n FROM d.b AS d JOIN b ON d.k = b.k WHERE d.v.x > 1")
    assert "WHERE d.v.x > 1" in text
