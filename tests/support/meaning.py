"""What a resolved query means, computed exactly: its graph and terms as SQL for DuckDB, built from nothing else."""

from __future__ import annotations

import sqlglot


def in_duckdb(spark_sql):
    """Spark SQL in DuckDB's dialect."""
    return sqlglot.transpile(spark_sql, read="spark", write="duckdb")[0]


def _expression(spark_sql):
    return in_duckdb(f"SELECT {spark_sql}").removeprefix("SELECT ")


def _column(vertex, what):
    return f"v{vertex}.{what}"


class Meaning:
    """Evaluates a `Query` over a DuckDB connection that holds its tables."""

    def __init__(self, connection, query):
        self.connection = connection
        self.query = query
        self.computed = {v: {} for v in range(len(query.graph.vertices))}

    def name(self, vertex, expression):
        """The name under which a vertex offers an expression."""
        known = self.computed[vertex]
        return known.setdefault(expression, f"c{len(known)}")

    def factor(self, factor):
        value = _column(factor.vertex, self.name(factor.vertex, factor.expression))
        return f"CASE WHEN {value} IS NULL THEN 0 ELSE {1 if factor.presence else value} END"

    def terms(self, terms):
        products = [" * ".join([f"{int(t.coefficient)}", *map(self.factor, t.factors)]) for t in terms]
        return f"COALESCE(SUM({' + '.join(products) or '0'}), 0)"

    def aggregate(self, aggregate):
        if aggregate.function == "count_distinct":
            columns = [_column(f.vertex, self.name(f.vertex, f.expression)) for f in aggregate.distinct]
            present = " AND ".join(f"{c} IS NOT NULL" for c in columns)
            return f"COUNT(DISTINCT CASE WHEN {present} THEN ({', '.join(columns)},) END)"
        total, presence = self.terms(aggregate.total), self.terms(aggregate.presence)
        if aggregate.function == "count":
            return total
        none = f"CASE WHEN {presence} = 0 THEN NULL ELSE"
        return f"{none} {total} END" if aggregate.function == "sum" else f"{none} {total} / {presence} END"

    def joined(self):
        """The join of the virtual relations along the edges."""
        conditions = [
            f"{_column(e.left, self.name(e.left, a))} = {_column(e.right, self.name(e.right, b))}"
            for e in self.query.graph.edges
            for a, b in zip(e.left_keys, e.right_keys, strict=True)
        ]
        relations = []
        for i, vertex in enumerate(self.query.graph.vertices):
            items = [f"{_expression(sql)} AS {name}" for sql, name in self.computed[i].items()] or [
                "1 AS one"
            ]
            where = f" WHERE {_expression(vertex.filter)}" if vertex.filter else ""
            relations.append(f"(SELECT {', '.join(items)} FROM {vertex.table}{where}) v{i}")
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        return f"FROM {', '.join(relations)}{where}"

    def rows(self):
        """The result: groups, then aggregates, one row for each group."""
        groups = [_column(g.vertex, self.name(g.vertex, g.expression)) for g in self.query.groups]
        shown = [*groups, *map(self.aggregate, self.query.aggregates)]
        by = f" GROUP BY {', '.join(groups)}" if groups else ""
        return self.connection.execute(f"SELECT {', '.join(shown)} {self.joined()}{by}").fetchall()
