"""Which classes a query is tried over."""

import pytest
from support.sampled_queries import SCHEMA

from skimql.errors import UnsupportedQuery
from skimql.parser.key_classes import in_no_order
from skimql.parser.sampled_select import resolve_sampled
from skimql.parser.statement import parse_statement

SELECT = "SELECT APPROXIMATE COUNT(*) AS n FROM "


def read(text, ordered=in_no_order):
    return resolve_sampled(parse_statement(f"{text} USING sampled_query"), SCHEMA, ordered)


def roles(text):
    return [f"{r.table}.{r.column}" for r in read(text).ways[0].roles]


def classes(text, **ordered):
    """The columns of each class, of tables that are in the order of some."""
    ways = read(text, lambda table: ordered.get(table, ())).ways
    return [" ".join(f"{r.table}.{r.column}" for r in w.roles) for w in ways]


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


def test_columns_that_tables_are_in_the_order_of_are_classes_beside_those_of_joins():
    joined = f"{SELECT}a LEFT JOIN b ON a.k = b.k"
    assert classes(joined) == ["a.k b.k"]
    assert classes(joined, a=("j",)) == ["a.k b.k", "a.j"]
    # One that a class has is none of its own, nor one that decides over rows of other keys.
    assert classes(joined, a=("k",), b=("j",)) == ["a.k b.k"]
    assert classes(f"{SELECT}a WHERE a.v > 1", a=("j", "v")) == ["a.j", "a.v"]
    # What is grouped by the class of a join is of many keys of another column.
    grouped = "SELECT APPROXIMATE a.k, COUNT(*) AS n FROM a LEFT JOIN b ON a.k = b.k GROUP BY a.k"
    assert classes(grouped, a=("j",)) == ["a.j"]
    with pytest.raises(UnsupportedQuery, match="each group is of one key"):
        classes(grouped, a=("k",))
    # Grouped by the column itself, a table is sampled by its others, as where nothing is known of its order.
    by_itself = "SELECT APPROXIMATE a.j, COUNT(*) AS n FROM a GROUP BY a.j"
    assert classes(by_itself, a=("j",)) == classes(by_itself) == ["a.k"]
