"""MIN and MAX: no sample tells them, but for a bound; of a column that a query reads as a whole, files do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from ..errors import SkimqlError, UnsupportedQuery
from .blocks import LEFT, Block, Relation
from .fragment import Ref
from .join_graph import Span
from .result_types import type_of
from .scope import EXACT, Scope
from .types import FRACTIONAL, INTEGRAL_DIGITS

EXTREMES = ("min", "max")

# Which end of its interval a sample knows for certain.
_BOUNDS = {"min": "upper_bound", "max": "lower_bound"}


@dataclass(frozen=True, slots=True)
class Extreme:
    """MIN or MAX of all values of a column of integers.

    Attributes
    ----------
    function : str
        One of `EXTREMES`.
    table, column : str
    text : str
        The aggregate as it is typed.
    span : Span
    """

    function: str
    table: str
    column: str
    text: str
    span: Span

    def refusal(self, sql: str) -> UnsupportedQuery:
        """The fault where files do not tell it."""
        message = f"{_why(self.function)}, and the files of {self.table} do not tell it"
        hint = _way_out(self.function, self.text)
        return UnsupportedQuery(message, "SKIMQL_UNSUPPORTED_AGGREGATE", sql, tuple(self.span), hint)


def columns_as_a_whole(block: Block) -> Mapping[Ref, tuple[str, str]]:
    """The table and column of each column of which every value reaches the aggregates of a query without groups."""
    node, source = block.node, block.source
    if node is None or source is None or node.args.get("where") or node.args.get("group"):
        return {}
    first = source.first
    if not isinstance(first, Relation) or not first.columns or any(s.kind != LEFT for s in source.steps):
        return {}
    return {first.ref(i): (first.table, column) for i, column in enumerate(first.columns)}


def extreme_of(
    node: exp.Expr, scope: Scope, whole: Mapping[Ref, tuple[str, str]], *, filtered: bool
) -> Extreme | None:
    """MIN or MAX where files may tell it; None where only the end of its interval is asked that a sample knows.

    Raises
    ------
    UnsupportedQuery
        ``SKIMQL_UNSUPPORTED_AGGREGATE`` elsewhere; the way out is that end, of numbers.
    """
    function = "min" if isinstance(node, exp.Min) else "max"
    kind = type_of(node.this, scope)
    around = node.parent if not filtered or node.parent is None else node.parent.parent
    is_number = kind in (*INTEGRAL_DIGITS, *FRACTIONAL) or (kind or "").startswith("decimal")
    if is_number and isinstance(around, exp.Anonymous) and around.name.lower() == _BOUNDS[function]:
        return None
    text = scope.source.text_of(node)
    column = node.this.unnest()
    if isinstance(column, exp.Column) and not filtered and kind in INTEGRAL_DIGITS:
        bound = scope.resolve(column)[0].bound
        if isinstance(bound, Ref) and bound in whole:
            return Extreme(function, *whole[bound], text, scope.span_of(node))
    hint = _way_out(function, text) if is_number else EXACT
    raise _refusal(function, scope, node, hint)


def _refusal(function: str, scope: Scope, node: exp.Expr, hint: str) -> SkimqlError:
    return scope.fault(_why(function), "SKIMQL_UNSUPPORTED_AGGREGATE", node, hint)


def _way_out(function: str, text: str) -> str:
    return f"{_BOUNDS[function]}({text}) with USING sampled_query, which is certain, or {EXACT}"


def _why(function: str) -> str:
    return f"{function.upper()} may be that of a single tuple, which a sample need not have"
