"""What the names in a FROM mean: relations, their columns, and look-up as Spark does it (ignoring case)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches

from sqlglot import exp

from ..errors import SkimqlError, UnknownName, UnsupportedQuery
from .fragment import Ref, typed_name
from .join_graph import Schema, Span, TableSchema
from .select import Source

EXACT = "EXACT SELECT ..."
# Names that a refusal lists where none is like the one that is not known.
MOST_TOLD = 5


@dataclass(frozen=True, slots=True)
class Output:
    """A column that a relation offers: its name, and the base column or SELECT item that it is.

    `strict` is false for a column merged by FULL JOIN ... USING, which is not NULL though one side is.
    """

    name: str
    type: str | None
    bound: Ref | tuple[exp.Expr, Scope]
    strict: bool = True


@dataclass(slots=True)
class Relation:
    """One item of FROM: its alias or the parts of its name (none for a subquery without), and its columns."""

    name: tuple[str, ...]
    outputs: tuple[Output, ...]
    span: Span

    @property
    def shown(self) -> str:
        """The name for messages."""
        return ".".join(self.name) or "the subquery"

    @property
    def typed(self) -> str:
        """The name as it may be typed before a column."""
        return ".".join(map(typed_name, self.name))

    def answers_to(self, qualifier: tuple[str, ...]) -> bool:
        """Whether ``qualifier.column`` may mean a column of this relation."""
        own = tuple(n.lower() for n in self.name)
        return 0 < len(qualifier) <= len(own) and own[-len(qualifier) :] == tuple(
            q.lower() for q in qualifier
        )


@dataclass(frozen=True, slots=True)
class NamedSelect:
    """What WITH calls by a name: the query, and the text and names in which it must be read."""

    node: exp.CTE
    scope: Scope


@dataclass(slots=True)
class Scope:
    """The relations of one SELECT in order, and the text it was read from.

    `merged` maps the lower-cased name of a USING or NATURAL column to the output that an unqualified use
    means; `star` is what ``*`` stands for. `place` is set within a view: there, errors show the view's name
    in the user's text. Its tables are the vertices from `first_vertex` on.
    """

    source: Source
    shown: str
    schema: Schema
    named: Mapping[str, NamedSelect] = field(default_factory=dict)
    place: Span | None = None
    first_vertex: int = 0
    relations: list[Relation] = field(default_factory=list)
    merged: dict[str, Output] = field(default_factory=dict)
    star: list[Output] = field(default_factory=list)

    def span_of(self, node: exp.Expr) -> Span:
        """Where a node stands in the user's text."""
        return self.place or self.source.span_of(node)

    def fault(
        self,
        message: str,
        code: str,
        where: exp.Expr | Span,
        hint: str = "",
        kind: type[SkimqlError] = UnsupportedQuery,
    ) -> SkimqlError:
        """An error at a node or span of this scope's text."""
        span = self.span_of(where) if isinstance(where, exp.Expr) else where
        return kind(message, code, self.shown, (span.start, span.end), hint)

    def table(self, name: str) -> TableSchema | None:
        """A table of the schema, whatever the case of its name."""
        found = self.schema.get(name) or self.schema.get(name.lower())
        return found or next((self.schema.get(k) for k in self.schema if k.lower() == name.lower()), None)

    def find(self, name: str, relations: list[Relation] | None = None) -> list[tuple[Relation, Output]]:
        """Every column of that name, in order."""
        wanted = name.lower()
        among = self.relations if relations is None else relations
        return [(r, o) for r in among for o in r.outputs if o.name.lower() == wanted]

    def resolve(self, column: exp.Column) -> tuple[Output, int]:
        """The output a column reference means, and how many of its parts name it (others are struct fields).

        Raises
        ------
        UnknownName
            If nothing answers to it (``SKIMQL_UNKNOWN_COLUMN``, ``SKIMQL_UNKNOWN_TABLE``) or several columns
            do (``SKIMQL_AMBIGUOUS_NAME``).
        """
        parts = tuple(p.name for p in column.parts)
        for length in range(min(3, len(parts) - 1), 0, -1):
            qualified = [r for r in self.relations if r.answers_to(parts[:length])]
            found = self.find(parts[length], qualified)
            if found:
                return self._single(column, parts[length], found), length + 1
        if parts[0].lower() in self.merged:
            return self.merged[parts[0].lower()], 1
        found = self.find(parts[0])
        if found:
            return self._single(column, parts[0], found), 1
        raise self._unknown(column, parts)

    def _single(self, column: exp.Column, name: str, found: list[tuple[Relation, Output]]) -> Output:
        if len(found) == 1:
            return found[0][1]
        owners = list(dict.fromkeys(r.shown for r, _ in found))
        if len(owners) == 1:
            spellings = ", ".join(f"`{o.name}`" for _, o in found)
            message = f"{name} is ambiguous: {owners[0]} has several columns of that name ({spellings})"
            hint = "give the columns or tables different names"
        else:
            message = f"{name} is in {' and '.join(owners)}"
            first = next(r for r, _ in found)
            hint = f"{first.typed}.{typed_name(name)}" if first.name else "give the subquery a name"
        raise self.fault(message, "SKIMQL_AMBIGUOUS_NAME", column, hint, UnknownName)

    def _unknown(self, column: exp.Column, parts: tuple[str, ...]) -> SkimqlError:
        owners = [r for r in self.relations if r.answers_to(parts[:1])] if len(parts) > 1 else []
        if len(parts) > 1 and not owners:
            known = [r.shown for r in self.relations]
            typed = {r.shown.lower(): r.typed for r in self.relations}
            near = get_close_matches(parts[0].lower(), list(typed), 1)
            hint = (
                f"{typed[near[0]]}.{typed_name(parts[1])}"
                if near
                else f"one of the tables in FROM: {', '.join(known)}"
            )
            message = f"there is no table or alias {parts[0]!r} in FROM"
            return self.fault(message, "SKIMQL_UNKNOWN_TABLE", column, hint, UnknownName)
        name = parts[1] if owners else parts[0]
        names = [o.name for r in owners or self.relations for o in r.outputs]
        where = f" in {owners[0].shown}" if owners else ""
        message = f"there is no column {name!r}{where}"
        return self.fault(message, "SKIMQL_UNKNOWN_COLUMN", column, near_names(name, names), UnknownName)


def unknown_table(name: str, span: Span, scope: Scope) -> SkimqlError:
    """No such table; the hint lists near names."""
    known = {k.lower(): k for k in [*scope.named, *scope.schema]}
    near = [known[n] for n in get_close_matches(name.lower(), list(known), 3)] or sorted(known.values())
    hint = ", ".join(".".join(map(typed_name, k.split("."))) for k in near[:10]) or "register one first"
    return scope.fault(f"there is no table {name!r}", "SKIMQL_UNKNOWN_TABLE", span, hint, UnknownName)


def walk_outside_subqueries(node: exp.Expr) -> Iterator[exp.Expr]:
    """Every node of an expression; of a subquery only its root."""
    stack = [node]
    while stack:
        inner = stack.pop()
        yield inner
        if not isinstance(inner, exp.Query):
            stack.extend(reversed(list(inner.iter_expressions())))


def columns_of(node: exp.Expr) -> Iterator[exp.Column]:
    """The column references of an expression outside its subqueries.

    A unit such as DAY is not one, though sqlglot reads it so.
    """
    for inner in walk_outside_subqueries(node):
        if isinstance(inner, exp.Column) and inner.arg_key != "unit" and not isinstance(inner.this, exp.Star):
            yield inner


def near_names(name: str, known: list[str]) -> str:
    """The names most like `name`, or the first few if none is like it."""
    spelled = {k.lower(): typed_name(k) for k in known}
    near = [spelled[n] for n in get_close_matches(name.lower(), list(spelled), 3)]
    if near:
        return ", ".join(near)
    more = ", ..." if len(spelled) > MOST_TOLD else ""
    return ", ".join(list(spelled.values())[:MOST_TOLD]) + more
