"""What names mean in queries within queries, and what is read of them."""

import pytest
from support.sampled_queries import SCHEMA, database, differences

from skimql.errors import UnknownName, UnsupportedQuery
from skimql.parser.sampled_select import resolve_sampled
from skimql.parser.statement import parse_statement

SELECT = "SELECT APPROXIMATE COUNT(*) AS n FROM "


def read(text):
    return resolve_sampled(parse_statement(f"{text} USING sampled_query"), SCHEMA)


def roles(text):
    return [f"{r.table}.{r.column}" for r in read(text).ways[0].roles]


def test_a_name_that_an_inner_query_has_is_its_own():
    assert roles(f"{SELECT}a WHERE EXISTS (SELECT 1 FROM b WHERE k = a.k)") == ["a.k", "b.k"]
    assert roles(f"{SELECT}a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = j)") == ["a.k"]


def test_a_name_of_with_that_is_read_whole_somewhere_is_whole_everywhere():
    text = "WITH w AS (SELECT k, v FROM a) SELECT APPROXIMATE COUNT(*) AS n FROM w JOIN b ON w.k = b.k"
    assert roles(text) == ["a.k", "b.k"]
    assert roles(f"{text} WHERE b.v > (SELECT AVG(v) FROM w)") == ["b.k"]


def test_a_table_that_is_not_there_is_named():
    with pytest.raises(UnknownName, match="no table 'nothing'"):
        read(f"{SELECT}a WHERE EXISTS (SELECT 1 FROM nothing WHERE k = a.k)")


def test_joins_are_taken_from_left_to_right_as_spark_does():
    # Rows of `a` have a part in the RIGHT JOIN behind the comma: which of them are there decides what is padded.
    assert roles(f"{SELECT}a, b RIGHT JOIN c ON a.k = c.k") == ["a.k", "c.k"]
    assert roles(f"{SELECT}a, b RIGHT JOIN c ON b.k = c.k WHERE a.k = c.k") == ["c.k"]


def test_columns_of_one_name_in_a_query_are_told_apart_by_their_places():
    pairs = "(SELECT * FROM (SELECT * FROM a JOIN d ON a.j = d.j) t) AS u(k1, j1, v1, k2, j2, v2)"
    # Which of both columns k, or j, of t is meant no name tells, so that they are no keys: Spark would refuse t.j.
    ways = read(f"{SELECT}{pairs} JOIN b ON u.k2 = b.k").ways
    assert [[f"{r.table}.{r.column}" for r in w.roles] for w in ways] == [["b.k"]]
    single = "(SELECT * FROM a JOIN d ON a.j = d.j) AS u(k1, j1, v1, k2, j2, v2)"
    ways = read(f"{SELECT}{single} JOIN b ON u.k2 = b.k").ways
    assert ["d.k", "b.k"] in [[f"{r.table}.{r.column}" for r in w.roles] for w in ways]
    for source in (pairs, single):
        for column in ("k1", "k2"):
            text = f"{SELECT}{source} JOIN b ON u.{column} = b.k USING sampled_query"
            assert differences(database(3), text) == []


def test_columns_that_both_sides_of_a_natural_join_have_are_in_the_order_of_the_left_one():
    source = "(SELECT * FROM (SELECT k, v FROM a) q NATURAL JOIN (SELECT v, k, j FROM c) r) AS u(x, y, z)"
    assert roles(f"{SELECT}{source} JOIN b ON u.x = b.k") == ["a.k", "c.k", "b.k"]
    assert roles(f"{SELECT}{source} JOIN b ON u.y = b.k") == ["a.v", "c.v", "b.k"]
    for column in "xyz":
        text = f"{SELECT}{source} JOIN b ON u.{column} = b.k USING sampled_query"
        assert differences(database(5), text) == []


def test_what_may_be_any_number_of_columns_is_refused():
    for item in ("s.*", "a.v.*"):
        with pytest.raises(UnsupportedQuery) as raised:
            read(f"{SELECT}(SELECT {item}, v, k FROM a) AS t(x, y, z, w) JOIN b ON t.w = b.k")
        assert raised.value.code == "SKIMQL_NOT_DECOMPOSED"
        assert raised.value.hint
