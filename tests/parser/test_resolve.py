"""From SELECT to join graph: names, classes, the join tree, filters and terms."""

from __future__ import annotations

import pytest
from support.questions import edges, filters, query
from support.schemas import XYZ, schema, table

from skimql.errors import UnknownName, UnsupportedQuery
from skimql.parser.join_graph import Factor, Term

ONE = (Term(),)


@pytest.mark.parametrize(
    "from_where",
    [
        "x JOIN y ON x.id = y.id",
        "x, y WHERE x.id = y.id",
        "x INNER JOIN y USING (id)",
        "x NATURAL JOIN y",
        "X JOIN Y ON X.ID = Y.Id",
        "`X` CROSS JOIN `y` WHERE `x`.`ID` = Y.iD AND true AND 1 = 1",
        "x JOIN y ON (y.id = x.id)",
    ],
)
def test_every_form_of_inner_join_is_the_same_edge(from_where):
    resolved = query(f"COUNT(*) FROM {from_where}", XYZ)
    (edge,) = resolved.graph.edges
    assert (edge.left, edge.right) == (0, 1)
    assert (edge.left_keys, edge.right_keys) == (("`id`",), ("`id`",))
    assert edge.key_types == ("int",)
    assert edge.class_name == "id"
    assert [v.table for v in resolved.graph.vertices] == ["x", "y"]
    assert filters(resolved) == {}
    (count,) = resolved.aggregates
    assert (count.function, count.name, count.total, count.presence) == ("count", "count(1)", ONE, ONE)


def test_on_then_using_and_comma_then_join():
    for text in ("x JOIN y ON x.id = y.id JOIN z USING (id)", "x, y JOIN z ON x.id = z.id WHERE x.id = y.id"):
        assert edges(query(f"COUNT(*) FROM {text}", XYZ)) == [
            ("x", ("`id`",), "y", ("`id`",)),
            ("x", ("`id`",), "z", ("`id`",)),
        ]


def test_several_equalities_of_two_tables_are_one_composite_edge():
    resolved = query("COUNT(*) FROM x a JOIN y b ON a.id = b.id AND b.m = a.n", XYZ)
    (edge,) = resolved.graph.edges
    assert (edge.left_keys, edge.right_keys) == (("`id`", "`n`"), ("`id`", "`m`"))
    assert edge.class_name == "id,n"
    assert edge.classes == (0, 1)


def test_transitive_equalities_join_tables_that_no_condition_names_together():
    resolved = query(
        "COUNT(*) FROM x a, x b, x c, x d WHERE a.id = b.id AND c.id = d.id AND b.id = c.id", XYZ
    )
    assert len(resolved.graph.edges) == 3
    assert {e.classes for e in resolved.graph.edges} == {(0,)}
    assert len({e.class_name for e in resolved.graph.edges}) == 3


def test_a_triangle_on_one_key_is_acyclic_and_on_different_keys_cyclic():
    query("COUNT(*) FROM x a, x b, x c WHERE a.id = b.id AND b.id = c.id AND c.id = a.id", XYZ)
    with pytest.raises(UnsupportedQuery) as caught:
        query("COUNT(*) FROM x a, x b, x c WHERE a.id = b.id AND b.n = c.n AND c.id = a.n", XYZ)
    assert caught.value.code == "SKIMQL_CYCLIC_JOIN"


def test_the_tree_takes_the_pair_that_shares_most_classes():
    """With edges a-b (id, n), b-c (id, n) and a-c (id): a tree with a-c would lose c.n = b.m."""
    resolved = query(
        "COUNT(*) FROM x a, y b, x c WHERE a.id = b.id AND c.id = a.id AND a.n = b.m AND b.m = c.n", XYZ
    )
    assert [len(e.left_keys) for e in resolved.graph.edges] == [2, 2]


def test_equality_is_not_transitive_between_types():
    """1 = '1' and 1 = '01', but '1' <> '01': b and c must not be joined in place of a and c."""
    tables = schema(table("a", k="int"), table("b", k="string"), table("c", k="string"))
    assert edges(query("COUNT(*) FROM b, c, a WHERE a.k = b.k AND a.k = c.k", tables)) == [
        ("b", ("`k`",), "a", ("`k`",)),
        ("c", ("`k`",), "a", ("`k`",)),
    ]
    whole = schema(table("a", k="int"), table("b", k="bigint"), table("c", k="smallint"))
    assert [e[0] for e in edges(query("COUNT(*) FROM b, c, a WHERE a.k = b.k AND a.k = c.k", whole))] == [
        "b",
        "b",
    ]


def test_two_keys_of_one_table_in_one_class_become_its_filter():
    resolved = query("COUNT(*) FROM x a, y b WHERE a.id = b.id AND b.id = a.n", XYZ)
    assert filters(resolved) == {"a": "`id` = `n`"}
    assert edges(resolved) == [("a", ("`id`",), "b", ("`id`",))]


def test_expressions_are_keys_and_spark_types_them():
    resolved = query("COUNT(*) FROM x JOIN z ON x.id + 1 = CAST(z.w AS INT) * 2", XYZ)
    (edge,) = resolved.graph.edges
    assert edge.left_keys == ("`id` + 1",)
    assert edge.right_keys == ("CAST(`w` AS INT) * 2",)
    assert edge.key_types == (None,)


def test_key_types_follow_the_session_mode():
    tables = schema(table("i", id="int"), table("s", id="string"))
    text = "COUNT(*) FROM i JOIN s ON i.id = s.id"
    assert query(text, tables).graph.edges[0].key_types == ("bigint",)
    assert query(text, tables, ansi=False).graph.edges[0].key_types == ("int",)
    wide = schema(table("i", id="bigint"), table("s", id="double"))
    assert "2^53" in query(text, wide).warnings[0]


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("n > 3", "`n` > 3"),
        ("x.N>3 and id is not null", "`id` IS NOT NULL AND `n` > 3"),
        ("n > 3 AND (id = 1 OR n < 2) AND n > 3", "(`id` = 1 OR `n` < 2) AND `n` > 3"),
        ("n BETWEEN 1 AND 2 AND id NOT IN (1,2)", "`id` NOT IN (1, 2) AND `n` BETWEEN 1 AND 2"),
        ("1/n > 2 AND id = 1", "1 / `n` > 2 AND `id` = 1"),
        ("NOT (n = 1 AND id = 2)", "NOT (`n` = 1 AND `id` = 2)"),
        ("date_add(DATE '2024-01-02', n) > '2024-01-03'", "DATE_ADD(DATE '2024-01-02', `n`) > '2024-01-03'"),
        ("to_date('x', 'yyyy-MM-dd') = n::date", "TO_DATE('x', 'yyyy-MM-dd') = `n`::DATE"),
        ("log(n) > 1L and 'it''s' <> \"x y\"", "LOG(`n`) > 1L AND 'it''s' <> \"x y\""),
        ("n >> 1 = 3 /* shift */ -- and more", "`n` >> 1 = 3"),
        ("transform(array(1, n), v -> v + 1)[0] = 2", "TRANSFORM(ARRAY(1, `n`), v -> v + 1)[0] = 2"),
        ("dateadd(DAY, n, current_date()) IS NULL", "DATEADD(DAY, `n`, CURRENT_DATE()) IS NULL"),
        ("1 = 0", "1 = 0"),
        ("n <=> NULL", "`n` <=> NULL"),
    ],
)
def test_filters_keep_the_users_expressions(where, expected):
    """What sqlglot would rewrite (formats, LOG, literals, quotes) arrives at Spark as it was written."""
    assert filters(query(f"COUNT(*) FROM x WHERE {where}", XYZ)) == {"x": expected}


def test_equal_filters_are_equal_text():
    one = query("COUNT(*) FROM x WHERE n>3 AND id=1", XYZ)
    other = query("SELECT APPROX COUNT(*) FROM X AS q\nWHERE (q.ID  =  1)\n  and q.N > 3", XYZ)
    assert filters(one)["x"] == filters(other)["q"]


def test_odd_names():
    tables = schema(
        table("order items", **{"order id": "int", "unit.price": "int", "tick`s": "int"}), XYZ["x"]
    )
    resolved = query(
        "COUNT(*), SUM(oi.`unit.price`) FROM `order items` oi JOIN x ON oi.`order id` = x.id "
        "WHERE `tick``s` > 1",
        tables,
    )
    assert edges(resolved) == [("oi", ("`order id`",), "x", ("`id`",))]
    assert filters(resolved) == {"oi": "`tick``s` > 1"}
    assert resolved.aggregates[1].total == (Term((Factor(0, "`unit.price`"),)),)


def test_struct_fields_and_qualified_tables():
    tables = schema(table("main.s.t", a="struct<b:struct<c:int>>", k="int"), XYZ["x"])
    resolved = query(
        "COUNT(t.a.b.c) FROM main.s.t JOIN x ON s.t.k = x.id WHERE a.b.c > 1 AND main.s.t.k = 2", tables
    )
    assert filters(resolved) == {"t": "`a`.b.c > 1 AND `k` = 2", "x": "`id` = 2"}
    assert resolved.aggregates[0].total == (Term((Factor(0, "`a`.b.c", presence=True),)),)


def test_products_over_tables_become_factors():
    (total,) = query("SUM(x.n * 2 * (1 - y.m) * x.id) AS s FROM x JOIN y USING (id)", XYZ).aggregates
    assert total.name == "s"
    assert total.total == (Term((Factor(0, "(`n` * 2) * `id`"), Factor(1, "(1 - `m`)"))),)
    assert total.presence == (
        Term(
            (
                Factor(0, "CASE WHEN (`n` * 2) IS NOT NULL AND `id` IS NOT NULL THEN 1 END", presence=True),
                Factor(1, "(1 - `m`)", presence=True),
            )
        ),
    )


def test_sums_over_tables_become_terms_that_mind_nulls():
    (total,) = query("AVG(x.n - y.m) FROM x JOIN y USING (id)", XYZ).aggregates
    assert total.function == "avg"
    assert total.total == (
        Term((Factor(0, "`n`"), Factor(1, "`m`", presence=True)), 1.0),
        Term((Factor(0, "`n`", presence=True), Factor(1, "`m`")), -1.0),
    )
    assert total.presence == (Term((Factor(0, "`n`", presence=True), Factor(1, "`m`", presence=True))),)


@pytest.mark.parametrize(
    ("item", "name", "total"),
    [
        ("COUNT(*)", "count(1)", ONE),
        ("COUNT(1)", "count(1)", ONE),
        ("count( X.n )", "count(n)", (Term((Factor(0, "`n`", presence=True),)),)),
        (
            "COUNT(n, m)",
            "count(n, m)",
            (Term((Factor(0, "`n`", presence=True), Factor(1, "`m`", presence=True))),),
        ),
        ("SUM(n)", "sum(n)", (Term((Factor(0, "`n`"),)),)),
        ("SUM(3)", "sum(3)", (Term((Factor(0, "3"),)),)),
        ("Sum(-m)", "sum(-m)", (Term((Factor(1, "-`m`"),)),)),
        (
            "SUM(CASE WHEN x.n > 1 THEN 1 ELSE 0 END)",
            "sum(case when n > 1 then 1 else 0 end)",
            (Term((Factor(0, "CASE WHEN `n` > 1 THEN 1 ELSE 0 END"),)),),
        ),
    ],
)
def test_default_names_and_terms(item, name, total):
    (aggregate,) = query(f"{item} FROM x JOIN y USING (id)", XYZ).aggregates
    assert (aggregate.name, aggregate.total) == (name, total)


def test_result_names_are_unique():
    names = [a.name for a in query("COUNT(*), COUNT(*), SUM(n) AS `count(1)` FROM x", XYZ).aggregates]
    assert names == ["count(1)", "count(1)_2", "count(1)_3"]


@pytest.mark.parametrize(
    ("text", "kind", "code", "marked"),
    [
        ("COUNT(*) FROM x, y", UnsupportedQuery, "SKIMQL_CROSS_PRODUCT", "y"),
        ("COUNT(*) FROM y JOIN y ON y.id = y.id", UnknownName, "SKIMQL_AMBIGUOUS_NAME", "y"),
        ("COUNT(*) FROM x, y WHERE x.id < y.id", UnsupportedQuery, "SKIMQL_NON_EQUI_JOIN", "x.id < y.id"),
        (
            "COUNT(*) FROM x JOIN y ON x.id=y.id OR x.n=y.m",
            UnsupportedQuery,
            "SKIMQL_OR_JOIN",
            "x.id=y.id OR x.n=y.m",
        ),
        (
            "COUNT(*) FROM x, y WHERE x.id <=> y.id",
            UnsupportedQuery,
            "SKIMQL_NULL_SAFE_JOIN",
            "x.id <=> y.id",
        ),
        (
            "COUNT(*) FROM x, y WHERE x.id IS NOT DISTINCT FROM y.id",
            UnsupportedQuery,
            "SKIMQL_NULL_SAFE_JOIN",
            "x.id IS NOT DISTINCT FROM y.id",
        ),
        ("COUNT(*) FROM x, y WHERE (x.id + y.id) = 3", UnsupportedQuery, "SKIMQL_MIXED_KEY", "(x.id + y.id)"),
        (
            "COUNT(*) FROM x, y WHERE x.id = y.id IS NULL",
            UnsupportedQuery,
            "SKIMQL_CROSS_PREDICATE",
            "x.id = y.id IS NULL",
        ),
        ("COUNT(*) FROM x, y WHERE x.id = y.idd", UnknownName, "SKIMQL_UNKNOWN_COLUMN", "y.idd"),
        ("COUNT(*) FROM x, y WHERE xx.id = y.id", UnknownName, "SKIMQL_UNKNOWN_TABLE", "xx.id"),
        ("COUNT(*) FROM x, yy", UnknownName, "SKIMQL_UNKNOWN_TABLE", "yy"),
        ("COUNT(id) FROM x JOIN y ON x.id = y.id", UnknownName, "SKIMQL_AMBIGUOUS_NAME", "id"),
        ("COUNT(*) FROM x JOIN y USING (ids)", UnknownName, "SKIMQL_UNKNOWN_COLUMN", "ids"),
        ("MAX(x.id) FROM x", UnsupportedQuery, "SKIMQL_UNSUPPORTED_AGGREGATE", "MAX(x.id)"),
        ("x.id FROM x", UnsupportedQuery, "SKIMQL_NOT_AGGREGATED", "x.id"),
        ("* FROM x", UnsupportedQuery, "SKIMQL_NOT_AGGREGATED", "*"),
        (
            "COUNT(*) FROM x LEFT JOIN y USING (id)",
            UnsupportedQuery,
            "SKIMQL_OUTER_JOIN",
            "LEFT JOIN y USING (id)",
        ),
        ("SUM(x.n / y.m) FROM x JOIN y USING (id)", UnsupportedQuery, "SKIMQL_CROSS_EXPRESSION", "x.n / y.m"),
    ],
)
def test_refusals_name_the_reason_and_the_place(text, kind, code, marked):
    with pytest.raises(kind) as caught:
        query(text, XYZ)
    error = caught.value
    assert error.code == code
    start, end = error.span
    assert error.sql[start:end] == marked
    assert error.hint


def test_keys_that_spark_does_not_compare_are_refused():
    tables = schema(table("a", k="int"), table("b", k="date"), table("c", k="string collate UTF8_LCASE"))
    for text, reason in (("a, b WHERE a.k = b.k", "int with date"), ("c, c d WHERE c.k = d.k", "UTF8_LCASE")):
        with pytest.raises(UnsupportedQuery, match=reason) as caught:
            query(f"COUNT(*) FROM {text}", tables)
        assert caught.value.code == "SKIMQL_KEY_TYPES"


def test_columns_that_differ_in_case_only_are_ambiguous():
    tables = schema(table("t", Id="int", id="int", v="int"))
    with pytest.raises(UnknownName, match="`Id`, `id`"):
        query("COUNT(id) FROM t", tables)


def test_double_quotes_hold_text():
    for text in (
        'COUNT(*) FROM "order items" oi',
        'COUNT(oi."unit.price") FROM x oi',
        'COUNT(*) FROM x AS "oi"',
    ):
        with pytest.raises(Exception, match="backticks") as caught:
            query(text, XYZ)
        assert caught.value.code == "SKIMQL_DOUBLE_QUOTES"


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("(x.id = y.id AND n = 1) OR (x.id = y.id AND n = 2)", {"x": "((`n` = 1) OR (`n` = 2))"}),
        (
            "(n > 5 AND x.id = y.id AND m = 1) OR ((x.id = y.id) AND (m = 2 AND n > 5))",
            {"x": "`n` > 5", "y": "((`m` = 1) OR (`m` = 2))"},
        ),
        ("x.id = y.id OR (x.id = y.id AND n = 2)", {}),
    ],
)
def test_what_all_sides_of_an_or_share_is_taken_out(condition, expected):
    for text in (f"COUNT(*) FROM x JOIN y ON {condition}", f"COUNT(*) FROM x, y WHERE {condition}"):
        resolved = query(text, XYZ)
        assert edges(resolved) == [("x", ("`id`",), "y", ("`id`",))]
        assert filters(resolved) == expected


def test_an_or_that_still_reads_two_tables_is_refused():
    with pytest.raises(UnsupportedQuery) as caught:
        query("COUNT(*) FROM x JOIN y ON (x.id = y.id AND n = 1) OR (x.id = y.id AND m = 2)", XYZ)
    assert caught.value.code == "SKIMQL_OR_JOIN"
