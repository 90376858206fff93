"""Random workloads over random small tables: their text, what they plan to, their sketches, and the exact answers.

All of it without Spark: conditions and arguments come from a short list that numpy can evaluate.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from support.questions import query
from support.schemas import schema, table

from skimql.engine.execution.partial_aggregate import sketch_plan
from skimql.engine.results.estimator import SketchJoin
from skimql.engine.synopses import Built, Tally
from skimql.optimizer.prediction.histograms import equi_depth
from skimql.optimizer.workload.declared import plan_declared
from skimql.optimizer.workload.share import Attribute, VirtualRelation
from skimql.sketches.joins.sparse import update_sparse_first

CONDITIONS = {
    "x > 20": lambda t: t["x"] > 20,
    "x <= 60": lambda t: t["x"] <= 60,
    "y = 1": lambda t: t["y"] == 1,
}
SIZES = (8 << 10, 64 << 10, 512 << 10)


def random_tables(rng):
    """Two to five tables of columns k0, k1, k2 (some of them), x and y."""
    found = {}
    for number in range(int(rng.integers(2, 6))):
        keys = [k for k in ("k0", "k1", "k2") if rng.random() < 0.7] or ["k0"]
        rows = int(rng.integers(5, 25))
        columns = {k: np.minimum(rng.zipf(1.5, rows), 9) for k in keys}
        found[f"t{number}"] = {**columns, "x": rng.integers(-5, 100, rows), "y": rng.integers(0, 3, rows)}
    return found


def random_question(rng, tables):
    """A SELECT of COUNT, SUM and AVG over two to four of the tables, each joined to one before it."""
    names, joined = [str(rng.choice(list(tables)))], []
    for _ in range(int(rng.integers(1, 4))):
        beside = int(rng.integers(len(names)))
        key = str(rng.choice([k for k in tables[names[beside]] if k[0] == "k"]))
        joined.append(f"a{beside}.{key} = a{len(names)}.{key}")
        names.append(str(rng.choice([n for n in tables if key in tables[n]])))
    arguments = [f"a{i}.{c}" for i in range(len(names)) for c in "xy"]
    items = [
        str(rng.choice(["COUNT(*)", "SUM({})", "AVG({})", "SUM({} + {})", "SUM({} * {})"])).format(
            *rng.choice(arguments, 2, replace=False)
        )
        for _ in range(int(rng.integers(1, 3)))
    ]
    where = joined + [f"a{i}.{c}" for i in range(len(names)) for c in CONDITIONS if rng.random() < 0.12]
    froms = ", ".join(f"{name} a{i}" for i, name in enumerate(names))
    return f"{', '.join(f'{item} AS c{i}' for i, item in enumerate(items))} FROM {froms} WHERE {' AND '.join(where)}"


def kept(tables, relation):
    """The tuples of a table that pass a filter."""
    columns = tables[relation.table]
    inside = np.ones(len(columns["x"]), bool)
    for text in (relation.filter or "").replace("`", "").replace("(", "").replace(")", "").split(" AND "):
        if text:
            inside &= CONDITIONS[text](columns)
    return {name: values[inside] for name, values in columns.items()}


def planned(rng, tables, questions, sparse):
    """The plan of a workload of random size, objective and partitions, on full statistics or none."""
    known = schema(*(table(n, **dict.fromkeys(c, "bigint")) for n, c in tables.items()))
    queries = [query(q, known) for q in questions]
    statistics = {}
    for q in queries if rng.random() < 0.7 else ():
        for edge in q.graph.edges:
            for v in (edge.left, edge.right):
                relation = VirtualRelation(q.graph.vertices[v].table, q.graph.vertices[v].filter)
                values, counts = np.unique(
                    kept(tables, relation)[_bare(edge.keys_of(v)[0])], return_counts=True
                )
                if len(values):
                    column = Attribute(edge.keys_of(v), edge.key_types)
                    statistics[relation, column] = equi_depth(values, counts, 5)
    size, metric = int(rng.choice(SIZES)), str(rng.choice(["average", "maximum"]))
    return queries, plan_declared(
        "w", queries, 7, size, metric, sparse, statistics, int(rng.choice([1, 2, 4]))
    )


def _bare(expression):
    return expression.replace("`", "")


def built(plan, tables):
    """Every synopsis of the plan: those of one virtual relation and one set of attributes in one go, as a scan feeds them."""
    sketches = [sketch_plan(s, plan.seed, "int64").empty() for s in plan.synopses]
    domains, feeds = dict(plan.partitions), defaultdict(list)
    tallies = {}
    for number, synopsis in enumerate(plan.synopses):
        feeds[synopsis.table, synopsis.filter, synopsis.attributes, synopsis.cell].append(number)
    for (name, condition, attributes, cell), numbers in feeds.items():
        columns = kept(tables, VirtualRelation(name, condition))
        keys = [columns[_bare(a.keys[0])] for a in attributes]
        inside = np.ones(len(columns["x"]), bool)
        for attribute, key, part in zip(attributes, keys, cell, strict=False):
            if attribute.class_name in domains:
                inside &= domains[attribute.class_name].part_of(key) == part
        weights = [_weights(plan.synopses[n].weight, columns) for n in numbers]
        chosen = [None if w is None else w[inside] for w in weights]
        update_sparse_first([sketches[n] for n in numbers], [k[inside] for k in keys], chosen)
        tuples = int(inside.sum())
        for number, weight in zip(numbers, chosen, strict=True):
            mass = tuples if weight is None else float(np.abs(weight).sum())
            negative = 0 if weight is None else int((weight < 0).sum())
            tallies[number] = Tally(tuples, mass, negative)
    return [Built(s, tallies[number], 1.0) for number, s in enumerate(sketches)]


def _weights(weight, columns):
    if weight.expression is None or weight.presence:
        return None
    return value_of(weight.expression, columns)


def value_of(expression, columns):
    """A column, or sums and products of some."""
    parts = [
        np.prod([columns[name] for name in part.split(" * ")], axis=0)
        for part in _bare(expression).split(" + ")
    ]
    return np.sum(parts, axis=0)


def answers(plan, made, confidence=0.95):
    """The estimates of a planned query's aggregates, sums and averages apart."""
    joined = SketchJoin(plan, made)
    for aggregate in plan.aggregates:
        if aggregate.function == "avg":
            yield joined.ratio(aggregate.total, aggregate.presence, confidence)
        else:
            yield joined.total(aggregate.total, confidence)


def truths(question, tables):
    """The exact values of a resolved query's aggregates, by joining its tables row by row; NaN for no average."""
    graph = question.graph
    filtered = [kept(tables, VirtualRelation(v.table, v.filter)) for v in graph.vertices]
    rows = np.stack(np.meshgrid(*[np.arange(len(t["x"])) for t in filtered[:1]], indexing="ij")).reshape(
        1, -1
    )
    order = [0]
    edges = list(graph.edges)
    while edges:
        edge = next(
            e for e in edges if (e.left in order) != (e.right in order) or {e.left, e.right} <= set(order)
        )
        edges.remove(edge)
        known, new = (edge.left, edge.right) if edge.left in order else (edge.right, edge.left)
        mine = filtered[known][_bare(edge.keys_of(known)[0])][rows[order.index(known)]]
        theirs = filtered[new][_bare(edge.keys_of(new)[0])]
        at, other = np.nonzero(mine[:, np.newaxis] == theirs[np.newaxis, :])
        rows = np.concatenate([rows[:, at], other[np.newaxis]])
        order.append(new)

    def total(terms):
        found = 0.0
        for term in terms:
            product = np.full(rows.shape[1], term.coefficient)
            for factor in term.factors:
                if not factor.presence:
                    product = (
                        product
                        * value_of(factor.expression, filtered[factor.vertex])[
                            rows[order.index(factor.vertex)]
                        ]
                    )
            found += product.sum()
        return found

    for aggregate in question.aggregates:
        if aggregate.function == "avg":
            count = total(aggregate.presence)
            yield total(aggregate.total) / count if count else np.nan
        else:
            yield total(aggregate.total)
