"""From the text of a question to what the parser makes of it."""

from __future__ import annotations

from skimql.parser.join_graph import FEATURES
from skimql.parser.resolve import resolve
from skimql.parser.statement import ApproximateSelect, parse_statement


def query(text, schema, **settings):
    """The resolved query of a SELECT APPROXIMATE; the word is added if the text starts behind it."""
    if not text.lstrip().upper().startswith(("SELECT", "WITH", "--", "/*")):
        text = "SELECT APPROXIMATE " + text
    statement = parse_statement(text)
    assert isinstance(statement, ApproximateSelect), statement
    settings.setdefault("known", set(FEATURES) - {"cross product"})
    return resolve(statement, schema, **settings)


def edges(resolved):
    """Each edge as (left alias, left keys, right alias, right keys), in order."""
    vertices = resolved.graph.vertices
    return [
        (vertices[e.left].alias, e.left_keys, vertices[e.right].alias, e.right_keys)
        for e in resolved.graph.edges
    ]


def filters(resolved):
    """The filter of each vertex by its alias; those without one left out."""
    return {v.alias: v.filter for v in resolved.graph.vertices if v.filter is not None}
