"""What the names in a FROM mean: relations, their columns, and look-up as Spark does it (ignoring case)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from difflib import get_close_matches

from sqlglot import exp

from ..errors import SkimqlError, UnknownName, UnsupportedQuery
from .fragment import Fragment, Ref, spaced
from .join_graph import Span
from .select import Source


@dataclass(frozen=True, slots=True)
class Output:
    """A column that a relation offers: its name, and the base column or SELECT item that it is."""

    name: str
    type: str | None
    bound: Ref | tuple[exp.Expr, Scope]


@dataclass(slots=True)
class Relation:
    """One item of FROM: its alias or the parts of its name, and its columns."""

    name: tuple[str, ...]
    outputs: tuple[Output, ...]
    span: Span

    @property
    def shown(self) -> str:
        """The name for messages."""
        return ".".join(self.name)

    def answers_to(self, qualifier: tuple[str, ...]) -> bool:
        """Whether ``qualifier.column`` may mean a column of this relation."""
        own = tuple(n.lower() for n in self.name)
        return len(qualifier) <= len(own) and own[-len(qualifier) :] == tuple(q.lower() for q in qualifier)


@dataclass(slots=True)
class Scope:
    """The relations of one SELECT in order, and the text it was read from.

    `merged` maps the lower-cased name of a USING or NATURAL column to the output that an unqualified use
    means.
    """

    source: Source
    shown: str
    relations: list[Relation] = field(default_factory=list)
    merged: dict[str, Output] = field(default_factory=dict)

    def fault(
        self,
        message: str,
        code: str,
        where: exp.Expr | Span,
        hint: str = "",
        kind: type[SkimqlError] = UnsupportedQuery,
    ) -> SkimqlError:
        """An error at a node or span of this scope's text."""
        span = self.source.span_of(where) if isinstance(where, exp.Expr) else where
        return kind(message, code, self.shown, (span.start, span.end), hint)

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
            If nothing answers to it (``SKIMQL_UNKNOWN_COLUMN``, ``SKIMQL_UNKNOWN_TABLE``) or several
            columns do (``SKIMQL_AMBIGUOUS_NAME``).
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
            raise self.fault(
                f"{name} is ambiguous: {owners[0]} has several columns of that name ({spellings})",
                "SKIMQL_AMBIGUOUS_NAME",
                column,
                "give the columns or tables different names",
                UnknownName,
            )
        raise self.fault(
            f"{name} is in {' and '.join(owners)}",
            "SKIMQL_AMBIGUOUS_NAME",
            column,
            f"write {owners[0]}.{name}",
            UnknownName,
        )

    def _unknown(self, column: exp.Column, parts: tuple[str, ...]) -> SkimqlError:
        owners = [r for r in self.relations if r.answers_to(parts[:1])] if len(parts) > 1 else []
        if len(parts) > 1 and not owners:
            known = [r.shown for r in self.relations]
            near = get_close_matches(parts[0].lower(), [k.lower() for k in known], 1)
            hint = f"{near[0]}.{parts[1]}" if near else f"one of the tables in FROM: {', '.join(known)}"
            message = f"there is no table or alias {parts[0]!r} in FROM"
            return self.fault(message, "SKIMQL_UNKNOWN_TABLE", column, hint, UnknownName)
        name = parts[1] if owners else parts[0]
        names = [o.name for r in owners or self.relations for o in r.outputs]
        where = f" in {owners[0].shown}" if owners else ""
        message = f"there is no column {name!r}{where}"
        return self.fault(message, "SKIMQL_UNKNOWN_COLUMN", column, near_names(name, names), UnknownName)

    def fragment(self, node: exp.Expr) -> Fragment:
        """The user's text of `node` with every column replaced by what it means.

        Raises
        ------
        UnsupportedQuery
            If the expression holds a subquery.
        """
        subquery = next(iter(node.find_all(exp.Query)), None)
        if subquery is not None:
            message = "a subquery inside an expression cannot be estimated"
            raise self.fault(message, "SKIMQL_SUBQUERY", subquery, "EXACT SELECT ...")
        first, last = self.source.token_range(node)
        replaced: dict[int, tuple[int, Fragment]] = {}
        for column in columns_of(node):
            output, used = self.resolve(column)
            start = self.source.index_at[column.parts[0].meta["start"]]
            end = self.source.index_at[column.parts[used - 1].meta["start"]]
            replaced[start] = (end, bound_fragment(output))
        pieces: list[str | Ref] = []
        skip_to = -1
        for index, text in spaced(self.source.tokens, self.source.sql, first, last):
            if index <= skip_to:
                continue
            if index in replaced:
                skip_to, meaning = replaced[index]
                pieces.append(" " if text.startswith(" ") else "")
                pieces.extend(meaning.wrapped().pieces)
            else:
                pieces.append(text)
        simple = isinstance(node, exp.Column | exp.Literal | exp.Paren | exp.Func | exp.Boolean | exp.Null)
        return Fragment(_merged(pieces), simple and not isinstance(node, exp.Connector | exp.Binary))


def bound_fragment(output: Output) -> Fragment:
    """What an output is, over base columns."""
    if isinstance(output.bound, Ref):
        return Fragment((output.bound,), simple=True)
    node, scope = output.bound
    return scope.fragment(node)


def _merged(pieces: list[str | Ref]) -> tuple[str | Ref, ...]:
    """Neighbouring texts joined, empty ones dropped: equal expressions get equal pieces."""
    result: list[str | Ref] = []
    for piece in pieces:
        if isinstance(piece, str) and result and isinstance(result[-1], str):
            result[-1] += piece
        elif piece != "":
            result.append(piece)
    return tuple(result)


def columns_of(node: exp.Expr) -> Iterator[exp.Column]:
    """The column references of an expression; a unit such as DAY is not one, though sqlglot reads it so."""
    for column in node.find_all(exp.Column):
        if column.arg_key != "unit" and not isinstance(column.this, exp.Star):
            yield column


def near_names(name: str, known: list[str], limit: int = 5) -> str:
    """The names most like `name`, or the first few if none is like it."""
    spelled = {k.lower(): k for k in known}
    near = [spelled[n] for n in get_close_matches(name.lower(), list(spelled), 3)]
    if near:
        return ", ".join(near)
    more = ", ..." if len(spelled) > limit else ""
    return ", ".join(list(spelled.values())[:limit]) + more
