"""The sets of columns of ROLLUP, CUBE and GROUPING SETS, and the text that Spark runs by sets and keys."""

import pytest
from support.sampled_queries import SCHEMA

from skimql.errors import UnsupportedQuery
from skimql.parser.sampled_select import resolve_sampled
from skimql.parser.statement import parse_statement


def read(group, items="COUNT(*) AS n", source="a JOIN b ON a.k = b.k"):
    text = f"SELECT APPROXIMATE {items} FROM {source} GROUP BY {group} USING sampled_query"
    return resolve_sampled(parse_statement(text), SCHEMA)


@pytest.mark.parametrize(
    ("group", "sets"),
    [
        ("ROLLUP(a.v, b.v)", ((0, 1), (0,), ())),
        ("a.v, b.v WITH ROLLUP", ((0, 1), (0,), ())),
        ("CUBE(a.v, b.v)", ((0, 1), (0,), (1,), ())),
        ("a.v, b.v WITH CUBE", ((0, 1), (0,), (1,), ())),
        ("GROUPING SETS ((a.v, b.v), (b.v), ())", ((0, 1), (1,), ())),
        ("a.v, b.v GROUPING SETS ((a.v, b.v), (a.v))", ((0, 1), (0,))),
        ("a.j, ROLLUP(a.v, (b.v, b.j))", ((0, 1, 2, 3), (0, 1), (0,))),
        ("GROUPING SETS (ROLLUP(a.v), (b.v))", ((0,), (), (1,))),
    ],
)
def test_sets_are_those_that_sql_defines(group, sets):
    query = read(group)
    assert query.sets_of_groups == sets
    text = query.by_key(query.ways[0], lambda role: "true", ("1 AS x",), ("a.k",))
    assert "grouping_id() AS `__set`" in text
    whole = ", ".join(query.group_texts[n] for n in sets[0])
    assert f"GROUPING SETS (({whole}, a.k)" in text
    assert text.endswith("))")


def test_a_set_with_the_key_and_one_that_stands_there_twice_are_refused():
    with pytest.raises(UnsupportedQuery, match="each group is of one key"):
        read("ROLLUP(a.k, b.v)", source="a JOIN b ON a.k = b.k JOIN c ON a.k = c.k AND c.j = a.k")
    with pytest.raises(UnsupportedQuery, match="twice"):
        read("GROUPING SETS ((a.v), (a.v))")


def test_inside_a_subquery_they_look_at_all_keys():
    with pytest.raises(UnsupportedQuery) as raised:
        read("t.n", source="(SELECT COUNT(*) AS n FROM a GROUP BY ROLLUP(a.k)) t")
    assert raised.value.code == "SKIMQL_NOT_DECOMPOSED"
    assert "several sets of columns" in raised.value.message
