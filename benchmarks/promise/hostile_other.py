"""Hostile data, by what single methods do not see: far keys, NULLs, signs, small groups, limits of types, pairs."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from .data import (
    Data,
    Rng,
    amounts,
    far_heavy,
    foreign_key,
    heavy_in_both,
    hostile,
    outliers,
    table,
    uniform,
    unique,
    with_heavy,
    zipf,
)


@hostile("behind")
def many_to_one_to_many(rng: Rng, n: int) -> Data:
    """A chain whose middle joins a hundred tuples of b with one key of c, which has most of c."""
    b, c = n // 4, n // 4
    far = np.where(rng.permutation(b) < 100, 0, 1 + rng.integers(0, c, b))
    return Data(
        {
            "r": table(rng, uniform(rng, n, b)),
            "b": {"k": np.arange(b), "l": far},
            "c": {"l": with_heavy(rng, 1 + np.arange(c), np.array([0]), n // 20)},
        },
        join="r JOIN b ON r.k = b.k JOIN c ON b.l = c.l",
        distinct="b.k",
    )


@hostile("behind")
def far_filter(rng: Rng, n: int) -> Data:
    """A filter on the far table leaves the partners of thirty tuples of b."""
    data = far_heavy(rng, n, 30)
    last = data.tables["c"]
    last["y"] = np.bincount(last["l"])[last["l"]]
    data.where = "c.y > 1"
    return data


@hostile("behind")
def dear_region(rng: Rng, n: int) -> Data:
    """Three tables: one far value is worth as much as all others together, and twenty customers have it."""
    orders, customers = n // 2, n // 8
    y = amounts(rng, customers)
    region = np.where(rng.permutation(customers) < 20, 0, 1 + uniform(rng, customers, customers))
    worth = np.concatenate([[orders * 100 // 160], np.full(customers, 100)])
    return Data(
        {
            "r": table(rng, uniform(rng, orders, customers)),
            "b": {"k": np.arange(customers), "l": region, "y": y},
            "c": {"l": np.arange(customers + 1), "x": worth},
        },
        join="r JOIN b ON r.k = b.k JOIN c ON b.l = c.l",
        x="c.x",
        distinct="c.l",
    )


@hostile("value")
def average_near_zero(rng: Rng, n: int) -> Data:
    """Values of both signs whose mean is a thousandth of their spread."""
    data = foreign_key(rng, n)
    data.tables["r"]["x"] = rng.normal(0.1, 100, n)
    return data


@hostile("value")
def negative_heavy(rng: Rng, n: int) -> Data:
    """All values are negative, ten of them carry half of the sum."""
    data = outliers(rng, n, 10)
    data.tables["r"]["x"] *= -1
    return data


@hostile("value behind")
def product_of_signs(rng: Rng, n: int) -> Data:
    """SUM(r.x * s.x) of values of both signs that agree at a hundred keys and nowhere else."""
    data = foreign_key(rng, n)
    for columns in data.tables.values():
        columns["x"] = rng.integers(-100, 101, len(columns["k"]))
        columns["x"][columns["k"] < 100] = 2000
    data.x = "r.x * s.x"
    return data


@hostile("few")
def null_keys_of_a_self_join(rng: Rng, n: int) -> Data:
    """A table with itself; nine of ten keys are NULL, and the others unique but for ten."""
    keys = with_heavy(rng, unique(rng, n), np.arange(10), max(2, int((n / 100) ** 0.5)))
    people = table(rng, pa.array(keys, mask=rng.random(len(keys)) < 0.9))
    return Data({"r": people}, join="r JOIN r t ON r.k = t.k")


@hostile("few")
def keys_of_one_side(rng: Rng, n: int) -> Data:
    """One key in five hundred has partners, and these are ten to a key."""
    partners = rng.choice(n, max(n // 500, 5), replace=False)
    return Data(
        {
            "r": table(rng, unique(rng, n)),
            "s": table(rng, np.concatenate([np.repeat(partners, 10), n + np.arange(n)])),
        }
    )


@hostile("filter")
def disjoint_filters(rng: Rng, n: int) -> Data:
    """Filters on both tables that keep different keys, but for five that are heavy."""
    times = max(2, int(n**0.5) // 4)
    keys = n // 4
    tables = {}
    for name, odd in (("r", 0), ("s", 1)):
        k = with_heavy(rng, uniform(rng, n, keys), np.arange(5), times)
        tables[name] = table(rng, k, y=np.where((k % 2 == odd) | (k < 5), 1, 0))
    return Data(tables, where="r.y = 1 AND s.y = 1")


@hostile("filter")
def rare_far_group(rng: Rng, n: int) -> Data:
    """Groups of the far table behind a filter that keeps one key in two hundred."""
    data = foreign_key(rng, n)
    data.tables["s"]["y"] = data.tables["s"]["k"] % 200
    data.where, data.g = "s.y = 7", "s.g"
    return data


@hostile("groups")
def groups_of_one(rng: Rng, n: int) -> Data:
    """Sixty groups of one tuple each beside five large ones."""
    data = foreign_key(rng, n)
    data.tables["r"]["g"][rng.choice(n, 60, replace=False)] = 100 + np.arange(60)
    return data


@hostile("groups")
def group_of_null(rng: Rng, n: int) -> Data:
    """NULL is a group, and has the ten tuples of large values."""
    data = foreign_key(rng, n)
    r = data.tables["r"]
    null = np.zeros(n, bool)
    null[rng.choice(n, 10, replace=False)] = True
    r["x"][null] = r["x"].sum() // 50
    r["g"] = pa.array(r["g"], mask=null)
    return data


@hostile("selection")
def least_of_equals(rng: Rng, n: int) -> Data:
    """The three smallest of fifty equal groups."""
    data = foreign_key(rng, n)
    data.tables["r"]["g"] = rng.integers(0, 50, n)
    data.behind = "ORDER BY 2 LIMIT 3"
    return data


@hostile("selection")
def having_beyond_the_edge(rng: Rng, n: int) -> Data:
    """HAVING keeps those of eighty equal groups whose estimates came out much too large."""
    data = foreign_key(rng, n)
    data.tables["r"]["g"] = rng.integers(0, 80, n)
    data.behind = f"HAVING COUNT(*) > {int(1.05 * n / 80)}"
    return data


@hostile("types")
def decimals_at_the_limit(rng: Rng, n: int) -> Data:
    """DECIMAL(28, 2) amounts whose sum leaves 64 bits."""
    data = foreign_key(rng, n)
    cents = pa.array(amounts(rng, n)).cast(pa.decimal128(19, 0)).cast(pa.decimal128(28, 2))
    wide = [v * 10**20 for v in cents.to_pylist()]
    data.tables["r"]["x"] = pa.array(wide, pa.decimal128(28, 2))
    return data


@hostile("hubs")
def hub_key(rng: Rng, n: int) -> Data:
    """COUNT(DISTINCT r.k, s.c): one key in a thousand has most of the pairs."""
    keys = n // 4
    s = with_heavy(rng, np.arange(keys), rng.choice(keys, keys // 1000, replace=False), 1000)
    return Data(
        {"r": table(rng, uniform(rng, n, keys)), "s": table(rng, s, c=np.arange(len(s)))}, distinct="r.k, s.c"
    )


@hostile("hubs")
def one_key_of_all_pairs(rng: Rng, n: int) -> Data:
    """COUNT(DISTINCT r.a, s.c): one key joins a fiftieth of all a with as many c, the others one with one."""
    m = n // 2
    sides = []
    for _ in range(2):
        k = unique(rng, m)
        k[rng.choice(m, m // 50, replace=False)] = m
        sides.append(k)
    return Data(
        {"r": table(rng, sides[0], a=np.arange(m)), "s": table(rng, sides[1], c=np.arange(m))},
        distinct="r.a, s.c",
    )


@hostile("hubs")
def clusters_of_pairs(rng: Rng, n: int) -> Data:
    """COUNT(DISTINCT r.a, s.c): one key in a hundred has forty values on both sides, the others have one."""
    keys, sides = np.arange(n // 4), {}
    many = rng.choice(keys, len(keys) // 100, replace=False)
    for name, column in (("r", "a"), ("s", "c")):
        k = with_heavy(rng, keys, many, 39)
        sides[name] = table(rng, k, **{column: np.arange(len(k))})
    return Data(sides, distinct="r.a, s.c")


@hostile("hubs")
def distinct_by_null(rng: Rng, n: int) -> Data:
    """COUNT(DISTINCT r.a): a is NULL in nearly all tuples, and of Zipf values in the others."""
    data = foreign_key(rng, n)
    a = zipf(rng, n, n // 4, 1.1, rng.permutation(n // 4))
    data.tables["r"]["a"] = pa.array(a, mask=rng.random(n) < 0.98)
    data.distinct = "r.a"
    return data


@hostile("skew")
def periodic(rng: Rng, n: int) -> Data:
    """Keys and values repeat in the order of the file; twelve keys of every block are heavy in both tables."""
    block = 64
    k = np.where(np.arange(n) % block < 12, np.arange(n) % block, np.arange(n))
    s = np.concatenate([np.repeat(np.arange(12), 20), np.arange(12, n)])
    return Data({"r": table(rng, k, x=1 + np.arange(n) % block), "s": table(rng, s)})


@hostile("keys")
def heavy_at_two_scales(rng: Rng, n: int) -> Data:
    """Two keys make a third of the result, two thousand light ones another, flat ones the rest."""
    data = heavy_in_both(rng, n, 2, 0.33)
    light, times = rng.choice(n, n // 25, replace=False), 5
    return Data(
        {name: table(rng, with_heavy(rng, c["k"], light, times - 1)) for name, c in data.tables.items()}
    )
