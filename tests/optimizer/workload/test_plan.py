"""Standing queries through all stages: shared vertices, space, partitions, and the figures of each stage."""

from __future__ import annotations

import numpy as np
import pytest
from support.golden import golden
from support.workloads import TPCH_JOINS, star_query

from skimql.optimizer.prediction.histograms import equi_depth
from skimql.optimizer.workload.plan import plan_workload
from skimql.optimizer.workload.share import Attribute, VirtualRelation
from skimql.parser.join_graph import Aggregate, Edge, JoinGraph, Query, Span, Term, Vertex

HERE = Span(0, 1)
WORKLOADS = golden("tpch_workload")
BIG = ("bigint",)


def count_query(number):
    """COUNT(*) of a golden TPC-H query; two equalities of the same tables are one composite edge."""
    joins = WORKLOADS["queries"][str(number)]
    if joins == [10]:
        vertices = tuple(Vertex("lineitem", alias, None, HERE) for alias in ("a", "b"))
        edges = (Edge(0, 1, ("`orderkey`",), ("`orderkey`",), BIG, "orderkey", HERE),)
    else:
        pairs = {}
        for left, one, right, other in (TPCH_JOINS[join - 1] for join in joins):
            pairs.setdefault((left, right), []).append((f"`{one}`", f"`{other}`"))
        names = list(dict.fromkeys(name for pair in pairs for name in pair))
        vertices = tuple(Vertex(name, name, None, HERE) for name in names)
        edges = tuple(
            Edge(
                names.index(left),
                names.index(right),
                tuple(k[0] for k in keys),
                tuple(k[1] for k in keys),
                BIG * len(keys),
                "+".join(k[0] for k in keys),
                HERE,
            )
            for (left, right), keys in pairs.items()
        )
    return Query("", "", (Aggregate("count", "n", (Term(),), (), HERE),), JoinGraph(vertices, edges))


def statistics_of(queries, rng, aligned):
    """A histogram of every join column: uniform but for a bump, in one place or in one of its own."""
    found = {}
    for query in queries:
        for edge in query.graph.edges:
            for v in (edge.left, edge.right):
                vertex = query.graph.vertices[v]
                relation = VirtualRelation(vertex.table, vertex.filter)
                column = relation, Attribute(edge.keys_of(v), edge.key_types)
                if column not in found:
                    frequencies = np.ones(1000)
                    place = 300 if aligned else int(rng.integers(0, 950))
                    frequencies[place : place + 50] = 200
                    found[column] = equi_depth(np.arange(1000), frequencies, 50)
    return found


def test_workload_1_uses_the_merged_vertices():
    # The ends of the self-join are one sketch (one fewer than 16), the composite edge of query 10 is an
    # attribute of its own (one more).
    queries = [count_query(n) for n in WORKLOADS["workload1"]]
    plan = plan_workload(queries, 20_000)
    share = plan.stages[0]
    assert (share.name, share.before.vertices, share.after.vertices) == ("share", 34, 16)
    assert plan.graph.is_well_formed()
    assert plan.words <= 20_000
    assert plan.words > 19_000
    assert all(row >= 11 for vertex in plan.vertices for row in vertex.rows)
    assert plan.partition.classes == ()
    assert set(share.after.relative_errors) == {None}


def test_partitions_are_planned_where_the_gain_is_large_enough():
    queries = [count_query(n) for n in WORKLOADS["workload1"]]
    plan = plan_workload(
        queries, 60_000, statistics=statistics_of(queries, np.random.default_rng(1), False), most_parts=4
    )
    assert plan.partition.classes
    assert plan.words <= 60_000
    stage = plan.stages[-1]
    assert stage.after.cells > stage.before.cells
    mean = [np.mean(np.square(figures.relative_errors)) for figures in (stage.before, stage.after)]
    assert mean[0] > 1.2 * mean[1]
    number, part = plan.partition.classes[0]
    for vertex in plan.vertices:
        if vertex.classes == (number,):
            assert len(vertex.rows) == part.domain.count


def test_aligned_data_and_no_wish_for_parts_leave_domains_whole():
    queries = [count_query(n) for n in WORKLOADS["workload1"]]
    known = statistics_of(queries, np.random.default_rng(1), True)
    assert plan_workload(queries, 20_000, statistics=known, most_parts=4).partition.classes == ()
    apart = statistics_of(queries, np.random.default_rng(1), False)
    assert plan_workload(queries, 20_000, statistics=apart).partition.classes == ()


@pytest.mark.parametrize("metric", ["average", "maximum"])
def test_every_stage_lowers_what_is_minimised(metric):
    queries = [count_query(n) for n in WORKLOADS["workload1"]]
    known = statistics_of(queries, np.random.default_rng(2), False)
    plan = plan_workload(queries, 60_000, metric, known, most_parts=4)
    judge = np.mean if metric == "average" else np.max
    for stage in plan.stages:
        before, after = (judge(np.square(f.relative_errors)) for f in (stage.before, stage.after))
        assert after <= before * 1.05, stage.name


def test_queries_without_statistics_keep_their_classes_whole():
    queries = [count_query(n) for n in (7, 8)]
    known = statistics_of(queries[:1], np.random.default_rng(3), False)
    plan = plan_workload(queries, 20_000, statistics=known, most_parts=4)
    assert plan.stages[0].after.relative_errors[1] is None
    assert all(number == 0 for number, _ in plan.partition.classes)


def test_queries_that_are_left_out_keep_their_classes_whole_and_the_others_their_parts():
    queries = [count_query(n) for n in (7, 8)]
    known = statistics_of(queries, np.random.default_rng(3), False)
    every = plan_workload(queries, 20_000, statistics=known, most_parts=4)
    left = plan_workload(queries, 20_000, statistics=known, most_parts=4, unknown=[1])
    parted = {number for number, _ in left.partition.classes}
    edges = list(zip(left.graph.edges, left.graph.edge_classes(), strict=True))
    assert every.partition.classes
    assert left.stages[0].after.relative_errors[1] is None
    assert {e.query for e, number in edges if number in parted} <= {0}
    none = plan_workload(queries, 20_000, statistics=known, most_parts=4, unknown=[0, 1])
    assert none.partition.classes == ()


@pytest.mark.parametrize("more_error", [0.0, 0.1])
def test_what_changes_nothing_has_equal_figures(more_error):
    queries = [count_query(n) for n in WORKLOADS["workload1"]]
    known = statistics_of(queries, np.random.default_rng(1), True)
    stage = plan_workload(queries, 60_000, statistics=known, most_parts=4, more_error=more_error).stages[-1]
    assert (stage.name, stage.before) == ("partition", stage.after)


def test_an_average_is_two_terms_on_common_families():
    plan = plan_workload([star_query()], 10_000)
    assert plan.graph.queries == ((0, 0), (0, 1))
    assert plan.stages[0].after.vertices == 4
    assert plan.stages[0].after.classes == 2


def test_too_little_space_is_refused():
    with pytest.raises(ValueError, match="too few"):
        plan_workload([count_query(1)], 20)
