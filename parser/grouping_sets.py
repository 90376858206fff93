"""The sets of columns that a GROUP BY groups by: ROLLUP, CUBE, GROUPING SETS, and what stands beside them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product

from sqlglot import exp

# A set of what is grouped by, as it is written.
Set = tuple[exp.Expr, ...]


def has_sets(group: exp.Group) -> bool:
    """Whether a GROUP BY is more than a list of columns."""
    odd = any(group.args.get(k) for k in ("rollup", "cube", "grouping_sets"))
    return odd or any(
        isinstance(n, exp.GroupingSets | exp.Tuple | exp.Cube | exp.Rollup) for n in group.expressions
    )


def sets_of(group: exp.Group) -> list[Set]:
    """The sets of a GROUP BY, as SQL defines them: those of each of its elements combined with all of the others."""
    listed = group.args.get("grouping_sets")
    if listed:
        return [s for g in listed for s in _sets(g)]
    if group.args.get("rollup"):
        return _rolled([(n,) for n in group.expressions])
    if group.args.get("cube"):
        return _cubed([(n,) for n in group.expressions])
    combined = product(*(_sets(n) for n in group.expressions))
    return [tuple(n for part in parts for n in part) for parts in combined]


def nodes_of(group: exp.Group) -> list[exp.Expr]:
    """What any of the sets groups by, each place once."""
    found: dict[int, exp.Expr] = {}
    for node in (n for s in sets_of(group) for n in s):
        found.setdefault(id(node), node)
    return list(found.values())


def _sets(node: exp.Expr) -> list[Set]:
    match node:
        case exp.Rollup():
            return _rolled([_members(n) for n in node.expressions])
        case exp.Cube():
            return _cubed([_members(n) for n in node.expressions])
        case exp.GroupingSets():
            return [s for n in node.expressions for s in _sets(n)]
        case exp.Tuple():
            return [_members(node)]
    return [_members(node)]


def _members(node: exp.Expr) -> Set:
    return tuple(node.expressions) if isinstance(node, exp.Tuple) else (node.unnest(),)


def _rolled(parts: Sequence[Set]) -> list[Set]:
    return [_joined(parts[:n]) for n in range(len(parts), -1, -1)]


def _cubed(parts: Sequence[Set]) -> list[Set]:
    return [_joined(c) for n in range(len(parts), -1, -1) for c in combinations(parts, n)]


def _joined(parts: Sequence[Set]) -> Set:
    return tuple(n for part in parts for n in part)
