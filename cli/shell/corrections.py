"""A statement with a mistake, as it was probably meant: offered for Enter."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches

from ... import SkimqlError, tokens
from .misspelt import respelt
from .names import Names

_NAME = re.compile(r"[A-Za-z_][\w.]*|`[^`]+`(?:\.`[^`]+`)?")
_UNKNOWN = ("SKIMQL_UNKNOWN_TABLE", "SKIMQL_UNKNOWN_COLUMN", "SKIMQL_UNKNOWN_NAME")
_REFUSED = "SKIMQL_SPARK_REFUSES"
_SPARK_TABLE = re.compile(r"table or view `([^`]+)` cannot be found", re.IGNORECASE)
# Faults that a misspelt word may be behind.
_READING = (_REFUSED, "SKIMQL_SYNTAX_ERROR", "SKIMQL_PARSE_ERROR", "SKIMQL_NOT_AGGREGATED")
_MISSING = re.compile(r"there is no [\w ]+? [\'\"`]?([\w$.]+)[\'\"`]?(?: in \w+)?$")
_ASSIGNED = re.compile(r"(\w+) = (.+)")


def correction(fault: SkimqlError, text: str, names: Names) -> str | None:
    """The statement as it was probably meant: with near names, words and values in the places of the wrong ones."""
    if text.startswith("\\"):
        return _command(fault, text)
    for look in (_back_quoted, _near_name, _lost_table, _near_word, _overlapping, _assigned):
        found: str | None = look(fault, text, names)
        if found is not None and found != text:
            return found
    return respelt(text, names) if fault.code in _READING else None


def _span(fault: SkimqlError, text: str) -> tuple[int, int] | None:
    """Where in the typed text the mistake is: the statement may have been read with other names of its files."""
    if fault.span is None or fault.sql == text:
        return fault.span
    piece = fault.sql[slice(*fault.span)]
    at = text.find(piece) if piece.strip() and text.count(piece) == 1 else -1
    return (at, at + len(piece)) if at >= 0 else None


def _back_quoted(fault: SkimqlError, text: str, names: Names) -> str | None:
    span = _span(fault, text)
    if span is None or "must be back quoted" not in fault.message:
        return None
    return f"{text[: span[0]]}{fault.hint}{text[span[1] :]}"


def _near_name(fault: SkimqlError, text: str, names: Names) -> str | None:
    """What Spark or the resolver names as near to the name at the place."""
    span = _span(fault, text)
    names_something = fault.code in _UNKNOWN or (
        fault.code == _REFUSED and "yntax error" not in fault.message
    )
    meant = fault.hint.split(", ")[0].strip()
    if span is None or not names_something or not _NAME.fullmatch(meant):
        return None
    typed = text[slice(*span)]
    bare = typed.rpartition(".")[2].strip("`")
    near = get_close_matches(bare.lower(), [meant.rpartition(".")[2].strip("`").lower()], 1, 0.6)
    if not near or bare.lower() == near[0]:
        return None
    if "." in typed and "." not in meant:
        meant = typed[: typed.rindex(".") + 1] + meant
    return text[: span[0]] + meant + text[span[1] :]


def _near_word(fault: SkimqlError, text: str, names: Names) -> str | None:
    """Of a method, format, value or setting that there is not, the near one that the hint names."""
    missing = _MISSING.search(fault.message)
    if missing is None or fault.code in _UNKNOWN:
        return None
    near = get_close_matches(missing[1].lower(), re.findall(r"\w+", fault.hint.lower()), 1, 0.6)
    start, end = _span(fault, text) or (0, len(text))
    at = text.lower().find(missing[1].lower(), start, end)
    if not near or at < 0:
        return None
    word: str = near[0].upper() if missing[1].isupper() else near[0]
    return f"{text[:at]}{word}{text[at + len(missing[1]) :]}"


def _overlapping(fault: SkimqlError, text: str, names: Names) -> str | None:
    """Of ``ERROR WITHIN 5`` with the hint ``ERROR WITHIN 5%`` what follows the part that is right."""
    span = _span(fault, text)
    if span is None or not text[slice(*span)].strip():
        return None
    front = text[: span[0]].upper()
    typed = text[slice(*span)]
    most = next((n for n in range(len(fault.hint), 3, -1) if front.endswith(fault.hint[:n].upper())), 0)
    rest = fault.hint[most:]
    return text[: span[0]] + rest + text[span[1] :] if most and rest.startswith(typed) else None


def _assigned(fault: SkimqlError, text: str, names: Names) -> str | None:
    """``name = value`` of the hint in the place of another value."""
    told = _ASSIGNED.fullmatch(fault.hint)
    if told is None:
        return None
    there = re.search(rf"\b{re.escape(told[1])}\s*=\s*[^\s,)]+", text, re.IGNORECASE)
    return None if there is None else f"{text[: there.start()]}{fault.hint}{text[there.end() :]}"


def _command(fault: SkimqlError, text: str) -> str | None:
    """A command with the near one in front, the near name behind, or as the hint has it."""
    command, blank, rest = text.partition(" ")
    if fault.hint.startswith("\\") and fault.message.startswith("there is no command"):
        return f"{fault.hint}{blank}{rest}" if len(fault.hint) > 2 or fault.hint == "\\d" else None
    if fault.hint.startswith(f"{command} "):
        return fault.hint
    missing, told = _MISSING.search(fault.message), _ASSIGNED.fullmatch(fault.hint)
    if missing is not None and re.fullmatch(r"\w+", fault.hint) and missing[1] in rest:
        return f"{command} {rest.replace(missing[1], fault.hint, 1)}"
    if told is not None and rest:
        return f"{command} {told[1]} {told[2]}" if command == "\\set" else f"{command} {told[2]}"
    return None


def _lost_table(fault: SkimqlError, text: str, names: Names) -> str | None:
    """The near table in the place of one that Spark misses."""
    lost = _SPARK_TABLE.search(fault.message)
    return None if lost is None else _replaced(text, lost[1], [t.name for t in names.tables])


def _replaced(text: str, name: str, known: Iterable[str]) -> str | None:
    spelled = {k.lower(): k for k in known}
    near = get_close_matches(name.lower(), list(spelled), 1, 0.7)
    token = next((t for t in tokens(text) if t.text.strip("`").lower() == name.lower()), None)
    if not near or token is None or near[0] == name.lower():
        return None
    return text[: token.start] + spelled[near[0]] + text[token.end :]
