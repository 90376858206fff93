"""Random questions in the forms of SQL that people write, for `USING sampled_query`: over the tables a, b, c.

EXISTS, outer joins, conditions of any form beside an equality, grouped and distinct subqueries, windows, unions,
LATERAL, PIVOT and VALUES in FROM; deviations, quantiles, MIN and MAX; groups of several tables, rolled up and by alias.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from .questions import Question, Words

NUMBERS = ("v", "g", "d", "x", "l")
COLUMNS = ("k", "l", "s", "g", "h", "v", "d", "x", "e", "t")
# Columns that tables are joined by, the first most often.
KEYS = ("k", "k", "k", "l", "s", "e")


@dataclass(frozen=True, slots=True)
class _Source:
    """What stands in FROM: its text, and the columns that may be named behind it, each with its alias."""

    text: str
    columns: tuple[str, ...]

    def named(self, names: Sequence[str]) -> list[str]:
        """Those of its columns that have one of these names."""
        return [c for c in self.columns if c.split(".")[1] in names]


class SampledForms:
    """Makes one question.

    Parameters
    ----------
    words : Words
        Draws, and gives the clauses behind the question.
    """

    def __init__(self, words: Words) -> None:
        self.words, self.rng = words, words.rng
        self.one_of = words.one_of
        self.heads: list[str] = []
        self.number = 0

    def question(self) -> Question:
        """The question."""
        key = self.one_of(*KEYS)
        source = self._from(key)
        where = [self._condition(key, source) for _ in range(int(self.rng.choice([0, 1, 1, 2])))]
        items = [self._item(key, source) for _ in range(int(self.rng.integers(1, 4)))]
        groups, grouped = self._groups(key, source)
        shown = [*groups, *(f"{item} AS i{n}" for n, item in enumerate(items))]
        head = f"WITH {', '.join(self.heads)} " if self.heads else ""
        bare = f"{head}SELECT APPROXIMATE {', '.join(shown)} FROM {source.text}"
        bare += f" WHERE {' AND '.join(where)}" if where else ""
        bare += grouped
        having = self.one_of(*self.words.havings) if self.rng.random() < 0.15 else ""
        order = limit = ""
        if groups and self.rng.random() < 0.3:
            order = f"ORDER BY {len(groups) + 1} {self.one_of('DESC', 'DESC', 'ASC')}"
            limit = f"LIMIT {int(self.rng.integers(1, 5))}" if self.rng.random() < 0.6 else ""
        return Question(bare, having, order, limit, self._clauses(), len(groups))

    def _clauses(self) -> str:
        rng, parts = self.rng, []
        if rng.random() < 0.3:
            parts.append(f"ERROR WITHIN {rng.choice([1, 5, 20, 50])}%")
            if rng.random() < 0.3:
                named = self.one_of(
                    "do_nothing", "local_omit", "run_on_full_table", "partial_run_on_base_table"
                )
                parts.append(f"BEHAVIOR '{named}'")
        elif rng.random() < 0.2:
            parts.append(f"SIZE {rng.choice([1, 2, 8, 32])} KB")
        if rng.random() < 0.9 or not parts:
            parts.append("USING sampled_query")
        return " ".join(parts)

    def _name(self) -> str:
        self.number += 1
        return f"t{self.number}"

    # FROM.

    def _from(self, key: str) -> _Source:
        source = self._relation(key)
        for _ in range(int(self.rng.choice([0, 1, 1, 1, 2]))):
            source = self._joined(key, source)
        return source

    def _joined(self, key: str, left: _Source) -> _Source:
        rng = self.rng
        if rng.random() < 0.08:
            return self._lateral(key, left)
        right = self._relation(key)
        mine, other = left.named((key,)), right.named((key,))
        if not mine or not other:
            return replace(left, text=f"{left.text} CROSS JOIN (SELECT 1 AS one) {self._name()}")
        on = f"{self.one_of(*mine)} = {other[0]}"
        kinds = (
            "JOIN",
            "JOIN",
            "LEFT JOIN",
            "LEFT JOIN",
            "RIGHT JOIN",
            "FULL JOIN",
            "LEFT SEMI JOIN",
            "LEFT ANTI JOIN",
        )
        kind = self.one_of(*kinds, ",", "USING")
        if rng.random() < 0.5:
            on += f" AND {self._between(left, right)}"
        both = left.columns + right.columns
        if kind == ",":
            return _Source(f"{left.text} JOIN {right.text} ON {on}", both)
        if kind == "USING" and len(mine) == 1:
            word = self.one_of("JOIN", "LEFT JOIN", "FULL JOIN")
            return _Source(f"{left.text} {word} {right.text} USING ({key})", both)
        kind = "JOIN" if kind == "USING" else kind
        shown = left.columns if kind in ("LEFT SEMI JOIN", "LEFT ANTI JOIN") else both
        return _Source(f"{left.text} {kind} {right.text} ON {on}", shown)

    def _between(self, left: _Source, right: _Source) -> str:
        """A condition beside the equality."""
        numbers, others = left.named(NUMBERS), right.named(NUMBERS)
        if not numbers or not others:
            return "TRUE"
        a, b = self.one_of(*numbers), self.one_of(*others)
        return self.one_of(
            f"{a} < {b}",
            f"({a} > 1 OR {b} < 3)",
            f"{b} IS NOT NULL",
            f"{a} <> {b}",
            f"{b} > 2",
            f"{a} BETWEEN 0 AND {b}",
        )

    def _relation(self, key: str) -> _Source:
        alias, table = self._name(), self.one_of("a", "b", "c")
        if self.rng.random() < 0.5:
            return _Source(f"{table} {alias}", tuple(f"{alias}.{c}" for c in COLUMNS))
        text, columns = self._query(key, table)
        if self.rng.random() < 0.3:
            named = f"w{self.number}"
            self.heads.append(f"{named} AS ({text})")
            text = named
        else:
            text = f"({text})"
        if self.rng.random() < 0.1 and text.startswith("w"):
            other = self._name()
            joined = f"({text} {alias} JOIN {text} {other} ON {alias}.{key} = {other}.{key})"
            return _Source(joined, tuple(f"{n}.{c}" for n in (alias, other) for c in columns))
        return _Source(f"{text} {alias}", tuple(f"{alias}.{c}" for c in columns))

    def _query(self, key: str, table: str) -> tuple[str, tuple[str, ...]]:
        """A query in FROM, and its columns."""
        other, where = self.one_of("a", "b", "c"), self.one_of("", "", " WHERE v > 1", " WHERE g IS NOT NULL")
        by = self.one_of(key, key, key, key, "g")
        forms: tuple[tuple[str, tuple[str, ...]], ...] = (
            (f"SELECT * FROM {table}{where or ' WHERE FALSE'}", COLUMNS),
            (
                f"SELECT {by}, COUNT(*) AS v, MAX(d) AS d, MIN(h) AS h FROM {table}{where} GROUP BY {by}",
                (by, "v", "d", "h"),
            ),
            (
                f"SELECT {key}, g, SUM(v) AS v FROM {table} GROUP BY {key}, g HAVING COUNT(*) > 1 AND MAX(v) > 3",
                (key, "g", "v"),
            ),
            (f"SELECT DISTINCT {key}, g, h FROM {table}{where}", (key, "g", "h")),
            (
                f"SELECT {key}, v, h, COUNT(*) OVER (PARTITION BY {by}) AS g FROM {table}{where}",
                (key, "v", "h", "g"),
            ),
            (
                f"SELECT {key}, v, SUM(v) OVER w AS g FROM {table} WINDOW w AS (PARTITION BY {by})",
                (key, "v", "g"),
            ),
            (
                f"SELECT {key}, v, g, h FROM {table} QUALIFY RANK() OVER (PARTITION BY {by} ORDER BY v DESC) <= 2",
                (key, "v", "g", "h"),
            ),
            (
                f"SELECT {key}, v, h FROM {table}{where} UNION ALL SELECT {key}, v + 1, h FROM {other}",
                (key, "v", "h"),
            ),
            (
                f"SELECT {key}, g FROM {table} {self.one_of('UNION', 'INTERSECT', 'EXCEPT')} SELECT {key}, g"
                f" FROM {other}",
                (key, "g"),
            ),
            (
                f"SELECT {key}, n AS v, g FROM (SELECT {key}, g, COUNT(*) AS n"
                f" FROM {table} GROUP BY {key}, g) q WHERE n > 1",
                (key, "v", "g"),
            ),
            (
                f"SELECT p.{key}, p.v, p.g, p.h, q.v AS d"
                f" FROM {table} p LEFT JOIN {other} q ON p.{key} = q.{key} AND q.g < 3",
                (key, "v", "g", "h", "d"),
            ),
            (
                f"SELECT * FROM (SELECT {key}, h, v FROM {table}) PIVOT (SUM(v) FOR h IN ('x' AS v, 'y' AS g))",
                (key, "v", "g"),
            ),
            (f"SELECT {key}, v FROM {table} ORDER BY v, {key} LIMIT 9", (key, "v")),
            (
                "SELECT * FROM VALUES (1, 3, 'x'), (2, 0, 'y'), (NULL, 1, 'x'), (1, 2, NULL) AS q(k, v, h)",
                ("k", "v", "h"),
            ),
        )
        return forms[int(self.rng.integers(len(forms)))]

    def _lateral(self, key: str, left: _Source) -> _Source:
        mine, alias, table = left.named((key,)), self._name(), self.one_of("a", "b", "c")
        if not mine:
            return left
        if self.rng.random() < 0.3:
            made = f"{left.text}, LATERAL explode(sequence(1, 1 + hash({mine[0]}) % 2)) {alias}(v)"
            return _Source(made, (*left.columns, f"{alias}.v"))
        inner = f"SELECT COUNT(*) AS v, SUM(q.v) AS d FROM {table} q WHERE q.{key} = {mine[0]}"
        return _Source(f"{left.text}, LATERAL ({inner}) {alias}", (*left.columns, f"{alias}.v", f"{alias}.d"))

    # WHERE.

    def _condition(self, key: str, source: _Source) -> str:
        mine, numbers = source.named((key,)), source.named(NUMBERS) or ["1"]
        texts = source.named(("h",)) or ["'x'"]
        value, table = self.one_of(*numbers), self.one_of("a", "b", "c")
        plain = (
            f"{value} > 2",
            f"{self.one_of(*texts)} IN ('x', 'y')",
            f"({value} IS NULL OR {self.one_of(*texts)} LIKE '%x%')",
            f"NOT {value} BETWEEN 1 AND 4",
        )
        if not mine or self.rng.random() < 0.35:
            return self.one_of(*plain)
        k = self.one_of(*mine)
        tied = f"q.{key} = {k}"
        return self.one_of(
            f"EXISTS (SELECT * FROM {table} q WHERE {tied} AND q.v > {value} AND q.h IS NOT NULL)",
            f"NOT EXISTS (SELECT 1 FROM {table} q WHERE {tied} AND q.g <> {value})",
            f"EXISTS (SELECT 1 FROM {table} q, b r WHERE {tied} AND r.{key} = q.{key} AND r.v < q.v)",
            f"{k} IN (SELECT {key} FROM {table} WHERE v > 3)",
            f"{k} IN (SELECT {key} FROM {table} GROUP BY {key} HAVING SUM(v) > 5)",
            f"{k} NOT IN (SELECT {key} FROM {table} WHERE {key} IS NOT NULL AND g = 1)",
            f"{k} NOT IN (SELECT {key} FROM {table} WHERE v < 0)",
            f"{value} > (SELECT AVG(v) FROM {table} q WHERE {tied})",
            f"{value} >= COALESCE((SELECT MAX(q.v) FROM {table} q WHERE {tied} AND q.g = 1), 0)",
            f"{value} < (SELECT AVG(v) + 3 FROM {table})",
            f"(SELECT COUNT(*) FROM {table} q WHERE {tied}) BETWEEN 1 AND 3",
            f"({value} = 1 OR EXISTS (SELECT 1 FROM {table} q WHERE {tied} AND q.v = 2))",
        )

    # The SELECT list.

    def _item(self, key: str, source: _Source) -> str:
        numbers = source.named(NUMBERS) or ["1"]
        v, w = self.one_of(*numbers), self.one_of(*numbers)
        keys, texts = source.named((key,)) or ["1"], source.named(("h",)) or ["'x'"]
        forms = (
            *("COUNT(*)", "COUNT(*)", f"SUM({v})", f"SUM({v})", f"AVG({v})", f"COUNT({v})"),
            f"SUM({v} * {w})",
            f"SUM(CASE WHEN {v} > 2 THEN {w} ELSE 0 END)",
            f"COUNT(*) FILTER (WHERE {v} < {w})",
            f"COUNT_IF({self.one_of(*texts)} = 'x')",
            f"SUM({v}) / NULLIF(COUNT({w}), 0)",
            f"ROUND(AVG({v}), 1)",
            f"COALESCE(SUM({v}), 0)",
            f"COUNT(DISTINCT {keys[0]})",
            f"COUNT(DISTINCT CASE WHEN {v} > 2 THEN {keys[0]} END)",
            f"APPROX_COUNT_DISTINCT({v})",
            *(f"STDDEV({v})", f"VAR_POP({v})", f"CORR({v}, {w})", f"COVAR_SAMP({v}, {w})"),
            *(f"MEDIAN({v})", f"PERCENTILE({v}, 0.9)", f"APPROX_PERCENTILE({v}, 0.25)"),
            *(f"lower_bound(MAX({v}))", f"upper_bound(MIN({v}))", f"MAX({self.one_of(*texts, v)})"),
        )
        return self.one_of(*forms)

    def _groups(self, key: str, source: _Source) -> tuple[list[str], str]:
        """What is grouped by as it is shown, and the clause."""
        some = [c for c in source.named(("g", "h", "v", "e")) if not c.endswith(f".{key}")]
        number = int(self.rng.choice([0, 0, 1, 1, 2]))
        if not some or not number:
            return [], ""
        columns = list(dict.fromkeys(self.one_of(*some) for _ in range(number)))
        columns = [self._expression(c) for c in columns]
        columns = list(dict.fromkeys(columns))
        way = self.rng.random()
        listed = ", ".join(columns)
        if way < 0.15:
            return columns, f" GROUP BY {self.one_of('ROLLUP', 'CUBE')}({listed})"
        if way < 0.3:
            return columns, f" GROUP BY {', '.join(str(n + 1) for n in range(len(columns)))}"
        if way < 0.45:
            named = [f"{c} AS n{n}" for n, c in enumerate(columns)]
            return named, f" GROUP BY {', '.join(f'n{n}' for n in range(len(columns)))}"
        if way < 0.5:
            return columns, " GROUP BY ALL"
        return columns, f" GROUP BY {listed}"

    def _expression(self, column: str) -> str:
        if column.endswith(".v"):
            return self.one_of(f"{column} % 3", f"CASE WHEN {column} > 3 THEN 'much' ELSE 'little' END")
        if column.endswith(".e"):
            return self.one_of(f"year({column})", f"date_trunc('WEEK', {column})", column)
        return column
