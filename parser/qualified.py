"""Columns by the whole name of their table, ``sales.orders.k``, under the table's last name alone.

A table that is replaced by its filtered tuples stands under its last name. The catalog and the database before
columns are blanked, so that every other place of the text stays where it is.
"""

from __future__ import annotations

from collections import Counter

from sqlglot import exp

from .scope import Scope
from .select import Source, parse_select

WAY_OUT = "an alias behind the table: FROM {0} AS t"


def by_last_names(outside: Scope, code: str) -> Source:
    """The text of a scope with its columns under the last names of their tables; as it was where all are.

    Raises
    ------
    UnsupportedQuery
        With `code` where that name stands for another table too.
    """
    source = outside.source
    names = {_parts(t) for t in source.tree.find_all(exp.Table) if not t.alias and len(t.parts) > 1}
    known = {name[-n:]: name for name in names for n in (2, 3) if len(name) >= n}
    taken = Counter(n.alias_or_name.lower() for n in source.tree.find_all(exp.Table, exp.Subquery, exp.CTE))
    text = list(source.sql) if known else []
    for column in source.tree.find_all(exp.Column) if known else ():
        parts = _parts(column)
        qualifier = next((q for q in (parts[:3], parts[:2]) if q in known and len(q) < len(parts)), None)
        if qualifier is None:
            continue
        if taken[qualifier[-1]] > 1:
            message = f"{qualifier[-1]} is the name of several tables, and a sample has no longer ones"
            raise outside.fault(message, code, column, WAY_OUT.format(".".join(known[qualifier])))
        start = source.span_of(column.parts[0]).start
        end = source.span_of(column.parts[len(qualifier) - 1]).start
        text[start:end] = " " * (end - start)
    changed = "".join(text)
    return parse_select(changed, outside.shown) if known and changed != source.sql else source


def _parts(node: exp.Table | exp.Column) -> tuple[str, ...]:
    return tuple(p.name.lower() for p in node.parts)
