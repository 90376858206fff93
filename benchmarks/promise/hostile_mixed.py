"""Hostile data by two causes at once: what one method sees of either is not what it needs for both."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from .data import Data, Rng, amounts, heavy_in_both, hostile, table, uniform


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
