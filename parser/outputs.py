"""What relations offer: the columns of a SELECT list, of ``*``, and under the names of ``AS t(a, b)``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sqlglot import exp

from ..errors import UnknownName
from .bound import fragment_of
from .scope import EXACT, Output, Relation, Scope, walk_outside_subqueries


def renamed(relation: Relation, names: list[str], scope: Scope) -> Relation:
    """The relation with the column names of ``AS t(a, b)``."""
    if not names:
        return relation
    if len(names) != len(relation.outputs):
        message = f"{relation.shown} has {len(relation.outputs)} columns, not {len(names)}"
        raise scope.fault(message, "SKIMQL_COLUMN_COUNT", relation.span, "name each column once", UnknownName)
    outputs = tuple(replace(o, name=n) for o, n in zip(relation.outputs, names, strict=True))
    return replace(relation, outputs=outputs)


def item_outputs(item: exp.Expr, scope: Scope) -> Iterator[Output]:
    """What an item of an inner SELECT list offers."""
    star = item.this if isinstance(item, exp.Column) and isinstance(item.this, exp.Star) else item
    if isinstance(star, exp.Star):
        yield from star_outputs(item, scope)
        return
    inner = item.this if isinstance(item, exp.Alias) else item
    for part in walk_outside_subqueries(inner):
        if isinstance(part, exp.AggFunc | exp.Window):
            message = "an aggregate inside FROM cannot be estimated"
            raise scope.fault(message, "SKIMQL_AGGREGATE_IN_FROM", part, EXACT)
    name = item.alias if isinstance(item, exp.Alias) else item.name or scope.source.text_of(item)
    if isinstance(inner, exp.Column):
        output, used = scope.resolve(inner)
        if used == len(inner.parts):
            yield replace(output, name=name)
            return
    fragment_of(inner, scope)
    yield Output(name, None, (inner, scope))


def star_outputs(item: exp.Expr, scope: Scope) -> Iterator[Output]:
    """The columns of ``*`` or ``t.*``."""
    star = item.this if isinstance(item, exp.Column) else item
    if star.args.get("replace") or star.args.get("rename"):
        raise scope.fault("* REPLACE cannot be estimated", "SKIMQL_UNSUPPORTED_CLAUSE", item, EXACT)
    left_out = {e.name.lower() for e in star.args.get("except_") or ()}
    outputs = scope.star
    if isinstance(item, exp.Column):
        relation = next((r for r in scope.relations if r.answers_to((item.table,))), None)
        if relation is None:
            message = f"there is no table or alias {item.table!r} in FROM"
            known = ", ".join(r.shown for r in scope.relations)
            raise scope.fault(message, "SKIMQL_UNKNOWN_TABLE", item, known, UnknownName)
        outputs = list(relation.outputs)
    yield from (o for o in outputs if o.name.lower() not in left_out)
