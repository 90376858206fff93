"""Numbers as people write them: one reader, with bounds, for SET, OPTIONS, clauses, literals and the command line.

``4096``, ``4,096``, ``4_096`` and ``4k`` are one number, as are ``64 KB`` and ``65536``, ``5%`` and ``0.05``. Units
are powers of 1,024. What is no finite number of some forty characters is refused before it is converted.
"""

from __future__ import annotations

import math
import re

MOST_CHARACTERS = 40
MOST_BYTES = 1 << 50
MOST_SEED = (1 << 63) - 1
MOST_ROWS_SHOWN = (1 << 31) - 1
MOST_PARTITIONS = 1 << 16

# Digits of Spark's widest DECIMAL, as which it reads a number without an exponent; and characters of one with.
MOST_DIGITS = 38
MOST_LITERAL = 400

_UNITS = {"": 0, "B": 0, "K": 1, "M": 2, "G": 3, "T": 4}
_AMOUNT = re.compile(
    r"\s*(?P<number>(?:[0-9]+(?:[_,][0-9]+)*(?:\.[0-9]*)?|\.[0-9]+)(?:E[+-]?[0-9]+)?)"
    r"\s*(?P<unit>%|[KMGT](?:I?B)?|B)?\s*",
    re.IGNORECASE,
)


class BadNumber(ValueError):
    """A text that is no number of the kind that is wanted; the message says why, behind the text itself."""


def whole(text: str, least: int = 0, most: int = MOST_SEED) -> int:
    """A whole number, as ``4096``, ``4,096``, ``4k`` or ``1e4``.

    Raises
    ------
    BadNumber
        If it is none, or not from `least` to `most`.
    """
    plain = text.strip()
    if plain.isascii() and plain.isdigit() and len(plain) <= MOST_CHARACTERS:
        value = int(plain)
    else:
        amount = _amount(text, "kmgt")
        if amount != int(amount):
            raise BadNumber("is not a whole number")
        value = int(amount)
    if not least <= value <= most:
        raise BadNumber(f"is out of range, which is {least:,} to {most:,}")
    return value


def byte_count(text: str, least: int = 1) -> int:
    """A number of bytes, as ``8388608``, ``8 MB``, ``8MiB`` or ``0.5 GB``.

    Raises
    ------
    BadNumber
        If it is none, or not from `least` to `MOST_BYTES`.
    """
    value = int(_amount(text, "bkmgt"))
    if not least <= value <= MOST_BYTES:
        raise BadNumber(f"is out of range, which is {_bytes_text(least)} to {MOST_BYTES >> 40:,} TB")
    return value


def share(text: str) -> float:
    """A share strictly between 0 and 1, as ``5%`` or ``0.05``.

    Raises
    ------
    BadNumber
        If it is none.
    """
    value = _amount(text, "%")
    if not 0 < value < 1:
        raise BadNumber("must lie between 0 and 1 (0% and 100%)")
    return value


def meant_percent(text: str) -> str:
    """``5%`` for 5: what is likely to be meant by a share of more than all; empty if nothing is."""
    try:
        value = _amount(text, "")
    except BadNumber:
        return ""
    return f"{value:g}%" if 1 <= value < 100 else ""


def literal_fault(text: str) -> str:
    """Why Spark has no such number, where `text` is a number of a SELECT; empty if it has."""
    exponent = "e" in text.lower()
    if exponent and not _AMOUNT.fullmatch(text):
        return f"{text[:MOST_CHARACTERS]} is no number"
    if len(text) > MOST_LITERAL or (not exponent and len(text.replace(".", "").lstrip("0")) > MOST_DIGITS):
        return f"a number of {len(text):,} characters; Spark's have at most {MOST_DIGITS} digits"
    if exponent and not math.isfinite(float(text)):
        return f"{text} is larger than any DOUBLE"
    return ""


def _amount(text: str, units: str) -> float:
    shown = text.strip()
    if len(shown) > MOST_CHARACTERS:
        raise BadNumber(f"is {len(shown):,} characters long; a number has at most {MOST_CHARACTERS}")
    found = _AMOUNT.fullmatch(text)
    if found is None:
        raise BadNumber("is not a number")
    unit = (found["unit"] or "").upper()
    if unit and unit[0].lower() not in units:
        raise BadNumber(f"has a unit, {unit}, that is none here")
    value = float(re.sub("[_,]", "", found["number"]))
    if not math.isfinite(value):
        raise BadNumber("is too large")
    return value / 100 if unit == "%" else value * 1024.0 ** _UNITS[unit[:1]]


def _bytes_text(count: int) -> str:
    return f"{count >> 10:,} KB" if count >= 1024 else f"{count:,} byte{'s' if count != 1 else ''}"
