"""Names that are mistakes, while a statement is typed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from ... import Token
from .names import Names

_READ = frozenset(("SELECT", "WITH", "EXACT", "ESTIMATE", "EXPLAIN"))
_NAMES = ("name", "quoted_name")


def unknown_names(found: Sequence[Token], names: Names) -> set[int]:
    """The tokens of a query that name no table where one stands, or no column of the table whose alias they have.

    A table is unknown only where all are known; what WITH defines is known.
    """
    if not found or found[0].word not in _READ:
        return set()
    defined = {_plain(t) for t, behind in pairwise(found) if behind.word == "AS"}
    unknown: set[int] = set()
    aliases: dict[str, frozenset[str]] = {}
    for number in range(1, len(found)):
        token = found[number]
        if found[number - 1].word not in ("FROM", "JOIN") or token.kind not in _NAMES:
            continue
        after = found[number + 1].text if number + 1 < len(found) else ""
        if after in (".", "("):
            continue
        name = _plain(token)
        table = None if name in defined else names.by_name.get(name)
        if table is None and name not in defined and names.complete:
            unknown.add(number)
        columns = frozenset(c.lower() for c, _ in table.columns) if table is not None else frozenset()
        for alias in (name, _alias(found, number + 1)):
            # One that stands for two tables, in two subqueries say, tells nothing.
            aliases[alias] = columns if alias not in aliases else frozenset()
    for number in range(2, len(found)):
        if found[number - 1].text != "." or found[number].kind not in _NAMES:
            continue
        columns = aliases.get(_plain(found[number - 2]), frozenset())
        ends = number + 1 == len(found) or found[number + 1].text not in (".", "(")
        is_column = ends and (number < 3 or found[number - 3].text != ".")
        if is_column and columns and _plain(found[number]) not in columns:
            unknown.add(number)
    return unknown


def _alias(found: Sequence[Token], number: int) -> str:
    if number < len(found) and found[number].word == "AS":
        number += 1
    return _plain(found[number]) if number < len(found) and found[number].kind in _NAMES else ""


def _plain(token: Token) -> str:
    return token.text.strip("`").lower()
