"""Hostile data, by what cannot be seen of values: their weight, what filters keep, groups, selection, types."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from .data import (
    Data,
    Rng,
    amounts,
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


@hostile("value")
def sum_one_row(rng: Rng, n: int) -> Data:
    """One tuple carries half of SUM(x)."""
    return outliers(rng, n, 1)


@hostile("value")
def sum_20_rows(rng: Rng, n: int) -> Data:
    """Twenty tuples do."""
    return outliers(rng, n, 20)


@hostile("value")
def sum_200_rows(rng: Rng, n: int) -> Data:
    """Two hundred tuples do."""
    return outliers(rng, n, 200)


@hostile("value")
def sum_negative_row(rng: Rng, n: int) -> Data:
    """One tuple takes a third of the others' sum away again."""
    return outliers(rng, n, 1, -1, 0.25)


@hostile("value")
def outlier_in_one_group(rng: Rng, n: int) -> Data:
    """Ten tuples carry half of the sum, all in one group."""
    data = outliers(rng, n, 10)
    large = data.tables["r"]["x"] > 1000
    data.tables["r"]["g"][large] = 3
    return data


@hostile("value")
def cancelling_sums(rng: Rng, n: int) -> Data:
    """Values of both signs that nearly cancel."""
    data = foreign_key(rng, n)
    data.tables["r"]["x"] = rng.integers(-10_000, 10_000, n) + 20
    return data


@hostile("value")
def cancelling_heavy(rng: Rng, n: int) -> Data:
    """A hundred pairs of large values that cancel, at different keys; one of them has no partner."""
    data = foreign_key(rng, n)
    chosen = rng.choice(n, 199, replace=False)
    data.tables["r"]["x"][chosen] = np.where(np.arange(199) % 2, 1, -1) * data.tables["r"]["x"].sum()
    return data


@hostile("value")
def pareto11(rng: Rng, n: int) -> Data:
    """Pareto 1.1 amounts."""
    data = foreign_key(rng, n)
    data.tables["r"]["x"] = np.rint(100 * (1 + rng.pareto(1.1, n))).astype(np.int64)
    return data


@hostile("value")
def pareto15(rng: Rng, n: int) -> Data:
    """Pareto 1.5 amounts."""
    data = foreign_key(rng, n)
    data.tables["r"]["x"] = np.rint(100 * (1 + rng.pareto(1.5, n))).astype(np.int64)
    return data


@hostile("value")
def lognormal2(rng: Rng, n: int) -> Data:
    """lognormal(2) amounts."""
    data = foreign_key(rng, n)
    data.tables["r"]["x"] = np.rint(100 * rng.lognormal(0, 2, n)).astype(np.int64)
    return data


@hostile("value")
def lognormal3_doubles(rng: Rng, n: int) -> Data:
    """lognormal(3) amounts as DOUBLE."""
    data = foreign_key(rng, n)
    data.tables["r"]["x"] = rng.lognormal(0, 3, n)
    return data


@hostile("value")
def mostly_null(rng: Rng, n: int) -> Data:
    """x is NULL in 99.9 % of the tuples, and heavy in some of the others."""
    data = foreign_key(rng, n)
    known = rng.random(n) < 0.001
    data.tables["r"]["x"] = pa.array(
        np.rint(rng.lognormal(5, 2, n)).astype(np.int64), mask=np.asarray(~known)
    )
    return data


@hostile("value")
def mostly_zero(rng: Rng, n: int) -> Data:
    """x is 0 but in one tuple of a thousand."""
    data = foreign_key(rng, n)
    data.tables["r"]["x"] = np.where(rng.random(n) < 0.001, 10_000, 0)
    return data


@hostile("value")
def average_by_key_weight(rng: Rng, n: int) -> Data:
    """A few keys of many tuples have the large values: the mean over keys is not the mean over tuples."""
    keys = n // 4
    k = zipf(rng, n, keys, 0.9, rng.permutation(keys))
    x = np.bincount(k, minlength=keys)[k] * 10
    return Data({"r": table(rng, k, x=x), "s": table(rng, unique(rng, keys))})


@hostile("value behind")
def far_value(rng: Rng, n: int) -> Data:
    """The summed value stands behind a join, and one of its tuples carries half of the sum."""
    data = foreign_key(rng, n)
    x = data.tables["s"]["x"]
    x[rng.integers(len(x))] = x.sum()
    data.x = "s.x"
    return data


@hostile("value behind")
def product_of_large(rng: Rng, n: int) -> Data:
    """SUM(r.x * s.x): both are large at the same ten keys."""
    data = foreign_key(rng, n)
    keys = rng.choice(n // 2, 10, replace=False)
    for columns in data.tables.values():
        columns["x"] = np.where(np.isin(columns["k"], keys), 40 * columns["x"], columns["x"])
    data.x = "r.x * s.x"
    return data


@hostile("value behind")
def dear_product(rng: Rng, n: int) -> Data:
    """A star: one product of a dimension costs as much as all others were sold for together."""
    products = n // 10
    prices = amounts(rng, products)
    prices[rng.integers(products)] = prices.sum()
    facts = table(rng, uniform(rng, n, n // 4), l=uniform(rng, n, products))
    return Data(
        {"r": facts, "s": table(rng, unique(rng, n // 4)), "d": {"l": np.arange(products), "y": prices}},
        join="r JOIN s ON r.k = s.k JOIN d ON r.l = d.l",
        x="d.y",
    )


@hostile("filter")
def rare_and_heavy(rng: Rng, n: int) -> Data:
    """The filter keeps 0.5 % of r, and in it ten tuples of heavy values."""
    data = foreign_key(rng, n)
    columns = data.tables["r"]
    kept = rng.choice(n, max(n // 200, 20), replace=False)
    columns["g"][:] = 1 + columns["g"] % 4
    columns["g"][kept] = 0
    columns["x"][kept[:10]] = columns["x"][kept].sum() // 10
    data.where, data.g = "r.g = 0", "s.g"
    return data


@hostile("filter")
def clustered(rng: Rng, n: int) -> Data:
    """The file is sorted by what is filtered: the first tuples of its parts say nothing of what is kept."""
    data = foreign_key(rng, n)
    day = np.arange(n) % (n // 4)  # each quarter of the file begins anew
    data.tables["r"]["day"] = day * 100 // (n // 4)
    data.where = "r.day >= 40"
    return data


@hostile("filter")
def only_heavy_passes(rng: Rng, n: int) -> Data:
    """The filter on s keeps the partners of ten heavy keys and a thousand light ones."""
    keys = n // 4
    heavy = np.arange(10)
    s = table(rng, np.arange(keys), y=(np.arange(keys) >= min(1010, keys)).astype(np.int64))
    r = with_heavy(rng, uniform(rng, n, keys), heavy, n // 200)
    return Data({"r": table(rng, r), "s": s}, where="s.y = 0")


@hostile("filter")
def correlated_filters(rng: Rng, n: int) -> Data:
    """Filters on both tables that keep the same keys, where independent ones would keep few."""
    data = foreign_key(rng, n)
    for columns in data.tables.values():
        columns["y"] = columns["k"] % 50
    data.where = "r.y = 0 AND s.y = 0"
    return data


@hostile("groups")
def giant_group(rng: Rng, n: int) -> Data:
    """One group of nearly all tuples beside eighty small ones."""
    data = foreign_key(rng, n)
    small = rng.random(n) < 0.02
    data.tables["r"]["g"] = np.where(small, 1 + rng.integers(0, 80, n), 0)
    return data


@hostile("groups")
def group_of_heavy_keys(rng: Rng, n: int) -> Data:
    """Heavy keys stand in one small group, beside flat ones in the others."""
    data = heavy_in_both(rng, n, 30)
    for columns in data.tables.values():
        keys, counts = np.unique(columns["k"], return_counts=True)
        columns["g"][np.isin(columns["k"], keys[counts > 1])] = 4
    return data


@hostile("selection")
def top_of_equals(rng: Rng, n: int) -> Data:
    """The first of fifty equal groups by ORDER BY ... LIMIT 1."""
    data = foreign_key(rng, n)
    data.tables["r"]["g"] = rng.integers(0, 50, n)
    data.behind = "ORDER BY 2 DESC LIMIT 1"
    return data


@hostile("selection")
def having_at_the_edge(rng: Rng, n: int) -> Data:
    """HAVING keeps those of fifty equal groups whose estimates came out large."""
    data = foreign_key(rng, n)
    data.tables["r"]["g"] = rng.integers(0, 50, n)
    data.behind = f"HAVING SUM(r.x) > {2 * n}"
    return data


@hostile("types")
def composite_heavy(rng: Rng, n: int) -> Data:
    """Twenty combinations of two columns are heavy, though neither column is."""
    k, m = uniform(rng, n, 300), uniform(rng, n, 300)
    heavy, times = rng.choice(n, 20, replace=False), max(2, round((n / 20) ** 0.5))
    tables = {}
    for name in "rs":
        rows = np.concatenate([rng.permutation(n), np.repeat(heavy, times)])
        tables[name] = table(rng, k[rows], l=m[rows])
    return Data(tables, join="r JOIN s ON r.k = s.k AND r.l = s.l", distinct="r.l")


@hostile("types")
def multiples(rng: Rng, n: int) -> Data:
    """Keys that are multiples of 2^40, thirty of them heavy in both tables."""
    data = heavy_in_both(rng, n, 30)
    for columns in data.tables.values():
        columns["k"] = columns["k"] << 40
    return data


@hostile("types")
def text_heavy(rng: Rng, n: int) -> Data:
    """Texts as keys, forty of them heavy in both tables."""
    data = heavy_in_both(rng, n, 40)
    for columns in data.tables.values():
        columns["k"] = pa.array([f"k{k}" for k in columns["k"].tolist()])
    return data


@hostile("types")
def default_date(rng: Rng, n: int) -> Data:
    """A DATE key, and in both tables some tuples of 1970-01-01, which stands for none."""
    tables = {}
    for name in "rs":
        days = with_heavy(rng, 1 + uniform(rng, n, n // 3), np.array([0]), max(2, int(n**0.5)))
        tables[name] = table(rng, pa.array(days.astype(np.int32), pa.int32()).cast(pa.date32()))
    return Data(tables)


@hostile("types")
def doubles_that_cancel(rng: Rng, n: int) -> Data:
    """DOUBLE values of 1e17 and -1e17 beside ones."""
    data = foreign_key(rng, n)
    x = np.ones(n)
    chosen = rng.choice(n, 40, replace=False)
    x[chosen] = np.where(np.arange(40) % 2, 1e17, -1e17)
    data.tables["r"]["x"] = x
    return data


@hostile("types")
def decimals(rng: Rng, n: int) -> Data:
    """DECIMAL amounts, ten of them large."""
    data = foreign_key(rng, n)
    cents = amounts(rng, n) * 100
    cents[rng.choice(n, 10, replace=False)] = cents.sum() // 10
    data.tables["r"]["x"] = pa.array(cents).cast(pa.decimal128(19, 0)).cast(pa.decimal128(21, 2))
    return data
