"""What conditions say of single tables whose tuples make the rows of a result."""

import pytest
from support.sampled_queries import SCHEMA

from skimql.parser.narrowing import COMPUTED
from skimql.parser.sampled_select import resolve_sampled
from skimql.parser.statement import parse_statement


def read(source, group=""):
    items = f"{group} AS g, COUNT(*) AS n" if group else "COUNT(*) AS n"
    behind = f" GROUP BY {group}" if group else ""
    text = f"SELECT APPROXIMATE {items} FROM {source}{behind} USING sampled_query"
    found = resolve_sampled(parse_statement(text), SCHEMA).narrowing
    told = {t.table: (t.condition, t.groups) for t in found.tables if t.counts}
    others = {t.table: t.groups for t in found.tables if not t.counts and t.groups}
    return told, others, found.unread, found.unread_groups, found.computed_groups


@pytest.mark.parametrize(
    ("source", "told", "unread"),
    [
        ("a WHERE v > 1 AND j IN (1, 2)", {"a": "(`v` > 1) AND (`j` IN (1, 2))"}, 0),
        ("a JOIN b ON a.k = b.k AND b.v < 3 WHERE a.v < b.v", {"a": None, "b": "(`v` < 3)"}, 1),
        # Of an OR what all of its branches say of a table.
        (
            "a JOIN b ON a.k = b.k WHERE (a.v = 1 AND b.v = 2) OR (a.v = 3 AND b.v = 4)",
            {"a": "((`v` = 1) OR (`v` = 3))", "b": "((`v` = 2) OR (`v` = 4))"},
            1,
        ),
        ("a JOIN b ON a.k = b.k WHERE a.v = 1 OR b.v = 2", {"a": None, "b": None}, 1),
        # An equality that closes a cycle is a condition.
        ("a, b WHERE a.k = b.k AND a.j = b.j", {"a": None, "b": None}, 1),
        # The other side of an outer join makes the result no smaller.
        ("a LEFT JOIN b ON a.k = b.k AND b.v = 1 WHERE b.v = 2 AND a.v = 3", {"a": "(`v` = 3)"}, 1),
        ("b RIGHT JOIN a ON a.k = b.k WHERE a.v = 3", {"a": "(`v` = 3)"}, 0),
        ("a FULL JOIN b USING (k) WHERE a.v = 3", {"a": "(`v` = 3)", "b": None}, 0),
        ("a LEFT ANTI JOIN b ON a.k = b.k WHERE a.v = 3", {"a": "(`v` = 3)"}, 1),
        ("a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.v = 1) AND v = 2", {"a": "(`v` = 2)"}, 1),
        # Queries in FROM, by the columns of the tables that they read.
        (
            "(SELECT k, v + 1 AS w FROM a WHERE j = 1) t JOIN b ON t.k = b.k WHERE t.w > 2",
            {"a": "(`j` = 1) AND ((`v` + 1) > 2)", "b": None},
            0,
        ),
        ("(SELECT k, COUNT(*) AS c FROM a WHERE v = 1 GROUP BY k) t WHERE c > 1", {"a": "(`v` = 1)"}, 1),
        ("(SELECT k FROM a WHERE v = 1 EXCEPT SELECT k FROM b) t WHERE k > 1", {"a": "(`v` = 1)"}, 2),
    ],
)
def test_conditions_of_single_tables_are_told_and_others_counted(source, told, unread):
    found, _, left, *_ = read(source)
    assert {table: condition for table, (condition, _) in found.items()} == told
    assert left == unread


def test_of_rows_of_several_queries_nothing_is_known():
    assert read("(SELECT k, v FROM a UNION ALL SELECT k, v FROM b) t")[:2] == ({}, {})


def test_groups_are_told_of_the_tables_that_have_their_columns():
    assert read("a JOIN b ON a.k = b.k", "b.j % 2")[0] == {"a": (None, ()), "b": (None, ("`j` % 2",))}
    assert read("a LEFT JOIN b ON a.k = b.k", "b.j")[:2] == ({"a": (None, ())}, {"b": ("`j`",)})
    assert read("(SELECT k, v + 1 AS w FROM a) t", "w * 2")[0] == {"a": (None, ("(`v` + 1) * 2",))}
    assert read("a JOIN b ON a.k = b.k", "a.v + b.v")[3:] == (1, 0)
    assert read("(SELECT k, COUNT(*) AS c FROM a GROUP BY k) t", "c")[3:] == (0, 1)


def test_of_aggregates_to_which_some_rows_add_nothing_the_others_are_told():
    items = (
        "COUNT(*) AS n, SUM(CASE WHEN b.v = 1 THEN a.v ELSE 0 END) AS c, SUM(IF(a.j > 2, a.v, NULL)) AS i, "
        "COUNT_IF(a.v = 3 AND b.j = 4) AS f, SUM(a.v) FILTER (WHERE w = 5) AS g, AVG(CASE WHEN a.v < b.v THEN 1 END) AS u, "
        "SUM(CASE WHEN b.v = 1 THEN a.v ELSE 1 END) AS o, SUM(CASE b.v WHEN 1 THEN a.v END) AS e"
    )
    source = "a JOIN (SELECT k, j, v, v + j AS w FROM b) b ON a.k = b.k"
    text = f"SELECT APPROXIMATE {items} FROM {source} USING sampled_query"
    found = resolve_sampled(parse_statement(text), SCHEMA).narrowing
    assert {t.table: t.added for t in found.tables} == {
        "a": (None, "(`j` > 2)", "(`v` = 3)", None, None),
        "b": ("(`v` = 1)", None, "(`j` = 4)", "((`v` + `j`) = 5)", None),
    }


def test_a_comparison_with_the_value_of_a_subquery_may_leave_little():
    assert COMPUTED > 1
    for condition, unread in (
        ("a.v < b.v", 1),
        ("EXISTS (SELECT 1 FROM c WHERE c.k = a.k)", 1),
        ("a.v < (SELECT 0.2 * AVG(c.v) FROM c WHERE c.k = a.k)", COMPUTED),
        ("2 * (SELECT MAX(c.v) FROM c) = a.v + 1 AND a.v < b.v", COMPUTED + 1),
    ):
        assert read(f"a JOIN b ON a.k = b.k WHERE {condition}")[2] == unread
