"""The text that Spark runs for a sample of keys, and what is asked of its result."""

import pytest
from support.sampled_queries import SCHEMA

from skimql.errors import UnsupportedQuery
from skimql.parser.sampled_select import resolve_sampled
from skimql.parser.statement import parse_statement

SELECT = "SELECT APPROXIMATE COUNT(*) AS n FROM "


def read(text):
    return resolve_sampled(parse_statement(f"{text} USING sampled_query"), SCHEMA)


def test_a_key_that_a_query_in_from_does_not_show_is_put_into_it():
    query = read(f"{SELECT}(SELECT a.v FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k)) t")
    text = query.by_key(query.ways[0], lambda role: "TRUE", (), (query.ways[0].key,))
    assert ", `a`.`k` AS `__skimql_key_" in text
    # Not where it would be one more column of what is combined by its columns.
    with pytest.raises(UnsupportedQuery):
        read(f"{SELECT}(SELECT a.v FROM a UNION SELECT b.v + 1 FROM b) t")
    with pytest.raises(UnsupportedQuery):
        read(f"{SELECT}(SELECT v + 0 AS w FROM a) t NATURAL JOIN (SELECT v + 0 AS w FROM a) u")


def test_tables_are_filtered_where_they_stand_and_nothing_else_of_the_text_is_changed():
    query = read(
        "SELECT APPROXIMATE a.v % 2 AS g, COUNT(*) AS n FROM a, b AS y WHERE a.k = y.k GROUP BY g HAVING n > 1 LIMIT 3"
    )
    text = query.by_key(query.ways[0], lambda role: f"in {role.table}", ("COUNT(*)",), (query.ways[0].key,))
    assert text.splitlines() == [
        "SELECT a.v % 2 AS `__g0`, COUNT(*)",
        "FROM (SELECT * FROM a WHERE in a) AS `a`, (SELECT * FROM b WHERE in b) AS y WHERE a.k = y.k",
        "GROUP BY a.v % 2, `a`.`k`",
    ]
    assert query.limit == 3
