"""What names mean in queries within queries, and what is read of them."""

import pytest
from support.sampled_queries import SCHEMA

from skimql.errors import UnknownName
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
