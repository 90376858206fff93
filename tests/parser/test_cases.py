"""Small inputs that users of neighbouring systems reported as broken: the right graph, or the named refusal."""

from __future__ import annotations

import pytest
from support.questions import edges, filters, query
from support.schemas import XYZ, schema, table

from skimql.errors import SkimqlError

ID = ("`id`",)
X_Y, X_Z = ("x", ID, "y", ID), ("x", ID, "z", ID)

T = schema(
    *(table(name, a="int", b="int", c="int") for name in ("t1", "t2")),
    table("i", id="int"),
    table("s", id="string"),
    table("small", id="smallint"),
    table("big", id="bigint"),
    table("dec3", k="decimal(10,3)"),
    table("dec5", k="decimal(20,5)"),
    table("c3", k="char(3)"),
    table("c5", k="char(5)"),
    table("txt", k="string"),
    table("day", k="date"),
    table("moment", k="timestamp"),
    table("real", id="double"),
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT APPROX Count(*) FROM X JOIN Y ON X.ID = Y.Id", [("X", ID, "Y", ID)]),
        ("SELECT APPROX COUNT(*) FROM `X` JOIN `Y` ON `X`.`Id` = `Y`.`iD`", [("X", ID, "Y", ID)]),
        ("COUNT(*) FROM x JOIN y ON x.id=y.id JOIN z USING(id)", [X_Y, X_Z]),
        ("COUNT(*) FROM x, y JOIN z ON x.id=z.id WHERE x.id=y.id", [X_Y, X_Z]),
        ("COUNT(*) FROM y a JOIN y b ON a.id=b.id", [("a", ID, "b", ID)]),
        ("COUNT(*) FROM x JOIN y USING (id)", [X_Y]),
        ("COUNT(*) FROM x NATURAL JOIN y", [X_Y]),
        (
            "WITH q AS (SELECT * FROM y WHERE m<300) SELECT APPROX COUNT(*), SUM(m) FROM x JOIN q USING (id)",
            None,
        ),
    ],
)
def test_names_and_shapes(text, expected):
    found = edges(query(text, XYZ))
    assert found == ([("x", ID, "q", ID)] if expected is None else expected)


@pytest.mark.parametrize(
    ("left", "right", "ansi", "kind"),
    [
        ("i.id", "s.id", True, "bigint"),
        ("i.id", "s.id", False, "int"),
        ("i.id", "big.id", True, "bigint"),
        ("small.id", "big.id", True, "bigint"),
        ("dec3.k", "dec5.k", True, "decimal(20,5)"),
        ("c3.k", "c5.k", True, "char"),
        ("c3.k", "txt.k", True, "string"),
        ("day.k", "moment.k", True, "timestamp"),
        ("big.id", "real.id", True, "double"),
    ],
)
def test_key_types(left, right, ansi, kind):
    tables = ", ".join(name.split(".")[0] for name in (left, right))
    (edge,) = query(f"COUNT(*) FROM {tables} WHERE {left} = {right}", T, ansi=ansi).graph.edges
    assert edge.key_types == (kind,)


def test_using_shows_one_column_and_on_shows_two():
    (aggregate,) = query("COUNT(DISTINCT id) FROM x JOIN y USING (id)", XYZ).aggregates
    assert [(f.vertex, f.expression) for f in aggregate.distinct] == [(0, "`id`")]
    with pytest.raises(SkimqlError, match="id is in x and y"):
        query("COUNT(DISTINCT id) FROM x JOIN y ON x.id=y.id", XYZ)


def test_or_inside_one_table_is_a_filter_and_between_tables_an_error():
    text = "COUNT(*) FROM t1 JOIN t2 ON t1.a=t2.a AND (t1.b>0 OR t1.c>0) AND (t2.b>0 OR t2.c>0)"
    assert filters(query(text, T)) == {"t1": "(`b` > 0 OR `c` > 0)", "t2": "(`b` > 0 OR `c` > 0)"}
    with pytest.raises(SkimqlError) as caught:
        query("COUNT(*) FROM t1 JOIN t2 ON t1.a=t2.a AND (t1.b>0 OR t2.b>0)", T)
    assert caught.value.code == "SKIMQL_OR_JOIN"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("COUNT(*) FROM x, y", "CROSS_PRODUCT"),
        ("COUNT(*) FROM y JOIN y ON y.id=y.id", "AMBIGUOUS_NAME"),
        ("COUNT(*) FROM (SELECT id, n AS id FROM x) q JOIN y ON q.id=y.id", "AMBIGUOUS_NAME"),
        ("COUNT(*) FROM (SELECT id, COUNT(*) c FROM y GROUP BY id) q JOIN x USING (id)", "AGGREGATE_IN_FROM"),
        ("COUNT(*) FROM x JOIN y ON x.id=y.id OR x.n=y.m", "OR_JOIN"),
        ("COUNT(*) FROM x JOIN y ON x.id < y.id", "NON_EQUI_JOIN"),
        ("COUNT(*) FROM x JOIN y ON x.id <> y.id", "NON_EQUI_JOIN"),
        ("COUNT(*) FROM x JOIN y ON x.id <=> y.id", "NULL_SAFE_JOIN"),
        ("COUNT(*), COUNT(m), SUM(m) FROM x LEFT JOIN y ON x.id = y.id", "OUTER_JOIN"),
        ("COUNT(*) FROM x JOIN y ON x.id BETWEEN y.id AND y.m", "CROSS_PREDICATE"),
        ("COUNT(*) FROM x JOIN y ON (x.id, x.n) = (y.id, y.m)", "KEY_TYPES"),
        ("COUNT(*) FROM x NATURAL JOIN (SELECT m FROM y)", "CROSS_PRODUCT"),
    ],
)
def test_refusals(text, code):
    with pytest.raises(SkimqlError) as caught:
        query(text, XYZ)
    assert caught.value.code == f"SKIMQL_{code}"


def test_an_outer_join_made_inner():
    assert edges(query("COUNT(*) FROM x LEFT JOIN y ON x.id = y.id WHERE y.m>0", XYZ)) == [X_Y]
