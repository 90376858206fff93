"""A SELECT with all that is nested in it, as blocks: relations, equalities, subqueries, groups and what they offer.

What `decomposition` decides on. Every relation has a number, and its columns are `Ref` values of it, unique in the
whole statement: a column of a query outside is known by its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from sqlglot import exp

from .fragment import Ref
from .join_graph import Span

NOWHERE = Span(0, 0)

# How the rows of two sides are joined.
INNER, LEFT, RIGHT, FULL, SEMI, ANTI = "inner", "left", "right", "full", "semi", "anti"


@dataclass(frozen=True, slots=True)
class Equality:
    """A conjunct ``left = right`` of two columns, or ``left <=> right``."""

    left: Ref
    right: Ref
    null_safe: bool = False


@dataclass(eq=False, slots=True)
class Relation:
    """One item of FROM.

    Attributes
    ----------
    number : int
        That of its columns.
    names : list of str
        Its columns as they are called outside.
    where : str
        What may stand before a column's name; empty where it has no name.
    place : Span or None
        Of the table's name in the text; None of a query.
    table : str
    columns : tuple of str
        The columns of a table as it calls them itself.
    kinds : tuple of str
        Their types.
    alias : str
        The name under which columns are known if the table's name is replaced.
    body : Body or None
        The query that it is.
    opaque : bool
        Whether its columns are not known: a table function.
    columns_end : int or None
        Where the names of ``AS t(a, b)`` end in the text.
    """

    number: int
    names: list[str]
    where: str = ""
    place: Span | None = None
    table: str = ""
    columns: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    alias: str | None = None
    body: Body | None = None
    opaque: bool = False
    columns_end: int | None = None

    def ref(self, position: int) -> Ref:
        """A column of it."""
        return Ref(self.number, self.names[position])


@dataclass(eq=False, slots=True)
class Joined:
    """Relations joined one after the other, `first` being the first of them.

    Attributes
    ----------
    first : Relation or Joined
    steps : list of Step
    """

    first: Relation | Joined
    steps: list[Step] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class Step:
    """A join with what comes before it.

    Attributes
    ----------
    kind : str
        A name of this module.
    right : Relation or Joined
    equal : list of Equality
        What its condition says of columns.
    inner : list of Nested
        The subqueries in its condition.
    merged : list of (Ref, Ref, Ref)
        The columns of ``USING`` after a FULL JOIN, with the two that they are made of.
    place : Span
    condition : exp.Expr or None
        What stands behind ON.
    """

    kind: str
    right: Relation | Joined
    equal: list[Equality] = field(default_factory=list)
    inner: list[Nested] = field(default_factory=list)
    merged: list[tuple[Ref, Ref, Ref]] = field(default_factory=list)
    place: Span = NOWHERE
    condition: exp.Expr | None = None


@dataclass(eq=False, slots=True)
class Nested:
    """A subquery in an expression.

    Attributes
    ----------
    body : Body
    tested : Ref or None
        The column that ``IN`` looks for; None of EXISTS and scalar subqueries.
    positive : bool
        Whether NULL in the place of false changes nothing: ``IN`` among the conditions of WHERE, not behind NOT.
    place : Span
    """

    body: Body
    tested: Ref | None
    positive: bool
    place: Span


@dataclass(eq=False, slots=True)
class Block:
    """One SELECT.

    Attributes
    ----------
    source : Joined or None
        FROM; None without.
    equal : list of Equality
        What WHERE says of columns.
    inner : list of Nested
        The subqueries of WHERE, and those behind it.
    grouped : list of tuple of Ref, or None
        The columns, or the COALESCE of some, that are grouped by; None where nothing is grouped.
    group_place : Span
    several_sets : bool
        Whether it groups by several sets of columns, of which `grouped` has all.
    distinct : Span or None
    windows : list of (Span, list of tuple of Ref)
        Each with what it partitions by, as `grouped`.
    refused : list of (str, Span)
        What is in it that looks at all rows, with the place.
    outputs : list of (str, tuple of Ref)
        Each column with what it is a copy of, or the COALESCE of; without anything for a computed one.
    list_end : int
        Where the SELECT list ends in the text.
    limited : Span or None
        LIMIT or OFFSET.
    """

    source: Joined | None
    equal: list[Equality] = field(default_factory=list)
    inner: list[Nested] = field(default_factory=list)
    grouped: list[tuple[Ref, ...]] | None = None
    group_place: Span = NOWHERE
    several_sets: bool = False
    distinct: Span | None = None
    windows: list[tuple[Span, list[tuple[Ref, ...]]]] = field(default_factory=list)
    refused: list[tuple[str, Span]] = field(default_factory=list)
    outputs: list[tuple[str, tuple[Ref, ...]]] = field(default_factory=list)
    list_end: int = 0
    limited: Span | None = None
    node: exp.Select | None = None
    relations: list[Relation] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class SetOf:
    """A set operation of two queries; `operator` is ``union all``, ``union``, ``intersect`` or ``except``."""

    operator: str
    left: Body
    right: Body
    place: Span
    limited: Span | None = None


@dataclass(eq=False, slots=True)
class Common:
    """What WITH calls by a name: its text is there once, wherever it is read."""

    name: str
    body: Body
    names: list[str]
    columns_end: int | None = None


Body = Block | SetOf | Common


def outputs_of(body: Body) -> list[tuple[str, tuple[Ref, ...]]]:
    """The columns of a query, by the names that it gives them; of a set operation those of its left side."""
    match body:
        case Block():
            return body.outputs
        case SetOf():
            return [(name, ()) for name, _ in outputs_of(body.left)]
        case Common():
            inner = outputs_of(body.body)
            return [(name, refs) for name, (_, refs) in zip(body.names, inner, strict=False)]


def relations_in(joined: Relation | Joined) -> Iterator[Relation]:
    """The relations of a FROM."""
    if isinstance(joined, Relation):
        yield joined
        return
    yield from relations_in(joined.first)
    for step in joined.steps:
        yield from relations_in(step.right)


def steps_in(joined: Relation | Joined) -> Iterator[Step]:
    """The joins of a FROM, those in parentheses before the one that they are part of."""
    if isinstance(joined, Joined):
        yield from steps_in(joined.first)
        for step in joined.steps:
            yield step
            yield from steps_in(step.right)


def inner_of(body: Body) -> Iterator[Body]:
    """What is directly in a query: in its FROM, in its expressions, or combined by it."""
    match body:
        case Common():
            yield body.body
        case SetOf():
            yield from (body.left, body.right)
        case Block():
            yield from (r.body for r in body.relations if r.body is not None)
            yield from (n.body for n in body.inner)
            if body.source is not None:
                yield from (n.body for s in steps_in(body.source) for n in s.inner)


def blocks_in(body: Body) -> Iterator[Block]:
    """All SELECTs of a query, itself among them."""
    if isinstance(body, Block):
        yield body
    for inner in inner_of(body):
        yield from blocks_in(inner)


def names_in(body: Body) -> Iterator[Common]:
    """What WITH calls by a name, wherever a query reads it."""
    if isinstance(body, Common):
        yield body
    for inner in inner_of(body):
        yield from names_in(inner)


def tables_in(body: Body) -> Iterator[Relation]:
    """The tables that a query reads, where each stands."""
    for block in blocks_in(body):
        yield from (r for r in block.relations if r.body is None)
