"""Whether the plan that a catalog keeps for a query is one: what it reads must be what the query joins."""

from __future__ import annotations

from collections.abc import Sequence

from ...parser.join_graph import Query, Term
from ...sketches.joins.join_tree import check_tree
from ..plan import Plan, PlannedTerm, Weight


def check_plan(plan: Plan, query: Query) -> None:
    """Raise ValueError unless each synopsis stands for its vertex, by table, filter, keys and weight."""
    graph = query.graph
    if [a.function for a in plan.aggregates] != [a.function for a in query.aggregates]:
        raise ValueError("its aggregates are others")
    if {(e.left, e.right) for e in plan.edges} != {(e.left, e.right) for e in graph.edges}:
        raise ValueError("its edges are others")
    for planned, asked in zip(plan.aggregates, query.aggregates, strict=True):
        for terms, wanted in ((planned.total, asked.total), (planned.presence, asked.presence)):
            if bool(terms) != bool(wanted):
                raise ValueError("it has terms where none are asked for, or none where some are")
            for term in terms:
                _check_term(plan, query, term, wanted)


def _check_term(plan: Plan, query: Query, term: PlannedTerm, wanted: Sequence[Term]) -> None:
    vertices = query.graph.vertices
    if len(term.synopses) != len(vertices):
        raise ValueError("a term has not a sketch for each table")
    found = [plan.synopses[i] for i in term.synopses]
    check_tree(
        [len(s.attributes) for s in found],
        [(e.left, e.right, e.left_position, e.right_position) for e in plan.edges],
    )
    for v, (synopsis, vertex) in enumerate(zip(found, vertices, strict=True)):
        factors = [t.factor_of(v) for t in wanted]
        weights = {Weight(f.expression, f.presence) if f else Weight() for f in factors}
        if (synopsis.table.lower(), synopsis.filter) != (vertex.table.lower(), vertex.filter):
            raise ValueError(f"a sketch of {synopsis.table} stands for other tuples")
        if synopsis.weight not in weights:
            raise ValueError(f"a sketch of {synopsis.table} has another weight")
    for edge in plan.edges:
        keys = {
            (e.keys_of(edge.left), e.keys_of(edge.right))
            for e in query.graph.edges
            if (e.left, e.right) == (edge.left, edge.right)
        }
        left = found[edge.left].attributes[edge.left_position].keys
        right = found[edge.right].attributes[edge.right_position].keys
        if (left, right) not in keys:
            raise ValueError("sketches are joined on other keys")
