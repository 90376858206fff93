"""Names as they must be typed, and how well words go together."""

from __future__ import annotations

import re

_PLAIN = re.compile(r"[A-Za-z_]\w*")
# Names that Spark takes for words where a name stands.
_RESERVED = frozenset(
    """
    ALL AND ANTI ANY AS BOTH CASE CAST CHECK COLUMN CONSTRAINT CREATE CROSS DISTINCT ELSE END EXCEPT FALSE FETCH FILTER
    FOR FOREIGN FROM FULL GRANT GROUP HAVING IN INNER INTERSECT INTO IS JOIN LEADING LEFT NATURAL NOT NULL ON ONLY OR
    ORDER OUTER OVERLAPS PRIMARY REFERENCES RIGHT SELECT SEMI SOME TABLE THEN TO TRAILING TRUE UNION UNIQUE USER USING
    WHEN WHERE WITH
    """.split()
)


def match(typed: str, word: str) -> int | None:
    """How well a word goes with what is typed: 0 begins so, 1 a part of it does, 2 has it, 3 has its letters; None."""
    typed, word = typed.lower().lstrip("`"), word.lower().lstrip("`")
    if word.startswith(typed):
        return 0
    at = word.find(typed)
    if at > 0:
        return 1 if word[at - 1] in "_ .`(" else 2
    letters = iter(word)
    return 3 if len(typed) > 1 and all(c in letters for c in typed) else None


def quoted(name: str) -> str:
    """A name as it must be typed."""
    if _PLAIN.fullmatch(name) and name.isascii() and name.upper() not in _RESERVED:
        return name
    return "`" + name.replace("`", "``") + "`"
