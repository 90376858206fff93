"""A resolved query and its join graph for people and programs: as text, JSON and diagrams."""

from __future__ import annotations

import json
from typing import Any

from .diagram import Diagram
from .expressions import Aggregated, Constant, Expression, Grouped
from .join_graph import Aggregate, Edge, Factor, JoinGraph, Query, SetLeaf, SetOperation, Term, Vertex


def explain(query: Query, form: str = "text") -> str:
    """The query as ``text``, ``json`` or ``mermaid``.

    Raises
    ------
    ValueError
        If `form` is none of them.
    """
    if form == "text":
        return as_text(query)
    if form == "json":
        return json.dumps(as_dict(query), indent=2, ensure_ascii=False)
    if form == "mermaid":
        return as_diagram(query.graph).mermaid()
    raise ValueError(f"no form {form!r}: text, json or mermaid")


def as_dict(query: Query) -> dict[str, Any]:
    """The query as JSON values; vertices and edges are referred to by their index."""
    shared = virtual_relations(query.graph)
    return {
        "sql": query.select_sql,
        "shape": "sets" if query.sets is not None else query.graph.shape,
        "self_join": query.graph.is_self_join,
        "vertices": [
            {
                "table": v.table,
                "alias": v.alias,
                "filter": v.filter,
                "virtual_relation": shared[i],
                "attributes": list(attributes(query.graph, i)),
            }
            for i, v in enumerate(query.graph.vertices)
        ],
        "edges": [_edge_dict(e) for e in query.graph.edges],
        "replicas": {str(c): list(edges) for c, edges in replicas(query.graph).items()},
        "aggregates": [_aggregate_dict(a, query.graph) for a in query.aggregates],
        "items": [{"name": i.name, "value": _value_text(i.expression, query)} for i in query.items],
        "groups": [{"vertex": g.vertex, "expression": g.expression, "type": g.type} for g in query.groups],
        "having": None if query.having is None else _value_text(query.having, query),
        "order": [_order_text(o.expression, o.descending, query) for o in query.order],
        "limit": query.limit,
        "offset": query.offset,
        "sets": None if query.sets is None else _set_text(query.sets, query.graph),
        "accuracy": {
            "relative_error": query.accuracy.relative_error,
            "confidence": query.accuracy.confidence,
            "behavior": query.accuracy.behavior,
        },
        "method": query.method,
        "options": dict(query.options),
        "seed": query.seed,
        "features": _features(query),
        "warnings": list(query.warnings),
        "empty": query.empty or None,
    }


def _features(query: Query) -> list[str]:
    return list(dict.fromkeys(f.name for f in query.features))


def virtual_relations(graph: JoinGraph) -> list[int]:
    """For each vertex the first vertex with the same table and filter: they are one virtual relation."""
    first: dict[tuple[str, str | None], int] = {}
    return [first.setdefault((v.table, v.filter), i) for i, v in enumerate(graph.vertices)]


def attributes(graph: JoinGraph, vertex: int) -> tuple[str, ...]:
    """The join attributes of a vertex: the key expressions of its edges, each once."""
    keys = (k for e in graph.edges if vertex in (e.left, e.right) for k in e.keys_of(vertex))
    return tuple(dict.fromkeys(keys))


def replicas(graph: JoinGraph) -> dict[int, tuple[int, ...]]:
    """Join classes that several edges equate, with those edges.

    A vertex between two of them carries the attribute twice, once for each edge (a *replica*), so that the
    edges have independent xi families.
    """
    by_class: dict[int, list[int]] = {}
    for index, edge in enumerate(graph.edges):
        for number in edge.classes:
            by_class.setdefault(number, []).append(index)
    return {number: tuple(edges) for number, edges in by_class.items() if len(edges) > 1}


def as_text(query: Query) -> str:
    """The query for a terminal, one thing a line."""
    graph = query.graph
    sets = query.sets is not None
    lines = [f"sets: {len(graph.vertices)}" if sets else f"join graph: {_shape_text(graph)}"]
    lines += [f"  {i}  {_vertex_text(v)}" for i, v in enumerate(graph.vertices)]
    shared = virtual_relations(graph)
    lines += [f"     {i} is the virtual relation of {s}" for i, s in enumerate(shared) if i != s]
    lines += [f"  {e.left} -- {e.right}  {_edge_text(e, graph)}" for e in graph.edges]
    for number, edges in replicas(graph).items():
        pairs = ", ".join(f"{graph.edges[i].left} -- {graph.edges[i].right}" for i in edges)
        lines.append(f"     one class on {pairs} (class {number})")
    if query.sets is not None:
        lines.append(f"set expression: {_set_text(query.sets, graph)}")
    lines.append("aggregates:")
    lines += [f"  {a.name}: {_aggregate_text(a, graph)}" for a in query.aggregates]
    if query.features:
        lines += [f"result: {i.name} = {_value_text(i.expression, query)}" for i in query.items]
    lines += [f"group by: {_alias(graph, g.vertex)}.{g.expression}" for g in query.groups]
    if query.having is not None:
        lines.append(f"having: {_value_text(query.having, query)}")
    lines += [f"order by: {_order_text(o.expression, o.descending, query)}" for o in query.order]
    if query.limit is not None:
        lines.append(f"limit: {query.limit}")
    lines += [f"asked: {asked}" for asked in _asked(query)]
    lines += [f"beyond one join tree: {', '.join(_features(query))}"] if query.features else []
    lines += [f"warning: {w}" for w in query.warnings]
    lines += [f"empty: {query.empty}"] if query.empty else []
    return "\n".join(lines)


def as_diagram(graph: JoinGraph) -> Diagram:
    """The join graph as a diagram: a box for each table, a line for each equality."""
    drawn = Diagram()
    for i, v in enumerate(graph.vertices):
        name = v.alias if v.alias == v.table else f"{v.alias}: {v.table}"
        drawn.box(f"v{i}", name, *([v.filter] if v.filter else []))
    for e in graph.edges:
        labels = [f"{a} = {b}" for a, b in zip(e.left_keys, e.right_keys, strict=True)]
        drawn.line(f"v{e.left}", f"v{e.right}", *labels)
    return drawn


def _shape_text(graph: JoinGraph) -> str:
    tables = len(graph.vertices)
    size = "one table" if tables == 1 else f"{tables} tables"
    itself = ", a table joined with itself" if graph.is_self_join else ""
    name = "disconnected (cross product)" if graph.shape == "disconnected" else graph.shape
    return f"{name}, {size}{itself}"


def _vertex_text(vertex: Vertex) -> str:
    name = vertex.alias if vertex.alias == vertex.table else f"{vertex.table} {vertex.alias}"
    return name + (f" where {vertex.filter}" if vertex.filter else "")


def _alias(graph: JoinGraph, vertex: int) -> str:
    return graph.vertices[vertex].alias


def _edge_text(edge: Edge, graph: JoinGraph) -> str:
    left, right = _alias(graph, edge.left), _alias(graph, edge.right)
    pairs = zip(edge.left_keys, edge.right_keys, edge.key_types, strict=True)
    keys = " and ".join(f"{left}.{a} = {right}.{b} ({t or 'type by Spark'})" for a, b, t in pairs)
    return f"class {edge.class_name}: {keys}"


def _edge_dict(edge: Edge) -> dict[str, Any]:
    return {
        "left": edge.left,
        "right": edge.right,
        "left_keys": list(edge.left_keys),
        "right_keys": list(edge.right_keys),
        "key_types": list(edge.key_types),
        "class_name": edge.class_name,
        "classes": list(edge.classes),
    }


def _aggregate_dict(aggregate: Aggregate, graph: JoinGraph) -> dict[str, Any]:
    return {
        "name": aggregate.name,
        "function": aggregate.function,
        "total": [_term_dict(t) for t in aggregate.total],
        "presence": [_term_dict(t) for t in aggregate.presence],
        "distinct": [{"vertex": f.vertex, "expression": f.expression} for f in aggregate.distinct],
        "projection": aggregate.projection(graph) if aggregate.distinct else None,
    }


def _term_dict(term: Term) -> dict[str, Any]:
    factors = [{"vertex": f.vertex, "expression": f.expression, "presence": f.presence} for f in term.factors]
    return {"coefficient": term.coefficient, "factors": factors}


def _aggregate_text(aggregate: Aggregate, graph: JoinGraph) -> str:
    if aggregate.function == "count_distinct":
        columns = ", ".join(f"{_alias(graph, f.vertex)}.{f.expression}" for f in aggregate.distinct)
        if not columns:
            return "count of distinct set elements"
        return f"count of distinct ({columns}), {aggregate.projection(graph).replace('_', '-')}"
    terms = " ".join(_term_text(t, graph, first=i == 0) for i, t in enumerate(aggregate.total)) or "0"
    return f"{aggregate.function} of {terms}"


def _term_text(term: Term, graph: JoinGraph, *, first: bool) -> str:
    sign = "-" if term.coefficient < 0 else "" if first else "+"
    size = abs(term.coefficient)
    parts = [f"{size:g}"] if size != 1 or not term.factors else []
    parts += [_factor_text(f, graph) for f in term.factors]
    return f"{sign} {' * '.join(parts)}".strip()


def _factor_text(factor: Factor, graph: JoinGraph) -> str:
    text = f"{_alias(graph, factor.vertex)}[{factor.expression}]"
    return f"present({text})" if factor.presence else text


def _value_text(value: Expression, query: Query) -> str:
    """An expression over estimates as SQL over the names of aggregates and groups."""
    if isinstance(value, Aggregated):
        return query.aggregates[value.index].name
    if isinstance(value, Grouped):
        return query.groups[value.index].name
    if isinstance(value, Constant):
        return "NULL" if value.value is None else repr(value.value)
    operands = [_value_text(o, query) for o in value.operands]
    if value.operator in ("neg", "not"):
        return f"({'-' if value.operator == 'neg' else 'NOT '}{operands[0]})"
    if value.operator == "is_null":
        return f"({operands[0]} IS NULL)"
    if len(operands) == 1:
        return f"{value.operator}({operands[0]})"
    return "(" + f" {value.operator.upper()} ".join(operands) + ")"


def _order_text(value: Expression, descending: bool, query: Query) -> str:
    return _value_text(value, query) + (" DESC" if descending else "")


def _set_text(tree: SetLeaf | SetOperation, graph: JoinGraph) -> str:
    if isinstance(tree, SetLeaf):
        return f"{_alias(graph, tree.vertex)}({', '.join(tree.columns)})"
    return f"({_set_text(tree.left, graph)} {tree.operator.upper()} {_set_text(tree.right, graph)})"


def _asked(query: Query) -> list[str]:
    accuracy = query.accuracy
    asked = []
    if accuracy.relative_error is not None:
        asked.append(f"error within {accuracy.relative_error:g}")
    if accuracy.confidence is not None:
        asked.append(f"confidence {accuracy.confidence:g}")
    if accuracy.behavior is not None:
        asked.append(f"behavior {accuracy.behavior}")
    if query.method is not None:
        asked.append(f"method {query.method}")
    asked += [f"option {name} = {value}" for name, value in query.options.items()]
    if query.seed is not None:
        asked.append(f"seed {query.seed}")
    return asked
