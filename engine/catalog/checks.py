"""Values that stand in files, checked: of just the type that is meant, finite, bounded. All refuse by ValueError."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

T = TypeVar("T")

MOST_TEXT = 1 << 24  # characters of one text: a filter, a path, the stages of a plan
INT64 = 1 << 63


def parse_json(data: bytes) -> Any:
    """JSON as RFC 8259 has it: no NaN, no infinity, no name twice, nothing nested deeper than can be read."""
    try:
        return json.loads(
            data.decode("utf-8"),
            parse_constant=_no_number,
            parse_float=_finite,
            object_pairs_hook=_names_once,
        )
    except RecursionError as fault:
        raise ValueError("it is nested too deeply") from fault


def mapping(value: Any, what: str) -> Mapping[str, Any]:
    """A JSON object."""
    if type(value) is not dict:
        raise ValueError(f"{what} is no object")
    return value


def items(value: Any, what: str, most: int = 1 << 24) -> list[Any]:
    """A JSON array of up to `most` entries."""
    if type(value) is not list or len(value) > most:
        raise ValueError(
            f"{what} is no list" if type(value) is not list else f"{what} is longer than {most:,}"
        )
    return value


def row(value: Any, length: int, what: str) -> list[Any]:
    """A JSON array of just `length` entries."""
    if len(items(value, what)) != length:
        raise ValueError(f"{what} has not {length} entries")
    return value  # type: ignore[no-any-return]


def text(value: Any, what: str, most: int = MOST_TEXT) -> str:
    """Text of up to `most` characters, all of them ones that can be written in UTF-8."""
    if type(value) is not str:
        raise ValueError(f"{what} is no text")
    if len(value) > most:
        raise ValueError(f"{what} is longer than {most:,} characters")
    try:
        value.encode()
    except UnicodeEncodeError as fault:
        raise ValueError(f"{what} holds half a character") from fault
    return value


def texts(value: Any, what: str) -> tuple[str, ...]:
    """A JSON array of texts."""
    return tuple(text(v, what) for v in items(value, what))


def text_pairs(value: Any, what: str) -> tuple[tuple[str, str], ...]:
    """A JSON object of texts, as pairs in the order of their names."""
    return tuple(sorted((text(n, what), text(v, what)) for n, v in mapping(value, what).items()))


def integer(value: Any, low: int, high: int, what: str) -> int:
    """A whole number of the interval [low, high]."""
    if type(value) is not int:
        raise ValueError(f"{what} is no whole number")
    if not low <= value <= high:
        raise ValueError(f"{what} is not between {low:,} and {high:,}")
    return value


def number(value: Any, low: float, what: str) -> float:
    """A finite number from `low` up."""
    if type(value) not in (int, float) or not abs(value) <= 1e308:
        raise ValueError(f"{what} is no finite number")
    if value < low:
        raise ValueError(f"{what} is below {low:g}")
    return float(value)


def boolean(value: Any, what: str) -> bool:
    """true or false."""
    if type(value) is not bool:
        raise ValueError(f"{what} is neither true nor false")
    return value


def optional(value: Any, check: Callable[[Any], T]) -> T | None:
    """null, or what `check` lets through."""
    return None if value is None else check(value)


def one_of(value: Any, known: Iterable[str], what: str) -> str:
    """One of some words."""
    if text(value, what) not in known:
        raise ValueError(f"there is no {what} {value!r}")
    return value  # type: ignore[no-any-return]


def _no_number(word: str) -> Any:
    raise ValueError(f"{word} is no number of JSON")


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"{digits[:20]} is no finite number")
    return value


def _names_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name stands twice in one object")
    return found
