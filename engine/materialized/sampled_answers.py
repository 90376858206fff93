"""Which kept samples of one class answer a question: alone, or with hash sketches of the tables beyond the class."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

from ...optimizer.choose import choose
from ...optimizer.fold import class_attribute
from ...optimizer.messages import JoinClass, JoinTree, tree_of
from ...parser.join_graph import Query
from ...sketches.hashing.family import Family
from ..catalog.form import Head
from .answer import SAMPLED_TABLES, Materialized, MaterializedAnswer, grouping_of, same_key, shown, whole
from .matching import is_of, weights_at


def of_samples(query: Query, heads: Sequence[Head], kind: str) -> MaterializedAnswer | None:
    """By samples of one class: every vertex has one of the class's key, by the same hash function."""
    graph, tree = query.graph, tree_of(query.graph)
    own = sorted((h for h in heads if h.method == kind), key=lambda h: h.updated, reverse=True)
    if len(tree.classes) != 1 or not own or not graph.edges:
        return None
    grouping = grouping_of(query)
    choices = []
    for v, vertex in enumerate(graph.vertices):
        key, weights = class_attribute(graph, tree.classes[0], v), weights_at(query, v)
        choices.append(
            [
                h
                for h in own
                if weights <= set(h.weights)
                and is_of(h, vertex, v, grouping)
                and same_key(h.attributes[0], key)
            ]
        )
    for first in choices[0]:
        taken = [
            next((h for h in own_choices if h.families == first.families), None) for own_choices in choices
        ]
        if all(h is not None for h in taken):
            return _of_heads(query, kind, [Materialized(h) for h in taken if h is not None])
    return None


def _of_heads(query: Query, method: str, taken: Sequence[Materialized]) -> MaterializedAnswer | None:
    """An answer from a sketch of each vertex, if no two vertices with one synopsis have others."""
    first = taken[0].head
    plan = choose(replace(query, method=None), first.seed, 1, first.buckets)
    materialized: dict[int, Materialized] = {}
    for aggregate in plan.aggregates:
        for term, (v, own) in product((*aggregate.total, *aggregate.presence), enumerate(taken)):
            number = term.synopses[v]
            wanted = replace(own, weight=plan.synopses[number].weight)
            if materialized.setdefault(number, wanted) != wanted:
                return None
    return whole(query, method, shown(plan, materialized, formed=False), materialized)


def of_sampled_tables(query: Query, heads: Sequence[Head]) -> list[MaterializedAnswer]:
    """By a sample of one class in its tables, and hash sketches of the tables beyond: for each class one at most.

    A table that leads on to other classes is sampled with the keys of all of them. Sketches that lose something have
    hash families of their own, each another one.
    """
    graph, tree = query.graph, tree_of(query.graph)
    own = sorted(heads, key=lambda h: h.updated, reverse=True)
    if not graph.edges or not any(h.method == "sample_sketch" for h in own):
        return []
    grouping = grouping_of(query)
    choices: list[list[Materialized]] = []
    for v in range(len(graph.vertices)):
        weights = weights_at(query, v)
        fits = [h for h in own if h.method in ("hash", *SAMPLED_TABLES)]
        fits = [h for h in fits if weights <= set(h.weights) and is_of(h, graph.vertices[v], v, grouping)]
        choices.append(
            [Materialized(h, order=order) for h in fits for order in _orders_of(h, query, tree, v)]
        )
    found = []
    for joined in tree.classes:
        for first in choices[joined.vertices[0]] + choices[joined.vertices[-1]]:
            family = first.head.families[sampled_attribute(first.head)]
            taken = _sampled_beside(query, choices, joined, family)
            if taken is not None and any(k.head.method == "sample_sketch" for k in taken):
                answer = _of_heads(query, "sample_sketch", taken)
                if answer is not None:
                    found.append(answer)
                    break
    return found


def _sampled_beside(
    query: Query,
    choices: Sequence[Sequence[Materialized]],
    joined: JoinClass,
    family: Family,
) -> list[Materialized] | None:
    """A sketch for each vertex: samples by one family in the tables of a class where they are, else hash sketches."""
    taken: list[Materialized] = []
    used: set[Family] = set()
    for v, own in enumerate(choices):
        edges = query.graph.edges_at(v)
        found = None
        for kept in own:
            head, at = kept.head, sampled_attribute(kept.head)
            by_class = [i == at for e, i in zip(edges, kept.order, strict=True) if e in joined.edges]
            if head.method == "hash":
                fits = head.exact or head.families[0] not in used
            else:
                fits = v in joined.vertices and all(by_class) and head.families[at] == family
            if fits and (found is None or (found.head.method == "hash" and head.method != "hash")):
                found = kept
        if found is None:
            return None
        if found.head.method == "hash" and not found.head.exact:
            used.add(found.head.families[0])
        taken.append(found)
    return taken


def sampled_attribute(head: Head) -> int:
    """Which attribute of a sampled table decides by its hash."""
    return dict(head.parameters).get("sampled", 0)


def _orders_of(head: Head, query: Query, tree: JoinTree, vertex: int) -> Iterator[tuple[int, ...]]:
    """The attribute of a sketch for each edge of a vertex, in every way: one key may be of several classes.

    None where the sketch lacks one, or has one too many: a tuple without a key is left out, which a question that does
    not ask for the key would have.
    """
    edges = query.graph.edges_at(vertex)
    at = [next(n for n, c in enumerate(tree.classes) if e in c.edges) for e in edges]
    classes = list(dict.fromkeys(at))
    keys = [class_attribute(query.graph, tree.classes[n], vertex) for n in classes]
    if len(keys) != len(head.attributes):
        return
    fits = [[i for i, a in enumerate(head.attributes) if same_key(a, key)] for key in keys]
    for order in product(*fits):
        if len({*order}) == len(order):
            yield tuple(order[classes.index(n)] for n in at)
