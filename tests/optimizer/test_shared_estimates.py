"""Sketches that honour the xi classes of a shared graph are unbiased; ill-formed sharing is not."""

from __future__ import annotations

import numpy as np
import pytest
from support.golden import golden
from support.workloads import from_golden, merge_of, tpch_workload

from skimql.optimizer.workload.coalesce import coalesce
from skimql.sketches.hashing.xi import make_family
from skimql.sketches.joins.agms import AgmsSpec
from skimql.sketches.joins.convolution import ConvolutionSpec, join_rows
from skimql.sketches.joins.moments import join_size

DOMAIN = 6


def frequencies_of(graph, rng):
    """A random tensor for every relation over all its attributes, and the marginal of every vertex."""
    names = {}
    for vertex in graph.vertices:
        names.setdefault(vertex.relation.table, set()).update(a.keys[0] for a in vertex.attributes)
    full = {name: rng.integers(0, 6, (DOMAIN,) * len(keys)) for name, keys in names.items()}

    def marginal(vertex):
        keys, tensor = sorted(names[vertex.relation.table]), full[vertex.relation.table]
        wanted = [a.keys[0] for a in vertex.attributes]
        tensor = tensor.sum(axis=tuple(i for i, key in enumerate(keys) if key not in wanted))
        if len(set(wanted)) < len(wanted):  # a replica: the same value twice
            return np.diag(tensor)
        return tensor

    return [marginal(vertex) for vertex in graph.vertices]


def edges_of(graph, query, vertices):
    """(u, v, i, j) of the query's edges, over its own vertices."""
    at = {v: n for n, v in enumerate(vertices)}
    place = {(v, a): i for v in vertices for i, a in enumerate(graph.vertices[v].attributes)}
    return [
        (at[e.left], at[e.right], place[e.left, e.left_attribute], place[e.right, e.right_attribute])
        for e in graph.edges
        if e.query == query
    ]


def sketches_of(graph, frequencies, make_spec, seed):
    """A sketch for every vertex, with one family for every xi class."""
    base = make_family("tabulation", seed)
    sketches = []
    for tensor, classes in zip(frequencies, graph.attribute_classes(), strict=True):
        sketch = make_spec(tuple(base.derive(str(number)) for number in classes)).empty()
        sketch.update([axis.ravel() for axis in np.indices(tensor.shape)], tensor.ravel())
        sketches.append(sketch)
    return sketches


def agms_copies(sketches, edges):
    return np.prod([sketch.counters[0].astype(float) for sketch in sketches], axis=0)


AGMS = (lambda families: AgmsSpec(families, s1=12_000, s2=1), agms_copies)
CONVOLUTION = (lambda families: ConvolutionSpec(families, rows=400, buckets=31), join_rows)


@pytest.mark.parametrize(("make_spec", "estimate"), [AGMS, CONVOLUTION], ids=["agms", "convolution"])
def test_all_queries_of_a_shared_workload_are_unbiased(make_spec, estimate):
    # Workload 1 without its query of parallel edges. |z| > 6 has probability 2e-9 for each of 11 queries, by
    # the normal law of a mean of many copies. Seen red when the ends of an edge got two families.
    graph = tpch_workload([1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12])
    shared = coalesce(graph)
    assert len(shared.vertices) < len(graph.vertices) / 2 + 1
    frequencies = frequencies_of(shared, np.random.default_rng(41))
    sketches = sketches_of(shared, frequencies, make_spec, seed=5)
    for query, vertices in enumerate(shared.vertices_of()):
        edges = edges_of(shared, query, vertices)
        truth = join_size([frequencies[v].astype(float) for v in vertices], edges)
        copies = estimate([sketches[v] for v in vertices], edges)
        assert abs(z_of(copies, truth)) < 6, f"query {shared.queries[query]}: {copies.mean() / truth}"


def z_of(copies, truth):
    return (copies.mean() - truth) / (copies.std() / np.sqrt(len(copies)))


@pytest.mark.parametrize(("groups", "biased"), [([[0, 3]], False), ([[0, 3], [2, 4]], True)])
def test_ill_formed_sharing_is_visibly_biased(groups, biased):
    case = next(case for case in golden("well_formed") if case["name"] == "Fig4b")
    graph = merge_of(from_golden(case), *groups)
    # The middle relation prefers equal values on both attributes, which a common family mistakes for joins.
    outer, middle = np.arange(1.0, DOMAIN + 1), np.eye(DOMAIN) * 9 + 1
    frequencies = [middle if len(vertex.attributes) == 2 else outer for vertex in graph.vertices]
    signs = np.random.default_rng(3).choice([-1.0, 1.0], (2, 20_000, DOMAIN))
    counters = [
        np.einsum("ca,ab,cb->c", *(signs[classes[0]], tensor, signs[classes[1]]))
        if len(classes) == 2
        else signs[classes[0]] @ tensor
        for classes, tensor in zip(graph.attribute_classes(), frequencies, strict=True)
    ]
    vertices = graph.vertices_of()[0]
    truth = join_size([frequencies[v] for v in vertices], edges_of(graph, 0, vertices))
    z = z_of(np.prod([counters[v] for v in vertices], axis=0), truth)
    assert (abs(z) > 10) == biased
    assert (abs(z) > 6) == biased
