"""By which columns relations may be joined."""

from __future__ import annotations

from collections.abc import Sequence

from .scope import Relation
from .words import quoted


def stem(name: str) -> str:
    """A key's name without its table's: ``o_orderkey`` and ``l_orderkey``, ``user_id`` and ``id``."""
    return name.rpartition("_")[2]


def same_class(one: str, other: str) -> bool:
    """Whether values of two types can be equal without a cast that loses something."""
    return not one or not other or _class(one) == _class(other)


def _class(kind: str) -> str:
    base = kind.lower().partition("(")[0].strip()
    if base in ("tinyint", "smallint", "int", "integer", "bigint", "long", "decimal"):
        return "number"
    return "text" if base in ("string", "varchar", "char") else base


def join_conditions(found: Sequence[Relation]) -> list[str]:
    """Equalities by which the last relation may be joined to those before it, the likeliest first."""
    if len(found) < 2:
        return []
    *earlier, last = found
    scored: list[tuple[tuple[int, bool, bool, int, int], str]] = []
    mine = last.table.columns
    for far, other in enumerate(reversed(earlier)):
        theirs: dict[str, list[tuple[str, str]]] = {}
        for column, kind in other.table.columns:
            theirs.setdefault(column.lower(), []).append((column, kind))
            if stem(column.lower()) != column.lower():
                theirs.setdefault(stem(column.lower()), []).append((column, kind))
        for column, kind in mine:
            for key in dict.fromkeys((column.lower(), stem(column.lower()))):
                for name, its_kind in theirs.get(key, []):
                    if not same_class(kind, its_kind):
                        continue
                    same = name.lower() == column.lower()
                    kept = (name.lower() in other.table.keys) + (column.lower() in last.table.keys)
                    key_like = column.lower().endswith(("id", "key", "num", "no", "code"))
                    scored.append(
                        (
                            (-kept, not same, not key_like, far, len(scored)),
                            f"{quoted(other.alias)}.{quoted(name)} = {quoted(last.alias)}.{quoted(column)}",
                        )
                    )
        for column, kind in mine:
            # Keys of kept sketches go together whatever they are called.
            scored += [
                (
                    (-1, True, False, far, len(scored)),
                    f"{quoted(other.alias)}.{quoted(name)} = {quoted(last.alias)}.{quoted(column)}",
                )
                for name, its_kind in other.table.columns
                if name.lower() in other.table.keys
                and column.lower() in last.table.keys
                and kind
                and same_class(kind, its_kind)
            ]
    return list(dict.fromkeys(text for _, text in sorted(scored)))[:10]
