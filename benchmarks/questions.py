"""Random questions with random clauses over three tables a, b and c, for `benchmarks.combinations`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from skimql.optimizer.methods import NAMED

Rng = np.random.Generator


@dataclass(frozen=True, slots=True)
class Question:
    """A SELECT APPROXIMATE in its parts.

    Attributes
    ----------
    bare : str
        Without HAVING, ORDER BY and LIMIT.
    having : str
        Empty, or the clause; its aggregate is ``COUNT(*)`` or the item ``i0``.
    order : str
    limit : str
    clauses : str
        What is asked beside the question.
    groups : int
        How many items stand before the aggregates.
    """

    bare: str
    having: str
    order: str
    limit: str
    clauses: str
    groups: int

    @property
    def select(self) -> str:
        """All but the clauses of ours."""
        return " ".join(filter(None, (self.bare, self.having, self.order, self.limit)))

    @property
    def sql(self) -> str:
        """The statement."""
        return f"{self.select} {self.clauses}".rstrip()


class Words:
    """What questions are made of where the memory backend answers them: integers and short texts."""

    sizes: Sequence[int] = (1, 2, 2, 2, 3, 3)
    sources: Sequence[str] = ("a", "b", "c")
    groups: Sequence[str] = ("{0}.g", "{0}.h")
    counted: Sequence[str] = ("{0}.k", "{0}.l", "{0}.v")
    items: Sequence[str] = (
        "COUNT(*)",
        "COUNT({0}.v)",
        "SUM({0}.v)",
        "AVG({0}.v)",
        "SUM({0}.v * {1}.g)",
        "SUM({0}.v) / COUNT(*)",
        "COUNT(*) > 20",
        "SUM({0}.v) < 100 OR COUNT({1}.v) BETWEEN 3 AND 300",
    )
    havings: Sequence[str] = ("HAVING COUNT(*) > 0", "HAVING COUNT(*) > 10", "HAVING COUNT(*) > 1000")

    def __init__(self, rng: Rng) -> None:
        self.rng = rng

    def one_of(self, *choices: str) -> str:
        """One of them, equally likely."""
        return str(self.rng.choice(choices))

    def some(self, forms: Sequence[str], aliases: Sequence[str]) -> str:
        """A form with random tables in it."""
        form = forms[int(self.rng.integers(len(forms)))]
        return form.format(*(self.one_of(*aliases) for _ in range(form.count("{"))))

    def column(self, forms: Sequence[str], aliases: Sequence[str]) -> str:
        """A form with a random table in it, drawn before the form; a second table after it."""
        first, form = self.one_of(*aliases), self.one_of(*forms)
        return form.format(first, self.one_of(*aliases) if "{1}" in form else "")

    def joins(self, parent: str, other: str) -> str:
        """The condition between two tables."""
        left, right = self.one_of("k", "k", "l"), self.one_of("k", "k", "l")
        return f"{parent}.{left} = {other}.{right}"

    def where(self, aliases: Sequence[str]) -> str:
        """A condition on one table."""
        return f"{self.one_of(*aliases)}.v > {self.rng.integers(-2, 15)}"

    def clauses(self) -> str:
        """What is asked beside the question."""
        rng, parts = self.rng, []
        if rng.random() < 0.35:
            parts.append(f"ERROR WITHIN {rng.choice([1, 5, 20, 50])}%")
        if rng.random() < 0.35:
            parts.append(f"USING {rng.choice(NAMED)}")
        if rng.random() < 0.25:
            parts.append(f"SIZE {rng.choice([1, 8, 64, 512])} KB")
        if rng.random() < 0.2:
            options = f"buckets = {rng.choice([32, 256, 4096])}, sparse = {rng.choice(['true', 'false'])}"
            parts.append(f"OPTIONS ({options})")
        return " ".join(parts)


class SparkWords(Words):
    """More of them, where Spark evaluates: texts, DECIMAL, DOUBLE, dates, times, and keys of unlike types."""

    sizes = (1, 2, 2, 2, 2, 3, 3, 4)
    sources = (
        *Words.sources * 3,
        "(SELECT k, l, s, g, h, v + 1 AS v, d, x, e, t FROM a WHERE v IS NOT NULL)",
        "(SELECT * FROM b WHERE g > 0)",
    )
    groups = (
        "{0}.g",
        "{0}.h",
        "{0}.e",
        "year({0}.t)",
        "CAST({0}.t AS DATE)",
        "upper({0}.h)",
        "{0}.g % 2",
        "hour({0}.t)",
    )
    counted = ("{0}.k", "{0}.l", "{0}.v", "{0}.s", "{0}.e", "{0}.d", "{0}.k, {0}.h", "{0}.g, {1}.h")
    items = (
        *Words.items,
        "COUNT({0}.s)",
        "SUM({0}.d)",
        "AVG({0}.d)",
        "SUM({0}.x)",
        "AVG({0}.x)",
        "SUM({0}.d * {1}.g)",
        "SUM({0}.v + {1}.v)",
        "SUM({0}.d * (1 - {1}.g))",
        "COUNT(*) FILTER (WHERE {0}.v > 3)",
        "COUNT_IF({0}.h = 'x')",
        "SUM(CASE WHEN {0}.g > 1 THEN {0}.v ELSE 0 END)",
        "SUM(CASE WHEN {0}.h = 'x' THEN {1}.v END)",
        "ROUND(AVG({0}.v), 1)",
        "SUM({0}.v) / NULLIF(COUNT({1}.v), 0)",
        "COALESCE(SUM({0}.v), 0)",
        "COUNT(*) + COUNT({0}.d)",
    )
    havings = (*Words.havings, "HAVING i0 > 5", "HAVING i0 <= 100", "HAVING COUNT(*) BETWEEN 2 AND 200")

    def clauses(self) -> str:
        rng, parts = self.rng, []
        if rng.random() < 0.25:
            parts.append(f"ERROR WITHIN {rng.choice([1, 5, 20, 50])}%")
        if rng.random() < 0.4:
            # Those that answer most questions more often than the others.
            named = self.one_of(*NAMED, "convolution", "convolution", "hash", "key_sample", "two_level")
            parts.append(f"USING {named}")
        if rng.random() < 0.2:
            parts.append(f"SIZE {rng.choice([2, 8, 32, 256])} KB")
        if rng.random() < 0.35:
            parts.append(f"OPTIONS (buckets = {rng.choice([32, 64, 256])}, sparse = false)")
        return " ".join(parts)

    def joins(self, parent: str, other: str) -> str:
        if self.rng.random() < 0.6:
            return super().joins(parent, other)
        form = self.one_of(
            "{0}.k = {1}.s",
            "{0}.s = {1}.s",
            "{0}.e = {1}.e",
            "{0}.t = {1}.e",
            "CAST({0}.t AS DATE) = {1}.e",
            "{0}.k = {1}.d",
            "{0}.l + 1 = {1}.k",
            "upper({0}.h) = upper({1}.h)",
            "{0}.k = {1}.k AND {0}.h = {1}.h",
            "{0}.l = {1}.l AND {0}.e = {1}.e AND {0}.g > 0",
            "{0}.K = {1}.k",
        )
        return form.format(parent, other)

    def where(self, aliases: Sequence[str]) -> str:
        if self.rng.random() < 0.4:
            return super().where(aliases)
        form = self.one_of(
            "{0}.h IN ('x', 'y')",
            "{0}.s = 1",
            "{0}.t >= '2026-03-02'",
            "{0}.e BETWEEN DATE'2026-03-01' AND '2026-03-03'",
            "({0}.v > 0 OR {0}.d IS NULL)",
            "{0}.V IS NOT NULL",
            "hour({0}.t) < 12",
            "NOT {0}.h LIKE '%x%'",
            "10 / {0}.g > 4",
        )
        return form.format(self.one_of(*aliases))


def question(words: Words, *, kept: bool = False) -> Question:
    """A question; where sketches are kept, mostly one that they may answer."""
    rng, one_of = words.rng, words.one_of
    names = [one_of(*words.sources) for _ in range(int(rng.choice(words.sizes)))]
    aliases = [f"t{i}" for i in range(len(names))]
    if kept and rng.random() < 0.7:
        return _as_kept(words)
    text = f"{names[0]} t0"
    for i in range(1, len(names)):
        parent = one_of(*aliases[:i])
        text += f" JOIN {names[i]} t{i} ON {words.joins(parent, f't{i}')}"
    where = [words.where(aliases) for _ in range(int(rng.choice([0, 0, 1])))]
    items = [words.some(words.items, aliases) for _ in range(int(rng.integers(1, 4)))]
    if rng.random() < 0.15:
        counted = words.column(words.counted, aliases)
        items = [f"COUNT(DISTINCT {counted})", *items[: int(rng.integers(0, 2))]]
    groups = [words.column(words.groups, aliases) for _ in range(int(rng.choice([0, 0, 1, 1, 2])))]
    groups = list(dict.fromkeys(groups))
    having = order = limit = ""
    if rng.random() < 0.25:
        having = one_of(*words.havings)
    if groups and rng.random() < 0.3:
        order = f"ORDER BY {one_of('1', str(len(groups) + 1))} {one_of('ASC', 'DESC')}"
    if rng.random() < 0.15:
        limit = f"LIMIT {int(rng.integers(0, 6))}"
    select = ", ".join([*groups, *(f"{item} AS i{n}" for n, item in enumerate(items))])
    bare = f"SELECT APPROXIMATE {select} FROM {text}" + (f" WHERE {' AND '.join(where)}" if where else "")
    bare += f" GROUP BY {', '.join(groups)}" if groups else ""
    return Question(bare, having, order, limit, words.clauses(), len(groups))


# What is kept of a block, and questions that it may answer.
KEPT = (
    "CREATE SKETCH ka ON a (k) FOR SUM(v) OPTIONS (buckets = 256, sparse = false)",
    "CREATE SKETCH kb ON b (k)",
    "CREATE SKETCH kg ON c (k) FOR SUM(v) GROUP BY h OPTIONS (buckets = 256, sparse = false)",
    "CREATE SKETCH kd ON a (l) USING distinct",
)


def _as_kept(words: Words) -> Question:
    one, other = words.one_of("a", "b", "c"), words.one_of("b", "b", "a")
    items = words.one_of("COUNT(*) AS i0", "SUM(t0.v) AS i0", "AVG(t0.v) AS i0, COUNT(*) AS i1")
    group = "t0.h" if one == "c" or words.rng.random() < 0.2 else ""
    text = f"FROM {one} t0 JOIN {other} t1 ON t0.k = t1.k"
    if words.rng.random() < 0.1:
        return Question("SELECT APPROXIMATE COUNT(DISTINCT l) AS i0 FROM a", "", "", "", words.clauses(), 0)
    bare = f"SELECT APPROXIMATE {f'{group}, ' if group else ''}{items} {text}"
    bare += f" GROUP BY {group}" if group else ""
    having = words.one_of(*words.havings) if words.rng.random() < 0.15 else ""
    clauses = "" if words.rng.random() < 0.6 else words.clauses()
    return Question(bare, having, "", "", clauses, int(bool(group)))
