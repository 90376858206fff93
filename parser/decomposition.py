"""Over which join classes a query decomposes: it is then the sum, over the keys of the class, of what each key adds.

Every relation is either whole, or has keys: each of its rows belongs to one value of a key, and filtering its tables to a
set of keys leaves just the rows whose key is in the set. That holds of a table by itself, and is kept by each operator or
refused by it: an inner join multiplies; an outer, semi or anti join decides on rows of one key where its condition equates
the keys of both sides; groups, DISTINCT and windows keep to a key where they have it among their columns; a subquery in an
expression sees one key where it is correlated on it. What breaks the rule is left whole, which is always right: its tables
are then read as they are. NULL is a value of a key like any other.

References
----------
.. [1] The union over all keys of the results of each is the result: the tests hold this on random queries and data.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from .blocks import (
    ANTI,
    FULL,
    INNER,
    LEFT,
    RIGHT,
    SEMI,
    Block,
    Body,
    Common,
    Equality,
    Joined,
    Nested,
    Relation,
    SetOf,
    Step,
    outputs_of,
)
from .fragment import Ref, quote_name
from .join_graph import Span
from .types import INTEGRAL_DIGITS

HIDDEN = "__skimql_key_"

# Types whose equal values are the same bytes, beside integers and decimals.
_PLAIN = frozenset(("string", "date", "timestamp", "timestamp_ntz", "binary", "boolean"))
_WORDS = {LEFT: "LEFT JOIN", RIGHT: "RIGHT JOIN", SEMI: "SEMI JOIN", ANTI: "ANTI JOIN"}


class Undecomposed(Exception):
    """Why a query, or a part of it, does not decompose over a class, and where."""

    def __init__(self, reason: str, place: Span, *, by_groups: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.place = place
        self.by_groups = by_groups


class _Again(Exception):
    """What was decided has to be decided anew, with some tables and names left whole."""

    def __init__(self, places: Collection[int] = (), names: Collection[Common] = ()) -> None:
        super().__init__()
        self.places = frozenset(places)
        self.names = frozenset(names)


@dataclass(frozen=True, slots=True)
class Role:
    """A table where it stands in FROM, filtered by the keys of the class.

    Attributes
    ----------
    table : str
    column : str
        The column of the class.
    kind : str
        Its type.
    place : Span
        Of the table's name in the text.
    alias : str or None
        A name that the filtered table needs.
    """

    table: str
    column: str
    kind: str
    place: Span
    alias: str | None


@dataclass(frozen=True, slots=True)
class Decomposition:
    """How a query decomposes over one class.

    Attributes
    ----------
    name : str
        Of the class: its columns' name.
    kind : str
        The type of its keys.
    roles : tuple of Role
    key : str
        The key of a row of the outermost FROM and WHERE, as SQL.
    keys : frozenset of Ref
        The outermost columns that have the key's value, or are NULL.
    added : tuple of (int, str)
        What is put into the text, and where.
    whole : tuple of str
        The tables that are read as they are.
    """

    name: str
    kind: str
    roles: tuple[Role, ...]
    key: str
    keys: frozenset[Ref]
    added: tuple[tuple[int, str], ...]
    whole: tuple[str, ...] = ()


@dataclass(eq=False)
class _Key:
    """One key of the rows of a relation.

    Attributes
    ----------
    kind : str
        The type of its values, `integer` for all integers.
    text : str
        The key of a row, as SQL.
    strict, weak : set
        Columns that have its value in every row; and those that have it or are NULL.
    covers : list of frozenset
        Columns of which one has the value in every row.
    places : set of int
        Where the tables stand that are filtered by it.
    linked : bool
        Whether it is a key of the query outside.
    """

    kind: str
    text: str
    strict: set[Ref] = field(default_factory=set)
    weak: set[Ref] = field(default_factory=set)
    covers: list[frozenset[Ref]] = field(default_factory=list)
    places: set[int] = field(default_factory=set)
    linked: bool = False

    def has(self, ref: Ref) -> bool:
        return ref in self.strict or ref in self.weak

    def take(self, other: _Key) -> None:
        """Be the key of both."""
        self.strict |= other.strict
        self.weak |= other.weak
        self.covers += other.covers
        self.places |= other.places
        self.linked = self.linked or other.linked

    def is_of(self, refs: tuple[Ref, ...]) -> bool:
        """Whether a column, or the COALESCE of some, has its value."""
        if len(refs) == 1:
            return refs[0] in self.strict
        return all(map(self.has, refs)) and (
            any(r in self.strict for r in refs) or any(c <= set(refs) for c in self.covers)
        )


@dataclass(eq=False)
class _Offered:
    """A key of the rows of a query, by the places of its columns."""

    key: _Key
    strict: set[int]
    weak: set[int]
    sides: tuple[_Offered, ...] = ()


def kind_of(type_: str) -> str | None:
    """The kind of keys of a type, by which equal ones have equal hashes; None of types that have none."""
    if type_ in INTEGRAL_DIGITS:
        return "integer"
    if type_.startswith("varchar("):
        return "string"
    return type_ if type_ in _PLAIN or type_.startswith("decimal") else None


@dataclass(eq=False)
class Decomposer:
    """Decides whether a query decomposes over one class.

    Attributes
    ----------
    types : mapping of Ref to str
    seeds : mapping of int to str
        By the place of a table in the text, the column of the class.
    left_whole : set of int
        Tables of the class that are not to be filtered.
    whole_names : set of Common
        Queries of WITH that are left whole.
    """

    types: Mapping[Ref, str]
    seeds: Mapping[int, str]
    left_whole: set[int] = field(default_factory=set)
    whole_names: set[Common] = field(default_factory=set)
    roles: dict[int, Role] = field(default_factory=dict)
    added: dict[int, str] = field(default_factory=dict)
    reasons: list[Undecomposed] = field(default_factory=list)
    _common: dict[Common, list[_Offered]] = field(default_factory=dict)
    _needed_whole: set[Common] = field(default_factory=set)

    def decompose(self, top: Block) -> Decomposition:
        """How the query decomposes.

        Raises
        ------
        Undecomposed
            With the reason and the place of what stands in the way.
        """
        for _ in range(2 * len(self.seeds) + len(self.whole_names) + 8):
            self.roles, self.added, self.reasons = {}, {}, []
            self._common, self._needed_whole = {}, set()
            try:
                return self._top(top)
            except _Again as again:
                self.left_whole |= again.places
                self.whole_names |= again.names
        raise Undecomposed("the tables cannot be told apart by one key", top.group_place)

    def _top(self, top: Block) -> Decomposition:
        try:
            keys = self._rows(top, [])
        except Undecomposed as fault:
            raise self.reasons[0] if self.reasons else fault from None
        clash = self._needed_whole & set(self._common)
        if clash:
            raise _Again(names=clash)
        if not keys:
            raise self.reasons[0] if self.reasons else Undecomposed("no table is left that has the key", Span(0, 0))
        if len(keys) > 1:
            best = max(keys, key=lambda k: len(k.places))
            raise _Again(places=set().union(*(k.places for k in keys if k is not best)))
        (key,) = keys
        for refs in top.grouped or ():
            if any(map(key.has, refs)):
                why = "each group is of one key, and a sample of the keys leaves the others out"
                raise Undecomposed(why, top.group_place, by_groups=True)
        for why, place in top.refused:
            raise Undecomposed(why, place)
        if top.windows or top.distinct is not None:
            place = top.windows[0][0] if top.windows else top.distinct
            assert place is not None, "one of them"
            raise Undecomposed("DISTINCT and windows beside aggregates look at all groups", place)
        places = sorted(self.roles)
        first = self.roles[places[0]]
        return Decomposition(
            first.column.lower(),
            _wider([self.roles[p].kind for p in places]),
            tuple(self.roles[p] for p in places),
            key.text,
            frozenset(key.strict | key.weak),
            tuple(sorted(self.added.items())),
            tuple(dict.fromkeys(r.table for r in _tables(top) if r.place and r.place.start not in self.roles)),
        )

    # Queries.

    def _rows(self, block: Block, chain: list[list[_Key]]) -> list[_Key]:
        """The keys of the rows that FROM and WHERE leave."""
        keys = [] if block.source is None else self._joined(block.source, chain)
        for equality in block.equal:
            self._equate(keys, equality, chain)
        for nested in block.inner:
            self._nested(nested, [keys, *chain])
        return keys

    def _offered(self, body: Body, *, outside: bool = True) -> list[_Offered]:
        """The keys of what a query in FROM gives; `outside`: each has a column, one that is put in if need be."""
        match body:
            case Common():
                return self._offered_common(body)
            case SetOf():
                return self._offered_set(body, outside=outside)
            case Block():
                keys = self._result(body, [])
                return [self._positions(body, k, outside=outside) for k in keys]

    def _offered_common(self, common: Common) -> list[_Offered]:
        if common in self.whole_names:
            self._whole(common.body)
            return []
        if common not in self._common:
            before = len(outputs_of(common.body))
            try:
                found = self._offered(common.body)
            except Undecomposed:
                self.whole_names.add(common)
                raise
            for name, _ in outputs_of(common.body)[before:]:
                if name not in common.names:
                    common.names.append(name)
                if common.columns_end is not None:
                    self._put(common.columns_end, f", {quote_name(name)}")
            if found:
                self._common[common] = found
            return found
        return self._common[common]

    def _offered_set(self, body: SetOf, *, outside: bool) -> list[_Offered]:
        sides = [self._offered(s, outside=False) for s in (body.left, body.right)]
        if not any(sides):
            return []
        if body.limited is not None:
            raise Undecomposed("the LIMIT inside looks at all keys", body.limited)
        left, right = sides
        if body.operator in ("intersect", "except") and left and not right:
            return left
        word = body.operator.upper()
        if len(left) != 1 or len(right) != 1:
            raise Undecomposed(f"one side of {word} has no key", body.place)
        (one,), (other,) = left, right
        if one.key.kind != other.key.kind:
            raise Undecomposed(f"the keys of {word} are of different types", body.place)
        strict = one.strict & other.strict
        if not strict and body.operator == "union all" and outside:
            position = self._add(body, _Offered(one.key, set(), set(), (one, other)))
            strict = set() if position is None else {position}
        if not strict and (outside or body.operator != "union all"):
            raise Undecomposed(f"the rows of {word} do not have the key in one column", body.place)
        both = _Key(one.key.kind, "", places=one.key.places | other.key.places)
        weak = (one.strict | one.weak) & (other.strict | other.weak)
        return [_Offered(both, strict, weak, (one, other))]

    def _result(self, block: Block, chain: list[list[_Key]]) -> list[_Key]:
        """The keys of a query's rows: refused where groups, DISTINCT, windows or LIMIT look at several."""
        keys = self._rows(block, chain)
        if not all(k.linked for k in keys):
            self._refuse_across(block, [k for k in keys if not k.linked])
        return keys

    def _refuse_across(self, block: Block, keys: Sequence[_Key]) -> None:
        for why, place in block.refused:
            raise Undecomposed(why, place)
        if block.limited is not None:
            raise Undecomposed("the LIMIT inside looks at all keys", block.limited)
        for key in keys:
            if block.grouped is not None and not any(map(key.is_of, block.grouped)):
                what = "its groups have" if block.grouped else "the aggregate inside looks at"
                raise Undecomposed(f"{what} rows of all keys", block.group_place)
            for place, parts in block.windows:
                if not any(map(key.is_of, parts)):
                    raise Undecomposed("the window looks at all keys", place)
            if block.distinct is not None and not any(key.is_of(refs) for _, refs in block.outputs):
                raise Undecomposed("DISTINCT looks at all keys", block.distinct)

    def _positions(self, block: Block, key: _Key, *, outside: bool) -> _Offered:
        found = _Offered(
            key,
            {i for i, (_, refs) in enumerate(block.outputs) if refs and key.is_of(refs)},
            {i for i, (_, refs) in enumerate(block.outputs) if len(refs) == 1 and key.has(refs[0])},
        )
        if not found.strict and outside:
            position = self._add(block, found)
            found.strict = set() if position is None else {position}
        return found

    def _add(self, body: Body, offered: _Offered) -> int | None:
        """The place of a column that is put into a query, with its key; None where that changes the query."""
        if isinstance(body, SetOf):
            if body.operator != "union all":
                return None
            pairs = zip((body.left, body.right), offered.sides, strict=True)
            places = {self._add(side, own) for side, own in pairs}
            return places.pop() if len(places) == 1 else None
        if not isinstance(body, Block) or body.distinct is not None:
            return None
        name = f"{HIDDEN}{body.list_end}"
        if all(n != name for n, _ in body.outputs):
            body.outputs.append((name, ()))
        self._put(body.list_end, f", {self._text_in(body, offered.key)} AS {quote_name(name)}")
        return [n for n, _ in body.outputs].index(name)

    @staticmethod
    def _text_in(block: Block, key: _Key) -> str:
        """The key of a row of a query's result, as SQL: in a grouped one by what it is grouped by."""
        refs = next((g for g in block.grouped or () if key.is_of(g)), None)
        if refs is None:
            return key.text
        owners = {r.number: r for r in block.relations}
        texts = [_text(owners[r.vertex], r) if r.vertex in owners else quote_name(r.column) for r in refs]
        return texts[0] if len(texts) == 1 else f"coalesce({', '.join(texts)})"

    def _put(self, place: int, text: str) -> None:
        if text not in self.added.get(place, ""):
            self.added[place] = self.added.get(place, "") + text

    # Subqueries in expressions.

    def _nested(self, nested: Nested, chain: list[list[_Key]]) -> None:
        """Filter what a subquery reads where each row outside asks it for one key; leave it whole otherwise."""
        kept = self._state()
        try:
            if self._linked(nested.body, nested, chain):
                return
        except Undecomposed as fault:
            self.reasons.append(fault)
        self._back_to(kept)
        self._whole(nested.body)

    def _linked(self, body: Body, nested: Nested, chain: list[list[_Key]]) -> bool:
        """Whether the rows of a subquery are of a key of the query outside."""
        if isinstance(body, SetOf):
            return all([self._linked(s, nested, chain) for s in (body.left, body.right)])
        if isinstance(body, Block):
            keys = self._rows(body, chain)
            if all(k.linked for k in keys):
                return True
            self._refuse_across(body, [k for k in keys if not k.linked])
            offered = [self._positions(body, k, outside=False) for k in keys if not k.linked]
        else:
            offered = self._offered(body)
        if nested.tested is None or not nested.positive:
            return not offered
        outside = next((k for keys in chain for k in keys if k.has(nested.tested)), None)
        return outside is not None and all(
            0 in o.strict | o.weak and o.key.kind == outside.kind and self._link(o.key, outside) for o in offered
        )

    @staticmethod
    def _link(key: _Key, outside: _Key) -> bool:
        key.linked = True
        outside.places |= key.places
        return True

    def _state(self) -> tuple[dict[int, Role], dict[int, str], dict[Common, list[_Offered]]]:
        return dict(self.roles), dict(self.added), dict(self._common)

    def _back_to(self, state: tuple[dict[int, Role], dict[int, str], dict[Common, list[_Offered]]]) -> None:
        self.roles, self.added, self._common = state

    def _whole(self, body: Body) -> None:
        """What is read as it is, with the names that it reads."""
        for common in _names_in(body):
            self._needed_whole.add(common)

    # Joins.

    def _joined(self, joined: Relation | Joined, chain: list[list[_Key]]) -> list[_Key]:
        if isinstance(joined, Relation):
            return self._relation(joined)
        keys = self._joined(joined.first, chain)
        for step in joined.steps:
            keys = self._step(step, keys, chain)
        return keys

    def _relation(self, relation: Relation) -> list[_Key]:
        if relation.body is not None:
            return self._query(relation, relation.body)
        place = relation.place
        column = self.seeds.get(place.start) if place is not None else None
        if place is None or column is None or place.start in self.left_whole:
            return []
        position = next((i for i, n in enumerate(relation.names) if n.lower() == column.lower()), None)
        kind = None if position is None else kind_of(relation.kinds[position])
        if position is None or kind is None:
            return []
        self.roles[place.start] = Role(
            relation.table, relation.columns[position], relation.kinds[position], place, relation.alias
        )
        ref = relation.ref(position)
        return [_Key(kind, _text(relation, ref), {ref}, places={place.start})]

    def _query(self, relation: Relation, body: Body) -> list[_Key]:
        kept = self._state()
        before = len(outputs_of(body))
        try:
            offered = self._offered(body)
        except Undecomposed as fault:
            self.reasons.append(fault)
            self._back_to(kept)
            self._whole(body)
            return []
        names = outputs_of(body)
        for position in range(len(relation.names), len(names)):
            name = names[position][0]
            relation.names.append(name)
            if relation.columns_end is not None and position >= before:
                self._put(relation.columns_end, f", {quote_name(name)}")
        found = []
        for one in offered:
            if not one.strict:
                continue
            strict = {relation.ref(i) for i in one.strict}
            weak = {relation.ref(i) for i in one.weak}
            text = _text(relation, relation.ref(min(one.strict)))
            found.append(_Key(one.key.kind, text, strict, weak, places=set(one.key.places)))
        if len(found) < len(offered):
            self._back_to(kept)
            self._whole(body)
            return []
        return found

    def _step(self, step: Step, left: list[_Key], chain: list[list[_Key]]) -> list[_Key]:
        if step.kind == INNER:
            keys = left + self._joined(step.right, chain)
            for equality in step.equal:
                self._equate(keys, equality, chain)
            for nested in step.inner:
                self._nested(nested, [keys, *chain])
            return keys
        kept = self._state()
        right = self._joined(step.right, chain)
        if step.kind == FULL:
            return self._full(step, left, right, chain)
        if step.kind == RIGHT:
            # The side that is left whole would be the one that was read already.
            if not self._all_linked(step, right, left):
                raise Undecomposed(self._why(step, right), step.place)
            return self._kept(step, right, left, chain)
        if not self._all_linked(step, left, right):
            self.reasons.append(Undecomposed(self._why(step, left), step.place))
            self._back_to(kept)
            self._whole_joined(step.right)
            right = []
        return self._kept(step, left, right, chain)

    def _why(self, step: Step, kept: list[_Key]) -> str:
        word = _WORDS[step.kind]
        if not kept:
            return f"the side that {word} keeps has no key: whether a row has a partner is decided over all keys"
        return f"{word} does not equate the keys of its sides: whether a row has a partner is decided over all keys"

    def _kept(self, step: Step, kept: list[_Key], other: list[_Key], chain: list[list[_Key]]) -> list[_Key]:
        """The keys after a join that keeps one side; those of the `other` are linked to them."""
        for key in other:
            mine = self._partner(step, kept, key)
            assert mine is not None, "it was looked for"
            mine.places |= key.places
            if step.kind in (LEFT, RIGHT):
                mine.weak |= key.strict | key.weak
        for nested in step.inner:
            self._nested(nested, [kept, *chain])
        return kept

    def _all_linked(self, step: Step, kept: list[_Key], other: list[_Key]) -> bool:
        return all(self._partner(step, kept, key) is not None for key in other)

    @staticmethod
    def _partner(step: Step, kept: list[_Key], key: _Key) -> _Key | None:
        """The key of the kept side that the condition of a join equates with one of the other side."""
        for equality in step.equal:
            for a, b in ((equality.left, equality.right), (equality.right, equality.left)):
                found = next((k for k in kept if k.has(a)), None)
                if found is None or not key.has(b) or found.kind != key.kind:
                    continue
                if not equality.null_safe or (a in found.strict and b in key.strict):
                    return found
        return None

    def _full(
        self, step: Step, left: list[_Key], right: list[_Key], chain: list[list[_Key]]
    ) -> list[_Key]:
        if not left and not right:
            return []
        if len(left) != 1 or len(right) != 1 or self._partner(step, left, right[0]) is None:
            why = "FULL JOIN keeps rows of both sides, and does not equate a key of each"
            raise Undecomposed(why, step.place)
        (one,), (other,) = left, right
        both = _Key(one.kind, f"coalesce({one.text}, {other.text})", linked=one.linked and other.linked)
        both.places = one.places | other.places
        both.weak = one.strict | one.weak | other.strict | other.weak
        covers = [frozenset((s,)) for s in one.strict] + one.covers
        theirs = [frozenset((s,)) for s in other.strict] + other.covers
        both.covers = [a | b for a in covers for b in theirs]
        for made, a, b in step.merged:
            if both.is_of((a, b)):
                both.strict.add(made)
        for nested in step.inner:
            self._nested(nested, [[both], *chain])
        return [both]

    def _whole_joined(self, joined: Relation | Joined) -> None:
        for relation in _relations(joined):
            if relation.body is not None:
                self._whole(relation.body)

    def _equate(self, keys: list[_Key], equality: Equality, chain: list[list[_Key]]) -> None:
        """What a condition that every row fulfils says of keys."""
        a, b = equality.left, equality.right
        one, other = (next((k for k in keys if k.has(r)), None) for r in (a, b))
        if one is None and other is None:
            return
        if one is not None and other is not None:
            sure = not equality.null_safe or (a in one.strict and b in other.strict)
            if one.kind != other.kind or not sure:
                return
            if one is not other:
                one.take(other)
                keys.remove(other)
            if not equality.null_safe:
                one.strict |= {a, b}
            return
        mine, own, theirs = (one, a, b) if one is not None else (other, b, a)
        assert mine is not None, "one of them is"
        outside = next((k for keys_ in chain for k in keys_ if k.has(theirs)), None)
        if outside is not None:
            sure = not equality.null_safe or (own in mine.strict and theirs in outside.strict)
            if sure and mine.kind == outside.kind:
                self._link(mine, outside)
            return
        if not equality.null_safe and kind_of(self.types.get(theirs, "")) == mine.kind:
            # A column of what is whole, which has the key's value wherever the condition holds.
            mine.strict |= {own, theirs}


def _text(relation: Relation, ref: Ref) -> str:
    column = quote_name(ref.column)
    where = quote_name(relation.alias) if relation.alias is not None else relation.where
    return f"{where}.{column}" if where else column


def _wider(kinds: Sequence[str]) -> str:
    if all(k in INTEGRAL_DIGITS for k in kinds):
        return max(kinds, key=INTEGRAL_DIGITS.__getitem__)
    return "string" if kinds[0].startswith("varchar(") else kinds[0]


def _relations(joined: Relation | Joined) -> Iterator[Relation]:
    if isinstance(joined, Relation):
        yield joined
        return
    yield from _relations(joined.first)
    for step in joined.steps:
        yield from _relations(step.right)


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


def _names_in(body: Body) -> Iterator[Common]:
    if isinstance(body, Common):
        yield body
    for inner in inner_of(body):
        yield from _names_in(inner)


def _tables(body: Body) -> Iterator[Relation]:
    for block in blocks_in(body):
        yield from (r for r in block.relations if r.body is None)
