"""What may stand in the parentheses of statements about streams: columns with types, settings, the views of a set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from .... import Token
from .scope import unquoted

# What WITH says of a continuous view, and values for it.
VIEW_SETTINGS: Mapping[str, tuple[str, ...]] = {
    "window": ("'1 hour'", "'1 day'"),
    "slide": ("'5 minutes'", "'1 hour'"),
    "time": (),
    "watermark": ("'10 minutes'",),
    "trigger": ("'1 second'", "'available now'"),
    "sink": (),
    "bad_rows": ("'count'", "'fail'"),
    "ahead": ("'30 days'",),
}
_TYPES = ("BIGINT", "STRING", "DOUBLE", "TIMESTAMP", "INT", "DATE", "BOOLEAN", "DECIMAL(12, 2)")
_DEPTH = {"(": 1, "<": 1, ")": -1, ">": -1}


def makes_stream(seen: Sequence[Token]) -> bool:
    """Whether these are of a CREATE STREAM."""
    words = [t.word for t in seen[:4]]
    return words[:2] == ["CREATE", "STREAM"] or words == ["CREATE", "OR", "REPLACE", "STREAM"]


def declared(seen: Sequence[Token]) -> Iterator[tuple[str, str]]:
    """The columns that a CREATE STREAM declares, with their types."""
    opened = next((n for n, t in enumerate(seen) if t.text == "("), len(seen))
    depth, at_name = 0, True
    for token, after in zip(seen[opened + 1 :], seen[opened + 2 :], strict=False):
        if depth == 0 and token.text == ")":
            return
        if at_name:
            yield unquoted(token.text), after.text
        depth += _DEPTH.get(token.text, 0)
        at_name = depth == 0 and token.text == ","


def in_list(outer: Sequence[Token], before: Sequence[Token]) -> list[tuple[str, str, str]] | None:
    """What follows in the list of columns of a stream, or of views of a set; None where the cursor is in neither."""
    words = [t.word for t in outer]
    last = before[-1].text if before else ","
    makes = words[:2] == ["CREATE", "TABLE"] and not set(words) & {"USING", "OPTIONS", "AS", "PARTITIONED"}
    if (makes_stream(outer) and "FROM" not in words) or makes or words[-1:] in (["COLUMNS"], ["COLUMN"]):
        at_type = last != "," and (len(before) == 1 or before[-2].text == ",")
        return [(kind, "type", "") for kind in _TYPES] if at_type else []
    if words[:1] == ["CREATE"] and "VIEWS" in words[:5] and sum(_DEPTH.get(t.text, 0) for t in outer) == 0:
        if last.upper() == "AS":
            return [("(", "sign", "")]
        return [] if last in (",", ")") else [("AS", "keyword", "")]
    return None
