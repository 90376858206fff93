"""Exact maps against Python dictionaries, and exact joins against nested loops."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skimql.sketches.joins.exact_map import ExactMap, exact_join, group_tuples

SMALL = st.integers(-3, 3)
HUGE = st.integers(-(2**62), 2**62)


def tuples(attributes, weights=HUGE):
    return st.lists(st.tuples(*[SMALL] * attributes, weights), max_size=15)


def map_of(rows, attributes, dtype="int64"):
    columns = [np.array([r[i] for r in rows], dtype=np.int64) for i in range(attributes)]
    weights = np.array([r[-1] for r in rows], dtype=dtype)
    return ExactMap.from_batch(columns, group_tuples(columns, len(rows)), weights)


def net(rows):
    total = Counter()
    for *keys, weight in rows:
        total[tuple(keys)] += weight
    return {keys: weight for keys, weight in sorted(total.items()) if weight}


def contents(exact):
    return dict(zip(map(tuple, exact.keys.tolist()), exact.weights.tolist(), strict=True))


@pytest.mark.parametrize("attributes", [0, 1, 2, 3])
@given(st.data())
def test_a_map_holds_net_weights_in_order(attributes, data):
    first, second = (data.draw(tuples(attributes, st.integers(-(2**57), 2**57))) for _ in range(2))
    a, b = map_of(first, attributes), map_of(second, attributes)
    assert list(contents(a).items()) == list(net(first).items())
    assert list(contents(a.plus(b)).items()) == list(net(first + second).items())
    negated = [(*keys, -weight) for *keys, weight in second]
    assert list(contents(a.plus(b, -1)).items()) == list(net(first + negated).items())
    assert len(a.plus(a, -1)) == 0
    assert a.nbytes == 8 * (attributes + 1) * len(a)


# Planted bug: without the check the weight wraps to a negative number and this fails.
@given(tuples(1, st.integers(-(2**63), 2**63 - 1)))
def test_a_weight_beyond_64_bits_is_refused_and_no_other(rows):
    if all(-(2**63) <= w < 2**63 for w in net(rows).values()):
        assert contents(map_of(rows, 1)) == net(rows)
    else:
        with pytest.raises(OverflowError, match="beyond 64 bits"):
            map_of(rows, 1)
    lowest = map_of([(1, -(2**63))], 1)
    with pytest.raises(OverflowError):
        ExactMap.empty(1, "int64").plus(lowest, -1)


# Three weights of up to 2^60 on one key stay within 64 bits; their products do not.
FAR = st.integers(-(2**60), 2**60)


@given(tuples(1, FAR), tuples(2, FAR), tuples(2, FAR), tuples(1, FAR))
def test_exact_joins_equal_nested_loops_in_integers_of_any_size(a, ab, bc, c):
    maps = [map_of(rows[:3], n) for rows, n in ((a, 1), (ab, 2), (bc, 2), (c, 1))]
    rows = [net(x[:3]) for x in (a, ab, bc, c)]
    chain = sum(
        w * x * y * z
        for (p,), w in rows[0].items()
        for (q, r), x in rows[1].items()
        for (s, t), y in rows[2].items()
        for (u,), z in rows[3].items()
        if p == q and r == s and t == u
    )
    assert exact_join(maps, [(0, 1, 0, 0), (1, 2, 1, 0), (2, 3, 1, 0)]) == chain
    backwards = [maps[2], maps[0], maps[3], maps[1]]
    assert exact_join(backwards, [(2, 0, 0, 1), (0, 3, 0, 1), (3, 1, 0, 0)]) == chain
    squares = sum(w * w for w in rows[0].values())
    assert exact_join([maps[0], maps[0]], [(0, 1, 0, 0)]) == squares


@given(tuples(3, st.integers(-9, 9)), st.tuples(*[tuples(1, st.integers(-9, 9))] * 3))
def test_exact_stars_equal_nested_loops(centre, leaves):
    maps = [map_of(centre, 3), *(map_of(leaf, 1) for leaf in leaves)]
    weights = [net(leaf) for leaf in leaves]
    expected = sum(
        w * weights[0].get((p,), 0) * weights[1].get((q,), 0) * weights[2].get((r,), 0)
        for (p, q, r), w in net(centre).items()
    )
    assert exact_join(maps, [(1, 0, 0, 0), (0, 2, 1, 0), (0, 3, 2, 0)]) == expected


def test_float_weights_give_a_float_and_totals_stand_alone():
    left, right = map_of([(1, 0.5), (2, 2.0)], 1, "float64"), map_of([(1, 3), (2, 5)], 1)
    joined = exact_join([left, right], [(0, 1, 0, 0)])
    assert isinstance(joined, float)
    assert joined == 11.5
    assert exact_join([map_of([(2**60,), (2**60,)], 0)], []) == 2**61
    assert exact_join([map_of([], 0)], []) == 0


def test_stored_arrays_are_checked():
    exact = map_of([(1, 2, 5), (1, 3, -1)], 2)
    again = ExactMap.from_arrays(exact.keys, exact.weights, 2, "int64")
    assert contents(again) == contents(exact)
    assert contents(exact.copy()) == contents(exact)
    for keys, weights in (
        (exact.keys[::-1], exact.weights),
        (exact.keys[[0, 0]], exact.weights),
        (exact.keys, exact.weights * 0),
    ):
        with pytest.raises(ValueError, match="distinct and sorted"):
            ExactMap.from_arrays(keys, weights, 2, "int64")
    with pytest.raises(ValueError, match="no map of 1 attributes"):
        ExactMap.from_arrays(exact.keys, exact.weights, 1, "int64")
    with pytest.raises(ValueError, match="float64 weights"):
        ExactMap.from_arrays(exact.keys, exact.weights, 2, "float64")
    with pytest.raises(ValueError, match="distinct and sorted"):
        ExactMap.from_arrays(np.empty((2, 0), dtype=np.int64), np.array([1, 2]), 0, "int64")
