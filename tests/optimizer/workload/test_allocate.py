"""Space allocation: golden cases, brute force, and a convex solver."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.optimize import minimize
from support.golden import golden

from skimql.optimizer.workload.allocate import (
    Demand,
    SketchShape,
    allocate,
    allocate_rows,
    compute_space,
    maximum_error_space,
)
from skimql.optimizer.workload.levels import components_of


def demand_of(case):
    """The golden case as a Demand, and the case's number of every vertex."""
    names = sorted({v for used in case["V"].values() for v in used})
    queries = tuple(tuple(names.index(v) for v in used) for used in case["V"].values())
    return Demand(len(names), queries, tuple(case["W"].values())), names


def random_demand(rng, vertices, queries, most=4):
    """Random queries over all of the vertices, with weights of 1 to 9."""
    while True:
        used = [rng.choice(vertices, rng.integers(1, min(most, vertices) + 1), False) for _ in range(queries)]
        if len(np.unique(np.concatenate(used))) == vertices:
            weights = tuple(float(w) for w in rng.integers(1, 10, queries))
            return Demand(vertices, tuple(tuple(int(v) for v in row) for row in used), weights)


def continuous_error(demand):
    """The sum of W_Q / M_Q for one unit of space, at the sizes of `compute_space`."""
    shares = [0.0] * demand.vertices
    for component in compute_space(demand):
        for v in component.vertices:
            shares[v] = component.share
    assert sum(shares) == pytest.approx(1, rel=1e-12)
    return sum(demand.errors(shares))


@pytest.mark.parametrize("case", golden("compute_space"), ids=lambda case: case["name"])
def test_compute_space_reaches_the_golden_sizes(case):
    demand, names = demand_of(case)
    components = compute_space(demand)
    for component in components:
        for v in component.vertices:
            assert component.share * case["M"] == pytest.approx(case["m"][str(names[v])], rel=1e-9)
    assert continuous_error(demand) / case["M"] == pytest.approx(case["objective"], rel=1e-9)
    found = {tuple(names[v] for v in component.vertices) for component in components}
    assert found == {tuple(sorted(part["V"])) for part in case["components"]}


@pytest.mark.parametrize("case", golden("compute_space"), ids=lambda case: case["name"])
def test_rounding_is_no_worse_than_rounding_down(case):
    demand, _ = demand_of(case)
    result = allocate(demand, case["M"])
    assert sum(result.words) <= case["M"]
    assert result.average_error * len(demand.queries) <= case["avg_rounded_down_objective"] * (1 + 1e-12)
    assert result.average_error * len(demand.queries) >= case["objective"] * (1 - 1e-12)


@pytest.mark.parametrize("case", golden("compute_space"), ids=lambda case: case["name"])
def test_the_maximum_error_is_the_golden_one(case):
    demand, names = demand_of(case)
    shares = maximum_error_space(demand)
    for v, share in enumerate(shares):
        assert share * case["M"] == pytest.approx(case["max_error"]["m"][str(names[v])], rel=1e-9)
    assert max(demand.errors(shares)) / case["M"] == pytest.approx(case["max_error"]["error"], rel=1e-9)
    result = allocate(demand, case["M"], "maximum")
    assert sum(result.words) == case["M"]
    assert result.maximum_error == pytest.approx(case["max_error"]["error_integer"], rel=1e-9)


def test_a_convex_solver_finds_nothing_better():
    rng = np.random.default_rng(3)
    for _ in range(25):
        demand = random_demand(rng, vertices=5, queries=4)
        found = continuous_error(demand)
        weights, count = np.array(demand.weights), len(demand.queries)

        # Variables: m_v, then M_Q with M_Q <= m_v for every vertex of Q.
        def error(x, weights=weights, count=count):
            return float(np.sum(weights / x[-count:]))

        def slope(x, weights=weights, count=count):
            return np.concatenate([np.zeros(len(x) - count), -weights / x[-count:] ** 2])

        rows = [(v, 5 + q) for q, used in enumerate(demand.queries) for v in used]
        matrix = np.zeros((len(rows) + 1, 5 + count))
        for row, (v, q) in enumerate(rows):
            matrix[row, [v, q]] = 1, -1
        matrix[-1, :5] = -1
        shift = np.append(np.zeros(len(rows)), 1.0)
        solved = minimize(
            error,
            np.full(5 + count, 0.2),
            jac=slope,
            bounds=[(1e-6, 1)] * (5 + count),
            constraints={
                "type": "ineq",
                "fun": lambda x, a=matrix, b=shift: a @ x + b,
                "jac": lambda x, a=matrix: a,
            },
            method="SLSQP",
            options={"ftol": 1e-14, "maxiter": 500},
        )
        assert found == pytest.approx(solved.fun, rel=1e-6)


def test_max_flow_and_fair_loads_find_the_same_levels():
    # Seen red when both marks followed every edge, so that nothing was cut.
    rng = np.random.default_rng(5)
    for _ in range(200):
        demand = random_demand(rng, vertices=int(rng.integers(1, 8)), queries=int(rng.integers(2, 8)))
        wanted = zip(demand.weights, demand.queries, strict=True)
        loads = components_of(
            range(demand.vertices), {q: (int(w), used) for q, (w, used) in enumerate(wanted)}
        )
        total = sum(component.root for component in loads)
        assert continuous_error(demand) == pytest.approx(total**2, rel=1e-9)
        sizes = {v: c.weight / len(c.vertices) for c in loads for v in c.vertices}
        for component in compute_space(demand):
            for v in component.vertices:
                assert component.share == pytest.approx(np.sqrt(sizes[v]) / total, rel=1e-9)


def test_the_integer_maximum_error_is_optimal():
    # 200 random inputs against every allocation. Seen red with the patent's rule, which can starve a vertex.
    rng = np.random.default_rng(7)
    for _ in range(200):
        vertices = int(rng.integers(2, 5))
        demand = random_demand(rng, vertices, queries=3)
        demand = Demand(vertices, demand.queries, tuple(w**3 for w in demand.weights))
        words = int(rng.integers(vertices, vertices + 6))
        best = min(
            max(demand.errors(sizes))
            for sizes in product(range(1, words + 1), repeat=vertices)
            if sum(sizes) == words
        )
        result = allocate(demand, words, "maximum")
        assert sum(result.words) == words
        assert min(result.words) >= 1
        assert result.maximum_error == pytest.approx(best, rel=1e-12)


def test_the_rounded_average_error_keeps_the_promise_of_theorem_3():
    rng = np.random.default_rng(9)
    for _ in range(60):
        vertices = int(rng.integers(2, 5))
        demand = random_demand(rng, vertices, queries=3)
        words = 12
        best = min(
            sum(demand.errors(sizes))
            for sizes in product(range(1, words + 1), repeat=vertices)
            if sum(sizes) <= words
        )
        result = allocate(demand, words)
        assert sum(result.words) <= words
        assert result.average_error * 3 <= best * (1 + 2 * vertices / words)


@pytest.mark.parametrize("metric", ["average", "maximum"])
def test_sizes_are_whole_rows_within_the_budget(metric):
    rng = np.random.default_rng(15)
    for _ in range(50):
        demand = random_demand(rng, vertices=6, queries=5)
        words = int(rng.integers(6 * 11 * 4, 5000))
        result = allocate(demand, words, metric, SketchShape(unit=11, least=4))
        assert sum(result.words) <= words
        assert all(size % 11 == 0 and size >= 44 for size in result.words)


@pytest.mark.parametrize("metric", ["average", "maximum"])
def test_rows_of_common_buckets_come_near_the_best_sizes_and_beat_equal_ones(metric):
    # Seen red with the most buckets always, which makes all sizes equal.
    rng = np.random.default_rng(16)
    losses, gains = [], []
    for _ in range(30):
        demand = random_demand(rng, vertices=6, queries=5)
        demand = Demand(6, demand.queries, tuple(w**2 for w in demand.weights))
        found = allocate_rows(demand, 60_000, metric)
        assert min(map(min, found.rows)) >= 11
        assert 57_000 < sum(found.words) <= 60_000
        judge = sum if metric == "average" else max
        mine = judge(demand.errors(found.words))
        free = judge(demand.errors(allocate(demand, 60_000, metric).words))
        losses.append(mine / free)
        gains.append(judge(demand.errors([10_000] * 6)) / mine)
    assert max(losses) < 1.12
    assert np.mean(gains) > 1.1


def test_rows_of_cells_follow_their_shares():
    demand = Demand(2, ((0, 1),), (1.0,))
    found = allocate_rows(demand, 10_000, cells=[(0.25, 0.75), (1.0,)])
    first, second = found.rows
    assert first[1] == pytest.approx(3 * first[0], abs=3)
    assert second[0] == pytest.approx(sum(first), abs=3)


@pytest.mark.parametrize("metric", ["average", "maximum"])
def test_fewer_rows_may_cost_so_much_error_and_no_more(metric):
    rng = np.random.default_rng(6)
    saved = []
    for _ in range(20):
        demand = random_demand(rng, vertices=5, queries=4)
        least, fewer = (allocate_rows(demand, 30_000, metric, more_error=e) for e in (0.0, 0.1))
        judge = sum if metric == "average" else max
        best, found = (
            judge(demand.errors([own * a.buckets for own in map(sum, a.rows)])) for a in (least, fewer)
        )
        assert best <= found <= 1.1 * best
        assert fewer.buckets >= least.buckets
        saved.append(sum(map(sum, least.rows)) / sum(map(sum, fewer.rows)))
    assert np.median(saved) > 1.5


def test_extreme_weights_leave_every_sketch_its_rows():
    demand = Demand(4, ((0, 1), (2, 3)), (1e12, 1.0))
    for metric in ("average", "maximum"):
        found = allocate_rows(demand, 5000, metric)
        assert min(map(min, found.rows)) >= 11
        assert sum(found.words) <= 5000
    with pytest.raises(ValueError, match="88 would do"):
        allocate_rows(demand, 87)


def test_a_query_of_weight_zero_still_gets_space():
    demand = Demand(4, ((0, 1), (2, 3)), (1.0, 0.0))
    for metric in ("average", "maximum"):
        assert min(allocate(demand, 1000, metric).words) >= 1


def test_too_little_space_says_how_much_would_do():
    demand = Demand(3, ((0, 1), (1, 2)), (1.0, 1.0))
    with pytest.raises(ValueError, match="33 would do"):
        allocate(demand, 32, shape=SketchShape(unit=11))


@pytest.mark.parametrize("weights", [(1.0,), (1.0, -1.0), (1.0, float("nan"))])
def test_weights_are_checked(weights):
    with pytest.raises(ValueError, match="weights"):
        allocate(Demand(2, ((0,), (1,)), weights), 100)
