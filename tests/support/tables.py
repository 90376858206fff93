"""Small tables that many tests share, and how to register rows under a name."""

from __future__ import annotations

from skimql.optimizer.messages import receiver_of, tree_of, whole

# name -> (schema, rows): the tables of the shared cases.
CASES = {
    "x": ("id INT, n INT", [(1, 10), (2, 20)]),
    "y": ("id INT, m INT", [(1, 100), (1, 101), (3, 300)]),
    "z": ("id INT, w STRING", [(1, "p"), (1, "q")]),
}


def register(session, **tables):
    """Register name=(schema, rows) as DataFrames."""
    for name, (schema, rows) in tables.items():
        session.table(name, session.spark.createDataFrame(rows, schema))


def register_cases(session):
    """Register x, y and z."""
    register(session, **CASES)


def folded(graph, *vertices):
    """What is left of a query's join tree when these vertices are folded, in this order."""
    residual = whole(tree_of(graph))
    for vertex in vertices:
        residual = residual.without(vertex, receiver_of(residual, vertex))
    return residual
