"""The keys of a first sample, by the tuples looked at: how many join, what is heavy here, in both and behind."""

from dataclasses import replace

import numpy as np
import pytest

from skimql.optimizer.messages import JoinClass, JoinTree
from skimql.optimizer.prediction.first_class import SeenKeys, by_files

TWO = JoinTree(2, (JoinClass("a", (0, 1)),))
CHAIN = JoinTree(3, (JoinClass("a", (0, 1)), JoinClass("b", (1, 2))))
N, LOOKED = 1_000_000, 16_384
RNG = np.random.default_rng(31)


def seen(keys):
    return SeenKeys.of(RNG.choice(keys, LOOKED, replace=False), LOOKED)


def joined(found):
    """Tuples of the join, as the made-up keys have them."""
    keys = found.keys
    return float(keys.counts @ (keys.tuples[0] * keys.tuples[1])) * np.prod([m.mean for m in keys.messages])


def test_a_foreign_key_joins_each_of_its_tuples_once():
    r, s = RNG.integers(0, N // 2, N), RNG.permutation(N // 2)
    for looked in ({}, {(0, 0): seen(r), (1, 0): seen(s)}):
        found = by_files(TWO, 0, (N, N // 2), (1.0, 1.0), N // 2, {}, looked)
        assert joined(found) == pytest.approx(N, rel=0.2)
        assert found.heaviest[1] == 1.0


def test_how_many_keys_there_are_is_told_by_those_that_are_met_twice_where_files_do_not_tell():
    """Of 100,000 keys of ten tuples; not of keys in some order, of which neighbours are alike, nor where some are heavy."""
    r, s = RNG.integers(0, N // 10, N), RNG.permutation(N // 10)
    assert seen(r).distinct(N) == pytest.approx(N / 10, rel=0.2)
    found = by_files(TWO, 0, (N, N // 10), (1.0, 1.0), np.inf, {}, {(0, 0): seen(r), (1, 0): seen(s)})
    assert found.keys.tuples[:, 0] == pytest.approx([10.0, 1.0], rel=0.2)
    blocks = np.sort(r[:LOOKED].reshape(64, -1), axis=1).reshape(-1)
    unknown = [SeenKeys.of(blocks, LOOKED), seen(np.arange(N)), seen(np.r_[r, np.zeros(N // 50, np.int64)])]
    assert [own.distinct(N) for own in unknown] == [np.inf] * 3


def test_neighbours_in_the_order_of_keys_tell_how_many_tuples_a_key_has():
    """As tables of order lines and of orders are: of 4 tuples a key, 1 to 7, files tell four times as many keys."""
    lines = np.repeat(np.arange(0, 4 * N, 16), np.tile([1, 2, 3, 4, 4, 5, 6, 7], N // 32))[:N]
    blocks = np.concatenate([lines[n : n + LOOKED // 4] for n in range(0, N, N // 4)])
    looked = {(0, 0): SeenKeys.of(blocks, LOOKED), (1, 0): SeenKeys.of(np.arange(0, 4 * LOOKED, 4), LOOKED)}
    found = by_files(TWO, 0, (N, N // 4), (1.0, 1.0), N, {}, looked)
    assert joined(found) == pytest.approx(N, rel=0.05)
    assert found.keys.tuples[:, 0] == pytest.approx([4.0, 1.0], rel=0.05)
    assert found.keys.squares[0, 0] == pytest.approx(19.5, rel=0.05)


def test_of_more_matches_than_expected_tables_have_fewer_keys_of_which_nothing_tells_how_many():
    """Keys of two columns, of 100,000 each there once in a table in their order, and ten times in one of no order."""
    s = np.concatenate([np.arange(n, n + LOOKED // 4) for n in range(0, N // 10, N // 40)])
    r = RNG.integers(0, N // 10, N)[:LOOKED]
    looked = {(0, 0): replace(SeenKeys.of(r, LOOKED), shuffled=False), (1, 0): SeenKeys.of(s, LOOKED, s // 4)}
    found = by_files(TWO, 0, (N, N // 10), (1.0, 1.0), np.inf, {}, looked)
    assert found.keys.tuples[:, 0] == pytest.approx([10.0, 1.0], rel=0.3)
    assert joined(found) == pytest.approx(N, rel=0.3)


@pytest.mark.parametrize("part", [0.3, 0.03])
def test_tuples_without_partners_are_seen_to_have_none(part):
    r, s = RNG.permutation(N), N - int(part * N) + RNG.permutation(N)
    found = by_files(TWO, 0, (N, N), (1.0, 1.0), 2 * N, {}, {(0, 0): seen(r), (1, 0): seen(s)})
    assert 0.5 < joined(found) / (part * N) < 2.0


def test_keys_that_are_heavy_in_both_tables_are_met_and_make_the_join():
    keys = np.r_[np.arange(N), np.repeat(np.arange(20), 5000)]
    found = by_files(TWO, 0, (keys.size,) * 2, (1.0, 1.0), N, {}, {(0, 0): seen(keys), (1, 0): seen(keys)})
    assert found.keys.counts.size == 21
    assert joined(found) == pytest.approx(N + 20 * 5000**2, rel=0.2)


def test_a_key_that_is_heavy_beyond_the_class_is_what_a_tuple_may_receive():
    far = np.r_[np.arange(N // 2), np.zeros(N // 2, int)]
    sizes = (N // 2, N // 2, N)
    found = by_files(CHAIN, 0, sizes, (1.0,) * 3, N // 2, {}, {(2, 1): seen(far)})
    message = found.keys.messages[1]
    assert message.largest == pytest.approx(N / 2, rel=0.1)
    assert message.mean == pytest.approx(2.0, rel=0.1)
    assert message.square == pytest.approx(N / 2, rel=0.2)


def test_neighbours_are_not_heavy_nor_are_those_of_two_tables_and_of_one_joined_with_itself_matches():
    ordered = SeenKeys.of(np.repeat(np.arange(LOOKED // 8), 8), LOOKED)
    assert ordered.ordered
    assert not ordered.heavy(0.1).any()
    same = seen(RNG.permutation(N))
    for own, each in ((ordered, 8), (same, 1)):
        found = by_files(TWO, 0, (N, N), (1.0, 1.0), N, {}, {(0, 0): own, (1, 0): own})
        assert joined(found) == pytest.approx(each * N, rel=0.01)


def test_null_keys_and_filters_leave_so_many_tuples_fewer():
    half = SeenKeys.of(RNG.permutation(N)[: LOOKED // 2], LOOKED)
    found = by_files(TWO, 0, (N, N), (0.5, 1.0), N, {}, {(0, 0): half})
    assert joined(found) == pytest.approx(N / 4, rel=0.01)


def test_keys_that_files_list_have_their_own_tuples_and_are_evaluated_for_certain():
    """Two of each key where it is looked; two long runs elsewhere have a tenth of one table, one of them of both."""
    looked = SeenKeys.of(np.repeat(np.arange(LOOKED // 2), 2), LOOKED)
    listed = {
        0: (np.array([77_000, 91_000]), np.array([N // 20, N // 20])),
        1: (np.array([77_000]), np.array([N // 50])),
    }
    found = by_files(TWO, 0, (N, N), (1.0, 0.5), N, {}, {(0, 0): looked, (1, 0): looked}, listed=listed).keys
    assert found.dense.tolist() == [False, True, True]
    assert found.tuples[:, 1].tolist() == [N / 20, N / 100]
    # Of the second one the other table has as many as of any key.
    assert found.tuples[0, 2] == N / 20
    assert found.tuples[:, 0] == pytest.approx([2.0, 1.0], rel=0.05)
    assert found.tuples[1, 2] == pytest.approx(1.0, rel=0.05)
    assert found.tuples[0, 0] * found.counts[0] == pytest.approx(0.9 * N, rel=0.01)
    without = by_files(TWO, 0, (N, N), (1.0, 0.5), N, {}, {(0, 0): looked, (1, 0): looked}).keys
    assert without.dense.tolist() == [False]


def test_keys_that_files_list_may_have_more_tuples_than_those_looked_at_have_keys():
    """Half of the tuples looked at have no key, and three quarters of all are of one that is listed."""
    looked = SeenKeys.of(np.arange(LOOKED // 2), LOOKED)
    listed = {0: (np.array([77_000]), np.array([3 * N // 4]))}
    both = {(0, 0): looked, (1, 0): SeenKeys.of(np.arange(0, 4 * LOOKED, 4), LOOKED)}
    found = by_files(TWO, 0, (N, N), (1.0, 1.0), N, {}, both, listed=listed)
    assert np.all(found.keys.tuples >= 0.0)
    assert np.all(found.keys.counts >= 0.0)
    assert found.keys.tuples[0, 1] == 3 * N // 4


def test_what_a_filter_keeps_of_a_heavy_key_is_told_by_its_own_tuples():
    """A fifth of both tables have one key, another fifth a second one: the filter of r keeps none of the first."""
    heavy = np.repeat([-1, -2], N // 5)
    sides = [np.r_[RNG.permutation(3 * N // 5), heavy] for _ in range(2)]
    r = RNG.choice(sides[0], LOOKED, replace=False)
    looked = {(0, 0): SeenKeys.of(r, LOOKED), (1, 0): seen(sides[1])}
    third = (r >= 0) & (r % 3 == 0) | (r == -2)
    share = float(third.mean())
    without = by_files(TWO, 0, (N, N), (share, 1.0), N, {}, looked)
    assert joined(without) == pytest.approx(share * (2 * (N / 5) ** 2 + 0.6 * N), rel=0.05)
    told = {(0, 0): looked[0, 0].behind_filter(r[third]), (1, 0): looked[1, 0]}
    found = by_files(TWO, 0, (N, N), (share, 1.0), N, {}, told)
    # Of the first key next to nothing passes, of the second all, of the others a third.
    assert joined(found) == pytest.approx((N / 5) ** 2 + 0.2 * N, rel=0.05)
    kept = dict(zip(found.keys.counts.tolist(), found.keys.tuples[0].tolist(), strict=True))
    light = max(kept)
    assert light * kept[light] == pytest.approx(0.2 * N, rel=0.05)
    assert sorted(found.keys.tuples[0][1:]) == pytest.approx([0.0, N / 5], abs=0.01 * N)
    # All pass, and none: what is left of the others is a part of them.
    for keys, part in ((r, 1.0), (r[:0], share)):
        of_all = by_files(
            TWO, 0, (N, N), (part, 1.0), N, {}, told | {(0, 0): looked[0, 0].behind_filter(keys)}
        )
        assert 0.0 <= of_all.keys.tuples[0].min() <= of_all.keys.tuples[0].max() <= N / 5 * 1.05
