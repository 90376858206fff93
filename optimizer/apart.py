"""What is built of each table by itself, in the forms in which a catalog keeps it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..parser.join_graph import Query
from .candidates.candidate import Candidate
from .choose import choose
from .fold import class_attribute
from .methods import LEVEL, PAIRS
from .plan import BYTES_PER_COUNTER, Attribute, Plan, Weight, vertices_of
from .prediction.samples import SamplePlan

# Of a row of counters.
LEAST_BUCKETS = 2

# Synopses of a plan that the catalog keeps under the name of the method that makes its answer of them.
KEPT_AS = {LEVEL: "distinct", PAIRS: "join_distinct"}


@dataclass(frozen=True, slots=True)
class TableSynopsis:
    """A synopsis of a table by itself, with all weights that a query puts on its tuples.

    Attributes
    ----------
    table, filter : str, str or None
    attributes : tuple of Attribute
    weights : tuple of Weight
        The number of tuples first.
    method : str
        A kind of the catalog.
    rows, buckets : int
        As `Synopsis` has them: of a sample the keys or entries that it has room for.
    sparse : bool
        Whether it starts as an exact map.
    parameters : tuple of (str, int)
        Further sizes of its kind, by name.
    dense : tuple of int
        Keys that are counted whatever their hash.
    groups : tuple of str
        What its tuples are grouped by.
    """

    table: str
    filter: str | None
    attributes: tuple[Attribute, ...]
    weights: tuple[Weight, ...]
    method: str
    rows: int
    buckets: int
    sparse: bool = True
    parameters: tuple[tuple[str, int], ...] = ()
    dense: tuple[int, ...] = ()
    groups: tuple[str, ...] = ()


def of_plan(plan: Plan, method: str | None = None) -> tuple[TableSynopsis, ...]:
    """The synopses of a plan without exact messages; `method` in the place of the plan's own."""
    vertices = vertices_of(plan)
    found = []
    for number, own in enumerate(plan.synopses):
        kept = KEPT_AS.get(own.method, (method or own.method) if own.attributes else own.method)
        form = TableSynopsis(
            own.table, own.filter, own.attributes, (), kept, own.rows, own.buckets, own.sparse
        )
        found += [(v, own.weight, form) for v in sorted(vertices[number])]
    return _together(plan.query, found)


def of_choice(query: Query, taken: Candidate, seed: int, sparse: bool) -> tuple[TableSynopsis, ...]:
    """The synopses of a candidate without exact messages."""
    plan = choose(query, seed, taken.rows or 1, max(taken.buckets, 2), sparse)
    if taken.sample is None:
        return of_plan(plan, "skimmed" if taken.method == "skimmed" else None)
    forms, vertices = _sampled(query, taken, taken.sample, sparse), vertices_of(plan)
    return _together(
        query, [(v, s.weight, forms[v]) for i, s in enumerate(plan.synopses) for v in sorted(vertices[i])]
    )


def as_planned(plan: Plan, synopses: Sequence[TableSynopsis]) -> Plan:
    """A plan with the methods and sizes of what is built, as EXPLAIN shows them."""
    vertices, found = vertices_of(plan), []
    for number, own in enumerate(plan.synopses):
        groups = {groups_at(plan.query, v) for v in vertices[number]}
        taken = next(
            (
                s
                for s in synopses
                if (s.table, s.filter) == (own.table, own.filter)
                and s.groups in groups
                and own.weight in s.weights
                and {a.keys for a in own.attributes} <= {a.keys for a in s.attributes}
            ),
            None,
        )
        if taken is not None and own.attributes and not own.distinct:
            own = replace(own, method=taken.method, rows=taken.rows, buckets=taken.buckets)
        found.append(own)
    return replace(plan, synopses=tuple(found))


def groups_at(query: Query, vertex: int) -> tuple[str, ...]:
    """What the tuples of a vertex are grouped by."""
    return tuple(g.expression for g in query.groups if g.vertex == vertex)


def _sampled(query: Query, taken: Candidate, sample: SamplePlan, sparse: bool) -> dict[int, TableSynopsis]:
    """What is built of each vertex, weights and groups left open."""
    graph, residual = query.graph, taken.residual
    classes = residual.tree.classes
    found = {}
    for number, v in enumerate(sample.vertices or residual.members(sample.joined)):
        own = residual.classes_of(v)
        dense = sample.dense_keys[number if len(sample.dense_keys) > 1 else 0]
        capacity = sample.capacities[number if len(sample.capacities) > 1 else 0]
        keys = tuple(np.unique(dense).tolist())
        sizes = {"key_sample": {}, "two_level": {"dense": len(keys)}}.get(
            taken.method, {"dense": len(keys), "sampled": own.index(sample.joined)}
        )
        found[v] = TableSynopsis(
            graph.vertices[v].table,
            graph.vertices[v].filter,
            tuple(class_attribute(graph, classes[c], v) for c in own),
            (),
            taken.method,
            1,
            max(capacity, 1),
            parameters=tuple(sorted(sizes.items())),
            dense=keys,
        )
    copies: dict[int, int] = {}
    for beyond in sample.beyond:
        vertex, joined = graph.vertices[beyond.vertex], classes[beyond.joined]
        # Sketches of one class that are asked for the same keys collide apart.
        copies[beyond.joined] = copy = copies.get(beyond.joined, 0) + 1
        name = joined.name if copy == 1 else f"{joined.name}#{copy}"
        attribute = class_attribute(graph, joined, beyond.vertex, name)
        # An exact map, packed, has as many bytes as the counters, and the dense keys beside them, would take.
        keys = tuple(np.unique(beyond.dense_keys).tolist())
        counters = math.ceil(beyond.nbytes / (BYTES_PER_COUNTER * taken.rows))
        found[beyond.vertex] = TableSynopsis(
            vertex.table,
            vertex.filter,
            (attribute,),
            (),
            "hash",
            taken.rows,
            beyond.buckets if keys else max(counters, LEAST_BUCKETS),
            sparse,
            parameters=(("dense", len(keys)),),
            dense=keys,
        )
    return found


def _together(query: Query, parts: Sequence[tuple[int, Weight, TableSynopsis]]) -> tuple[TableSynopsis, ...]:
    """Those of one virtual relation and form once, with all weights that are put on it."""
    found: dict[TableSynopsis, dict[Weight, None]] = {}
    for vertex, weight, form in parts:
        one = replace(form, groups=groups_at(query, vertex))
        found.setdefault(one, {Weight(): None})[weight] = None
    return tuple(replace(form, weights=tuple(weights)) for form, weights in found.items())
