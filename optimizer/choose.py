"""Choose the synopsis of every vertex of a query's join tree.

A vertex with one join attribute gets a hash sketch (Fast-AGMS), one with several a convolution count sketch,
one with none an exact total. Vertices that are the same virtual relation with the same attributes and weight
share one synopsis. Vertices may be folded: replaced by an exact message into a neighbour.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from ..errors import BudgetExceeded
from ..parser.join_graph import Query, Term
from .candidates.first_sample import ClassSample
from .combinations import check_aggregates
from .distinct import DistinctPlanner, set_tree
from .fold import ResidualTree, residual_tree, weight_at
from .groups import grouped_vertices
from .messages import Residual
from .methods import CHOSEN
from .plan import (
    BYTES_PER_COUNTER,
    Plan,
    PlannedAggregate,
    PlannedEdge,
    PlannedTerm,
    Sample,
    Scan,
    Synopsis,
    most_bytes,
)

if TYPE_CHECKING:
    from .candidates.candidate import Choice


def choose(
    query: Query,
    seed: int,
    rows: int,
    buckets: int,
    sparse: bool = True,
    residual: Residual | None = None,
    sample: ClassSample | None = None,
    too_large: Collection[int] = (),
    only_folded: Collection[int] = (),
) -> Plan:
    """The plan of one query at a given size.

    Parameters
    ----------
    query : Query
        With every `key_types` of its edges known.
    seed : int
        Sketch seed; the family of a join class follows from it and the class name.
    rows, buckets : int
        Size of every sketch: `rows` independent rows, the median of which is the estimate, of `buckets` counters.
    sparse : bool
        Whether sketches start as exact maps.
    residual : Residual, optional
        What remains beside exact messages; default: what a COUNT(DISTINCT) leaves, if there is one, else the whole
        tree.
    sample : ClassSample, optional
        The keys on which the residual tree is joined exactly; no sketch is built then.
    too_large : collection of int
        Vertices whose messages are too large for a COUNT(DISTINCT) to fold them.
    only_folded : collection of int
        Vertices that a COUNT(DISTINCT) has no synopsis of.

    Raises
    ------
    UnsupportedQuery
        As `DistinctPlanner.plan`; also if the asked method cannot serve an aggregate.
    """
    graph = query.graph
    numbers: dict[Synopsis, int] = {}
    check_aggregates(query)

    def number(synopsis: Synopsis) -> int:
        return numbers.setdefault(synopsis, len(numbers))

    grouped = grouped_vertices(query)
    planner = DistinctPlanner(query, buckets, sparse, number, grouped, too_large, only_folded)
    counts = [planner.plan(a) if a.function == "count_distinct" else None for a in query.aggregates]
    if sample is not None and any(counts):
        raise ValueError("distinct values are not counted on a sample of join keys")
    # What is sent for a COUNT(DISTINCT) serves the other aggregates too, and makes them exact.
    tree = set_tree(query) if query.sets is not None else residual_tree(graph, residual or planner.folded)
    attributes = {v: tree.attributes(v) for v in tree.vertices}

    def plan_term(term: Term) -> PlannedTerm:
        chosen = []
        for v in tree.vertices:
            synopsis = Synopsis(
                graph.vertices[v].table,
                graph.vertices[v].filter,
                attributes[v],
                weight_at(term, v),
                _method(len(attributes[v]), sample, query.method),
                rows,
                buckets,
                sparse,
                messages=tree.messages_into(v, term),
            )
            chosen.append(number(synopsis))
        return PlannedTerm(term.coefficient, tuple(chosen))

    aggregates = tuple(
        PlannedAggregate(
            a.function, a.name, tuple(map(plan_term, a.total)), tuple(map(plan_term, a.presence)), count
        )
        for a, count in zip(query.aggregates, counts, strict=True)
    )
    synopses = tuple(numbers)
    tables = dict.fromkeys(s.table for s in synopses)
    scans = tuple(
        Scan(table, tuple(i for i, s in enumerate(synopses) if s.table == table)) for table in tables
    )
    at = {v: n for n, v in enumerate(tree.vertices)}
    edges = tuple(
        PlannedEdge(
            at[edge.left],
            at[edge.right],
            tree.edges_at(edge.left).index(i),
            tree.edges_at(edge.right).index(i),
            edge.left_attribute.class_name,
        )
        for i, edge in enumerate(tree.edges)
    )
    keys = None if sample is None else _sample(tree, sample)
    return Plan(query, seed, synopses, scans, edges, aggregates, tree.vertices, keys)


def _sample(tree: ResidualTree, sample: ClassSample) -> Sample:
    """The sampled class by the positions of its vertices and edges in the plan."""
    edges = tuple(i for i, e in enumerate(tree.edges) if e.joined == sample.joined)
    members = tree.residual.members(sample.joined)
    at = {v: n for n, v in enumerate(tree.vertices)}
    positions = {v: next(p for p, i in enumerate(tree.edges_at(v)) if i in edges) for v in members}
    return Sample(
        tree.residual.tree.classes[sample.joined].name,
        tuple((at[v], positions[v]) for v in members),
        edges,
        sample.rate,
        sample.dense,
        sample.largest_other,
        sample.row_rates,
        sample.largest_product,
        sample.hits,
        sample.value_draws,
        sample.counted,
    )


def plan_of(query: Query, choice: Choice, seed: int, sparse: bool = True) -> Plan:
    """The plan that carries out a choice.

    Parameters
    ----------
    query : Query
        The one whose join tree the choice is for, key types known.
    choice : Choice
        By a method that the planner chooses of itself, or that the query asks for.
    seed : int
    sparse : bool
        Whether sketches start as exact maps.

    Raises
    ------
    ValueError
        For a choice by another method: an exact run has no plan.
    """
    taken = choice.taken
    if taken.method == "exact_run" or taken.method not in (*CHOSEN, query.method):
        raise ValueError(f"no plan answers by {taken.method}")
    rows, buckets = taken.rows or choice.objective.rows, taken.buckets or 2
    found = taken.sample
    if found is None:
        return choose(query, seed, rows, buckets, sparse, taken.residual)
    dense = tuple(int(k) for k in found.dense_keys[0])
    members = taken.residual.members(found.joined)
    # Sampled messages bound the keys of the table that is sampled first, not those of the others.
    largest = found.largest_other if len(found.largest_other) == len(members) else ()
    sample = ClassSample(
        found.joined, found.probability, dense, largest, largest_product=found.largest_product
    )
    return choose(query, seed, rows, buckets, sparse, taken.residual, sample)


def plan_within(sized: Callable[[int], Plan], rows: int, size_bytes: int, sql: str) -> Plan:
    """The plan with the most buckets, as `sized` makes it, whose sketches take `size_bytes` together.

    Raises
    ------
    BudgetExceeded
        As `buckets_within`; for distinct values if the smallest synopses take more.
    """
    draft = sized(2)
    counting = [s for s in draft.synopses if s.distinct]
    sketches = sum(1 for s in draft.synopses if s.attributes and not s.distinct)
    if not counting:
        return sized(buckets_within(sketches, rows, size_bytes, sql)) if sketches else draft
    least = sum(map(most_bytes, draft.synopses))
    if least > size_bytes:
        raise BudgetExceeded(
            f"{size_bytes:,} bytes are too few for {len(counting)} synopses of distinct values",
            sql=sql,
            hint=f"SIZE {least} or more",
        )
    # Bytes grow with the buckets: the largest number of them by bisection.
    fits, exceeds = 2, 1 << 26
    while exceeds - fits > 1:
        middle = (fits + exceeds) // 2
        within = sum(map(most_bytes, sized(middle).synopses)) <= size_bytes
        fits, exceeds = (middle, exceeds) if within else (fits, middle)
    return sized(fits)


def buckets_within(sketches: int, rows: int, size_bytes: int, sql: str) -> int:
    """The buckets that `sketches` equal sketches of `rows` rows have in `size_bytes` together.

    Raises
    ------
    BudgetExceeded
        If it is less than two; the message says how many bytes would do.
    """
    buckets = size_bytes // (BYTES_PER_COUNTER * rows * sketches)
    if buckets < 2:
        least = 2 * BYTES_PER_COUNTER * rows * sketches
        raise BudgetExceeded(
            f"{size_bytes:,} bytes are too few for {sketches} sketches of {rows} rows",
            sql=sql,
            hint=f"SIZE {least} or more; kilobytes before the interval says much",
        )
    return buckets


def _method(attributes: int, sample: ClassSample | None, forced: str | None) -> str:
    if sample is not None:
        return "sample"
    if forced == "agms" and attributes:
        return forced
    return ("total", "hash")[attributes] if attributes < 2 else "convolution"
