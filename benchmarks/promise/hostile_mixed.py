"""Hostile data by two causes at once: what one method sees of either is not what it needs for both."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from .data import Data, Rng, amounts, foreign_key, heavy_in_both, hostile, outliers, table, uniform, unique


@hostile("mixed")
def heavy_in_one_group(rng: Rng, n: int) -> Data:
    """A key is heavy in both tables, with all of its tuples in one group."""
    data = heavy_in_both(rng, n, 1)
    r = data.tables["r"]
    keys, counts = np.unique(r["k"], return_counts=True)
    r["g"][r["k"] == keys[counts.argmax()]] = 2
    return data


@hostile("mixed")
def value_behind_two_joins(rng: Rng, n: int) -> Data:
    """r-b-c-d by foreign keys; five values of d are half of the sum."""
    b, c, d = n // 2, n // 4, n // 8
    worth = amounts(rng, d)
    worth[rng.choice(d, 5, replace=False)] = worth.sum() // 5
    return Data(
        {
            "r": table(rng, uniform(rng, n, b)),
            "b": {"k": unique(rng, b), "l": uniform(rng, b, c)},
            "c": {"l": unique(rng, c), "m": uniform(rng, c, d)},
            "d": {"m": unique(rng, d), "x": worth},
        },
        join="r JOIN b ON r.k = b.k JOIN c ON b.l = c.l JOIN d ON c.m = d.m",
        x="d.x",
        distinct="b.k",
    )


@hostile("mixed")
def cancelling_but_for_ten_keys(rng: Rng, n: int) -> Data:
    """The values of each key cancel, those of ten keys do not and are the sum."""
    keys = n // 2
    k = np.repeat(np.arange(keys), 2)
    x = np.where(np.arange(2 * keys) % 2, 1, -1) * np.repeat(amounts(rng, keys), 2)
    x[k < 10] = x.max() * 20
    order = rng.permutation(len(k))
    return Data({"r": table(rng, k[order], x=x[order]), "s": table(rng, unique(rng, keys))})


@hostile("mixed")
def dear_where_many(rng: Rng, n: int) -> Data:
    """Values are large at the keys that have many partners: neither table shows it alone."""
    keys = n // 4
    partners = np.where(np.arange(keys) < keys // 200, 60, 1)
    k = uniform(rng, n, keys)
    x = amounts(rng, n) * np.where(k < keys // 200, 50, 1)
    s = rng.permutation(np.repeat(np.arange(keys), partners))
    return Data({"r": table(rng, k, x=x), "s": table(rng, s)})


@hostile("mixed")
def null_but_at_heavy_keys(rng: Rng, n: int) -> Data:
    """A value is NULL everywhere but at five keys that are heavy in both tables."""
    data = heavy_in_both(rng, n, 5, 0.3)
    r = data.tables["r"]
    keys, counts = np.unique(r["k"], return_counts=True)
    r["x"] = pa.array(r["x"], mask=~np.isin(r["k"], keys[np.argsort(-counts)[:5]]))
    return data


@hostile("mixed")
def dear_decimals_behind_a_filter(rng: Rng, n: int) -> Data:
    """DECIMAL amounts; a filter keeps one tuple in fifty, and two of these are half of the sum."""
    data = outliers(rng, n, 2)
    r = data.tables["r"]
    large = r["x"] > 10_000
    r["y"] = np.where(large, 7, rng.integers(0, 50, n))
    r["x"] = np.where(large, r["x"] // 50, r["x"])
    r["x"] = pa.array(r["x"]).cast(pa.decimal128(19, 0)).cast(pa.decimal128(21, 2))
    data.where = "r.y = 7"
    return data


@hostile("mixed")
def days_of_files(rng: Rng, n: int) -> Data:
    """Keys are dates in the order of the file, each of its day; one day was loaded thirty times in both tables."""
    days = n // 20
    sides = {}
    for name in "rs":
        own = np.sort(rng.integers(0, days, n // 2))
        again = np.repeat(own[own == own[n // 4]], 30)
        keys = pa.array(np.concatenate([own, again]).astype("datetime64[D]"))
        sides[name] = table(rng, keys)
    return Data(sides)


@hostile("mixed")
def groups_of_opposite_signs(rng: Rng, n: int) -> Data:
    """Two groups have large sums of opposite signs, which the whole does not show; the others are small."""
    data = foreign_key(rng, n)
    r = data.tables["r"]
    r["x"] = np.where(r["g"] == 0, 1000, np.where(r["g"] == 1, -1000, 1)) * r["x"]
    return data
