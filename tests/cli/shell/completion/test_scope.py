"""What a place in a query sees."""

from __future__ import annotations

import pytest
from support.completion_cases import NAMES

from skimql import tokens
from skimql.cli.shell.completion.scope import common_tables, relations, subquery


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("SELECT 1 FROM flights f, planes", [("f", "flights"), ("planes", "planes")]),
        ("SELECT 1 FROM flights AS f JOIN planes p ON f.x = p.x LEFT JOIN weather USING (k)", [("f", "flights"), ("p", "planes"), ("weather", "weather")]),
        ("SELECT 1 FROM db.flights WHERE a IN (SELECT 1 FROM planes)", [("flights", "flights")]),
        ("SELECT 1 FROM `order items` oi", [("oi", "order items")]),
        ("SELECT 1 FROM (SELECT tailnum AS t FROM planes) q", [("q", "q")]),
        ("SELECT 1", []),
    ],
)  # fmt: skip
def test_relations_of_from(text, seen):
    assert [(r.alias, r.table.name) for r in relations(tokens(text), NAMES, {})] == seen


def test_columns_of_a_subquery():
    table = subquery(tokens("SELECT tailnum AS t, seats, count(*) AS n FROM planes"), NAMES, {})
    assert [c for c, _ in table.columns] == ["t", "seats", "n"]
    assert dict(subquery(tokens("SELECT * FROM planes"), NAMES, {}).columns)["seats"] == "int"


def test_common_tables_see_those_before_them():
    text = "WITH a AS (SELECT tailnum FROM planes), b AS (SELECT * FROM a) SELECT 1"
    assert [c for c, _ in common_tables(tokens(text), NAMES, {})["b"].columns] == ["tailnum"]
