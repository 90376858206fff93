"""Which classes a query is tried over."""

import pytest
from support.sampled_queries import SCHEMA

from skimql.errors import UnsupportedQuery
from skimql.parser.sampled_select import resolve_sampled
from skimql.parser.statement import parse_statement

SELECT = "SELECT APPROXIMATE COUNT(*) AS n FROM "


def read(text):
    return resolve_sampled(parse_statement(f"{text} USING sampled_query"), SCHEMA)


def roles(text):
    return [f"{r.table}.{r.column}" for r in read(text).ways[0].roles]


def test_a_group_of_one_key_is_refused():
    with pytest.raises(UnsupportedQuery, match="each group is of one key"):
        read("SELECT APPROXIMATE a.k, COUNT(*) FROM a JOIN b ON a.k = b.k GROUP BY a.k")
    # By another class it would be of many keys.
    assert roles("SELECT APPROXIMATE a.k, COUNT(*) FROM a JOIN b ON a.j = b.j GROUP BY a.k") == ["a.j", "b.j"]


def test_classes_are_those_that_equalities_make_through_queries_in_from():
    source = "(SELECT a.k AS x, a.j AS y FROM a) t JOIN b ON t.x = b.v JOIN c ON t.y = c.k"
    assert {tuple(r.column for r in w.roles) for w in read(SELECT + source).ways} == {("k", "v"), ("j", "k")}


def test_rows_of_a_union_all_that_nothing_joins_are_sampled_by_a_key_of_each_side():
    sides = (
        "SELECT 'a' AS w FROM a JOIN b ON a.k = b.k",
        "SELECT 'b' FROM c LEFT JOIN d ON c.j = d.j",
        "SELECT 'c' FROM b",
    )
    assert roles(f"{SELECT}({' UNION ALL '.join(sides[:2])}) t") == ["a.k", "b.k", "c.j", "d.j"]
    assert roles(f"{SELECT}({' UNION ALL '.join(sides)}) t")[:4] == ["a.k", "b.k", "c.j", "d.j"]
    # Those of UNION are told apart by what is shown.
    with pytest.raises(UnsupportedQuery):
        read(f"{SELECT}({' UNION '.join(sides[:2])}) t")
