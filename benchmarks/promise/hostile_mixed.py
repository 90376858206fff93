"""Hostile data by two causes at once: what one method sees of either is not what it needs for both."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from .data import Data, Rng, amounts, foreign_key, heavy_in_both, hostile, table, uniform


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
def dear_at_the_border(rng: Rng, n: int) -> Data:
    """Large values at twenty keys: some have so many partners that drawn tuples find them, others just too few."""
    k = uniform(rng, n, n // 4)
    partners = np.where(np.arange(n // 4) < 20, 100 + 15 * np.arange(n // 4), 1)
    s = rng.permutation(np.repeat(np.arange(n // 4), partners))
    return Data({"r": table(rng, k, x=amounts(rng, n) * np.where(k < 20, 300, 1)), "s": table(rng, s)})


@hostile("mixed")
def nearly_equal_sides(rng: Rng, n: int) -> Data:
    """SUM(r.x - s.x) of large values, of which one side is hardly more than the other."""
    data = foreign_key(rng, n)
    r, s = data.tables["r"], data.tables["s"]
    s["x"] = np.rint(1000 * rng.lognormal(0, 1.5, len(s["k"]))).astype(np.int64)
    r["x"] = s["x"][np.argsort(s["k"])][r["k"]] + rng.integers(0, 10, n)
    data.x = "r.x - s.x"
    return data


@hostile("mixed")
def two_halves_of_one_table(rng: Rng, n: int) -> Data:
    """A table with itself by two filters; sixty keys are heavy behind each, ten of them behind both."""
    half = rng.random(n) < 0.5
    heavy = np.where(half, rng.integers(0, 60, n), rng.integers(50, 110, n))
    keys = np.where(rng.random(n) < 0.2, heavy, 110 + uniform(rng, n, n // 2))
    r = table(rng, keys, y=half.astype(np.int64))
    return Data({"r": r}, join="r JOIN r t ON r.k = t.k", where="r.y = 1 AND t.y = 0")


@hostile("mixed")
def zeros_where_it_is_looked(rng: Rng, n: int) -> Data:
    """Every quarter of the file begins with values of 0: the first tuples say nothing of the others."""
    data = foreign_key(rng, n)
    data.tables["r"]["x"][np.arange(n) % (n // 4) < n // 40] = 0
    return data


@hostile("mixed")
def unique_where_it_is_looked(rng: Rng, n: int) -> Data:
    """Every quarter of both files begins with keys of one tuple; behind them a hundred keys have half of all tuples."""
    own = 100 + np.arange(n)
    head = np.arange(n) % (n // 4) < n // 40
    sides = (np.where(head | (rng.random(n) < 0.5), own, rng.integers(0, 100, n)) for _ in "rs")
    return Data({name: table(rng, side) for name, side in zip("rs", sides, strict=True)})


@hostile("mixed")
def in_order_with_long_runs(rng: Rng, n: int) -> Data:
    """Files in the order of the key, one to three tuples of each; where nobody looks four keys have a tenth of all."""
    keys = n // 3
    heavy = (np.array([0.13, 0.37, 0.63, 0.88]) * keys).astype(np.int64)
    sides = {}
    for name in "rs":
        counts = rng.integers(1, 4, keys)
        counts[heavy] = n // 40
        sides[name] = table(rng, np.repeat(np.arange(keys), counts))
    return Data(sides)


@hostile("mixed")
def in_order_with_filters_that_exclude(rng: Rng, n: int) -> Data:
    """Files in the order of the key; what passes the filter of one table seldom meets what passes that of the other."""
    keys = n // 4
    day, k = rng.integers(0, 1000, keys), np.repeat(np.arange(keys), 4)
    sent = day[k] + rng.integers(1, 60, k.size)
    r, s = table(rng, k, y=sent), table(rng, np.arange(keys), y=day)
    return Data({"r": r, "s": s}, where="r.y > 500 AND s.y <= 500")


@hostile("mixed")
def another_end_of_the_file(rng: Rng, n: int) -> Data:
    """The last twentieth of both files has ten keys alone, and values forty times as large."""
    last, sides = np.arange(n) >= n - n // 20, {}
    for name in "rs":
        k = np.where(last, rng.integers(0, 10, n), uniform(rng, n, n // 2))
        sides[name] = table(rng, k, x=amounts(rng, n) * np.where(last, 40, 1))
    return Data(sides)
