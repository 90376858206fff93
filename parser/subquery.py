"""Subqueries inside an expression: Spark evaluates them, if they read nothing of the query around them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from ..errors import UnknownName

if TYPE_CHECKING:
    from .scope import Scope


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
                "join the table instead, or EXACT SELECT ...",
            )


def _columns_of(name: str, table: exp.Table, scope: Scope) -> set[str]:
    found = scope.table(name)
    if found is None:
        message = f"there is no table {name!r}"
        raise scope.fault(message, "SKIMQL_UNKNOWN_TABLE", table, "register it first", UnknownName)
    return {c.name.lower() for c in found.columns}
