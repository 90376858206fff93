"""What a class of data is, and the parts that classes are made of.

A class is a function of a random generator and a number of tuples that gives a `Data`; the modules `hostile_values`,
`hostile_keys` and `ordinary` register theirs. Its name, its docstring and the kind of its registration are all that is
told of it.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Rng = np.random.Generator
Ints = npt.NDArray[np.int64]
Columns = dict[str, Any]  # ndarrays or Arrow arrays

GROUPS = 5
# One value of a grouped answer: of a SUM, of a COUNT(DISTINCT).
GROUPED = ("grouped", "grouped DISTINCT")


@dataclass
class Data:
    """Tables and how they are asked: everything but the aggregate, the error and the method."""

    tables: dict[str, Columns]
    join: str = "r JOIN s ON r.k = s.k"
    x: str = "r.x"  # summed and averaged
    g: str = "r.g"
    distinct: str = "r.k"
    where: str = ""
    behind: str = ""  # HAVING, ORDER BY, LIMIT of the grouped query
    max_groups: int = 100

    def arrow(self) -> dict[str, pa.Table]:
        """The tables."""
        return {name: pa.table(columns) for name, columns in self.tables.items()}

    def select(self, *aggregates: str) -> str:
        """The query of some aggregates, or of one of `GROUPED` alone, without its clauses."""
        where = f" WHERE {self.where}" if self.where else ""
        if aggregates[0] in GROUPED:
            (aggregate,) = aggregates
            value = f"SUM({self.x})" if aggregate == "grouped" else self.item("COUNT(DISTINCT)")
            behind = self.behind if aggregate == "grouped" else ""
            item = f"{self.g} AS g, {value} AS v"
            return f"SELECT APPROXIMATE {item} FROM {self.join}{where} GROUP BY {self.g} {behind}".rstrip()
        items = ", ".join(f"{self.item(a)} AS v{n}" for n, a in enumerate(aggregates))
        return f"SELECT APPROXIMATE {items} FROM {self.join}{where}"

    def item(self, aggregate: str) -> str:
        """The SQL of an aggregate that is not grouped."""
        of = {"COUNT": "*", "SUM": self.x, "AVG": self.x, "COUNT(DISTINCT)": f"DISTINCT {self.distinct}"}
        return f"{aggregate.partition('(')[0]}({of[aggregate]})"


@dataclass(frozen=True)
class DataClass:
    """A registered class; `kind` is the cause by which it is hostile, or "ordinary"."""

    name: str
    kind: str
    make: Callable[[Rng, int], Data]

    def data(self, draw: int, tuples: int) -> Data:
        """One draw of it."""
        return self.make(np.random.default_rng((zlib.crc32(self.name.encode()), draw)), tuples)


CLASSES: dict[str, DataClass] = {}


def hostile(kind: str) -> Callable[[Callable[[Rng, int], Data]], Callable[[Rng, int], Data]]:
    """Register a class under the cause that it is hostile by."""

    def registered(make: Callable[[Rng, int], Data]) -> Callable[[Rng, int], Data]:
        CLASSES[make.__name__] = DataClass(make.__name__, kind, make)
        return make

    return registered


ordinary = hostile("ordinary")


def unique(rng: Rng, tuples: int) -> Ints:
    """Keys that are all different, in no order."""
    return rng.permutation(tuples)


def uniform(rng: Rng, tuples: int, keys: int) -> Ints:
    """Keys drawn evenly."""
    return rng.integers(0, max(keys, 1), tuples)


def zipf(rng: Rng, tuples: int, keys: int, z: float, order: Ints | None = None) -> Ints:
    """Keys by a bounded Zipf law; `order` names the keys by rank."""
    weights = np.arange(1, keys + 1) ** -z
    ranks = np.searchsorted(np.cumsum(weights) / weights.sum(), rng.random(tuples))
    return ranks if order is None else order[np.minimum(ranks, keys - 1)]


def with_heavy(rng: Rng, keys: Ints, heavy: Ints, times: int) -> Ints:
    """The keys with `times` tuples more for each heavy one, shuffled."""
    return rng.permutation(np.concatenate([keys, np.repeat(heavy, times)]))


def amounts(rng: Rng, tuples: int) -> Ints:
    """Well-behaved values from about 50 to 150."""
    return np.rint(rng.normal(100, 15, tuples)).astype(np.int64)


def table(rng: Rng, k: Any, **columns: Any) -> Columns:
    """A table of a key `k`, values `x` and a group `g`, unless given."""
    found: Columns = {"k": k, "x": amounts(rng, len(k)), "g": rng.integers(0, GROUPS, len(k))}
    return found | columns


def foreign_key(rng: Rng, tuples: int) -> Data:
    """Tuples of r that each have one partner among half as many in s: what classes start from."""
    keys = max(tuples // 2, 1)
    return Data({"r": table(rng, uniform(rng, tuples, keys)), "s": table(rng, unique(rng, keys))})


def outliers(rng: Rng, n: int, rows: int, sign: int = 1, share: float = 0.5) -> Data:
    """A foreign key, and `rows` tuples of r that carry a share of the sum of all values."""
    data = foreign_key(rng, n)
    x = data.tables["r"]["x"]
    chosen = rng.choice(n, rows, replace=False)
    x[chosen] = sign * int(share / (1 - share) * x.sum() / rows)
    return data


def heavy_in_both(rng: Rng, tuples: int, keys: int, share: float = 0.5) -> Data:
    """Unique keys in both tables, but for `keys` that have as many tuples in both as make a share of the result."""
    times = max(2, round((share / (1 - share) * tuples / keys) ** 0.5))
    heavy = rng.choice(tuples, keys, replace=False)
    sides = (with_heavy(rng, unique(rng, tuples), heavy, times) for _ in range(2))
    return Data({name: table(rng, side) for name, side in zip("rs", sides, strict=True)})


def far_heavy(rng: Rng, tuples: int, leading: int) -> Data:
    """r-b-c by foreign keys; `leading` tuples of b lead to most tuples of c, which are most of the result."""
    b = max(tuples // 4, 8)
    c = np.concatenate([np.arange(b), np.repeat(rng.choice(b, leading, replace=False), tuples // leading)])
    return Data(
        {
            "r": table(rng, uniform(rng, b, b)),
            "b": {"k": unique(rng, b), "l": unique(rng, b)},
            "c": {"l": rng.permutation(c), "y": amounts(rng, len(c))},
        },
        join="r JOIN b ON r.k = b.k JOIN c ON b.l = c.l",
        distinct="b.k",
    )
