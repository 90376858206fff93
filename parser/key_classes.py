"""The join classes of a query over which it may decompose, and those over which it does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, product

from ..errors import SkimqlError
from .block_reader import BlockReader, changing_call
from .blocks import (
    Block,
    Body,
    Common,
    Equality,
    Relation,
    SetOf,
    blocks_in,
    bodies_in,
    outputs_of,
    steps_in,
    tables_in,
)
from .decomposition import Decomposer
from .fragment import Ref
from .keys import Decomposition, Undecomposed, kind_of
from .scope import EXACT, Scope

# A column of a table where it stands: the place of its name, and the column's name in small letters.
Place = tuple[int, str]
Seeds = Mapping[int, str]
# The columns of a table that its tuples are in the order of.
Ordered = Callable[[str], Sequence[str]]

CODE = "SKIMQL_NOT_DECOMPOSED"

# A single table's columns that are tried where no equality names a class.
MOST_COLUMNS = 64

# So many classes are made for each UNION ALL of rows that no equality joins.
MOST_UNITED = 8


@dataclass(frozen=True)
class Decomposed:
    """A query over the classes that it decomposes over.

    Attributes
    ----------
    top : Block
    reader : BlockReader
    ways : tuple of Decomposition
        Those of most filtered tables first.
    """

    top: Block
    reader: BlockReader
    ways: tuple[Decomposition, ...]


@dataclass(frozen=True)
class _Candidates:
    """Columns of classes that are tried.

    Attributes
    ----------
    classes : list of mapping
        Those that equalities make, those of most tables first.
    ordered, others : list of mapping
        Single columns that a table is in the order of, and all.
    """

    classes: list[Seeds]
    ordered: list[Seeds]
    others: list[Seeds]


def in_no_order(_: str) -> tuple[str, ...]:
    """Of no table it is known what it is in the order of."""
    return ()


def decomposed(outside: Scope, ordered: Ordered = in_no_order) -> Decomposed:
    """The classes over which the statement of a scope decomposes.

    Those that equalities make, and single columns that a table is in the order of, as files tell what a key of these
    adds at most; other single columns only where there is none.

    Raises
    ------
    UnsupportedQuery
        ``SKIMQL_NOT_DECOMPOSED`` where there is none: the reason is that of the class of most tables.
    UnknownName
        For a table that is not there.
    """
    changing = changing_call(outside)
    if changing is not None:
        name, place = changing
        message = f"{name}() is different at every call and cannot be estimated"
        raise outside.fault(message, "SKIMQL_UNSUPPORTED_FUNCTION", place, EXACT)
    top = BlockReader(outside).read()
    if not isinstance(top, Block):
        message = "a set operation cannot be estimated; put it into FROM, and aggregate over it"
        raise outside.fault(message, "SKIMQL_UNSUPPORTED_STATEMENT", outside.source.tree, EXACT)
    tried: list[tuple[Seeds, Undecomposed]] = []
    ways: list[tuple[BlockReader, Block, Decomposition]] = []

    def look_at(seeds: Seeds) -> None:
        # Columns may be put into what was read: each class has it to itself.
        reader = BlockReader(outside)
        own = reader.read()
        assert isinstance(own, Block), "as before"
        try:
            maker = Decomposer(reader.types, dict(seeds), unread=reader.unread, natural=reader.natural)
            ways.append((reader, own, maker.decompose(own)))
        except Undecomposed as fault:
            tried.append((seeds, fault))

    candidates = _candidates(top, ordered)
    for seeds in candidates.classes:
        look_at(seeds)
    by_groups = any(fault.by_groups for _, fault in tried)
    known = {(role.place.start, role.column.lower()) for _, _, way in ways for role in way.roles}
    for seeds in candidates.ordered:
        if not seeds.items() <= known:
            look_at(seeds)
    for seeds in candidates.others:
        if ways or by_groups:
            break
        look_at(seeds)
        by_groups = bool(tried) and tried[-1][1].by_groups
    if not ways:
        raise _refusal(outside, top, tried)
    reader, own, _ = ways[0]
    found = sorted(dict.fromkeys(w for _, _, w in ways), key=lambda w: -len(w.roles))
    return Decomposed(own, reader, tuple(found))


def _refusal(outside: Scope, top: Block, tried: list[tuple[Seeds, Undecomposed]]) -> SkimqlError:
    """Why no class will do: the reason of the one with most tables."""
    if not tried:
        for why, place in (r for block in blocks_in(top) for r in block.refused):
            return outside.fault(why, CODE, place, EXACT)
        message = "no table has a column by whose values the query could be sampled"
        return outside.fault(message, CODE, outside.source.tree, EXACT)
    # That a class comes to nothing elsewhere alone says more than that another column is none.
    seeds, fault = next((t for t in tried if t[1].elsewhere), tried[0])
    columns = " and ".join(dict.fromkeys(seeds.values()))
    message = f"not the sum over the keys {columns} of what each adds: {fault.reason}"
    place = fault.place if fault.place.end else outside.span_of(outside.source.tree)
    return outside.fault(message, CODE, place, EXACT)


@dataclass
class _Union:
    """Union-find over columns."""

    above: dict[Place, Place] = field(default_factory=dict)

    def root(self, place: Place) -> Place:
        while (above := self.above.setdefault(place, place)) != place:
            place = above
        return place

    def link(self, one: Place | None, other: Place | None) -> None:
        if one is not None and other is not None:
            self.above[self.root(one)] = self.root(other)


def _candidates(top: Block, ordered: Ordered) -> _Candidates:
    blocks = list(dict.fromkeys(blocks_in(top)))
    origins: dict[Ref, Place] = {}
    known: dict[Place, str | None] = {}
    union = _Union()
    relations = [r for b in reversed(blocks) for r in b.relations]
    for relation in (r for r in relations if r.body is None and r.place is not None):
        assert relation.place is not None, "a table has one"
        for position, kind in enumerate(relation.kinds[: len(relation.names)]):
            origin = relation.place.start, relation.names[position].lower()
            origins[relation.ref(position)] = origin
            known[origin] = kind_of(kind)
            union.root(origin)
    # What a query offers is known once what it reads is.
    for _ in blocks:
        for relation in (r for r in relations if r.body is not None):
            _take(relation, origins, union)
    for block in blocks:
        steps = list(steps_in(block.source)) if block.source is not None else []
        for made, one, other in (m for s in steps for m in s.merged):
            union.link(origins.get(one), origins.get(other))
            origins.setdefault(made, origins.get(one) or origins.get(other) or (-1, ""))
    for block in blocks:
        steps = list(steps_in(block.source)) if block.source is not None else []
        equal: list[Equality] = [*block.equal, *(e for s in steps for e in s.equal)]
        for equality in equal:
            union.link(origins.get(equality.left), origins.get(equality.right))
        for nested in [*block.inner, *(n for s in steps for n in s.inner)]:
            if nested.tested is not None:
                union.link(origins.get(nested.tested), _origin(nested.body, 0, origins, union))
    singles = [p for p, kind in known.items() if kind is not None]
    order = {r.place.start: n for n, r in enumerate(relations) if r.place is not None}
    singles.sort(key=lambda p: order.get(p[0], 0))
    in_order = {
        (r.place.start, column.lower())
        for r in relations
        if r.body is None and r.place is not None
        for column in ordered(r.table)
    }
    return _Candidates(
        list(_classes(union, known, _united(top))),
        [{start: column} for start, column in singles if (start, column) in in_order],
        [{start: column} for start, column in singles[:MOST_COLUMNS]],
    )


def _united(top: Block) -> list[list[frozenset[int]]]:
    """The places of the tables on each side of every UNION ALL, whose rows need have nothing in common but a key."""
    found = []
    for body in reversed(list(bodies_in(top))):
        if isinstance(body, SetOf) and body.operator == "union all":
            sides = [tables_in(s) for s in (body.left, body.right)]
            found.append([frozenset(r.place.start for r in s if r.place is not None) for s in sides])
    return found


def _classes(
    union: _Union,
    known: Mapping[Place, str | None],
    united: Sequence[Sequence[frozenset[int]]],
) -> Iterator[Seeds]:
    """Columns of the classes that equalities make, those of most tables first."""
    groups: dict[Place, dict[int, str]] = {}
    for place, kind in known.items():
        if kind is not None:
            groups.setdefault(union.root(place), {}).setdefault(place[0], place[1])
    several = [g for g in groups.values() if len(g) > 1]
    # Of those that nothing equates one of each side of a UNION ALL makes a class with one of the other.
    for sides in united:
        own = [[g for g in several if g.keys() <= side] for side in sides]
        alone = [[g for g in groups.values() if len(g) == 1 and g.keys() <= side] for side in sides]
        pairs = product(*(o or a for o, a in zip(own, alone, strict=True)))
        alike = ({**one, **other} for one, other in pairs)
        several += islice((g for g in alike if len({known[p] for p in g.items()}) == 1), MOST_UNITED)
    yield from sorted(several, key=len, reverse=True)


def _take(relation: Relation, origins: dict[Ref, Place], union: _Union) -> None:
    assert relation.body is not None, "a query"
    for position in range(len(relation.names)):
        origin = _origin(relation.body, position, origins, union)
        if origin is not None:
            origins.setdefault(relation.ref(position), origin)


def _origin(body: Body, position: int, origins: Mapping[Ref, Place], union: _Union) -> Place | None:
    """The table's column that a column of a query is."""
    match body:
        case Common():
            return _origin(body.body, position, origins, union)
        case SetOf():
            left, right = (_origin(s, position, origins, union) for s in (body.left, body.right))
            union.link(left, right)
            return left or right
        case Block():
            offered = outputs_of(body)
            refs = offered[position][1] if position < len(offered) else ()
            found = [origins.get(r) for r in refs]
            for one in found[1:]:
                union.link(found[0], one)
            return next((f for f in found if f is not None), None)
