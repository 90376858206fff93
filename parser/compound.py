"""A script of SQL (BEGIN … END), in the statements and conditions that it consists of.

The script itself is Spark's to read; here is only found where each of its parts begins and ends.
"""

from __future__ import annotations

import re

from .join_graph import Span
from .script import without_comments

_TOKEN = re.compile(
    r"""'[^'\\]*(?:(?:\\.|'')[^'\\]*)*'|"[^"\\]*(?:(?:\\.|"")[^"\\]*)*"|`(?:[^`]|``)*`|\w+|\S""", re.DOTALL
)
# What begins with the first word ends before the other.
_HEADS = {
    "IF": "THEN",
    "ELSEIF": "THEN",
    "CASE": "WHEN",
    "WHEN": "THEN",
    "WHILE": "DO",
    "FOR": "DO",
    "DECLARE": "BEGIN",
}
# Behind these a part begins at once.
_OPENING = frozenset((";", "BEGIN", "ELSE", "LOOP", "REPEAT", "THEN", "DO"))


def is_script(text: str) -> bool:
    """Whether a text is a script: BEGIN … END."""
    visible, _ = without_comments(text)
    return re.match(r"\s*BEGIN\b", visible, re.IGNORECASE) is not None


def parts_of(text: str) -> tuple[Span, ...]:
    """The statements of a script, and the conditions and queries that it decides and loops by, in order."""
    visible, _ = without_comments(text)
    tokens = [(m.group().upper(), m.start(), m.end()) for m in _TOKEN.finditer(visible)]
    found: list[Span] = []
    start: int | None = None
    ends, depth, cases, end = "", 0, 0, 0
    for number, (word, at, stop) in enumerate(tokens):
        depth += {"(": 1, ")": -1}.get(word, 0)
        if start is not None and depth <= 0:
            if word == ";" or (not cases and word == ends):
                found.append(Span(start, end))
                start = None
            elif ends and word in ("CASE", "END"):
                # An expression, which has a THEN of its own.
                cases = max(cases + (1 if word == "CASE" else -1), 0)
        labels = word == ":" or (number + 1 < len(tokens) and tokens[number + 1][0] == ":")
        if start is None and word not in _OPENING and not labels:
            start, ends, cases = at, _HEADS.get(word, ""), 0
            depth = int(word == "(")
        end = stop
    return (*found, Span(start, end)) if start is not None else tuple(found)
