"""Hostile data, by what cannot be seen of keys: how heavy they are, what hangs behind them, how few, hubs."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from .data import (
    Data,
    Rng,
    far_heavy,
    foreign_key,
    heavy_in_both,
    hostile,
    table,
    uniform,
    unique,
    with_heavy,
    zipf,
)


@hostile("behind")
def one_leads_to_many(rng: Rng, n: int) -> Data:
    """One tuple of b leads to most of c."""
    return far_heavy(rng, n, 1)


@hostile("behind")
def twenty_lead_to_many(rng: Rng, n: int) -> Data:
    """Twenty tuples of b do."""
    return far_heavy(rng, n, 20)


@hostile("behind")
def heavy_meets_heavy(rng: Rng, n: int) -> Data:
    """Many tuples of r and many of c, by the same tuple of b: neither end alone is remarkable."""
    b, times = n // 4, max(2, int((n / 4) ** 0.5))
    one = np.array([b // 2])
    return Data(
        {
            "r": table(rng, with_heavy(rng, uniform(rng, b, b), one, times)),
            "b": {"k": np.arange(b), "l": np.arange(b)},
            "c": {"l": with_heavy(rng, np.arange(b), one, times)},
        },
        join="r JOIN b ON r.k = b.k JOIN c ON b.l = c.l",
        distinct="b.k",
    )


@hostile("behind")
def far_far_heavy(rng: Rng, n: int) -> Data:
    """Four tables in a chain; the weight is in the last one."""
    data = far_heavy(rng, n, 3)
    last = data.tables["c"]["l"]
    keys = int(last.max()) + 1
    tables = dict(data.tables)
    tables["d"] = {"l": unique(rng, keys), "m": unique(rng, keys)}
    tables["e"] = {"m": tables["d"]["m"][np.argsort(tables["d"]["l"])][last]}
    del tables["c"]
    data.tables, data.join = tables, "r JOIN b ON r.k = b.k JOIN d ON b.l = d.l JOIN e ON d.m = e.m"
    return data


@hostile("keys")
def one_heavy_in_both(rng: Rng, n: int) -> Data:
    """One key makes half of the result."""
    return heavy_in_both(rng, n, 1)


@hostile("keys")
def ten_heavy_in_both(rng: Rng, n: int) -> Data:
    """Ten keys do."""
    return heavy_in_both(rng, n, 10)


@hostile("keys")
def hundred_heavy_in_both(rng: Rng, n: int) -> Data:
    """A hundred keys do."""
    return heavy_in_both(rng, n, 100)


@hostile("keys")
def thousand_heavy_in_both(rng: Rng, n: int) -> Data:
    """A thousand keys do: none is seen four times among the tuples looked at."""
    return heavy_in_both(rng, n, 1000)


@hostile("keys")
def most_by_thirty(rng: Rng, n: int) -> Data:
    """Thirty keys make 90 % of the result."""
    return heavy_in_both(rng, n, 30, 0.9)


@hostile("keys")
def heavy_disjoint(rng: Rng, n: int) -> Data:
    """Each table has heavy keys, none of them heavy in the other."""
    times = n // 40
    return Data(
        {
            "r": table(rng, with_heavy(rng, unique(rng, n), np.arange(20), times)),
            "s": table(rng, with_heavy(rng, unique(rng, n), np.arange(100, 120), times)),
        }
    )


@hostile("keys")
def heavy_without_partner(rng: Rng, n: int) -> Data:
    """Heavy keys of both tables that the other table does not know at all."""
    times = n // 40
    return Data(
        {
            "r": table(rng, with_heavy(rng, unique(rng, n), n + np.arange(20), times)),
            "s": table(rng, with_heavy(rng, unique(rng, n), 2 * n + np.arange(20), times)),
        }
    )


@hostile("keys")
def unknown_customer(rng: Rng, n: int) -> Data:
    """The key 0 stands for "unknown": 5 % of r, and three tuples of s, where others have one."""
    data = foreign_key(rng, n)
    data.tables["r"]["k"][rng.random(n) < 0.05] = 0
    s = with_heavy(rng, data.tables["s"]["k"], np.array([0]), 2)
    return Data({"r": data.tables["r"], "s": table(rng, s)})


@hostile("keys")
def three_tables_one_key(rng: Rng, n: int) -> Data:
    """Three tables on one key; thirty keys of many tuples in each."""
    heavy, times = rng.choice(n, 30, replace=False), max(2, round((n / 30) ** (1 / 3)))
    tables = {name: table(rng, with_heavy(rng, unique(rng, n), heavy, times)) for name in "rst"}
    return Data(tables, join="r JOIN s ON r.k = s.k JOIN t ON s.k = t.k")


@hostile("keys")
def three_tables_opposite(rng: Rng, n: int) -> Data:
    """Three Zipf tables on one key, each with an order of its own."""
    keys = n // 4
    tables = {name: table(rng, zipf(rng, n, keys, 0.8, rng.permutation(keys))) for name in "rst"}
    return Data(tables, join="r JOIN s ON r.k = s.k JOIN t ON s.k = t.k")


@hostile("keys")
def loaded_twice(rng: Rng, n: int) -> Data:
    """A batch was loaded sixty times into both tables."""
    batch = rng.choice(n, max(n // 3600, 1), replace=False)
    return Data({name: table(rng, with_heavy(rng, unique(rng, n), batch, 60)) for name in "rs"})


@hostile("keys")
def bounded_domain(rng: Rng, n: int) -> Data:
    """A dense domain of 2,000 keys, twenty of them heavy in both tables."""
    heavy = rng.choice(2000, 20, replace=False)
    tables = {name: table(rng, with_heavy(rng, uniform(rng, n // 2, 2000), heavy, n // 100)) for name in "rs"}
    return Data(tables)


@hostile("skew")
def zipf15_permuted(rng: Rng, n: int) -> Data:
    """Zipf 1.5 in both tables, ranks permuted in the second."""
    return _zipfs(rng, n, 1.5, n)


@hostile("skew")
def zipf08_permuted(rng: Rng, n: int) -> Data:
    """Zipf 0.8 in both, permuted."""
    return _zipfs(rng, n, 0.8, n)


@hostile("skew")
def zipf1_aligned(rng: Rng, n: int) -> Data:
    """Zipf 1 in both, the same ranks."""
    return Data({name: table(rng, zipf(rng, n, n, 1.0)) for name in "rs"})


@hostile("skew")
def zipf1_opposite(rng: Rng, n: int) -> Data:
    """Zipf 1, the heaviest key here the lightest there."""
    keys = n // 4
    return Data(
        {
            "r": table(rng, zipf(rng, n, keys, 1.0)),
            "s": table(rng, zipf(rng, n, keys, 1.0, np.arange(keys)[::-1])),
        }
    )


@hostile("skew")
def zipf12_foreign_key(rng: Rng, n: int) -> Data:
    """A foreign key of Zipf 1.2."""
    keys = n // 4
    k = zipf(rng, n, keys, 1.2, rng.permutation(keys))
    return Data({"r": table(rng, k), "s": table(rng, unique(rng, keys))})


def _zipfs(rng: Rng, n: int, z: float, keys: int) -> Data:
    orders = (np.arange(keys), rng.permutation(keys))
    return Data(
        {name: table(rng, zipf(rng, n, keys, z, order)) for name, order in zip("rs", orders, strict=True)}
    )


@hostile("skew")
def below_the_threshold(rng: Rng, n: int) -> Data:
    """Three hundred keys of weights alike in both tables, each too light to be called dense."""
    heavy, times = rng.choice(n, 300, replace=False), max(2, round((3 * n / 300) ** 0.5))
    return Data({name: table(rng, with_heavy(rng, unique(rng, n), heavy, times)) for name in "rs"})


@hostile("skew")
def zipf_chain(rng: Rng, n: int) -> Data:
    """A chain whose two ends are Zipf 1, the tuples between them joining ranks at random."""
    keys = n // 8
    return Data(
        {
            "r": table(rng, zipf(rng, n, keys, 1.0)),
            "b": {"k": unique(rng, keys), "l": unique(rng, keys)},
            "c": {"l": zipf(rng, n, keys, 1.0)},
        },
        join="r JOIN b ON r.k = b.k JOIN c ON b.l = c.l",
        distinct="b.k",
    )


@hostile("self-join")
def self_join_heavy(rng: Rng, n: int) -> Data:
    """A table with itself; fifty keys make half of the result."""
    data = heavy_in_both(rng, n, 50)
    return Data({"r": data.tables["r"]}, join="r JOIN r t ON r.k = t.k")


@hostile("self-join")
def self_join_unique(rng: Rng, n: int) -> Data:
    """A table of unique keys with itself: few counters of a sketch are typical."""
    return Data({"r": table(rng, unique(rng, n))}, join="r JOIN r t ON r.k = t.k")


@hostile("few")
def tiny_intersection(rng: Rng, n: int) -> Data:
    """Fifty keys in common."""
    r, s = unique(rng, n), unique(rng, n) + n - 50
    return Data({"r": table(rng, r), "s": table(rng, s)})


@hostile("few")
def tiny_and_heavy(rng: Rng, n: int) -> Data:
    """Fifty keys in common, five of them of many tuples in both."""
    heavy = n - 50 + np.arange(5)
    return Data(
        {
            "r": table(rng, with_heavy(rng, unique(rng, n), heavy, 50)),
            "s": table(rng, with_heavy(rng, unique(rng, n) + n - 50, heavy, 50)),
        }
    )


@hostile("few")
def nothing_in_common(rng: Rng, n: int) -> Data:
    """No key in common."""
    return Data({"r": table(rng, unique(rng, n)), "s": table(rng, unique(rng, n) + n)})


@hostile("few")
def null_keys(rng: Rng, n: int) -> Data:
    """All keys of r are NULL but twenty, and these have many partners."""
    data = foreign_key(rng, n)
    keys = n // 2
    known = np.zeros(n, bool)
    known[rng.choice(n, 20, replace=False)] = True
    k = pa.array(data.tables["r"]["k"], mask=~known)
    heavy = np.unique(data.tables["r"]["k"][known])
    s = with_heavy(rng, unique(rng, keys), heavy, 200)
    return Data({"r": table(rng, k), "s": table(rng, s)})


def _hubs(rng: Rng, n: int, hubs: int) -> tuple[np.ndarray, np.ndarray]:
    """Pairs (value, key): each value has one of a hundred keys, the hubs all of them."""
    values = max(n // 2, 200)
    own = np.stack([np.arange(values), uniform(rng, values, 100)])
    every = np.stack([np.repeat(np.arange(hubs), 100), np.tile(np.arange(100), hubs)])
    pairs = np.concatenate([own, every], axis=1)
    return pairs[0], pairs[1]


@hostile("hubs")
def hub_pairs(rng: Rng, n: int) -> Data:
    """COUNT(DISTINCT r.a, s.c) where 1 % of the values of a have all keys and the others one."""
    a, k = _hubs(rng, n, max(n // 200, 2))
    r = table(rng, k, a=a)
    return Data({"r": r, "s": table(rng, np.arange(100), c=np.arange(100))}, distinct="r.a, s.c")


@hostile("hubs")
def hub_pairs_both(rng: Rng, n: int) -> Data:
    """The same on both sides: two values of a and two of c meet everything."""
    sides = []
    for _ in range(2):
        values = max(n // 4, 200)
        own = np.stack([np.arange(values), unique(rng, values)])
        hub = np.stack([np.repeat(np.arange(2), values // 2), np.tile(np.arange(values // 2), 2)])
        sides.append(np.concatenate([own, hub], axis=1))
    (a, k), (c, m) = sides
    return Data({"r": table(rng, k, a=a), "s": table(rng, m, c=c)}, distinct="r.a, s.c")


@hostile("hubs")
def one_sided_hubs(rng: Rng, n: int) -> Data:
    """COUNT(DISTINCT r.a): half of the values have one key that few tuples of s have."""
    values = n // 4
    a = np.concatenate([np.arange(values), uniform(rng, n, 50)])
    k = np.concatenate([unique(rng, values), uniform(rng, n, values)])
    s = unique(rng, values)[: values // 2]
    return Data({"r": table(rng, k, a=a), "s": table(rng, s)}, distinct="r.a")


@hostile("hubs")
def few_values_many_tuples(rng: Rng, n: int) -> Data:
    """COUNT(DISTINCT s.c) of Zipf values: most are met once, by one key."""
    keys = n // 4
    s = table(rng, unique(rng, keys), c=zipf(rng, keys, keys, 1.1))
    return Data({"r": table(rng, uniform(rng, n, keys)), "s": s}, distinct="s.c")


@hostile("keys")
def three_keys(rng: Rng, n: int) -> Data:
    """Three keys in all; the one that most tuples of r have is the rarest of s."""
    shares = np.array([0.9, 0.09, 0.01])
    r, s = rng.choice(3, n, p=shares), rng.choice(3, n // 4, p=shares[::-1])
    return Data({"r": table(rng, r), "s": table(rng, s)})


@hostile("behind")
def heavy_in_two_directions(rng: Rng, n: int) -> Data:
    """A star of four tables: one key of each of two far tables leads to as many tuples as all its others."""
    keys = n // 8
    near, one, other = (uniform(rng, n // 2, keys) for _ in range(3))
    facts = table(rng, near, l=one, m=other)
    far = {
        name: {column: with_heavy(rng, np.arange(keys), np.array([7]), keys)}
        for name, column in (("d", "l"), ("e", "m"))
    }
    return Data(
        {"r": facts, "s": table(rng, np.arange(keys)), **far},
        join="r JOIN s ON r.k = s.k JOIN d ON r.l = d.l JOIN e ON r.m = e.m",
    )


@hostile("hubs")
def pairs_by_many_keys(rng: Rng, n: int) -> Data:
    """COUNT(DISTINCT r.a, s.c): 64 pairs are met by half of the keys, and each other key has a pair of its own."""
    keys = n // 4
    k = np.tile(np.arange(keys), 2)
    a, c = (np.where(k < keys // 2, k // part % 8, k) for part in (1, 8))
    return Data({"r": table(rng, k, a=a), "s": table(rng, k, c=c)}, distinct="r.a, s.c")
