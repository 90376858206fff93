"""Subqueries, WITH, views, parentheses, outer joins: flattened where they only select, project and join."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.questions import edges, filters, query
from support.schemas import XYZ, schema, table

from skimql.errors import UnknownName, UnsupportedQuery
from skimql.parser.join_graph import Factor, Term

X_Y = [("x", ("`id`",), "y", ("`id`",))]


@pytest.mark.parametrize(
    "text",
    [
        "COUNT(*) FROM (SELECT * FROM x WHERE n > 5) q JOIN y ON q.id = y.id",
        "COUNT(*) FROM (SELECT id AS k, n FROM x) q JOIN y ON q.k = y.id WHERE q.n > 5",
        "COUNT(*) FROM ((SELECT id, n FROM x)) AS q(k, v), y WHERE k = id AND v > 5",
        "COUNT(*) FROM (SELECT k FROM (SELECT id k, n FROM x) WHERE n > 5) JOIN y ON k = y.id",
        "COUNT(*) FROM (SELECT x.* EXCEPT (n) FROM x WHERE x.n > 5) q NATURAL JOIN y",
        "COUNT(*) FROM (x JOIN y ON x.id = y.id) WHERE x.n > 5",
        "COUNT(*) FROM (x JOIN y USING (id)) AS q WHERE q.n > 5",
        "COUNT(*) FROM (SELECT x.id AS i, n FROM x JOIN y ON x.id = y.id) WHERE n > 5",
        "WITH q AS (SELECT * FROM x) SELECT APPROX COUNT(*) FROM q JOIN y USING (id) WHERE q.n > 5",
        "WITH p AS (SELECT * FROM x), q(a, b) AS (SELECT id, n FROM p WHERE n > 5) "
        "SELECT APPROX COUNT(*) FROM q r JOIN y ON r.a = y.id",
        "COUNT(*) FROM (WITH q AS (SELECT * FROM x) SELECT * FROM q WHERE n > 5) JOIN y USING (id)",
    ],
)
def test_every_shape_is_the_same_join(text):
    resolved = query(text, XYZ)
    assert [v.table for v in resolved.graph.vertices] == ["x", "y"]
    assert [(e.left_keys, e.right_keys) for e in resolved.graph.edges] == [(("`id`",), ("`id`",))]
    assert [v.filter for v in resolved.graph.vertices] == ["`n` > 5", None]


def test_views_are_read_through_and_kept_whole_where_spark_must_evaluate_them():
    tables = schema(
        *XYZ.values(),
        table("big", id="int", m="int", view="SELECT id, m FROM y WHERE m > 100"),
        table("sums", id="int", total="bigint", view="SELECT id, sum(m) AS total FROM y GROUP BY id"),
        table("wide", id="int", m="int", view="SELECT x.id, m FROM x LEFT JOIN y ON x.id = y.id"),
        table("far", id="int", view="SELECT id FROM elsewhere"),
    )
    assert edges(query("COUNT(*) FROM x JOIN big b ON x.id = b.id", tables)) == [
        ("x", ("`id`",), "b", ("`id`",))
    ]
    flat = query("COUNT(*) FROM x JOIN big b ON x.id = b.id WHERE b.m < 300", tables)
    assert flat.graph.vertices[1].table == "y"
    assert filters(flat) == {"b": "`m` < 300 AND `m` > 100"}
    for name in ("sums", "wide", "far"):
        assert query(f"COUNT(*) FROM x JOIN {name} USING (id)", tables).graph.vertices[1].table == name


def test_what_cannot_be_split_over_a_view_is_asked_of_the_view_as_a_whole():
    view = "SELECT x.id, n / m AS ratio FROM x JOIN y ON x.id = y.id"
    tables = schema(*XYZ.values(), table("ratios", id="int", ratio="double", view=view))
    resolved = query("SUM(r.ratio) FROM ratios r JOIN z USING (id)", tables)
    assert [v.table for v in resolved.graph.vertices] == ["ratios", "z"]
    assert [v.table for v in query("COUNT(id) FROM ratios", tables).graph.vertices] == ["x", "y"]


def test_a_mistake_inside_a_view_is_shown_at_its_name():
    view = "SELECT x.id, n / m AS ratio FROM x JOIN y ON x.id = y.id"
    tables = schema(*XYZ.values(), table("ratios", id="int", ratio="double", view=view))
    with pytest.raises(UnsupportedQuery) as caught:
        query("SUM(r.ratio), MAX(r.id) FROM ratios r", tables)
    start, end = caught.value.span
    assert caught.value.sql[start:end] == "ratios r"
    assert caught.value.code == "SKIMQL_CROSS_EXPRESSION"


def test_columns_of_subqueries_are_expressions_of_their_tables():
    resolved = query(
        "SUM(q.v * y.m) s FROM (SELECT id + 1 AS k, n * 2 AS v FROM x) q JOIN y ON q.k = y.id WHERE q.v > 3",
        XYZ,
    )
    assert edges(resolved) == [("q", ("(`id` + 1)",), "y", ("`id`",))]
    assert filters(resolved) == {"q": "(`n` * 2) > 3"}
    assert resolved.aggregates[0].total == (Term((Factor(0, "(`n` * 2)"), Factor(1, "`m`"))),)


def test_a_product_behind_a_subquerys_column_is_split():
    resolved = query("SUM(q.v) s FROM (SELECT x.n * y.m AS v FROM x JOIN y USING (id)) q", XYZ)
    assert resolved.aggregates[0].total == (Term((Factor(0, "`n`"), Factor(1, "`m`"))),)


def test_a_name_of_with_used_twice_is_two_vertices():
    resolved = query(
        "WITH q AS (SELECT * FROM x WHERE n > 5) SELECT APPROX COUNT(*) FROM q a, q b WHERE a.id=b.id", XYZ
    )
    assert [(v.table, v.alias, v.filter) for v in resolved.graph.vertices] == [
        ("x", "a", "`n` > 5"),
        ("x", "b", "`n` > 5"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "x LEFT JOIN y ON x.id = y.id WHERE y.m > 0",
        "x LEFT OUTER JOIN y USING (id) WHERE y.m IS NOT NULL",
        "x RIGHT JOIN y ON x.id = y.id WHERE x.n + 1 = 3",
        "x FULL JOIN y ON x.id = y.id WHERE x.n = 1 AND NOT y.m = 3",
        "x LEFT JOIN y USING (id) WHERE m IN (1, 2) OR m LIKE 3",
        "x LEFT JOIN y ON x.id = y.id JOIN z ON z.id = y.id",
        "x LEFT JOIN y ON x.id = y.id LEFT JOIN z ON z.id = y.m WHERE z.w > 'a'",
        "(SELECT x.n, y.m AS v FROM x LEFT JOIN y ON x.id = y.id) q WHERE CAST(q.v AS INT) BETWEEN 1 AND 9",
        "x FULL JOIN y USING (id) JOIN z ON z.id = x.id WHERE y.m > 1",
    ],
)
def test_outer_joins_made_inner_by_later_conditions(text):
    assert len(query(f"COUNT(*) FROM {text}", XYZ).graph.edges) >= 1


@pytest.mark.parametrize(
    "text",
    [
        "x LEFT JOIN y ON x.id = y.id",
        "x LEFT JOIN y ON x.id = y.id AND y.m > 0",
        "x LEFT JOIN y ON x.id = y.id WHERE y.m IS NULL",
        "x LEFT JOIN y ON x.id = y.id WHERE coalesce(y.m, 1) > 0",
        "x LEFT JOIN y ON x.id = y.id WHERE x.n > 0",
        "x LEFT JOIN y USING (id) WHERE id > 0",
        "x RIGHT JOIN y USING (id) WHERE id > 0",
        "x FULL JOIN y USING (id) WHERE id > 0",
        "x FULL JOIN y ON x.id = y.id WHERE x.n > 0",
        "x LEFT JOIN (SELECT * FROM y WHERE m > 5) q ON x.id = q.id",
        "x LEFT JOIN y ON x.id = y.id WHERE y.m > 0 OR x.n > 0",
        "x LEFT JOIN y ON x.id = y.id WHERE y.m <=> 1",
        "x LEFT JOIN y ON x.id = y.id LEFT JOIN z ON z.id = y.m",
        "x LEFT JOIN y ON x.id = y.id WHERE NOT (y.m = 1 AND x.n = 1)",
        "x LEFT JOIN y ON x.id = y.id WHERE y.m NOT IN (SELECT 1)",
    ],
)
def test_outer_joins_that_stay_are_refused(text):
    with pytest.raises(UnsupportedQuery) as caught:
        query(f"COUNT(*) FROM {text}", XYZ)
    assert caught.value.code == "SKIMQL_OUTER_JOIN"
    start, end = caught.value.span
    assert "JOIN" in caught.value.sql[start:end]


@pytest.mark.parametrize(
    ("text", "code", "marked"),
    [
        ("COUNT(*) FROM (SELECT id, n AS id FROM x) q JOIN y ON q.id = y.id", "AMBIGUOUS_NAME", "q.id"),
        ("COUNT(*) FROM (SELECT id, SUM(m) s FROM y GROUP BY id) q", "AGGREGATE_IN_FROM", "GROUP BY id"),
        ("COUNT(*) FROM (SELECT SUM(m) s FROM y) q", "AGGREGATE_IN_FROM", "SUM(m)"),
        ("COUNT(*) FROM (SELECT DISTINCT id FROM y) q", "UNSUPPORTED_CLAUSE", ""),
        ("COUNT(*) FROM x LEFT SEMI JOIN y USING (id)", "OUTER_JOIN", "LEFT SEMI JOIN y USING (id)"),
        ("COUNT(*) FROM x AS q(a)", "COLUMN_COUNT", "x AS q(a)"),
        ("COUNT(*) FROM range(10)", "UNSUPPORTED_RELATION", "range(10)"),
        ("COUNT(*) FROM x TABLESAMPLE (10 PERCENT)", "UNSUPPORTED_CLAUSE", ""),
        ("COUNT(*) FROM x WHERE rand() < 0.1", "UNSUPPORTED_FUNCTION", "rand"),
        ("COUNT(*) FROM (SELECT explode(array(1)) e FROM x)", "UNSUPPORTED_FUNCTION", "explode"),
        ("COUNT(*) FROM x WHERE SUM(n) > 1", "MISPLACED_AGGREGATE", "SUM(n)"),
        ("COUNT(*) FROM x WHERE EXISTS (SELECT 1 FROM y WHERE y.id = x.id)", "CORRELATED_SUBQUERY", "x.id"),
        ("COUNT(*) FROM x WHERE id IN (SELECT m FROM y WHERE n = 1)", "CORRELATED_SUBQUERY", "n"),
        ("COUNT(*) FROM x WHERE id IN (SELECT m FROM yy)", "UNKNOWN_TABLE", "yy"),
    ],
)
def test_refusals(text, code, marked):
    with pytest.raises((UnsupportedQuery, UnknownName)) as caught:
        query(text, XYZ)
    assert caught.value.code == f"SKIMQL_{code}"
    start, end = caught.value.span
    assert not marked or caught.value.sql[start:end] == marked


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("x.id IN (SELECT y.id FROM y WHERE m > 1)", "`id` IN (SELECT y.id FROM y WHERE m > 1)"),
        (
            "n = (SELECT max(m) FROM y AS q WHERE q.id = 1)",
            "`n` = (SELECT max(m) FROM y AS q WHERE q.id = 1)",
        ),
        ("EXISTS (SELECT * FROM y)", "EXISTS (SELECT * FROM y)"),
        (
            "n IN (SELECT s FROM (SELECT sum(m) AS s FROM y GROUP BY id) t)",
            "`n` IN (SELECT s FROM (SELECT sum(m) AS s FROM y GROUP BY id) t)",
        ),
    ],
)
def test_subqueries_that_stand_alone_are_left_to_spark(where, expected):
    assert filters(query(f"COUNT(*) FROM x WHERE {where}", XYZ)) == {"x": expected}


@settings(deadline=None)
@given(st.data())
def test_any_nesting_of_projections_means_the_base_columns(data):
    """Renaming the columns of x through random levels of subqueries gives the same key and filter."""
    text, names = "x", {"id": "id", "n": "n"}
    for level in range(data.draw(st.integers(1, 5))):
        new = {base: f"`{data.draw(st.sampled_from(['a', 'b', 'c d']))} {base}`" for base in names}
        items = ", ".join(f"{names[base]} AS {new[base]}" for base in names)
        text, names = f"(SELECT {items} FROM {text}) q{level}", new
    resolved = query(f"COUNT(*) FROM {text} JOIN y ON {names['id']} = y.m WHERE {names['n']} = 3", XYZ)
    assert resolved.graph.edges[0].left_keys == ("`id`",)
    assert list(filters(resolved).values()) == ["`n` = 3"]
