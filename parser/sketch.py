"""CREATE SKETCH over one table: its keys, weight and filter in the words in which queries say theirs."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from ..errors import ParseError
from .bound import fragment_of
from .fragment import Fragment
from .join_graph import Schema, Span
from .joined import Conjunct
from .predicates import read_conditions
from .relations import FromReader
from .scope import Relation, Scope, unknown_table
from .select import parse_expression
from .syntax import AppendSketch, CreateSketch, Part


@dataclass(frozen=True, slots=True)
class SketchDefinition:
    """A virtual relation and its join attributes.

    `keys`, `weight` and `filter` are canonical Spark SQL over the table's columns, equal in text to those of a
    `Vertex`, `Edge` or `Factor` that means the same; `key_types` are Spark types, None for an expression.
    `classes` are the join classes: given by CLASS, or the lower-cased key. `groups` are the expressions of GROUP BY.
    """

    table: str
    filter: str | None
    keys: tuple[str, ...]
    key_types: tuple[str | None, ...]
    classes: tuple[str, ...]
    weight: str | None
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Appended:
    """What APPEND reads: a table, the canonical filter on it, and how often each tuple counts; None for once."""

    table: str
    filter: str | None
    times: str | None


def resolve_sketch(statement: CreateSketch, schema: Schema) -> SketchDefinition:
    """Resolve the names in CREATE SKETCH.

    Raises
    ------
    ParseError
        If an expression cannot be read, or two keys have one class.
    UnknownName
        For a table or column that is not there.
    UnsupportedQuery
        For an aggregate, a random function or a correlated subquery.
    """
    table = _Table(statement.sql, statement.table, schema)
    keys = [table.fragment(k.expression) for k in statement.keys]
    classes: list[str] = []
    for key, fragment in zip(statement.keys, keys, strict=True):
        named = key.join_class or key.expression
        name = (key.join_class.text if key.join_class else _class_of(fragment)).lower()
        if name in classes:
            raise ParseError(
                f"two keys have the join class {name!r}",
                "SKIMQL_CLASS_TWICE",
                statement.sql,
                (named.span.start, named.span.end),
                f"give one of them another: CLASS {name}2",
            )
        classes.append(name)
    return SketchDefinition(
        table.name,
        table.filter(statement.condition),
        tuple(k.sql for k in keys),
        tuple(table.join.type_of(k) for k in keys),
        tuple(classes),
        table.fragment(statement.weight).sql if statement.weight else None,
        tuple(table.fragment(g).sql for g in statement.groups),
    )


def resolve_append(statement: AppendSketch, schema: Schema) -> Appended:
    """Table, canonical filter and multiplicity of ``APPEND SKETCH s FROM table WHERE ...``.

    Raises
    ------
    UnknownName, UnsupportedQuery, ParseError
        As `resolve_sketch`.
    """
    table = _Table(statement.sql, statement.table, schema)
    condition, times = table.filter(statement.condition), None
    if statement.deletes is not None:
        deleted = _Table(statement.sql, statement.table, schema).filter(statement.deletes)
        # No filter at all: a condition that always holds.
        times = "-1" if deleted is None else f"CASE WHEN {deleted} THEN -1 ELSE 1 END"
    elif statement.weight is not None:
        times = table.fragment(statement.weight).sql
    return Appended(table.name, condition, times)


def _class_of(key: Fragment) -> str:
    return key.column.column if key.column is not None else key.sql


class _Table:
    """One table, and the expressions of a statement over it."""

    def __init__(self, sql: str, parts: tuple[Part, ...], schema: Schema) -> None:
        self.sql = sql
        self.join = FromReader(schema)
        span = Span(parts[0].span.start, parts[-1].span.end)
        scope = Scope(parse_expression(sql, span), sql, schema)
        name = ".".join(p.text for p in parts)
        table = scope.table(name)
        if table is None:
            raise unknown_table(name, span, scope)
        outputs = self.join.base_outputs(table, parts[-1].text, span, scope)
        self.name = table.name
        self.relation = Relation(tuple(p.text for p in parts), outputs, span)

    def scope(self, part: Part) -> Scope:
        source = parse_expression(self.sql, part.span)
        return Scope(source, self.sql, self.join.schema, relations=[self.relation])

    def fragment(self, part: Part) -> Fragment:
        scope = self.scope(part)
        return fragment_of(_bare(scope.source.tree), scope)

    def filter(self, condition: Part | None) -> str | None:
        if condition is None:
            return None
        scope = self.scope(condition)
        self.join.conditions.append(Conjunct(scope.source.tree, scope))
        return read_conditions(self.join).filter_of(0)


def _bare(node: exp.Expr) -> exp.Expr:
    return node.unnest() if isinstance(node, exp.Paren) else node
