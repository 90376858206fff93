"""Which columns a place in a query sees: tables with their aliases, subqueries, common table expressions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .... import Token
from ..names import Names, Table

# Behind a table these are no alias.
NO_ALIAS = frozenset(
    """
    ON USING JOIN INNER LEFT RIGHT FULL CROSS NATURAL WHERE GROUP HAVING ORDER LIMIT ERROR WITH SIZE OPTIONS SEED
    BEHAVIOR UNION EXCEPT INTERSECT AS SELECT FROM SET LATERAL TABLESAMPLE CONFIDENCE MINIMIZE
    """.split()
)
_NAMES = frozenset(("name", "quoted_name", "keyword", "ours", "function"))


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation of FROM: the name by which its columns are qualified, and what it is."""

    alias: str
    table: Table


def unquoted(text: str) -> str:
    """A name without its backticks."""
    return (
        text[1:-1].replace("``", "`")
        if text.startswith("`") and text.endswith("`") and len(text) > 1
        else text
    )


def closing(tokens: Sequence[Token], start: int) -> int:
    """The number of the token that closes the parenthesis at `start`; behind the last one where none does."""
    depth = 0
    for number in range(start, len(tokens)):
        depth += {"(": 1, ")": -1}.get(tokens[number].text, 0)
        if depth == 0:
            return number
    return len(tokens)


def relations(tokens: Sequence[Token], names: Names, named: Mapping[str, Table]) -> list[Relation]:
    """The relations of the first FROM at the level of these tokens, in order.

    `named` are the common table expressions that may be used, by their names in lower case.
    """
    found: list[Relation] = []
    number, wanted, depth_from = 0, False, False
    depth, selects = 0, -1
    for place, token in enumerate(tokens):
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if depth == 0 and token.word == "SELECT" and token.kind == "keyword":
            selects = place
            break
    merges = bool(tokens) and tokens[0].word == "MERGE"
    while number < len(tokens):
        token = tokens[number]
        word = token.word if token.kind in _NAMES else token.text
        if token.kind == "keyword" and (
            word in ("FROM", "JOIN")
            # What is written to is no relation of the query that is written.
            or (word in ("INTO", "TABLE", "UPDATE") and selects < 0)
            or (merges and word == "USING")
        ):
            wanted, depth_from = True, depth_from or word == "FROM"
        elif word == "," and depth_from:
            wanted = True
        elif word in ("WHERE", "GROUP", "HAVING", "ORDER", "LIMIT") and token.kind == "keyword":
            depth_from = wanted = False
        elif token.text == "(":
            end = closing(tokens, number)
            if wanted:
                table = subquery(tokens[number + 1 : end], names, named)
                alias, end = _alias(tokens, end + 1)
                if alias:
                    found.append(Relation(alias, Table(alias, table.columns)))
                number, wanted = end, False
                continue
            number = end
        elif wanted and token.kind in _NAMES and word not in NO_ALIAS:
            name = unquoted(token.text)
            end = number + 1
            while end + 1 < len(tokens) and tokens[end].text == "." and tokens[end + 1].kind in _NAMES:
                name = unquoted(tokens[end + 1].text)
                end += 2
            alias, end = _alias(tokens, end)
            known = named.get(name.lower()) or names.by_name.get(name.lower())
            found.append(Relation(alias or name, known or Table(name, ())))
            number, wanted = end, False
            continue
        elif wanted and word not in NO_ALIAS:
            wanted = False
        number += 1
    return found


def _alias(tokens: Sequence[Token], number: int) -> tuple[str, int]:
    """The alias that stands at a place, and the place behind it."""
    if number < len(tokens) and tokens[number].word == "AS":
        number += 1
    if number < len(tokens) and tokens[number].kind in _NAMES and tokens[number].word not in NO_ALIAS:
        return unquoted(tokens[number].text), number + 1
    return "", number


def subquery(tokens: Sequence[Token], names: Names, named: Mapping[str, Table]) -> Table:
    """What a SELECT gives, by the names of its items; a star stands for all columns of its relations."""
    own = {**named, **common_tables(tokens, names, named)}
    selects = [i for i, t in enumerate(tokens) if t.word == "SELECT"]
    if not selects:
        return Table("", ())
    inner = list(tokens[selects[0] + 1 :])
    seen = relations(inner, names, own)
    columns: list[tuple[str, str]] = []
    types = {c.lower(): kind for r in seen for c, kind in r.table.columns}
    item: list[Token] = []
    depth = 0
    for token in [*inner, None]:
        text = "" if token is None else token.text
        depth += {"(": 1, ")": -1}.get(text, 0)
        ends = token is None or (depth == 0 and (text == "," or token.word == "FROM"))
        if not ends and token is not None:
            item.append(token)
            continue
        if item and item[-1].text == "*" and not any(t.text == "(" for t in item):
            columns += [c for r in seen for c in r.table.columns]
        elif item and item[-1].kind in _NAMES:
            name = unquoted(item[-1].text)
            columns.append((name, types.get(name.lower(), "")))
        item = []
        if token is None or token.word == "FROM":
            break
    return Table("", tuple(columns))


def common_tables(tokens: Sequence[Token], names: Names, named: Mapping[str, Table]) -> dict[str, Table]:
    """What ``WITH name AS (...)`` at the head of these tokens defines, by name in lower case."""
    found: dict[str, Table] = {}
    if not any(t.word == "WITH" for t in tokens[:4]):
        return found
    for number in range(len(tokens) - 2):
        if (
            tokens[number + 1].word == "AS"
            and tokens[number + 2].text == "("
            and tokens[number].kind in _NAMES
        ):
            end = closing(tokens, number + 2)
            name = unquoted(tokens[number].text)
            inner = subquery(tokens[number + 3 : end], names, {**named, **found})
            found[name.lower()] = Table(name, inner.columns)
    return found
