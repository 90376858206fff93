"""Hostile data, by what cannot be seen of values: their weight, what filters keep, groups, selection, types."""

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
def doubles_that_cancel_within_keys(rng: Rng, n: int) -> Data:
    """Twenty keys of many ones, and in each of them a DOUBLE value of 1e17 and one of -1e17."""
    keys = n // 4
    k = np.concatenate([uniform(rng, n, keys), np.repeat(np.arange(20), max(n // 200, 2))])
    x = np.ones(k.size)
    x[[np.flatnonzero(k == heavy)[0] for heavy in range(20)]] = 1e17
    x[[np.flatnonzero(k == heavy)[-1] for heavy in range(20)]] = -1e17
    order = rng.permutation(k.size)
    return Data({"r": table(rng, k[order], x=x[order]), "s": table(rng, unique(rng, keys))})


@hostile("types")
def decimals(rng: Rng, n: int) -> Data:
    """DECIMAL amounts, ten of them large."""
    data = foreign_key(rng, n)
    cents = amounts(rng, n) * 100
    cents[rng.choice(n, 10, replace=False)] = cents.sum() // 10
    data.tables["r"]["x"] = pa.array(cents).cast(pa.decimal128(19, 0)).cast(pa.decimal128(21, 2))
    return data


@hostile("value")
def rare_denominator(rng: Rng, n: int) -> Data:
    """x is NULL but at one key in twenty, and of these one in ten has partners."""
    keys = n // 2
    k = uniform(rng, n, keys)
    x = pa.array(rng.lognormal(3, 1, n), mask=k >= keys // 20)
    s = np.concatenate([np.arange(keys // 20, keys), np.repeat(np.arange(keys // 200), 3)])
    return Data({"r": table(rng, k, x=x), "s": table(rng, rng.permutation(s))})


@hostile("value")
def cancelling_pairs_of_keys(rng: Rng, n: int) -> Data:
    """Pareto 1.2 values of every even key, and of the odd one behind it the same with the other sign."""
    keys = n // 4 * 2
    k, v = uniform(rng, n, keys), np.rint(100 * (1 + rng.pareto(1.2, keys // 2))).astype(np.int64)
    x = 3 + np.stack([v, -v], axis=1).ravel()[k]
    return Data({"r": table(rng, k, x=x), "s": table(rng, unique(rng, keys))})


@hostile("filter")
def heavy_behind_filters(rng: Rng, n: int) -> Data:
    """Filters on both tables keep 2 %; six keys have a third of these, and are as light as others in the rest."""
    sides = {}
    for name in "rs":
        k, kept = uniform(rng, n, n // 4), rng.random(n) < 0.02
        some = kept & (rng.random(n) < 0.4)
        k[some] = rng.integers(0, 6, some.sum())
        sides[name] = table(rng, k, y=kept.astype(np.int64))
    return Data(sides, where="r.y = 1 AND s.y = 1")


@hostile("filter")
def filters_of_one_star(rng: Rng, n: int) -> Data:
    """A star whose two dimensions are filtered to one in a hundred, and nearly always the same tuples of r."""
    dimension = np.arange(n // 8)
    k, kept = uniform(rng, n, n // 8), (dimension % 100 == 0).astype(np.int64)
    r = table(rng, k, l=np.where(rng.random(n) < 0.9, k, uniform(rng, n, n // 8)))
    return Data(
        {"r": r, "s": table(rng, dimension, y=kept), "d": {"l": dimension, "z": kept}},
        join="r JOIN s ON r.k = s.k JOIN d ON r.l = d.l",
        where="s.y = 1 AND d.z = 1",
        g="s.g",
    )


@hostile("filter")
def without_the_heaviest(rng: Rng, n: int) -> Data:
    """Zipf 2 in both tables; the heaviest key of all is filtered out of one of them."""
    sides = {}
    for name in "rs":
        k = zipf(rng, n, n // 4, 2.0)
        sides[name] = table(rng, k, y=(k > 0).astype(np.int64))
    return Data(sides, where="r.y = 1")


@hostile("groups")
def group_of_many_partners(rng: Rng, n: int) -> Data:
    """Groups of the far table, and the tuples that five keys lead to are one of them."""
    data = far_heavy(rng, n, 5)
    last = data.tables["c"]
    many = np.bincount(last["l"])[last["l"]] > 1
    last["g"] = np.where(many, 9, rng.integers(0, 5, len(many)))
    data.g = "c.g"
    return data


@hostile("groups")
def dear_small_groups(rng: Rng, n: int) -> Data:
    """Eighty groups of Zipf 1.5 sizes; the smaller a group, the larger its values."""
    data = foreign_key(rng, n)
    r = data.tables["r"]
    r["g"] = zipf(rng, n, 80, 1.5)
    r["x"] = r["x"] * (1 + r["g"] ** 2)
    return data


@hostile("types")
def ends_of_integers(rng: Rng, n: int) -> Data:
    """0, -1, the least and the largest BIGINT are keys, and heavy in both tables."""
    ends = np.array([0, -1, np.iinfo(np.int64).min, np.iinfo(np.int64).max])
    sides = {}
    for name in "rs":
        k = 10 + unique(rng, n)
        sides[name] = table(rng, with_heavy(rng, k, ends, max(2, int((n / 4) ** 0.5))))
    return Data(sides)


@hostile("types")
def tiny_amounts(rng: Rng, n: int) -> Data:
    """DOUBLE amounts of about 1e-300, whose squares are 0."""
    data = foreign_key(rng, n)
    data.tables["r"]["x"] = 1e-300 * rng.lognormal(0, 2, n)
    return data


@hostile("types")
def huge_and_tiny(rng: Rng, n: int) -> Data:
    """DOUBLE values of 1e-300, and one in a thousand of 1e300."""
    data = foreign_key(rng, n)
    data.tables["r"]["x"] = np.where(rng.random(n) < 0.001, 1e300, 1e-300)
    return data
