"""Choices by rank come out alike whatever the order of the input and the processor."""

import ast
from pathlib import Path

import numpy as np
import pytest

from skimql.sketches.hashing.xi import make_family
from skimql.sketches.ranking import by_weight, least, least_of, rounded
from skimql.sketches.samples.key_sample import KeySample, KeySampleSpec
from skimql.sketches.samples.two_level_plan import (
    candidate_keys,
    gather_candidates,
    heaviest,
    plan_two_level,
    rest_moments,
    split_by_itself,
)

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("count", [0, 1, 2, 17, 300, 999, 1000, 5000, None])
@pytest.mark.parametrize("kinds", [1, 2, 7, 1000])
def test_the_heaviest_are_those_of_a_stable_sort(count, kinds):
    weights = np.random.default_rng(kinds).integers(-kinds, kinds + 1, 1000)
    order = sorted(range(1000), key=lambda i: (-abs(int(weights[i])), i))
    assert by_weight(weights, count).tolist() == order[:count]


@pytest.mark.parametrize("count", [1, 10, 250, 1999])
def test_of_equally_heavy_keys_the_smallest_are_candidates(count):
    keys = np.random.default_rng(count).permutation(np.repeat(np.arange(2000), 3))
    assert heaviest(keys, None, count).keys.tolist() == list(range(count))


def test_sums_that_only_rounding_tells_apart_are_equal():
    total = np.random.default_rng(1).random(1_000_000)
    one, other = float(np.sum(total)), float(np.cumsum(total)[-1])
    assert one != other
    assert rounded(one) == rounded(other)
    assert least([one + 1, max(one, other), min(one, other)]) == 1
    assert least_of([(1, max(one, other)), (2, min(one, other))], lambda pair: pair[1])[0] == 1
    assert rounded([np.inf, -np.inf, 0.0, 1.0, -3.0]).tolist() == [np.inf, -np.inf, 0.0, 1.0, -3.0]
    assert rounded(1.0) != rounded(1.0 + 1e-9)


def planned(tables):
    """Everything that is decided for tables of many equally heavy keys."""
    family = make_family("tabulation", seed=3).derive("k")
    named = [heaviest(keys, None, 150) for keys in tables]
    union = candidate_keys(named)
    counts = np.stack([np.bincount(keys, minlength=3000)[union] for keys in tables])
    pilots = [KeySample(KeySampleSpec(family, 64)) for _ in tables]
    for pilot, keys in zip(pilots, tables, strict=True):
        pilot.update(keys)
    rest = rest_moments([p.known(["count"]) for p in pilots], union)
    plan = plan_two_level(gather_candidates(named, counts, union), rest, 4096)
    alone = [split_by_itself(n, 2000.0, 40_000.0, 1024) for n in named]
    return (
        [n.keys.tolist() for n in named],
        (plan.dense_keys.tolist(), plan.method, plan.capacity, plan.largest_product),
        [(s.dense_keys.tolist(), s.capacity, s.largest_other) for s in alone],
    )


def test_the_order_of_tuples_leaves_no_trace_in_a_plan():
    rng = np.random.default_rng(5)
    tables = [np.repeat(rng.permutation(3000)[:2000], rng.integers(1, 4, 2000)) for _ in range(2)]
    plans = [planned([rng.permutation(t) for t in tables]) for _ in range(4)]
    assert all(plan == plans[0] for plan in plans)


def test_no_module_ranks_by_a_sort_that_leaves_equals_to_chance():
    """`argsort` is stable by name, and `argpartition` is not used; `ranking` says how to choose."""
    for folder in ("sketches", "optimizer", "engine", "parser"):
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                    where = f"{path.relative_to(ROOT)}:{node.lineno}"
                    assert node.func.attr not in ("argpartition",), where
                    if node.func.attr == "argsort":
                        assert any(k.arg == "kind" and k.value.value == "stable" for k in node.keywords), (
                            where
                        )
