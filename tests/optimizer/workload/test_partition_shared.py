"""Partitions that several queries share: exact variances by enumeration, consistency, and when to decline."""

from __future__ import annotations

from itertools import product
from math import sqrt

import numpy as np
import pytest

from skimql.optimizer.prediction.histograms import JoinStatistics, equi_depth, refined
from skimql.optimizer.workload.coalesce import coalesce
from skimql.optimizer.workload.partition_shared import (
    PartMoments,
    combination_shares,
    estimate_variance,
    partition_shared,
)
from skimql.optimizer.workload.share import Attribute, GraphBuilder, VirtualRelation


def moments_of(f, g, labels):
    """Mean and second moment of one join's atomic sketch in each part, from frequencies."""
    inside = [labels == part for part in range(labels.max() + 1)]
    size = np.array([f[rows] @ g[rows] for rows in inside])
    squares = np.array([(f[rows] @ f[rows]) * (g[rows] @ g[rows]) for rows in inside])
    products = np.array([np.sum((f[rows] * g[rows]) ** 2) for rows in inside])
    return PartMoments(size, squares + 2 * size**2 - 2 * products)


def test_variances_are_exact_by_enumerating_all_signs():
    # A chain of two joins with independent attributes; 4-wise independence is all that the formula uses, so
    # that fully independent signs have the same moments. Seen red without the covariances.
    rng = np.random.default_rng(43)
    f, a, b, g = rng.integers(1, 9, (4, 4)).astype(float)
    middle = np.outer(a, b)
    left, right = np.array([0, 1, 1, 0]), np.array([1, 0, 0, 0])
    copies = np.array([[3.0, 5.0], [2.0, 3.0]])
    signs = np.array(list(product([-1.0, 1.0], repeat=4)))
    cells = {}
    for p, q in product(range(2), range(2)):
        one = signs * (left == p)
        other = signs * (right == q)
        # All pairs of sign vectors for the two families: shape (16, 16).
        cells[p, q] = (one @ f)[:, None] * (one @ middle @ other.T) * (other @ g)[None, :]
    names = sorted(cells)
    exact = sum(
        (np.mean(cells[i] * cells[j]) - cells[i].mean() * cells[j].mean()) / max(copies[i], copies[j])
        for i in names
        for j in names
    )
    found = estimate_variance([moments_of(f, a, left), moments_of(b, g, right)], copies)
    assert found == pytest.approx(exact, rel=1e-9)


def test_a_combination_has_the_space_of_its_smallest_cell():
    # R1(a), R2(a, b), R3(b): the middle relation is divided by both.
    sizes = combination_shares([0, 1], [[0], [0, 1], [1]], {0: (0.25, 0.75), 1: (0.5, 0.5)})
    assert sizes == pytest.approx(np.array([[0.125, 0.125], [0.375, 0.375]]))


def test_refining_a_histogram_keeps_its_sums():
    histogram = equi_depth([0, 10, 20, 30, 99], [1, 2, 3, 4, 5], 2)
    fine = refined(histogram, np.array([-5, 0, 15, 50, 200]))
    assert set(fine.lows.tolist()) >= {15, 50}
    assert fine.tuples == pytest.approx(histogram.tuples)
    assert fine.self_join_size == pytest.approx(histogram.self_join_size)


def bumps(places, height, domain=1000):
    frequencies = np.ones(domain)
    for place in places:
        frequencies[place : place + 20] = height
    return frequencies


def histogram(frequencies, buckets=50):
    return equi_depth(np.arange(len(frequencies)), frequencies, buckets)


def two_queries(r, s, t):
    """R join S, and S join T, all on one key; S is shared, and so is the class of both joins."""
    builder, key = GraphBuilder(), Attribute(("k",))
    builder.add("RS", [VirtualRelation("r"), VirtualRelation("s")], [(0, key, 1, key)])
    builder.add("ST", [VirtualRelation("s"), VirtualRelation("t")], [(0, key, 1, key)])
    graph = coalesce(builder.build())
    hr, hs, ht = histogram(r), histogram(s), histogram(t)
    return graph, [[JoinStatistics(0, 1, hr, hs)], [JoinStatistics(0, 1, hs, ht)]]


def join_variance(f, g):
    return float(f @ f * (g @ g) + (f @ g) ** 2 - 2 * np.sum((f * g) ** 2))


def test_queries_of_one_class_are_parted_alike_and_both_gain():
    r, s, t = bumps([100, 600], 400.0), bumps([300, 800], 250.0), bumps([150, 500], 300.0)
    graph, joins = two_queries(r, s, t)
    found = partition_shared(graph, joins)
    assert [number for number, _ in found.classes] == [0]
    assert min(found.predicted_gains) > 1.2
    part = found.classes[0][1]
    labels = part.domain.part_of(np.arange(1000))
    for f, g in ((r, s), (s, t)):
        inside = [labels == label for label in range(part.domain.count)]
        parted = sum(
            join_variance(f[rows], g[rows]) / share for rows, share in zip(inside, part.shares, strict=True)
        )
        assert sqrt(join_variance(f, g) / parted) > 1.5
    for classes in graph.attribute_classes():
        assert sum(found.cell_shares(classes)) == pytest.approx(1)


def test_aligned_skews_are_left_whole():
    r = bumps([100, 600], 400.0)
    graph, joins = two_queries(r, r, r)
    found = partition_shared(graph, joins)
    assert found.classes == ()
    assert found.predicted_gains == (1.0, 1.0)
    assert found.cell_shares((0,)) == (1.0,)


@pytest.mark.parametrize("metric", ["average", "maximum"])
def test_no_query_has_more_combinations_than_allowed(metric):
    builder, a, b = GraphBuilder(), Attribute(("a",)), Attribute(("b",))
    relations = [VirtualRelation(name) for name in "rst"]
    builder.add("chain", relations, [(0, a, 1, a), (1, b, 2, b)])
    f, g = histogram(bumps([100, 600], 400.0)), histogram(bumps([300, 800], 250.0))
    joins = [[JoinStatistics(0, 1, f, g), JoinStatistics(1, 2, g, f)]]
    counts = []
    for most in (1, 2, 3, 4):
        found = partition_shared(builder.build(), joins, most, metric)
        counts.append(int(np.prod([part.domain.count for _, part in found.classes])))
        assert counts[-1] <= most
    assert counts[-1] == 4


def test_statistics_must_fit_the_workload():
    graph, joins = two_queries(*[bumps([1], 2.0)] * 3)
    with pytest.raises(ValueError, match="statistics of 1 queries for a workload of 2"):
        partition_shared(graph, joins[:1])
