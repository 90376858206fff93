"""EXPLAIN of the parsed query and its graph."""

from __future__ import annotations

import json

import pytest
from support.golden_text import assert_golden
from support.questions import query
from support.schemas import schema, table

from skimql.parser.explain import as_dict, attributes, explain, replicas, virtual_relations
from skimql.parser.resolve import resolve
from skimql.parser.statement import parse_statement

TABLES = schema(
    table("flights", origin="string", dest="string", tailnum="string", time_hour="timestamp", distance="int"),
    table("planes", tailnum="string", seats="int", weight="double"),
    table("weather", origin="string", time_hour="timestamp", precip="double"),
)

QUESTIONS = {
    "chain": "COUNT(*) AS n, SUM(f.distance * p.seats) AS seat_miles, AVG(w.precip - 1) "
    "FROM flights f JOIN planes p ON f.tailnum = p.tailnum JOIN weather w USING (origin, time_hour) "
    "WHERE w.precip > 0.1 AND f.dest <> 'JFK' ERROR WITHIN 5% CONFIDENCE 95% USING convolution SEED 7",
    "self": "COUNT(*) FROM flights a, flights b, flights c WHERE a.dest = b.dest AND b.dest = c.dest",
    "groups": "f.origin, COUNT(*) AS n, SUM(p.seats) / COUNT(*) AS mean FROM flights f "
    "JOIN planes p USING (tailnum) GROUP BY f.origin HAVING n > 10 AND NOT mean IS NULL "
    "ORDER BY mean DESC LIMIT 3",
    "sets": "COUNT(DISTINCT k) FROM (SELECT tailnum AS k FROM flights EXCEPT SELECT tailnum FROM planes)",
    "single": "COUNT(DISTINCT dest) FROM flights WHERE distance > 5 AND distance < 4",
}


@pytest.mark.parametrize("form", ["text", "json", "mermaid"])
@pytest.mark.parametrize("name", list(QUESTIONS))
def test_explained_queries(name, form):
    suffix = {"text": "txt", "json": "json", "mermaid": "mmd"}[form]
    assert_golden("explain", f"{name}.{suffix}", explain(query(QUESTIONS[name], TABLES), form))


@pytest.mark.parametrize(
    ("where", "shape"),
    [
        ("a.origin = b.origin", "disconnected (cross product)"),
        ("a.origin = b.origin AND b.dest = c.dest AND c.tailnum = a.tailnum", "cyclic"),
    ],
)
def test_graphs_without_estimate_can_be_looked_at(where, shape):
    text = f"SELECT APPROXIMATE COUNT(*) FROM flights a, flights b, flights c WHERE {where}"
    shown = explain(resolve(parse_statement(text), TABLES, strict=False))
    assert shown.startswith(f"join graph: {shape}, 3 tables")


def test_json_is_json_and_names_shared_relations():
    resolved = query(QUESTIONS["self"], TABLES)
    assert json.loads(explain(resolved, "json")) == as_dict(resolved)
    assert virtual_relations(resolved.graph) == [0, 0, 0]
    assert replicas(resolved.graph) == {0: (0, 1)}
    assert attributes(resolved.graph, 0) == ("`dest`",)


def test_mermaid_labels_are_escaped():
    resolved = query("""COUNT(*) FROM flights WHERE dest = '"<b>#'""", TABLES)
    assert explain(resolved, "mermaid").splitlines()[1] == (
        "  v0[\"flights<br/>dest = '#quot;#lt;b#gt;#35;'\"]"
    )


def test_other_forms_are_refused():
    with pytest.raises(ValueError, match="mermaid"):
        explain(query(QUESTIONS["single"], TABLES), "dot")
