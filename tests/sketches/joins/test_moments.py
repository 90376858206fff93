"""Exact moments against golden values, brute force, and the lemma that bounds them."""

import json
from pathlib import Path

import numpy as np
import pytest

from skimql.sketches.joins import moments

GOLDEN = json.loads((Path(__file__).parents[2] / "fixtures/golden/agms_moments.json").read_text())
CHAINS = {"single": 1, "single_selfjoin": 1, "chain2": 2, "chain3": 3}


def chain(joins):
    return [(v, v + 1, 0 if v == 0 else 1, 0) for v in range(joins)]


def edges_of(name, tensors):
    if name in CHAINS:
        return chain(CHAINS[name])
    centre = next(i for i, f in enumerate(tensors) if f.ndim == 3)
    leaves = [i for i in range(len(tensors)) if i != centre]
    return [(leaf, centre, 0, axis) for axis, leaf in enumerate(leaves)]


@pytest.mark.parametrize("case", GOLDEN["cases"], ids=lambda c: c["case"])
def test_golden_moments_and_bounds(case):
    tensors = [np.array(x, dtype=float) for x in case["inputs"]]
    edges = edges_of(case["case"], tensors)
    assert moments.join_size(tensors, edges) == pytest.approx(case["J"], rel=1e-9)
    assert moments.join_variance(tensors, edges) == pytest.approx(case["var_exact"], rel=1e-9)
    low, high = moments.lemma_3_2_bounds(tensors, edges)
    assert low == pytest.approx(case["lemma_lo"], rel=1e-9)
    assert high == pytest.approx(case["lemma_hi"], rel=1e-9)
    loose = moments.theorem_2_bound([moments.self_join_size(f) for f in tensors], len(edges))
    assert loose == pytest.approx(case["theorem2_hi"], rel=1e-9)


def test_one_join_by_message_passing_is_equation_1():
    rng = np.random.default_rng(1)
    f, g = rng.integers(-9, 9, (2, 30)).astype(float)
    assert moments.join_variance([f, g], chain(1)) == pytest.approx(moments.single_join_variance(f, g))


def test_any_vertex_may_be_first():
    rng = np.random.default_rng(2)
    a, ab, bc, c = (rng.integers(0, 9, shape).astype(float) for shape in ((4,), (4, 5), (5, 3), (3,)))
    forward = [a, ab, bc, c], chain(3)
    turned = [bc, c, a, ab], [(2, 3, 0, 0), (3, 0, 1, 0), (1, 0, 0, 1)]
    assert moments.join_size(*forward) == pytest.approx(np.einsum("a,ab,bc,c", a, ab, bc, c))
    assert moments.join_size(*turned) == pytest.approx(moments.join_size(*forward))
    assert moments.join_variance(*turned) == pytest.approx(moments.join_variance(*forward))


# Planted bug: with the square outside the sum, as the lemma is printed, the bounds fail for most chains.
@pytest.mark.parametrize("joins", [1, 2, 3])
def test_lemma_3_2_holds_without_negative_frequencies(joins):
    rng = np.random.default_rng(joins)
    for _ in range(100):
        shapes = [(4,), *[(4, 4)] * (joins - 1), (4,)]
        tensors = [rng.poisson(rng.exponential(3, shape)).astype(float) for shape in shapes]
        low, high = moments.lemma_3_2_bounds(tensors, chain(joins))
        variance = moments.join_variance(tensors, chain(joins))
        slack = 1e-9 * (1 + high)
        assert low - slack <= variance <= high + slack
        products = moments.theorem_2_bound([moments.self_join_size(f) for f in tensors], joins)
        assert variance <= products + slack


def test_domains_that_differ_are_refused():
    with pytest.raises(ValueError, match="domains of 3 and 4"):
        moments.join_size([np.ones(3), np.ones(4)], chain(1))
