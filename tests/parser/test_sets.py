"""Set expressions, ESTIMATE ROWS, and graphs that are looked at only."""

from __future__ import annotations

import pytest
from support.questions import query
from support.schemas import XYZ, schema, table

from skimql.errors import SkimqlError, UnsupportedQuery
from skimql.parser.join_graph import SetLeaf, SetOperation
from skimql.parser.resolve import resolve, resolve_rows
from skimql.parser.statement import parse_statement


def test_a_set_expression_is_a_tree_over_virtual_relations():
    resolved = query(
        "COUNT(DISTINCT k) AS d FROM (SELECT id AS k FROM x WHERE n > 1 INTERSECT SELECT id FROM y "
        "EXCEPT (SELECT z.id FROM z UNION SELECT n FROM x)) s WHERE k <> 7",
        XYZ,
    )
    assert resolved.sets == SetOperation(
        "except",
        SetOperation("intersect", SetLeaf(0, ("`id`",)), SetLeaf(1, ("`id`",))),
        SetOperation("union", SetLeaf(2, ("`id`",)), SetLeaf(3, ("`n`",))),
    )
    assert [(v.table, v.filter) for v in resolved.graph.vertices] == [
        ("x", "`id` <> 7 AND `n` > 1"),
        ("y", "`id` <> 7"),
        ("z", "`id` <> 7"),
        ("x", "`n` <> 7"),
    ]
    assert resolved.graph.edges == ()
    assert [(a.function, a.name) for a in resolved.aggregates] == [("count_distinct", "d")]
    assert [f.name for f in resolved.features] == ["set expression"]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("COUNT(*) FROM (SELECT id FROM x UNION SELECT id FROM y) q", "SET_OPERATION"),
        ("COUNT(DISTINCT id) FROM (SELECT id FROM x EXCEPT ALL SELECT id FROM y)", "SET_OPERATION"),
        ("COUNT(DISTINCT id) FROM (SELECT id FROM x UNION SELECT id, m FROM y)", "COLUMN_COUNT"),
        ("COUNT(DISTINCT id) FROM (SELECT id FROM x UNION SELECT w FROM z)", "KEY_TYPES"),
        (
            "COUNT(DISTINCT id) FROM (SELECT id FROM x UNION SELECT x.id FROM x, y WHERE x.id=y.id)",
            "SET_OF_JOINS",
        ),
        (
            "COUNT(DISTINCT id) FROM (SELECT id FROM x UNION SELECT id FROM y) GROUP BY id",
            "UNSUPPORTED_CLAUSE",
        ),
        (
            "COUNT(DISTINCT q.id) FROM x JOIN (SELECT id FROM x UNION SELECT id FROM y) q USING (id)",
            "SET_OPERATION",
        ),
        ("COUNT(*) FROM x UNION SELECT COUNT(*) FROM y", "UNSUPPORTED_STATEMENT"),
        ("COUNT(DISTINCT id) FROM (SELECT id, n FROM x INTERSECT SELECT id, m FROM y)", "SET_OPERATION"),
        ("COUNT(DISTINCT id % 2) FROM (SELECT id FROM x EXCEPT SELECT id FROM y)", "SET_OPERATION"),
        (
            "COUNT(DISTINCT id) FROM (SELECT id, n FROM x UNION (SELECT id, n FROM x EXCEPT SELECT id, m FROM y))",
            "SET_OPERATION",
        ),
    ],
)
def test_set_expressions_that_are_refused(text, code):
    with pytest.raises(SkimqlError) as caught:
        query(text, XYZ)
    assert caught.value.code == f"SKIMQL_{code}", str(caught.value)


def test_a_union_is_one_set_of_whatever_is_counted():
    resolved = query("COUNT(DISTINCT n % 2) FROM (SELECT id, n FROM x UNION ALL SELECT id, m FROM y)", XYZ)
    assert resolved.sets == SetOperation("union", SetLeaf(0, ("`n` % 2",)), SetLeaf(1, ("`m` % 2",)))


def rows(text):
    return resolve_rows(parse_statement("ESTIMATE ROWS FOR " + text), XYZ)


def test_estimate_rows_counts_what_the_select_would_give():
    resolved = rows("SELECT x.id, m FROM x JOIN y USING (id) WHERE n > 3 ORDER BY m")
    assert [(a.function, a.name) for a in resolved.aggregates] == [("count", "rows")]
    assert [v.filter for v in resolved.graph.vertices] == ["`n` > 3", None]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT DISTINCT id FROM x",
        "SELECT id FROM x LIMIT 3",
        "SELECT COUNT(*) FROM x",
        "SELECT id FROM x GROUP BY id",
    ],
)
def test_estimate_rows_refuses_what_changes_the_number_of_rows(text):
    with pytest.raises(UnsupportedQuery):
        rows(text)


ABCD = schema(*(table(name, k="int", l="int", m="int") for name in "abcde"))


@pytest.mark.parametrize(
    ("from_where", "shape", "itself"),
    [
        ("a", "single", False),
        ("a, b WHERE a.k = b.k", "chain", False),
        ("a, b, a c WHERE a.k = b.k AND b.l = c.l", "chain", True),
        ("a, b, c, d WHERE a.k = b.k AND a.l = c.l AND a.m = d.m", "star", False),
        ("a, b, c, d, e WHERE a.k = b.k AND a.l = c.l AND a.m = d.m AND d.k = e.k", "tree", False),
        ("a, b, c WHERE a.k = b.k AND b.l = c.l AND c.m = a.m", "cyclic", False),
        ("a, b, c WHERE a.k = b.k", "disconnected", False),
    ],
)
def test_graphs_are_named_by_their_shape(from_where, shape, itself):
    statement = parse_statement(f"SELECT APPROXIMATE COUNT(*) FROM {from_where}")
    resolved = resolve(statement, ABCD, strict=False)
    assert resolved.graph.shape == shape
    assert resolved.graph.is_self_join == itself
    special = {"cyclic": ["cyclic join"], "disconnected": ["cross product"]}.get(shape, [])
    assert [f.name for f in resolved.features] == special
    if special:
        with pytest.raises(UnsupportedQuery):
            resolve(statement, ABCD)


def test_a_cyclic_query_is_resolved_where_its_user_takes_the_risk():
    text = "COUNT(*) FROM a, b, c WHERE a.k = b.k AND b.l = c.l AND c.m = a.m BEHAVIOR 'do_nothing'"
    resolved = query(text, ABCD)
    assert len(resolved.graph.edges) == 3
    with pytest.raises(UnsupportedQuery):
        resolved.refuse_beyond(())
