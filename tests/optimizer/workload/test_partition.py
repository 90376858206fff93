"""Sketch partitioning: golden cases, brute force over all partitions, allocation, and when to decline."""

from __future__ import annotations

from itertools import product
from math import prod, sqrt

import numpy as np
import pytest
from support.golden import golden

from skimql.optimizer.domain_partition import DomainPartition
from skimql.optimizer.prediction.histograms import JoinStatistics, equi_depth
from skimql.optimizer.workload.partition import (
    best_parts,
    binary_parts,
    copies_for_budget,
    copies_for_error,
    divide_parts,
    partition_query,
)

EXAMPLE_2 = golden("example2_partition")


def join_variance(f, g):
    """Equation (1) of SIGMOD 2002."""
    return float(f @ f * (g @ g) + (f @ g) ** 2 - 2 * np.sum((f * g) ** 2))


def all_partitions(size, most):
    """Every labelling of `size` elements with at most `most` labels, labels in order of first use."""
    for labels in product(range(most), repeat=size):
        if all(label <= max(labels[:i], default=-1) + 1 for i, label in enumerate(labels)):
            yield np.array(labels)


def objective(first, second, labels):
    return sum(
        sqrt(first[labels == label].sum() * second[labels == label].sum()) for label in set(labels.tolist())
    )


def test_example_2_is_split_as_in_the_paper():
    f, g = np.array(EXAMPLE_2["f1"], float), np.array(EXAMPLE_2["f2"], float)
    assert join_variance(f, g) == EXAMPLE_2["var_unpartitioned_eq1"]
    for parts in (binary_parts(f**2, g**2), best_parts(f**2, g**2, 2)):
        assert parts.labels.tolist() == [1, 0, 1, 0]
        assert parts.objective == pytest.approx(EXAMPLE_2["splits"][1]["F"], rel=1e-9)
        inside = [parts.labels == label for label in range(2)]
        roots = sum(sqrt(join_variance(f[rows], g[rows])) for rows in inside)
        assert EXAMPLE_2["var_unpartitioned_eq1"] / roots**2 == pytest.approx(EXAMPLE_2["ratio"], rel=1e-9)
    assert best_parts(f**2, g**2, 1).objective == pytest.approx(EXAMPLE_2["F_unpartitioned"], rel=1e-9)


def test_example_2_is_best_of_all_binary_partitions():
    f, g = np.array(EXAMPLE_2["f1"], float), np.array(EXAMPLE_2["f2"], float)
    values = {round(case["F"], 9) for case in EXAMPLE_2["all_binary_partitions"]}
    found = {round(objective(f**2, g**2, labels), 9) for labels in all_partitions(4, 2) if labels.any()}
    assert found == values
    assert binary_parts(f**2, g**2).objective == pytest.approx(min(values), rel=1e-7)


@pytest.mark.parametrize("case", golden("kary_partition"))
def test_k_ary_partitions_reach_the_golden_objective(case):
    f, g = np.array(case["f1"], float), np.array(case["f2"], float)
    parts = best_parts(f**2, g**2, case["m"])
    assert parts.objective == pytest.approx(case["F_bruteforce"], rel=1e-7)
    assert objective(f**2, g**2, parts.labels) == pytest.approx(parts.objective, rel=1e-7)
    assert parts.count <= case["m"]


def test_dynamic_programming_agrees_with_brute_force():
    # 200 random inputs with zeros and ties. Seen red when elements were ordered by first alone.
    rng = np.random.default_rng(19)
    for _ in range(200):
        size, most = int(rng.integers(1, 7)), int(rng.integers(1, 4))
        first, second = rng.integers(0, 5, (2, size)).astype(float) ** 2
        best = min(objective(first, second, labels) for labels in all_partitions(size, most))
        parts = best_parts(first, second, most)
        assert parts.objective == pytest.approx(best, rel=1e-7, abs=1e-9)
        assert objective(first, second, parts.labels) == pytest.approx(best, rel=1e-7, abs=1e-9)
        if most == 2:
            split = binary_parts(first, second)
            assert split.objective == pytest.approx(best, rel=1e-7, abs=1e-9)
            assert objective(first, second, split.labels) == pytest.approx(best, rel=1e-7, abs=1e-9)


@pytest.mark.parametrize("case", golden("multijoin_partition"))
def test_several_joins_reach_the_golden_objective(case):
    # Chains whose middle relations have independent attributes: weights[k] are the marginals of relation k.
    scaled = [
        np.array(row, float) / sum(row) * size
        for relation, size in zip(case["weights"], case["sizes"], strict=True)
        for row in relation
    ]
    pairs = [(scaled[2 * j] ** 2, scaled[2 * j + 1] ** 2) for j in range(len(scaled) // 2)]
    table = [[best_parts(*pair, most=m).objective for m in range(1, case["K"] + 1)] for pair in pairs]
    counts = divide_parts(table, case["K"])
    assert prod(counts) <= case["K"]
    reached = prod(row[count - 1] for row, count in zip(table, counts, strict=True)) * case["constant"]
    assert reached == pytest.approx(case["objective_bruteforce"], rel=1e-7)


def test_division_of_parts_agrees_with_brute_force():
    # Seen red with M(u - 1, v // l) Q(u, v // l).
    rng = np.random.default_rng(23)
    for _ in range(200):
        joins, most = int(rng.integers(1, 4)), int(rng.integers(1, 10))
        table = -np.sort(-rng.random((joins, most)), axis=1)
        counts = divide_parts(table.tolist(), most)
        assert prod(counts) <= most
        best = min(
            prod(table[j, m - 1] for j, m in enumerate(choice))
            for choice in product(range(1, most + 1), repeat=joins)
            if prod(choice) <= most
        )
        assert prod(table[j, m - 1] for j, m in enumerate(counts)) == pytest.approx(best, rel=1e-12)


@pytest.mark.parametrize("case", golden("theorem41_allocation"))
def test_theorem_4_1_allocations_are_the_golden_ones(case):
    variances = np.array(case["var"])
    copies = copies_for_error(variances, case["eps"], case["L"])
    assert copies == pytest.approx(case["s"], rel=1e-9)
    assert copies.sum() == pytest.approx(case["total_formula"], rel=1e-9)
    assert np.sum(variances[copies > 0] / copies[copies > 0]) == pytest.approx(case["target_var"], rel=1e-9)
    fixed = copies_for_budget(variances, case["budget"])
    assert fixed == pytest.approx(case["s_budget"], rel=1e-9)
    assert np.sum(variances[fixed > 0] / fixed[fixed > 0]) == pytest.approx(case["var_budget"], rel=1e-9)


def test_half_of_a_mixed_allocation_is_even():
    assert copies_for_budget([0.0, 9.0], 100, uniform_part=0.5) == pytest.approx([25, 75])
    assert copies_for_budget([0.0, 0.0], 100) == pytest.approx([50, 50])


def bumps(places, height, domain=1000, floor=1.0):
    frequencies = np.full(domain, floor)
    for place in places:
        frequencies[place : place + 20] = height
    return frequencies


def one_join(f, g, buckets=25):
    values = np.arange(len(f))
    return JoinStatistics(0, 1, equi_depth(values, f, buckets), equi_depth(values, g, buckets))


def real_gain(found, f, g):
    labels = found.domains[0].part_of(np.arange(len(f)))
    variances = [join_variance(f[labels == cell], g[labels == cell]) for cell in range(found.cells)]
    parted = sum(v / share for v, share in zip(variances, found.shares, strict=True))
    return sqrt(join_variance(f, g) / parted)


def test_skews_in_different_places_are_parted_and_the_gain_is_real():
    # Seen red with labels looked up one range too far.
    f, g = bumps([100, 600], 400.0), bumps([300, 800], 250.0)
    found = partition_query([one_join(f, g)], most=4)
    assert found is not None
    assert real_gain(found, f, g) > 2
    assert sum(found.shares) == pytest.approx(1)


def test_the_predicted_gain_is_exact_where_the_histograms_are():
    rng = np.random.default_rng(31)
    f, g = bumps([100, 600], 400.0) + rng.integers(0, 30, 1000), bumps([300, 800], 250.0)
    found = partition_query([one_join(f, g, buckets=10**6)], most=4)
    assert found is not None
    assert found.predicted_gain == pytest.approx(real_gain(found, f, g), rel=1e-9)


def test_skews_in_one_place_are_left_whole():
    f = bumps([100, 600], 400.0)
    assert partition_query([one_join(f, f)], most=4) is None


def test_two_joins_are_parted_together():
    f, g = bumps([100, 600], 400.0), bumps([300, 800], 250.0)
    first, second = one_join(f, g), one_join(g, f)
    second = JoinStatistics(1, 2, second.left_histogram, second.right_histogram)
    found = partition_query([first, second], most=4)
    assert found is not None
    assert [domain.count for domain in found.domains] == [2, 2]
    assert found.cells == 4


def test_every_key_has_a_part():
    domain = DomainPartition((0, 10, 20), (0, 1, 0))
    keys = np.array([-(2**63), 0, 9, 10, 19, 20, 2**63 - 1])
    assert domain.part_of(keys).tolist() == [0, 0, 0, 1, 1, 0, 0]
    assert domain.part_of(keys.reshape(1, -1)).shape == (1, 7)


@pytest.mark.parametrize("bad", [([-1.0], [1.0]), ([np.inf], [1.0])])
def test_squares_are_checked(bad):
    with pytest.raises(ValueError, match="finite squares"):
        best_parts(*bad, most=2)
