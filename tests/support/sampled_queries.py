"""Random queries and data on which a sampled query is the sum of what its keys add, and DuckDB to run them.

``python tests/support/sampled_queries.py FIRST LAST`` holds the rule on the queries of a range of seeds.
"""

from __future__ import annotations

import random
import sys
from collections import Counter

import duckdb
import sqlglot

from skimql.engine.queries import sampled_plan
from skimql.errors import SkimqlError
from skimql.optimizer.candidates.sampled_query import Work
from skimql.parser.join_graph import Column, TableSchema
from skimql.parser.sampled_select import resolve_sampled
from skimql.parser.statement import parse_statement

COLUMNS = ("k", "j", "v")
TABLES = ("a", "b", "c", "d")
SCHEMA = {name: TableSchema(name, tuple(Column(c, "bigint") for c in COLUMNS)) for name in TABLES}
KEYS = (None, 0, 1, 2, 3, 4)
# All values of base columns.
VALUES = (*KEYS, 5)
NOTHING = "TRUE"


def as_if_large(monkeypatch) -> None:
    """Samples of few tuples are drawn, and cost what those of many do."""
    monkeypatch.setattr(sampled_plan, "LEAST_TUPLES", 100.0)
    monkeypatch.setattr(sampled_plan, "work_of", lambda parts: Work())


def rows(seed: int) -> dict[str, list[tuple[int | None, ...]]]:
    """Small tables, NULLs among their keys."""
    rng = random.Random(f"rows {seed}")
    found = {}
    for name in TABLES:
        number = rng.choice((0, 3, 8, 12)) if name == "d" else rng.choice((5, 8, 12))
        values = [(rng.choice(KEYS), rng.choice(KEYS), rng.choice((None, 0, 1, 2, 5))) for _ in range(number)]
        found[name] = values
    return found


class Maker:
    """Makes one random query."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(f"query {seed}")
        self.number = 0
        self.common: list[tuple[str, list[str]]] = []

    def query(self) -> str:
        """The statement."""
        rng = self.rng
        head = ""
        if rng.random() < 0.2:
            body, columns = self.select(1)
            if rng.random() < 0.3:
                columns = [f"w{n}" for n in range(len(columns))]
                head = f"WITH w({', '.join(columns)}) AS ({body}) "
            else:
                head = f"WITH w AS ({body}) "
            self.common.append(("w", columns))
        source, names = self.source(2)
        where = self.where(names, 2)
        groups = rng.sample(names, min(len(names), rng.choice((0, 0, 1, 1, 2))))
        groups = [g if rng.random() < 0.7 else f"{g} % 2" for g in groups]
        value = rng.choice(names)
        wanted = ["COUNT(*) AS n", f"SUM({value}) AS s", f"COUNT({rng.choice(names)}) AS c"]
        wanted += [f"SUM({rng.choice(names)}) FILTER (WHERE {self.plain(names)}) AS f"]
        keys = [n for n in names if n.endswith(".k")]
        if keys and rng.random() < 0.3:
            wanted.append(f"COUNT(DISTINCT {rng.choice(keys)}) AS d")
        items = ", ".join([*groups, *wanted])
        grouped = f" GROUP BY {', '.join(groups)}" if groups else ""
        return f"{head}SELECT APPROXIMATE {items} FROM {source}{where}{grouped} USING sampled_query"

    def name(self) -> str:
        self.number += 1
        return f"r{self.number}"

    def relation(self, depth: int) -> tuple[str, list[str]]:
        """One item of FROM, and its columns with its alias before them."""
        rng, alias = self.rng, self.name()
        if self.common and rng.random() < 0.4:
            name, columns = rng.choice(self.common)
            return f"{name} {alias}", [f"{alias}.{c}" for c in columns]
        if depth and rng.random() < 0.35:
            text, columns = self.select(depth - 1)
            if rng.random() < 0.2:
                columns = [f"z{n}" for n in range(len(columns))]
                return f"({text}) AS {alias}({', '.join(columns)})", [f"{alias}.{c}" for c in columns]
            return f"({text}) {alias}", [f"{alias}.{c}" for c in columns]
        return f"{rng.choice(TABLES)} {alias}", [f"{alias}.{c}" for c in COLUMNS]

    def source(self, depth: int) -> tuple[str, list[str]]:
        """FROM: the columns that may be named behind it."""
        rng = self.rng
        text, names = self.relation(depth)
        for _ in range(rng.choice((0, 1, 1, 1, 2))):
            right, theirs = self.relation(depth)
            kinds = (
                ["JOIN"] * 4
                + ["LEFT JOIN"] * 3
                + ["RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN", ","]
            )
            kind = rng.choice(kinds)
            if rng.random() < 0.08:
                key, alias = rng.choice([n for n in names if n.endswith(".k")] or names), self.name()
                inner = f"SELECT COUNT(*) AS v, SUM(q.j) AS j FROM {rng.choice(TABLES)} q WHERE q.k = {key}"
                text += f", LATERAL ({inner}) {alias}"
                names = [*names, f"{alias}.v", f"{alias}.j"]
                continue
            if kind == ",":
                text, names = f"{text}, {right}", names + theirs
                continue
            shared = [n.split(".")[1] for n in theirs]
            named = "k" in shared and sum(n.endswith(".k") for n in names) == 1
            if named and kind in ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN") and rng.random() < 0.15:
                text, names = f"{text} {kind} {right} USING (k)", names + theirs
                continue
            text = f"{text} {kind} {right} ON {self.condition(names, theirs)}"
            names = names if kind in ("LEFT SEMI JOIN", "LEFT ANTI JOIN") else names + theirs
        return text, names

    def condition(self, names: list[str], theirs: list[str]) -> str:
        rng = self.rng
        keys, others = ([n for n in group if n.endswith(".k")] for group in (names, theirs))
        left, right = rng.choice(names), rng.choice(theirs)
        if keys and others and rng.random() < 0.8:
            left, right = rng.choice(keys), rng.choice(others)
        sign = "<=>" if rng.random() < 0.1 else "="
        parts = [f"{left} {sign} {right}"]
        if rng.random() < 0.3:
            more = (
                f"{rng.choice(names)} < {rng.choice(theirs)}",
                f"({rng.choice(names)} = 1 OR {rng.choice(theirs)} > 1)",
                f"{rng.choice(theirs)} IS NOT NULL",
            )
            parts.append(rng.choice(more))
        if rng.random() < 0.05:
            parts = [f"({left} = {right} AND {parts[-1]} OR {left} = {right} AND {rng.choice(names)} = 2)"]
        return " AND ".join(parts)

    def plain(self, names: list[str]) -> str:
        rng = self.rng
        one, other = rng.choice(names), rng.choice(names)
        forms = (
            f"{one} > 1",
            f"{one} IS NULL",
            f"{one} < {other}",
            f"{one} = 1 OR {other} = 2",
            f"{one} <> {other}",
        )
        return rng.choice(forms)

    def where(self, names: list[str], depth: int) -> str:
        rng = self.rng
        parts = []
        if rng.random() < 0.3:
            parts.append(f"({self.plain(names)})")
        keys = [n for n in names if n.endswith(".k")]
        if len(keys) > 1 and rng.random() < 0.5:
            parts.append(f"{keys[0]} = {keys[-1]}")
        if depth and rng.random() < 0.5:
            parts.append(self.subquery(names, depth - 1))
        return f" WHERE {' AND '.join(parts)}" if parts else ""

    def subquery(self, names: list[str], depth: int) -> str:
        """A condition with a subquery."""
        rng = self.rng
        inner, theirs = self.relation(depth)
        mine = [n for n in names if n.endswith(".k")] or names
        own = [n for n in theirs if n.endswith(".k")] or theirs
        correlated = f"{rng.choice(own)} = {rng.choice(mine)}"
        other = f"{rng.choice(theirs)} = {rng.choice(names)}"
        tied = rng.choice((correlated, correlated, other, f"{correlated} AND {self.plain(theirs)}"))
        loose = rng.choice(("", f" WHERE {self.plain(theirs)}"))
        tested, given = (
            rng.choice((rng.choice(mine), rng.choice(names))),
            rng.choice((own[0], rng.choice(theirs))),
        )
        value = rng.choice(theirs)
        forms = (
            f"EXISTS (SELECT 1 FROM {inner} WHERE {tied})",
            f"NOT EXISTS (SELECT 1 FROM {inner} WHERE {tied})",
            f"{tested} IN (SELECT {given} FROM {inner}{loose})",
            f"{tested} NOT IN (SELECT {given} FROM {inner}{loose})",
            f"NOT ({tested} IN (SELECT {given} FROM {inner}{loose}))",
            f"{tested} IN (SELECT {given} FROM {inner} WHERE {tied})",
            f"({rng.choice(names)} = 1 OR {tested} IN (SELECT {given} FROM {inner}{loose}))",
            f"{rng.choice(names)} > (SELECT AVG({value}) FROM {inner} WHERE {tied})",
            f"{rng.choice(names)} <= (SELECT MAX({value}) FROM {inner}{loose})",
            f"{tested} IN (SELECT {given} FROM {inner} GROUP BY {given} HAVING COUNT(*) > 1)",
        )
        return rng.choice(forms)

    def select(self, depth: int) -> tuple[str, list[str]]:
        """A query in FROM, and its columns."""
        rng = self.rng
        form = rng.choice(
            (
                *("plain", "plain", "star", "grouped", "grouped", "distinct", "set", "window", "qualify"),
                *("whole", "limit"),
            )
        )
        if form == "set":
            word = rng.choice(("UNION ALL", "UNION ALL", "UNION", "INTERSECT", "EXCEPT"))
            sides = []
            for _ in range(2):
                source, names = self.source(0)
                key = next((n for n in names if n.endswith(".k")), names[0])
                picked = (
                    [key, rng.choice(names)] if rng.random() < 0.7 else [rng.choice(names), rng.choice(names)]
                )
                sides.append(f"SELECT {picked[0]} AS k, {picked[1]} AS v FROM {source}{self.where(names, 0)}")
            return f" {word} ".join(sides), ["k", "v"]
        source, names = self.source(depth)
        where = self.where(names, depth)
        key = next((n for n in names if n.endswith(".k")), names[0])
        if form == "grouped":
            by = [key, rng.choice(names)] if rng.random() < 0.6 else [rng.choice((key, rng.choice(names)))]
            shown = (
                f"{by[0]} AS k, COUNT(*) AS v"
                if rng.random() < 0.7
                else f"SUM({rng.choice(names)}) AS v, COUNT(*) AS j"
            )
            having = " HAVING COUNT(*) > 1" if rng.random() < 0.3 else ""
            columns = ["k", "v"] if shown.startswith(by[0]) else ["v", "j"]
            return f"SELECT {shown} FROM {source}{where} GROUP BY {', '.join(by)}{having}", columns
        if form == "distinct":
            return f"SELECT DISTINCT {key} AS k, {rng.choice(names)} AS j FROM {source}{where}", ["k", "j"]
        if form == "window":
            by = rng.choice((key, key, rng.choice(names)))
            over = f"COUNT(*) OVER (PARTITION BY {by}) AS v"
            return f"SELECT {rng.choice((key, rng.choice(names)))} AS k, {over} FROM {source}{where}", [
                "k",
                "v",
            ]
        if form == "qualify":
            by, other = rng.choice((key, key, rng.choice(names))), rng.choice(names)
            only = f"COUNT(*) OVER (PARTITION BY {by}) {rng.choice(('> 1', '= 1'))}"
            return f"SELECT {key} AS k, {other} AS v FROM {source}{where} QUALIFY {only}", ["k", "v"]
        if form == "whole":
            return f"SELECT MAX({rng.choice(names)}) AS k, COUNT(*) AS v FROM {source}{where}", ["k", "v"]
        if form == "limit":
            items = f"{key} AS k, {rng.choice(names)} AS v"
            return f"SELECT {items} FROM {source}{where} ORDER BY 1, 2 LIMIT 3", ["k", "v"]
        if form == "star" and "," not in source and "JOIN" not in source:
            columns = [n.split(".")[1] for n in names]
            return f"SELECT * FROM {source}{where}", columns
        shown = [key, rng.choice(names)] if rng.random() < 0.5 else [rng.choice(names), rng.choice(names)]
        return f"SELECT {shown[0]} AS k, {shown[1]} AS v FROM {source}{where}", ["k", "v"]


def database(seed: int) -> duckdb.DuckDBPyConnection:
    """The tables of a seed."""
    connection = duckdb.connect(config={"threads": 1})
    for name, values in rows(seed).items():
        connection.execute(f"CREATE TABLE {name} (k BIGINT, j BIGINT, v BIGINT)")
        if values:
            connection.executemany(f"INSERT INTO {name} VALUES (?, ?, ?)", values)
    return connection


def run(connection: duckdb.DuckDBPyConnection, sql: str) -> list[tuple]:
    """What DuckDB gives for a text of Spark's."""
    return connection.execute(sqlglot.transpile(sql, read="spark", write="duckdb")[0]).fetchall()


def differences(connection: duckdb.DuckDBPyConnection, sql: str, run=run) -> list[str]:
    """Where the sums over keys are other than the result; raises SkimqlError where the query does not decompose."""
    # Every single column is one that its table may be in the order of.
    query = resolve_sampled(parse_statement(sql), SCHEMA, lambda _: COLUMNS)
    number, measures = len(query.group_texts), query.measures
    none = query.ways[0].__class__("", "", (), "", frozenset(), ())
    whole = _summed(run(connection, query.by_key(none, lambda _: NOTHING, measures, ())), number)
    found = []
    for way in query.ways:
        parts: Counter = Counter()
        for value in VALUES:

            def kept(role, value=value):
                return f"`{role.column}` IS NULL" if value is None else f"`{role.column}` = {value}"

            columns = (f"{way.key} AS `__k`", *measures)
            rows = run(connection, query.by_key(way, kept, columns, (way.key,)))
            if any(row[number] != value for row in rows):
                found.append(f"{way.name}: keys {[row[number] for row in rows]} of {value}\n{sql}")
            without = [(*row[:number], *row[number + 1 :]) for row in rows]
            parts.update(_summed(without, number))
        parts = {place: total for place, total in parts.items() if total}
        if parts != {place: total for place, total in whole.items() if total}:
            found.append(
                f"{way.name} {[(r.table, r.place.start) for r in way.roles]}: {parts} for {dict(whole)}\n{sql}"
            )
    return found


def _summed(rows: list[tuple], groups: int) -> Counter:
    totals: Counter = Counter()
    for row in rows:
        for number, value in enumerate(row[groups:]):
            totals[(row[:groups], number)] += value or 0
    return totals


def main(first: int, last: int) -> int:
    """Hold the rule on a range of seeds; the number of queries on which it does not hold."""
    outcomes: Counter = Counter()
    for seed in range(first, last):
        connection = database(seed)
        for part in range(10):
            sql = Maker(10 * seed + part).query()
            try:
                wrong = differences(connection, sql)
                outcomes["held" if not wrong else "broken"] += 1
                for text in wrong:
                    print(text, file=sys.stderr)
            except SkimqlError as fault:
                outcomes[fault.code] += 1
            except duckdb.Error as fault:
                outcomes[type(fault).__name__] += 1
                if "-v" in sys.argv:
                    print(str(fault)[:300], sql, file=sys.stderr)
    print(dict(outcomes))
    return outcomes["broken"]


if __name__ == "__main__":
    sys.exit(min(main(int(sys.argv[1]), int(sys.argv[2])), 1))
