"""How a planned COUNT(DISTINCT) is read from its synopses: one of four kinds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

# A level sketch counts to about its buckets * 2^31, a pair sample serves up to its values * 2^32.
LEVELS = 32


@dataclass(frozen=True, slots=True)
class Part:
    """A synopsis of the plan, by number, and the vertex whose tuples it sees."""

    vertex: int
    synopsis: int


@dataclass(frozen=True, slots=True)
class KeySets:
    """The ``union``, ``intersect`` or ``except`` of two sets of values; each in a level sketch."""

    operator: str
    left: KeySet
    right: KeySet


KeySet = Part | KeySets


@dataclass(frozen=True, slots=True)
class JoinedPairs:
    """pi_{A,C} of R(A, B) joined with S(B, C): R sampled by A and S by C, and level sketches of both.

    Where C is no column at all, `right_values` is None: every b of S is needed then, to know pi_A.
    """

    left: Part
    right: Part
    left_values: Part
    right_values: Part | None


@dataclass(frozen=True, slots=True)
class PairsByKey:
    """pi_{A,B} of R(A, B) joined with S(B, C), or pi_{A,B,C} where `full`: R and S sampled by B.

    `most_of_key` is the most that one b is taken to contribute, where something tells; `bounded`: and no more.
    """

    left: Part
    right: Part
    full: bool
    most_of_key: int | None = None
    bounded: bool = False


DistinctCount = Part | KeySets | JoinedPairs | PairsByKey


def parts_of(count: DistinctCount) -> Iterator[Part]:
    """Every part that it reads, with repetitions."""
    match count:
        case Part():
            yield count
        case KeySets():
            yield from parts_of(count.left)
            yield from parts_of(count.right)
        case JoinedPairs():
            yield from (count.left, count.right, count.left_values)
            if count.right_values is not None:
                yield count.right_values
        case PairsByKey():
            yield from (count.left, count.right)


def with_parts(count: DistinctCount, change: Callable[[Part], Part]) -> DistinctCount:
    """The same over other parts."""
    match count:
        case Part():
            return change(count)
        case KeySets():
            return _with_sets(count, change)
        case JoinedPairs():
            right_values = None if count.right_values is None else change(count.right_values)
            return JoinedPairs(
                change(count.left), change(count.right), change(count.left_values), right_values
            )
        case PairsByKey():
            return replace(count, left=change(count.left), right=change(count.right))


def _with_sets(sets: KeySet, change: Callable[[Part], Part]) -> KeySet:
    if isinstance(sets, Part):
        return change(sets)
    return KeySets(sets.operator, _with_sets(sets.left, change), _with_sets(sets.right, change))
