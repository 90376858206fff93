"""Ordinary data: what the answers are made for."""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa

from .data import Data, Rng, amounts, foreign_key, ordinary, table, uniform, unique, zipf


@ordinary
def orders_items(rng: Rng, n: int) -> Data:
    """Items of orders, evenly."""
    return foreign_key(rng, n)


@ordinary
def filtered_items(rng: Rng, n: int) -> Data:
    """A third of the items, by a filter that has nothing to do with the key."""
    data = foreign_key(rng, n)
    data.where = "r.x > 106"
    return data


@ordinary
def both_filtered(rng: Rng, n: int) -> Data:
    """A filter on each table."""
    data = foreign_key(rng, n)
    data.where = "r.g < 3 AND s.x > 90"
    return data


@ordinary
def many_to_many(rng: Rng, n: int) -> Data:
    """About five tuples a key on both sides."""
    return Data({name: table(rng, uniform(rng, n, n // 5)) for name in "rs"})


@ordinary
def customers_orders_items(rng: Rng, n: int) -> Data:
    """A chain of foreign keys."""
    orders, customers = n // 4, n // 16
    return Data(
        {
            "r": table(rng, uniform(rng, n, orders)),
            "b": {"k": unique(rng, orders), "l": uniform(rng, orders, customers)},
            "c": {"l": unique(rng, customers), "g": uniform(rng, customers, 5)},
        },
        join="r JOIN b ON r.k = b.k JOIN c ON b.l = c.l",
        g="c.g",
        distinct="b.l",
    )


@ordinary
def star(rng: Rng, n: int) -> Data:
    """A table of facts between two dimensions."""
    facts = table(rng, uniform(rng, n, n // 4), l=uniform(rng, n, n // 8))
    return Data(
        {"r": facts, "s": table(rng, unique(rng, n // 4)), "d": {"l": unique(rng, n // 8)}},
        join="r JOIN s ON r.k = s.k JOIN d ON r.l = d.l",
        g="s.g",
    )


@ordinary
def mild_zipf(rng: Rng, n: int) -> Data:
    """A foreign key of Zipf 0.5."""
    keys = n // 4
    return Data(
        {"r": table(rng, zipf(rng, n, keys, 0.5, rng.permutation(keys))), "s": table(rng, unique(rng, keys))}
    )


@ordinary
def one_to_one(rng: Rng, n: int) -> Data:
    """Every key once on both sides."""
    return Data({name: table(rng, unique(rng, n)) for name in "rs"}, g="s.g")


@ordinary
def half_match(rng: Rng, n: int) -> Data:
    """Half of the keys have partners."""
    return Data({"r": table(rng, uniform(rng, n, n // 2)), "s": table(rng, unique(rng, n // 2)[: n // 4])})


@ordinary
def lognormal1(rng: Rng, n: int) -> Data:
    """Amounts by lognormal(1)."""
    data = foreign_key(rng, n)
    data.tables["r"]["x"] = np.rint(100 * rng.lognormal(0, 1, n)).astype(np.int64)
    return data


@ordinary
def doubles_of_both_signs(rng: Rng, n: int) -> Data:
    """DOUBLE values around 1 with a standard deviation of 1."""
    data = foreign_key(rng, n)
    data.tables["r"]["x"] = rng.normal(1, 1, n)
    return data


@ordinary
def text_keys(rng: Rng, n: int) -> Data:
    """Keys that are texts."""
    data = foreign_key(rng, n)
    for columns in data.tables.values():
        columns["k"] = pa.array([f"customer {k:08d}" for k in columns["k"].tolist()])
    return data


@ordinary
def composite_keys(rng: Rng, n: int) -> Data:
    """Two columns are the key: a store and a number in it."""
    store, number = uniform(rng, n, 50), uniform(rng, n, n // 200)
    pairs = np.unique(np.stack([store, number]), axis=1)
    return Data(
        {"r": table(rng, store, l=number), "s": table(rng, pairs[0], l=pairs[1])},
        join="r JOIN s ON r.k = s.k AND r.l = s.l",
        distinct="r.l",
    )


@ordinary
def dates(rng: Rng, n: int) -> Data:
    """Two logs that meet by day and shop."""
    first = datetime.date(2020, 1, 1).toordinal() - datetime.date(1970, 1, 1).toordinal()
    sides = {}
    for name in "rs":
        days = pa.array(first + uniform(rng, n, 1000).astype(np.int32), pa.int32()).cast(pa.date32())
        sides[name] = table(rng, days, l=uniform(rng, n, 40))
    return Data(sides, join="r JOIN s ON r.k = s.k AND r.l = s.l", distinct="r.l")


@ordinary
def employees(rng: Rng, n: int) -> Data:
    """A table joined with itself: everybody with their superior."""
    people = table(rng, unique(rng, n), boss=uniform(rng, n, n // 6), x=amounts(rng, n))
    return Data({"r": people}, join="r JOIN r t ON r.boss = t.k", distinct="r.boss")
