"""A statement with a mistake, as it was probably meant: offered for Enter."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches

from ... import SkimqlError, tokens, vocabulary
from .names import Names

_NAME = re.compile(r"[A-Za-z_][\w.]*|`[^`]+`(?:\.`[^`]+`)?")
_UNKNOWN = ("SKIMQL_UNKNOWN_TABLE", "SKIMQL_UNKNOWN_COLUMN", "SKIMQL_UNKNOWN_NAME")
_REFUSED = "SKIMQL_SPARK_REFUSES"
_SPARK_TABLE = re.compile(r"table or view `([^`]+)` cannot be found", re.IGNORECASE)
_HEADS = (
    "SELECT",
    "CREATE",
    "SHOW",
    "DESCRIBE",
    "EXPLAIN",
    "DROP",
    "ESTIMATE",
    "REFRESH",
    "APPEND",
    "EXPORT",
    "IMPORT",
)


def correction(fault: SkimqlError, text: str, names: Names) -> str | None:
    """The statement with the near name in the place of the unknown one; None where none is near enough."""
    placed = fault.span is not None and fault.sql == text
    if placed and fault.span is not None and "must be back quoted" in fault.message:
        return text[: fault.span[0]] + fault.hint + text[fault.span[1] :]
    names_something = fault.code in _UNKNOWN or (
        fault.code == _REFUSED and "yntax error" not in fault.message
    )
    if names_something and placed and fault.span is not None:
        start, end = fault.span
        meant = fault.hint.split(", ")[0].strip()
        typed = text[start:end]
        if not _NAME.fullmatch(meant):
            return _lost_table(fault, text, names)
        bare = typed.rpartition(".")[2].strip("`")
        near = get_close_matches(bare.lower(), [meant.rpartition(".")[2].strip("`").lower()], 1, 0.6)
        if not near or bare.lower() == near[0]:
            return None
        if "." in typed and "." not in meant:
            meant = typed[: typed.rindex(".") + 1] + meant
        return text[:start] + meant + text[end:]
    lost = _lost_table(fault, text, names)
    return _misspelt_word(text) if lost is None and fault.code == _REFUSED else lost


def _lost_table(fault: SkimqlError, text: str, names: Names) -> str | None:
    lost = _SPARK_TABLE.search(fault.message)
    return None if lost is None else _replaced(text, lost[1], [t.name for t in names.tables])


def _replaced(text: str, name: str, known: Iterable[str]) -> str | None:
    spelled = {k.lower(): k for k in known}
    near = get_close_matches(name.lower(), list(spelled), 1, 0.7)
    token = next((t for t in tokens(text) if t.text.strip("`").lower() == name.lower()), None)
    if not near or token is None or near[0] == name.lower():
        return None
    return text[: token.start] + spelled[near[0]] + text[token.end :]


def _misspelt_word(text: str) -> str | None:
    """The first word of a statement, or APPROXIMATE behind SELECT, where it is nearly one."""
    found = tokens(text)
    for place, known in ((0, _HEADS), (1, ("APPROXIMATE",))):
        if len(found) <= place or found[place].kind != "name" or (place and found[0].word != "SELECT"):
            continue
        token = found[place]
        near = get_close_matches(token.word, known, 1, 0.75)
        if near and near[0] != token.word and token.word not in vocabulary().keywords:
            return text[: token.start] + near[0] + text[token.end :]
    return None
