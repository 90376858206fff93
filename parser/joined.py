"""What FROM and WHERE say of a query's tables, flattened: the tables, and the conditions on joined tuples."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from .fragment import Fragment
from .join_graph import Schema, Span, TableSchema
from .scope import Output, Scope


@dataclass(frozen=True, slots=True)
class Conjunct:
    """A condition on joined tuples, in the scope that gives its names a meaning.

    `origin` is the outer join whose ON it is, or None if it holds for every result.
    """

    node: exp.Expr
    scope: Scope
    origin: int | None = None


@dataclass(frozen=True, slots=True)
class NamedEquality:
    """What USING or NATURAL says of one pair of columns."""

    left: Output
    right: Output
    span: Span
    origin: int | None = None


@dataclass(frozen=True, slots=True)
class OuterJoin:
    """An outer join that is right only if later conditions make it inner.

    `nullable` are the vertices of each side that may be padded with NULLs; conditions from index `above` on
    are applied to its result.
    """

    nullable: tuple[frozenset[int], ...]
    above: int
    words: str
    span: Span


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A table in FROM: a vertex before its filter is known."""

    table: TableSchema
    alias: str
    span: Span


@dataclass(slots=True)
class Join:
    """Everything FROM says, flattened: vertices and conditions, whatever the syntax they came in.

    With `whole_views` every view is a table; `views_read` tells whether one was read through.
    """

    schema: Schema
    whole_views: bool = False
    views_read: bool = False
    occurrences: list[Occurrence] = field(default_factory=list)
    conditions: list[Conjunct | NamedEquality] = field(default_factory=list)
    outer_joins: list[OuterJoin] = field(default_factory=list)

    def type_of(self, expression: Fragment) -> str | None:
        """The schema's type of a plain column; None for anything else."""
        column = expression.column
        if column is None:
            return None
        columns = self.occurrences[column.vertex].table.columns
        return next(c.type for c in columns if c.name == column.column)
