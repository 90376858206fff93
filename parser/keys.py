"""Keys of the rows of a relation, and what joins and conditions make of them: see `decomposition`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from .blocks import ANTI, LEFT, RIGHT, SEMI, Equality, Relation, Step
from .fragment import Ref, quote_name
from .join_graph import Span
from .types import INTEGRAL_DIGITS

# What names a column begin with that are put into a query.
HIDDEN = "__skimql_key_"

# Types whose equal values are the same bytes, beside integers and decimals.
_PLAIN = frozenset(("string", "date", "timestamp", "timestamp_ntz", "binary", "boolean"))
_WORDS = {LEFT: "LEFT JOIN", RIGHT: "RIGHT JOIN", SEMI: "SEMI JOIN", ANTI: "ANTI JOIN"}


class Undecomposed(Exception):
    """Why a query, or a part of it, does not decompose over a class, and where."""

    def __init__(self, reason: str, place: Span, *, by_groups: bool = False, elsewhere: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.place = place
        self.by_groups = by_groups
        self.elsewhere = elsewhere


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
class Key:
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

    def take(self, other: Key) -> None:
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
class Offered:
    """A key of the rows of a query, by the places of its columns."""

    key: Key
    strict: set[int]
    weak: set[int]
    sides: tuple[Offered, ...] = ()


def kind_of(type_: str) -> str | None:
    """The kind of keys of a type, by which equal ones have equal hashes; None of types that have none."""
    if type_ in INTEGRAL_DIGITS:
        return "integer"
    if type_.startswith("varchar("):
        return "string"
    return type_ if type_ in _PLAIN or type_.startswith("decimal") else None


def text_of(relation: Relation, ref: Ref) -> str:
    """A column of a relation, as SQL."""
    column = quote_name(ref.column)
    where = quote_name(relation.alias) if relation.alias is not None else relation.where
    return f"{where}.{column}" if where else column


def widest_kind(kinds: Sequence[str]) -> str:
    """The type of the keys of a class whose columns are of these types."""
    if all(k in INTEGRAL_DIGITS for k in kinds):
        return max(kinds, key=INTEGRAL_DIGITS.__getitem__)
    return "string" if kinds[0].startswith("varchar(") else kinds[0]


def partner_of(step: Step, kept: Sequence[Key], key: Key) -> Key | None:
    """The key of the kept side that the condition of a join equates with one of the other side."""
    for equality in step.equal:
        for a, b in ((equality.left, equality.right), (equality.right, equality.left)):
            found = next((k for k in kept if k.has(a)), None)
            if found is None or not key.has(b) or found.kind != key.kind:
                continue
            if not equality.null_safe or (a in found.strict and b in key.strict):
                return found
    return None


def why_not(step: Step, kept: Sequence[Key]) -> Undecomposed:
    """Why an outer, semi or anti join looks at several keys."""
    word = _WORDS[step.kind]
    if kept:
        why = f"{word} does not equate the keys of its sides: whether a row has a partner is decided over all keys"
    else:
        why = f"the side that {word} keeps has no key: whether a row has a partner is decided over all keys"
    return Undecomposed(why, step.place)


def linked(key: Key, outside: Key) -> bool:
    """Make a key of a subquery that of the query outside; always true."""
    key.linked = True
    outside.places |= key.places
    return True


def full_key(step: Step, left: Sequence[Key], right: Sequence[Key]) -> list[Key]:
    """The key after a FULL JOIN: that of whichever side is there.

    Raises
    ------
    Undecomposed
        If its condition does not equate the one key of each side.
    """
    if not left and not right:
        return []
    if len(left) != 1 or len(right) != 1 or partner_of(step, left, right[0]) is None:
        why = "FULL JOIN keeps rows of both sides, and does not equate a key of each"
        raise Undecomposed(why, step.place)
    (one,), (other,) = left, right
    both = Key(one.kind, f"coalesce({one.text}, {other.text})", linked=one.linked and other.linked)
    both.places = one.places | other.places
    both.weak = one.strict | one.weak | other.strict | other.weak
    covers = [frozenset((s,)) for s in one.strict] + one.covers
    theirs = [frozenset((s,)) for s in other.strict] + other.covers
    both.covers = [a | b for a in covers for b in theirs]
    for made, a, b in step.merged:
        if both.is_of((a, b)):
            both.strict.add(made)
    return [both]


def equate(
    keys: list[Key], equality: Equality, outside: Sequence[Sequence[Key]], types: Mapping[Ref, str]
) -> None:
    """What a condition that every row fulfils says of keys: two of them are one, or one is that of a query outside."""
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
    found = next((k for known in outside for k in known if k.has(theirs)), None)
    if found is not None:
        sure = not equality.null_safe or (own in mine.strict and theirs in found.strict)
        if sure and mine.kind == found.kind:
            linked(mine, found)
        return
    if not equality.null_safe and kind_of(types.get(theirs, "")) == mine.kind:
        # A column of what is whole, which has the key's value wherever the condition holds.
        mine.strict |= {own, theirs}
