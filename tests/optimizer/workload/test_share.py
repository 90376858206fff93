"""xi-equivalence, well-formedness, replicas, and graphs from parsed queries."""

from __future__ import annotations

import numpy as np
import pytest
from support.golden import golden
from support.workloads import (
    candidate_pairs,
    conflicts_by_closure,
    from_golden,
    merge_of,
    random_workload,
    star_query,
    tpch_query,
)

from skimql.optimizer.workload.share import Attribute, GraphBuilder, VirtualRelation, unshared_graph


@pytest.mark.parametrize("case", golden("well_formed"), ids=lambda case: case["name"])
def test_well_formedness_is_the_golden_one(case):
    graph = merge_of(from_golden(case), *case["coalesced"])
    assert graph.is_well_formed() == case["well_formed"]


def test_well_formedness_agrees_with_the_transitive_closure_on_random_merges():
    # Seen red when the union-find was keyed on the vertex alone.
    rng = np.random.default_rng(7)
    outcomes = set()
    for _ in range(200):
        graph = random_workload(rng, queries=5)
        pairs = candidate_pairs(graph)
        chosen = rng.permutation(len(pairs))[: rng.integers(0, 5)]
        merged = merge_of(graph, *(pairs[k] for k in chosen))
        assert merged.is_well_formed() != conflicts_by_closure(merged)
        outcomes.add(merged.is_well_formed())
    assert outcomes == {True, False}


def test_conflicts_name_the_two_edges_of_one_query():
    case = next(case for case in golden("well_formed") if case["name"] == "Fig4b")
    graph = merge_of(from_golden(case), *case["coalesced"])
    assert graph.conflicts() == ((0, 1),)


def test_edges_through_one_attribute_of_a_vertex_share_a_family():
    case = next(case for case in golden("well_formed") if case["name"] == "Fig4a")
    graph = merge_of(from_golden(case), *case["coalesced"])
    assert graph.edge_classes() == (0, 1, 0)
    assert graph.attribute_classes() == ((0,), (0, 1), (1,), (0,))


def test_an_attribute_used_twice_gets_a_replica():
    builder = GraphBuilder()
    builder.add("Q19", *tpch_query([6, 8]))
    graph = builder.build()
    lineitem = next(vertex for vertex in graph.vertices if vertex.relation.table == "lineitem")
    assert [a.replica for a in lineitem.attributes] == [0, 1]
    assert graph.is_well_formed()


def test_merging_different_sketches_is_refused():
    builder = GraphBuilder()
    builder.add("Q", *tpch_query([1]))
    with pytest.raises(ValueError, match="not the same sketch"):
        builder.build().merged([0, 0])


def test_a_query_without_a_join_has_nothing_to_share():
    builder = GraphBuilder()
    builder.add("Q", [VirtualRelation("part")], [])
    with pytest.raises(ValueError, match="'Q' has no join"):
        builder.build()


def test_the_terms_of_an_average_use_the_same_families():
    graph = unshared_graph([star_query()])
    assert graph.queries == ((0, 0), (0, 1))
    assert graph.edge_classes() == (0, 1, 0, 1)
    weights = {vertex.relation.weight for vertex in graph.vertices if vertex.relation.table == "sales"}
    assert weights == {("`price`",), ("`price` IS NOT NULL",)}


def test_vertices_differ_by_filter_and_by_key_type():
    graph = unshared_graph([star_query(), star_query(date="`day` > 6")])
    assert len({vertex for vertex in graph.vertices if vertex.relation.table == "items"}) == 2
    assert Attribute(("`k`",), ("bigint",)) != Attribute(("`k`",), ("string",))
