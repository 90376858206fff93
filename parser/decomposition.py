"""Over which join classes a query decomposes: it is then the sum, over the keys of the class, of what each key adds.

Every relation is either whole, or has keys: each of its rows belongs to one value of a key, and filtering its tables
to a set of keys leaves just the rows whose key is in the set. That holds of a table by itself, and each operator keeps
it or refuses: an inner join multiplies; an outer, semi or anti join decides on rows of one key where its condition
equates the keys of both sides; groups, DISTINCT and windows keep to a key where they have it among their columns; a
subquery in an expression sees one key where it is correlated on it. What breaks the rule is left whole, which is always
right: its tables are then read as they are. NULL is a value of a key like any other.

The tests hold the rule on random queries and data: the results of single keys, put together, are the result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from .blocks import (
    FULL,
    INNER,
    LEFT,
    NOWHERE,
    RIGHT,
    Block,
    Body,
    Common,
    Joined,
    Nested,
    Relation,
    SetOf,
    Step,
    names_in,
    outputs_of,
    relations_in,
    tables_in,
)
from .fragment import Ref, quote_name
from .join_graph import Span
from .keys import (
    HIDDEN,
    Decomposition,
    Key,
    Offered,
    Role,
    Undecomposed,
    equate,
    full_key,
    kind_of,
    linked,
    partner_of,
    text_of,
    why_not,
    widest_kind,
)


class _Again(Exception):
    """What was decided has to be decided anew, with some tables and names left whole."""

    def __init__(self, places: Collection[int] = (), names: Mapping[Common, Span] | None = None) -> None:
        super().__init__()
        self.places = frozenset(places)
        self.names = names or {}


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
    whole_names : dict of Common to Span
        Queries of WITH that are left whole, with the place for which they are.
    unread : frozenset of str
        The names of WITH that stand where nothing looks for them: such queries are left whole too.
    natural : bool
        Whether a NATURAL JOIN would see columns that are put into a query.
    """

    types: Mapping[Ref, str]
    seeds: Mapping[int, str]
    left_whole: set[int] = field(default_factory=set)
    whole_names: dict[Common, Span] = field(default_factory=dict)
    unread: frozenset[str] = frozenset()
    natural: bool = False
    roles: dict[int, Role] = field(default_factory=dict)
    added: dict[int, str] = field(default_factory=dict)
    reasons: list[Undecomposed] = field(default_factory=list)
    _common: dict[Common, list[Offered]] = field(default_factory=dict)
    _needed_whole: dict[Common, Span] = field(default_factory=dict)

    def decompose(self, top: Block) -> Decomposition:
        """How the query decomposes.

        Raises
        ------
        Undecomposed
            With the reason and the place of what stands in the way.
        """
        for _ in range(2 * len(self.seeds) + len(self.whole_names) + 8):
            self.roles, self.added, self.reasons = {}, {}, []
            self._common, self._needed_whole = {}, {}
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
        clash = {c: place for c, place in self._needed_whole.items() if c in self._common}
        if clash:
            raise _Again(names=clash)
        if not keys:
            raise (
                self.reasons[0]
                if self.reasons
                else Undecomposed("no table is left that has the key", Span(0, 0))
            )
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
            here = top.windows[0][0] if top.windows else top.distinct
            assert here is not None, "one of them"
            raise Undecomposed("DISTINCT and windows beside aggregates look at all groups", here)
        places = sorted(self.roles)
        first = self.roles[places[0]]
        return Decomposition(
            first.column.lower(),
            widest_kind([self.roles[p].kind for p in places]),
            tuple(self.roles[p] for p in places),
            key.text,
            frozenset(key.strict | key.weak),
            tuple(sorted(self.added.items())),
            tuple(
                dict.fromkeys(r.table for r in tables_in(top) if r.place and r.place.start not in self.roles)
            ),
        )

    # Queries.

    def _rows(self, block: Block, chain: list[list[Key]]) -> list[Key]:
        """The keys of the rows that FROM and WHERE leave."""
        keys = [] if block.source is None else self._joined(block.source, chain)
        for equality in block.equal:
            equate(keys, equality, chain, self.types)
        for nested in block.inner:
            self._nested(nested, [keys, *chain])
        return keys

    def _offered(self, body: Body, *, outside: bool = True) -> list[Offered]:
        """The keys of what a query in FROM gives; `outside`: each has a column, one that is put in if need be."""
        match body:
            case Common():
                return self._offered_common(body)
            case SetOf():
                return self._offered_set(body, outside=outside)
            case Block():
                keys = self._result(body, [])
                return [self._positions(body, k, outside=outside) for k in keys]

    def _offered_common(self, common: Common) -> list[Offered]:
        if common in self.whole_names or common.name.lower() in self.unread:
            place = self.whole_names.get(common, NOWHERE)
            if place != NOWHERE:
                why = f"{common.name} is read here as a whole, and so wherever else it stands"
                self.reasons.append(Undecomposed(why, place, elsewhere=True))
            self._whole(common.body, place)
            return []
        if common not in self._common:
            before = len(outputs_of(common.body))
            try:
                found = self._offered(common.body)
            except Undecomposed:
                self.whole_names[common] = NOWHERE
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

    def _offered_set(self, body: SetOf, *, outside: bool) -> list[Offered]:
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
            position = self._add(body, Offered(one.key, set(), set(), (one, other)))
            strict = set() if position is None else {position}
        if not strict and (outside or body.operator != "union all"):
            raise Undecomposed(f"the rows of {word} do not have the key in one column", body.place)
        both = Key(one.key.kind, "", places=one.key.places | other.key.places)
        weak = (one.strict | one.weak) & (other.strict | other.weak)
        return [Offered(both, strict, weak, (one, other))]

    def _result(self, block: Block, chain: list[list[Key]]) -> list[Key]:
        """The keys of a query's rows: refused where groups, DISTINCT, windows or LIMIT look at several."""
        keys = self._rows(block, chain)
        if not all(k.linked for k in keys):
            self._refuse_across(block, [k for k in keys if not k.linked])
        return keys

    def _refuse_across(self, block: Block, keys: Sequence[Key]) -> None:
        for why, place in block.refused:
            raise Undecomposed(why, place)
        if block.limited is not None:
            raise Undecomposed("the LIMIT inside looks at all keys", block.limited)
        if block.several_sets:
            raise Undecomposed("its groups are of several sets of columns", block.group_place)
        for key in keys:
            if block.grouped is not None and not any(map(key.is_of, block.grouped)):
                what = "its groups have" if block.grouped else "the aggregate inside looks at"
                raise Undecomposed(f"{what} rows of all keys", block.group_place)
            for place, parts in block.windows:
                if not any(map(key.is_of, parts)):
                    raise Undecomposed("the window looks at all keys", place)
            if block.distinct is not None and not any(key.is_of(refs) for _, refs in block.outputs):
                raise Undecomposed("DISTINCT looks at all keys", block.distinct)

    def _positions(self, block: Block, key: Key, *, outside: bool) -> Offered:
        found = Offered(
            key,
            {i for i, (_, refs) in enumerate(block.outputs) if refs and key.is_of(refs)},
            {i for i, (_, refs) in enumerate(block.outputs) if len(refs) == 1 and key.has(refs[0])},
        )
        if not found.strict and outside:
            position = self._add(block, found)
            found.strict = set() if position is None else {position}
        return found

    def _add(self, body: Body, offered: Offered) -> int | None:
        """The place of a column that is put into a query, with its key; None where that changes the query."""
        if isinstance(body, SetOf):
            if body.operator != "union all":
                return None
            pairs = zip((body.left, body.right), offered.sides, strict=True)
            places = {self._add(side, own) for side, own in pairs}
            return places.pop() if len(places) == 1 else None
        if not isinstance(body, Block) or body.distinct is not None or self.natural:
            return None
        name = f"{HIDDEN}{body.list_end}"
        if all(n != name for n, _ in body.outputs):
            body.outputs.append((name, ()))
        self._put(body.list_end, f", {self._text_in(body, offered.key)} AS {quote_name(name)}")
        return [n for n, _ in body.outputs].index(name)

    @staticmethod
    def _text_in(block: Block, key: Key) -> str:
        """The key of a row of a query's result, as SQL: in a grouped one by what it is grouped by."""
        refs = next((g for g in block.grouped or () if key.is_of(g)), None)
        if refs is None:
            return key.text
        owners = {r.number: r for r in block.relations}
        texts = [text_of(owners[r.vertex], r) if r.vertex in owners else quote_name(r.column) for r in refs]
        return texts[0] if len(texts) == 1 else f"coalesce({', '.join(texts)})"

    def _put(self, place: int, text: str) -> None:
        if text not in self.added.get(place, ""):
            self.added[place] = self.added.get(place, "") + text

    # Subqueries in expressions.

    def _nested(self, nested: Nested, chain: list[list[Key]]) -> None:
        """Filter what a subquery reads where each row outside asks it for one key; leave it whole otherwise."""
        kept = self._state()
        try:
            if self._linked(nested.body, nested, chain):
                return
        except Undecomposed as fault:
            self.reasons.append(fault)
        self._back_to(kept)
        self._whole(nested.body, nested.place)

    def _linked(self, body: Body, nested: Nested, chain: list[list[Key]]) -> bool:
        """Whether the rows of a subquery are of a key of the query outside."""
        if isinstance(body, SetOf):
            return all(self._linked(s, nested, chain) for s in (body.left, body.right))
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
            0 in o.strict | o.weak and o.key.kind == outside.kind and linked(o.key, outside) for o in offered
        )

    def _state(self) -> tuple[dict[int, Role], dict[int, str], dict[Common, list[Offered]]]:
        return dict(self.roles), dict(self.added), dict(self._common)

    def _back_to(self, state: tuple[dict[int, Role], dict[int, str], dict[Common, list[Offered]]]) -> None:
        self.roles, self.added, self._common = state

    def _whole(self, body: Body, place: Span = NOWHERE) -> None:
        """What is read as it is, with the names that it reads."""
        for common in names_in(body):
            self._needed_whole.setdefault(common, place)

    # Joins.

    def _joined(self, joined: Relation | Joined, chain: list[list[Key]]) -> list[Key]:
        if isinstance(joined, Relation):
            return self._relation(joined)
        keys = self._joined(joined.first, chain)
        for step in joined.steps:
            keys = self._step(step, keys, chain)
        return keys

    def _relation(self, relation: Relation) -> list[Key]:
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
        return [Key(kind, text_of(relation, ref), {ref}, places={place.start})]

    def _query(self, relation: Relation, body: Body) -> list[Key]:
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
        often = Counter(name.lower() for name in relation.names)
        # Which of two columns of one name is meant nothing that is written tells.
        named = {i for i, name in enumerate(relation.names) if often[name.lower()] == 1}
        for one in offered:
            if not one.strict & named:
                continue
            strict = {relation.ref(i) for i in one.strict & named}
            weak = {relation.ref(i) for i in one.weak & named}
            text = text_of(relation, relation.ref(min(one.strict & named)))
            found.append(Key(one.key.kind, text, strict, weak, places=set(one.key.places)))
        if len(found) < len(offered):
            self._back_to(kept)
            self._whole(body)
            return []
        return found

    def _step(self, step: Step, left: list[Key], chain: list[list[Key]]) -> list[Key]:
        if step.kind == INNER:
            keys = left + self._joined(step.right, chain)
            for equality in step.equal:
                equate(keys, equality, chain, self.types)
            for nested in step.inner:
                self._nested(nested, [keys, *chain])
            return keys
        kept = self._state()
        right = self._joined(step.right, chain)
        if step.kind == FULL:
            keys = full_key(step, left, right)
            for nested in step.inner:
                self._nested(nested, [keys, *chain])
            return keys
        if step.kind == RIGHT:
            # The side that is left whole would be the one that was read already.
            if not self._all_linked(step, right, left):
                raise why_not(step, right)
            return self._kept(step, right, left, chain)
        if not self._all_linked(step, left, right):
            self.reasons.append(why_not(step, left))
            self._back_to(kept)
            self._whole_joined(step.right, step.place)
            right = []
        return self._kept(step, left, right, chain)

    def _kept(self, step: Step, kept: list[Key], other: list[Key], chain: list[list[Key]]) -> list[Key]:
        """The keys after a join that keeps one side; those of the `other` are linked to them."""
        for key in other:
            mine = partner_of(step, kept, key)
            assert mine is not None, "it was looked for"
            mine.places |= key.places
            if step.kind in (LEFT, RIGHT):
                mine.weak |= key.strict | key.weak
        for nested in step.inner:
            self._nested(nested, [kept, *chain])
        return kept

    def _all_linked(self, step: Step, kept: list[Key], other: list[Key]) -> bool:
        return all(partner_of(step, kept, key) is not None for key in other)

    def _whole_joined(self, joined: Relation | Joined, place: Span) -> None:
        for relation in relations_in(joined):
            if relation.body is not None:
                self._whole(relation.body, place)
