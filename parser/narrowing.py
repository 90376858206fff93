"""By which conditions on single tables the rows of a result are fewer: what a look at some tuples can tell of.

Nothing is decided by it but how many keys are expected to add to a result: what is not understood is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from ..errors import SkimqlError
from .aggregates import is_aggregate
from .blocks import (
    FULL,
    INNER,
    RIGHT,
    Block,
    Body,
    Common,
    Equality,
    Joined,
    Relation,
    SetOf,
    Step,
    blocks_in,
)
from .bound import fragment_of
from .fragment import Fragment, Ref
from .scope import Scope, walk_outside_subqueries

# Of what is compared with the value of a subquery a tenth may be left as well as a half: as by so many conditions.
COMPUTED = 3


@dataclass(frozen=True, slots=True)
class Narrowed:
    """A table, where it stands, and what is known of its tuples that rows of the result are made of.

    Attributes
    ----------
    place : int
        Of its name in the text.
    table : str
    condition : str or None
        What they fulfil, as SQL over its columns.
    groups : tuple of str
        What the result is grouped by of its columns.
    counts : bool
        Whether a row is there for a tuple of it only: not of the side that an outer join may leave out, and of what
        subqueries in expressions read.
    columns : tuple of (str, str)
        Those of its columns that the statement names, and their types.
    added : tuple of (str or None)
        Of each aggregate to which some rows add nothing what tuples of those fulfil that do.
    """

    place: int
    table: str
    condition: str | None
    groups: tuple[str, ...] = ()
    counts: bool = True
    columns: tuple[tuple[str, str], ...] = ()
    added: tuple[str | None, ...] = ()


@dataclass(frozen=True, slots=True)
class Narrowing:
    """What narrows a result.

    Attributes
    ----------
    tables : tuple of Narrowed
        None where nothing is known: of set operations.
    unread : int
        The conditions that no table tells of by itself; one that compares with the value of a subquery is as several.
    unread_groups : int
        What is grouped by that is of no single table.
    computed_groups : int
        What is grouped by that is computed of several rows: counts of counts, of which nothing is known.
    """

    tables: tuple[Narrowed, ...] = ()
    unread: int = 0
    unread_groups: int = 0
    computed_groups: int = 0


def narrowing(
    top: Block,
    scopes: Mapping[int, Scope],
    groups: Sequence[Fragment],
    names: Collection[str],
    adding: Sequence[Sequence[exp.Expr]] = (),
) -> Narrowing:
    """What narrows the result of a query.

    Parameters
    ----------
    top : Block
    scopes : mapping
        Of each SELECT the names in its FROM.
    groups : sequence of Fragment
        What it is grouped by.
    names : collection of str
        The names in the statement, in lower case.
    adding : sequence of sequence of exp.Expr
        Of each aggregate that has some, the conditions on the rows that add to it.
    """
    reader = _Reader(scopes)
    reader.block(top)
    own: dict[int, list[str]] = {}
    unread_groups = computed_groups = 0
    for group in groups:
        meant = reader.meant(group)
        if meant is None:
            computed_groups += 1
        elif len(meant.vertices) != 1:
            unread_groups += 1
        else:
            (number,) = meant.vertices
            own.setdefault(number, []).append(meant.sql)
    conditions = dict(reader.conditions)
    kept = [reader.told(own, scopes[id(top)]) for own in adding]
    for block in blocks_in(top):
        if id(block) not in reader.read and id(block) in scopes:
            # Of a subquery in an expression: it says how many of its tuples are joined, not how many rows there are.
            nested = _Reader(scopes)
            nested.block(block)
            conditions |= nested.conditions
    tables = []
    for number, relation in {r.number: r for b in blocks_in(top) for r in b.relations}.items():
        if relation.body is not None or relation.place is None:
            continue
        condition = " AND ".join(f"({c})" for c in conditions.get(number, ())) or None
        known = zip(relation.columns, relation.kinds, strict=True)
        columns = tuple((name, kind) for name, kind in known if name.lower() in names)
        groups_of, counts = tuple(own.get(number, ())), number in reader.counted
        place = relation.place.start
        added = tuple(k.get(number) for k in kept)
        tables.append(Narrowed(place, relation.table, condition, groups_of, counts, columns, added))
    if not any(t.counts for t in tables):
        return Narrowing()
    return Narrowing(tuple(tables), reader.unread, unread_groups, computed_groups)


def meaning(top: Block, scopes: Mapping[int, Scope]) -> Callable[[Fragment], Fragment | None]:
    """What gives an expression in a query over the columns of tables; None where it is computed of several rows."""
    reader = _Reader(scopes)
    reader.block(top)
    return reader.meant


@dataclass
class _Reader:
    """Reads the SELECTs whose rows make those of the result."""

    scopes: Mapping[int, Scope]
    relations: dict[int, Relation] = field(default_factory=dict)
    counted: set[int] = field(default_factory=set)
    conditions: dict[int, list[str]] = field(default_factory=dict)
    unread: int = 0
    read: set[int] = field(default_factory=set)
    _joined: dict[int, int] = field(default_factory=dict)

    def block(self, block: Block) -> None:
        """FROM and WHERE of a SELECT."""
        self.read.add(id(block))
        self.relations |= {r.number: r for r in block.relations}
        if block.source is not None:
            self._source(block.source, block)
        where = None if block.node is None else block.node.args.get("where")
        if where is not None:
            self._condition(where.this, self.scopes[id(block)])
            self._equal(block.equal)

    def _source(self, source: Relation | Joined, block: Block) -> None:
        if isinstance(source, Relation):
            self.counted.add(source.number)
            if source.body is not None:
                self._body(source.body)
            return
        # What a RIGHT JOIN leaves out of the side before it does not make the result smaller.
        right = [n for n, s in enumerate(source.steps) if s.kind == RIGHT]
        steps = source.steps[right[-1] :] if right else source.steps
        if right:
            self._step(steps[0], block)
            steps = steps[1:]
        else:
            self._source(source.first, block)
        for step in steps:
            if step.kind in (INNER, FULL):
                self._step(step, block)
            elif step.kind not in ("left",):
                self.unread += 1

    def _step(self, step: Step, block: Block) -> None:
        self._source(step.right, block)
        if step.kind == INNER:
            self._equal(step.equal)
            if step.condition is not None:
                self._condition(step.condition, self.scopes[id(block)])

    def _body(self, body: Body) -> None:
        match body:
            case Common():
                self._body(body.body)
            case Block():
                self.block(body)
            case SetOf() if body.operator in ("intersect", "except"):
                self.unread += 1
                self._body(body.left)
            case SetOf():
                self.unread += 1

    # Conditions.

    def _equal(self, equalities: Sequence[Equality]) -> None:
        """Those that close a cycle are conditions of which nothing is known."""
        for equality in equalities:
            one, other = self._root(equality.left.vertex), self._root(equality.right.vertex)
            self.unread += one == other
            self._joined[one] = other

    def _root(self, number: int) -> int:
        while (above := self._joined.get(number, number)) != number:
            number = above
        return number

    def _condition(self, node: exp.Expr, scope: Scope) -> None:
        node = node.unnest()
        if isinstance(node, exp.And):
            self._condition(node.left, scope)
            self._condition(node.right, scope)
            return
        alone, whole = self._alone(node, scope)
        for number, text in alone.items():
            self.conditions.setdefault(number, []).append(text)
        is_join = isinstance(node, exp.EQ | exp.NullSafeEQ) and all(
            isinstance(side.unnest(), exp.Column) for side in (node.left, node.right)
        )
        if not whole and not is_join:
            computed = isinstance(node, exp.Binary) and any(
                isinstance(side.unnest(), exp.Subquery) or next(side.find_all(exp.Subquery), None) is not None
                for side in (node.left, node.right)
            )
            self.unread += COMPUTED if computed else 1

    def told(self, nodes: Sequence[exp.Expr], scope: Scope) -> dict[int, str]:
        """What conditions that hold together say of single tables."""
        found: dict[int, list[str]] = {}
        for number, text in (pair for node in nodes for pair in self._alone(node, scope)[0].items()):
            found.setdefault(number, []).append(f"({text})")
        return {number: " AND ".join(texts) for number, texts in found.items()}

    def _alone(self, node: exp.Expr, scope: Scope) -> tuple[dict[int, str], bool]:
        """What a condition says of single tables, and whether that is all that it says."""
        node = node.unnest()
        if isinstance(node, exp.And):
            (left, one), (right, other) = self._alone(node.left, scope), self._alone(node.right, scope)
            both = {n: f"({left[n]}) AND ({right[n]})" for n in left.keys() & right.keys()}
            return {**left, **right, **both}, one and other
        if isinstance(node, exp.Or):
            (left, one), (right, other) = self._alone(node.left, scope), self._alone(node.right, scope)
            both = {n: f"({left[n]}) OR ({right[n]})" for n in left.keys() & right.keys()}
            return both, one and other and left.keys() == right.keys() and len(left) == 1
        try:
            meant = self.meant(fragment_of(node, scope))
        except SkimqlError:
            return {}, False
        if meant is None or len(meant.vertices) != 1 or any(map(_is_query, walk_outside_subqueries(node))):
            return {}, False
        (number,) = meant.vertices
        return ({number: meant.sql}, True) if number in self.counted else ({}, False)

    def meant(self, fragment: Fragment) -> Fragment | None:
        """An expression over the columns of tables; None where those of queries are computed of several rows."""
        pieces: list[str | Ref] = []
        for piece in fragment.pieces:
            column = Fragment((piece,), simple=True) if isinstance(piece, str) else self._column(piece)
            if column is None:
                return None
            pieces += (column if isinstance(piece, str) else column.wrapped()).pieces
        return Fragment(tuple(pieces), fragment.simple)

    def _column(self, ref: Ref) -> Fragment | None:
        relation = self.relations.get(ref.vertex)
        if relation is None or ref.column not in relation.names:
            return None
        position = relation.names.index(ref.column)
        if relation.body is not None:
            return self._output(relation.body, position)
        if position >= len(relation.columns):
            return None
        return Fragment((Ref(ref.vertex, relation.columns[position]),), simple=True)

    def _output(self, body: Body, position: int) -> Fragment | None:
        if isinstance(body, Common):
            return self._output(body.body, position)
        if not isinstance(body, Block) or body.node is None or position >= len(body.outputs):
            return None
        _, refs = body.outputs[position]
        if len(refs) == 1:
            return self._column(refs[0])
        items = body.node.expressions
        if any(i.find(exp.Star) and not i.find(exp.Count) for i in items) or position >= len(items):
            return None
        item = items[position].this if isinstance(items[position], exp.Alias) else items[position]
        if any(is_aggregate(p) or isinstance(p, exp.Window) for p in walk_outside_subqueries(item)):
            return None
        try:
            return self.meant(fragment_of(item, self.scopes[id(body)]))
        except SkimqlError:
            return None


def _is_query(node: exp.Expr) -> bool:
    return isinstance(node, exp.Query)
