"""Subqueries inside an expression: Spark evaluates them, if they read nothing of the query around them."""

from __future__ import annotations

from sqlglot import exp

from .scope import Scope, unknown_table


def refuse_outer_names(query: exp.Query, scope: Scope) -> None:
    """Refuse a correlated subquery, and one that reads a name of the outer WITH.

    Raises
    ------
    UnsupportedQuery
        ``SKIMQL_CORRELATED_SUBQUERY`` or ``SKIMQL_SUBQUERY_WITH``.
    UnknownName
        For a table that is in neither the schema nor the subquery.

    Notes
    -----
    A column counts as the subquery's own if a relation in it has the column or, for one whose columns are not
    known here, may have it and no relation outside does.
    """
    own = {c.alias.lower() for c in query.find_all(exp.CTE)}
    names: set[str] = set()
    columns: set[str] = set()
    open_columns = False
    for table in query.find_all(exp.Table):
        name = ".".join(p.name for p in table.parts)
        names |= {table.alias_or_name.lower(), table.name.lower()}
        if name.lower() in own:
            open_columns = True
        elif name.lower() in scope.named:
            message = f"a subquery in an expression cannot read {name} of the outer WITH"
            raise scope.fault(message, "SKIMQL_SUBQUERY_WITH", table, "write its SELECT in the subquery")
        else:
            columns |= _columns_of(name, table, scope)
    for inner in query.find_all(exp.Subquery):
        if inner.alias:
            names.add(inner.alias.lower())
            open_columns = True
    columns |= {a.alias.lower() for a in query.find_all(exp.Alias)}
    for column in query.find_all(exp.Column):
        if column.table:
            inside = column.table.lower() in names or column.table.lower() in columns
        else:
            inside = column.name.lower() in columns or (open_columns and not scope.find(column.name))
        if not inside and column.arg_key != "unit" and not isinstance(column.this, exp.Star):
            raise scope.fault(
                "a subquery that reads the tables around it cannot be estimated",
                "SKIMQL_CORRELATED_SUBQUERY",
                column,
                _uncorrelated(query, columns, scope),
            )


def _uncorrelated(query: exp.Query, columns: set[str], scope: Scope) -> str:
    """The way out: a plain EXISTS over one equality is an IN, which keeps every tuple at most once too."""
    exact = "EXACT SELECT ..."
    exists = query.parent
    above = exists.parent if exists is not None else None
    while isinstance(above, exp.And | exp.Paren):
        above = above.parent
    where = query.args.get("where")
    plain = {"expressions", "from_", "where", "kind", "hint"}
    if (
        not isinstance(exists, exp.Exists)
        or not isinstance(above, exp.Where)
        or where is None
        or any(value for key, value in query.args.items() if key not in plain)
    ):
        return exact
    conditions = list(where.this.flatten()) if isinstance(where.this, exp.And) else [where.this]
    inside = {t.alias_or_name.lower() for t in query.find_all(exp.Table)}
    outside = [
        c for c in conditions if any(not _is_inside(n, inside, columns) for n in c.find_all(exp.Column))
    ]
    equality = outside[0].unnest() if len(outside) == 1 else None
    if not isinstance(equality, exp.EQ):
        return exact
    sides = [equality.left, equality.right]
    mine = [all(_is_inside(n, inside, columns) for n in s.find_all(exp.Column)) for s in sides]
    free = [not any(_is_inside(n, inside, columns) for n in s.find_all(exp.Column)) for s in sides]
    if not ((mine[0] and free[1]) or (mine[1] and free[0])):
        return exact
    own, other = sides if mine[0] else reversed(sides)
    text = scope.source.text_of
    rest = [f"({text(c)})" if isinstance(c, exp.Or) else text(c) for c in conditions if c is not outside[0]]
    kept = f" WHERE {' AND '.join(rest)}" if rest else ""
    return f"{text(other)} IN (SELECT {text(own)} FROM {text(query.args['from_'].this)}{kept}), or {exact}"


def _is_inside(column: exp.Column, names: set[str], columns: set[str]) -> bool:
    return column.table.lower() in names if column.table else column.name.lower() in columns


def _columns_of(name: str, table: exp.Table, scope: Scope) -> set[str]:
    found = scope.table(name)
    if found is None:
        raise unknown_table(name, scope.span_of(table), scope)
    return {c.name.lower() for c in found.columns}
