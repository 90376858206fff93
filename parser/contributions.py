"""How much a key can add to the result of a query, whatever is in the tables: how many rows, and of which values.

A key's rows are counted by fan-outs: the most tuples of a table that agree on some of its columns. Relations are taken
one after the other, each by the columns that equalities tie to those before it; subqueries in expressions, SEMI and
ANTI JOIN make no rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from .blocks import (
    FULL,
    INNER,
    LEFT,
    RIGHT,
    Block,
    Body,
    Common,
    Equality,
    Joined,
    Relation,
    SetOf,
    blocks_in,
    relations_in,
)
from .bound import GENERATORS
from .fragment import Fragment, Ref
from .keys import kind_of
from .scope import walk_outside_subqueries

# The most tuples of a table that agree on some of its columns, all of them without columns; the last is whether the
# first of these columns is that of the class, and so of a key that may be left out of a sample.
FanOut = Callable[[str, tuple[str, ...], bool], float]

# Names of WITH that read others twice, over and over, are many relations.
MOST_RELATIONS = 1000


@dataclass(frozen=True, slots=True)
class Summed:
    """What is summed, over names that stand for columns.

    Attributes
    ----------
    text : str
    columns : tuple of (str, str, str)
        Each name with the table and the column that it stands for.
    """

    text: str
    columns: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True, eq=False)
class Contributions:
    """What bounds how much a key adds.

    Attributes
    ----------
    top : Block
    types : mapping of Ref to str
    sums : mapping of str to Summed
        By the measure; those over what is computed of several rows are missing.
    """

    top: Block
    types: Mapping[Ref, str]
    sums: Mapping[str, Summed]

    def rows(self, keys: Mapping[int, str], fan_out: FanOut) -> float:
        """No more rows than that are there for one key; infinite where nothing bounds them.

        Parameters
        ----------
        keys : mapping of int to str
            By the place of a table in the text its column of the class.
        fan_out : callable
        """
        counter = _Counter(self.types, keys, fan_out)
        return counter.source(self.top, frozenset())


def sums_of(
    top: Block, measures: Mapping[str, Fragment], meant: Callable[[Fragment], Fragment | None]
) -> dict[str, Summed]:
    """What measures sum, over the columns of tables, where `meant` tells."""
    tables = {r.number: r.table for b in blocks_in(top) for r in b.relations if r.body is None and r.place}
    found = {}
    for measure, fragment in measures.items():
        known = meant(fragment)
        if known is None or not all(v in tables for v in known.vertices):
            continue
        refs = list(dict.fromkeys(p for p in known.pieces if isinstance(p, Ref)))
        names = {ref: f"c{n}" for n, ref in enumerate(refs)}
        text = "".join(names[p] if isinstance(p, Ref) else p for p in known.pieces)
        found[measure] = Summed(text, tuple((names[r], tables[r.vertex], r.column) for r in refs))
    return found


@dataclass(frozen=True, slots=True)
class _Unit:
    """What is joined at one level: relations of which each row has one, or none where an outer join leaves them out.

    Attributes
    ----------
    part : Relation or Joined
    needs : frozenset of int, or None
        The relations that are to be there before it, as it is joined to them by an outer join; None of an inner one.
    equal : tuple of Equality
        What its own join says of it.
    """

    part: Relation | Joined
    needs: frozenset[int] | None = None
    equal: tuple[Equality, ...] = ()


@dataclass
class _Counter:
    types: Mapping[Ref, str]
    keys: Mapping[int, str]
    fan_out: FanOut
    visited: int = field(default=0)

    def source(self, block: Block, fixed: frozenset[Ref]) -> float:
        """The rows that FROM and WHERE make of what has one value in each of some columns."""
        if block.source is None:
            return 1.0
        inside = list(relations_in(block.source))
        if block.refused or len(inside) != len(block.relations):
            # What is sampled or turned; functions of LATERAL VIEW are in no FROM.
            return math.inf
        return self._joined(block.source, _Known(fixed, frozenset(), self._same(block.equal)))

    def _rows(self, block: Block, fixed: frozenset[Ref]) -> float:
        """The rows of a SELECT."""
        if block.node is None or any(map(_makes_rows, block.node.expressions)) or block.several_sets:
            return math.inf
        rows = self.source(block, fixed)
        if block.grouped is None:
            return rows
        core = [] if block.source is None else _core(block.source)
        keys = {r.ref(p) for r in core for p in self._key_positions(r)}
        known = _Known(fixed | keys, frozenset(), self._same(block.equal))
        # Of the COALESCE of several columns all are to be known.
        return 1.0 if all(refs and all(map(known.has, refs)) for refs in block.grouped) else rows

    def _body(self, body: Body, positions: Sequence[int]) -> float:
        """The rows of a query in FROM of which some columns have one value each."""
        match body:
            case Common():
                return self._body(body.body, positions)
            case SetOf():
                left = self._body(body.left, positions)
                if body.operator in ("intersect", "except"):
                    return left
                return left + self._body(body.right, positions)
            case Block():
                refs = (body.outputs[p][1] for p in positions if p < len(body.outputs))
                return self._rows(body, frozenset(r[0] for r in refs if len(r) == 1))

    def _joined(self, joined: Relation | Joined, known: _Known) -> float:
        if isinstance(joined, Relation):
            return self._relation(joined, known)
        if any(s.kind == FULL for s in joined.steps):
            return math.inf
        units, inner = _units(joined)
        known = known.where(self._same(inner))
        rows, left = 1.0, units
        while left:
            ready = [u for u in left if u.needs is None or u.needs <= known.there]
            found = [self._joined(u.part, known.where(self._same(u.equal))) for u in ready]
            least = min(range(len(found)), key=found.__getitem__)
            rows *= max(found[least], 1.0)
            known = known.beside(r.number for r in relations_in(ready[least].part))
            left = [u for u in left if u is not ready[least]]
        return rows

    def _relation(self, relation: Relation, known: _Known) -> float:
        self.visited += 1
        if self.visited > MOST_RELATIONS:
            return math.inf
        positions = [p for p in range(len(relation.names)) if known.has(relation.ref(p))]
        if relation.body is not None:
            return self._body(relation.body, positions)
        if relation.place is None:
            return math.inf
        own = self._key_positions(relation)
        columns = [
            relation.columns[p] for p in dict.fromkeys((*own, *positions)) if p < len(relation.columns)
        ]
        return self.fan_out(relation.table, tuple(columns), bool(own))

    def _key_positions(self, relation: Relation) -> list[int]:
        """Where the column of the class is among those of a relation."""
        column = None if relation.place is None else self.keys.get(relation.place.start)
        if column is None:
            return []
        found = [p for p, name in enumerate(relation.columns) if name.lower() == column.lower()]
        return [p for p in found if p < len(relation.names)]

    def _same(self, equal: Iterable[Equality]) -> tuple[Equality, ...]:
        """Those whose sides are equal only if they are the same value: a text may be equal to a number in many ways."""
        found = []
        for equality in equal:
            kinds = [kind_of(self.types.get(r, "")) for r in (equality.left, equality.right)]
            if kinds[0] is not None and kinds[0] == kinds[1] and not equality.null_safe:
                found.append(equality)
        return tuple(found)


@dataclass(frozen=True)
class _Known:
    """What is known of a row: the columns of one value, the relations of which it has a tuple, and equalities."""

    fixed: frozenset[Ref]
    there: frozenset[int]
    equal: tuple[Equality, ...]

    def where(self, equal: tuple[Equality, ...]) -> _Known:
        """With more equalities."""
        return replace(self, equal=(*self.equal, *equal))

    def beside(self, numbers: Iterable[int]) -> _Known:
        """With more relations."""
        return replace(self, there=self.there.union(numbers))

    def has(self, ref: Ref) -> bool:
        """Whether a column has the value of one that is known."""
        reached, ends = {ref}, [ref]
        while ends:
            here = ends.pop()
            if here in self.fixed or here.vertex in self.there:
                return True
            for e in self.equal:
                other = e.right if e.left == here else e.left if e.right == here else None
                if other is not None and other not in reached:
                    reached.add(other)
                    ends.append(other)
        return False


def _units(joined: Joined) -> tuple[list[_Unit], list[Equality]]:
    """What a FROM without FULL JOIN joins, and the equalities that hold in all of its rows."""
    right = max((n for n, s in enumerate(joined.steps) if s.kind == RIGHT), default=None)
    units, inner, steps = [_Unit(joined.first)], [], joined.steps
    if right is not None:
        kept, before = joined.steps[right], Joined(joined.first, joined.steps[:right])
        needs = frozenset(r.number for r in relations_in(kept.right))
        units = [_Unit(kept.right), _Unit(before, needs, tuple(kept.equal))]
        steps = joined.steps[right + 1 :]
    for step in steps:
        if step.kind == INNER:
            units.append(_Unit(step.right))
            inner += step.equal
        elif step.kind == LEFT:
            needs = frozenset(r.number for u in units for r in relations_in(u.part))
            units.append(_Unit(step.right, needs, tuple(step.equal)))
    return units, inner


def _core(joined: Relation | Joined) -> list[Relation]:
    """The relations of which each row has a tuple."""
    if isinstance(joined, Relation):
        return [joined]
    if any(s.kind == FULL for s in joined.steps):
        return []
    units, _ = _units(joined)
    return [r for u in units if u.needs is None for r in _core(u.part)]


def _makes_rows(item: exp.Expr) -> bool:
    """Whether a column of a SELECT list makes several rows of one."""
    for part in walk_outside_subqueries(item):
        name = (
            part.name
            if isinstance(part, exp.Anonymous)
            else part.sql_name()
            if isinstance(part, exp.Func)
            else ""
        )
        if name.lower() in GENERATORS or isinstance(part, exp.Explode | exp.UDTF):
            return True
    return False
