"""The type in which Spark compares two values with ``=``, without asking Spark.

The rules are those of Spark 4's analyser, in both settings of ``spark.sql.ansi.enabled``; the tests hold
this table against analysed plans for every pair of types. Types are ``simpleString`` forms. VARCHAR
compares as text. So does CHAR beside anything else, with the blanks it is padded to; two columns of CHAR,
and CHAR beside a literal, are equal whatever the number of blanks at their ends: Spark pads the shorter.
"""

from __future__ import annotations

from dataclasses import dataclass

INTEGRAL_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
FRACTIONAL = ("float", "double")
DATETIMES = ("date", "timestamp", "timestamp_ntz")
MAX_PRECISION = 38
# The type in which two columns of CHAR are compared: text without the blanks at its end.
PADDED = "char"
_INCOMPARABLE = "Spark does not compare"


@dataclass(frozen=True, slots=True)
class Comparison:
    """The type ``left = right`` is compared in, or None and the reason; a warning if that loses.

    `zoned` says that the session time zone decides which values are equal.
    """

    type: str | None
    reason: str = ""
    warning: str = ""
    zoned: bool = False

    @property
    def way_out(self) -> str:
        """What to do where there is no type: Spark does compare some that cannot be keys, as text under a collation."""
        if self.reason.startswith(_INCOMPARABLE):
            return "CAST one side to the type of the other"
        return "EXACT SELECT ..."


def common_type(left: str, right: str, ansi: bool) -> Comparison:
    """The common type of two types under ``=``.

    Parameters
    ----------
    left, right : str
        Spark types in ``simpleString`` form, such as ``decimal(10,2)``, ``string collate UTF8_LCASE``.
    ansi : bool
        ``spark.sql.ansi.enabled``.

    Returns
    -------
    Comparison
        `type` is None where Spark refuses the comparison, or where equal values may have unequal bytes
        (collations, maps); `reason` says which.
    """
    left, right = _plain(left), _plain(right)
    if is_padded(left) and is_padded(right):
        return Comparison(PADDED)
    left, right = ("string" if is_padded(t) else t for t in (left, right))
    collated = next((t for t in (left, right) if " collate " in t), None)
    if collated is not None:
        if all(t == "void" or t.startswith("string") for t in (left, right)):
            name = collated.split()[-1]
            return Comparison(None, f"text under the collation {name} has equal values of unequal bytes")
        # Against another type the text is cast to that type, and the collation no longer matters.
        left, right = ("string" if " collate " in t else t for t in (left, right))
    for one in (t for t in (left, right) if t.startswith(("map<", "variant", "array<", "struct<"))):
        if one.startswith(("map<", "variant")) or not all(
            t.startswith((one[:6], "void")) for t in (left, right)
        ):
            return _incomparable(left, right)
        return Comparison(None, f"values of type {one} cannot be join keys here")
    if left == right:
        return Comparison(left)
    return _mixed(left, right, ansi) or _mixed(right, left, ansi) or _incomparable(left, right)


def is_padded(name: str) -> bool:
    """Whether values of the type are padded with blanks to a common length before they are compared."""
    return name == PADDED or name.lower().startswith("char(")


def _plain(name: str) -> str:
    """VARCHAR as string, spellings of the same type as one."""
    name = " ".join(name.strip().split())
    low = name.lower()
    if low.startswith(("char(", "varchar(")) and " collate " in low:
        name = "string " + name[low.index("collate ") :]
        low = name.lower()
    if low.startswith("string collate "):
        return "string" if low.endswith(" utf8_binary") else "string collate " + name.split()[-1]
    if low.startswith("varchar("):
        return "string"
    if low.startswith("decimal") and "(" not in low:
        return "decimal(10,0)"
    return low.replace(" ", "") if low.startswith("decimal") else low


def _incomparable(left: str, right: str) -> Comparison:
    return Comparison(None, f"{_INCOMPARABLE} {left} with {right}")


def _mixed(left: str, right: str, ansi: bool) -> Comparison | None:
    """The rule for two different types, if there is one with `left` on this side."""
    if left == "void":
        return Comparison(right)
    if left in INTEGRAL_DIGITS:
        return _integer_with(left, right, ansi)
    if left == "float" and right == "double":
        return Comparison("double")
    if left in FRACTIONAL and right == "boolean" and not ansi:
        return Comparison(left)
    if left.startswith("decimal"):
        return _decimal_with(left, right, ansi)
    if left == "string":
        return _text_with(right, ansi)
    if left == "date" and right in DATETIMES:
        return Comparison(right, zoned=right == "timestamp")
    if left == "timestamp" and right == "timestamp_ntz":
        return Comparison("timestamp", zoned=True)
    if left.startswith("interval ") and right.startswith("interval "):
        return _intervals(left, right)
    return None


def _integer_with(left: str, right: str, ansi: bool) -> Comparison | None:
    if right in INTEGRAL_DIGITS:
        return Comparison(max(left, right, key=lambda t: INTEGRAL_DIGITS[t]))
    if right in FRACTIONAL:
        name = "double" if ansi else right
        exact = 53 if name == "double" else 24
        bits = {"tinyint": 7, "smallint": 15, "int": 31, "bigint": 63}[left]
        if bits > exact:
            note = f"Spark compares {left} with {right} as {name}"
            return Comparison(name, warning=f"{note}: integers beyond 2^{exact} that differ may be equal")
        return Comparison(name)
    if right.startswith("decimal"):
        return Comparison(_wider_decimal(f"decimal({INTEGRAL_DIGITS[left]},0)", right))
    if right == "boolean" and not ansi:
        return Comparison(left)
    return None


def _decimal_with(left: str, right: str, ansi: bool) -> Comparison | None:
    if right.startswith("decimal"):
        name = _wider_decimal(left, right)
        lossy = max(_digits(t)[1] for t in (left, right)) > _digits(name)[1]
        note = f"Spark compares {left} with {right} as {name}: digits behind the point are lost"
        return Comparison(name, warning=note if lossy else "")
    if right in FRACTIONAL:
        return Comparison("double", warning=_decimal_loss(left, right))
    if right == "boolean" and not ansi:
        return Comparison(left)
    return None


def _decimal_loss(name: str, other: str) -> str:
    if _digits(name)[0] <= 15:
        return ""
    return f"Spark compares {name} with {other} as double: values that differ beyond 15 digits may be equal"


def _text_with(right: str, ansi: bool) -> Comparison | None:
    if right in INTEGRAL_DIGITS:
        return Comparison("bigint" if ansi else right)
    if right in FRACTIONAL:
        return Comparison("double" if ansi else right)
    if right.startswith("decimal"):
        keeps = not ansi and _digits(right)[1] == 0
        return Comparison(right) if keeps else Comparison("double", warning=_decimal_loss(right, "string"))
    if right in ("boolean", "binary", *DATETIMES):
        return Comparison(right, zoned=right == "timestamp")
    return None


def _digits(name: str) -> tuple[int, int]:
    precision, scale = name[len("decimal(") : -1].split(",")
    return int(precision), int(scale)


def _wider_decimal(left: str, right: str) -> str:
    """Spark's wider decimal: room for the digits of both, those before the point first."""
    (p1, s1), (p2, s2) = _digits(left), _digits(right)
    scale, integral = max(s1, s2), max(p1 - s1, p2 - s2)
    precision = scale + integral
    excess = max(0, precision - MAX_PRECISION)
    return f"decimal({precision - excess},{max(0, scale - excess)})"


_UNITS = {"year": 0, "month": 1, "day": 0, "hour": 1, "minute": 2, "second": 3}


def _intervals(left: str, right: str) -> Comparison | None:
    """Intervals of one family (year-month, day-time) compare in the span of both."""
    ends = [name.removeprefix("interval ").split(" to ") for name in (left, right)]
    units = [u for e in ends for u in e]
    if any(u not in _UNITS for u in units):
        return None
    families = {u in ("year", "month") for u in units}
    if len(families) != 1:
        return None
    first, last = min(units, key=_UNITS.__getitem__), max(units, key=_UNITS.__getitem__)
    return Comparison(f"interval {first}" if first == last else f"interval {first} to {last}")
