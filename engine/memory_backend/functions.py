"""Scalar functions that are known in memory, by the node that sqlglot makes of each; all others are refused."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from .arithmetic import absolute, arithmetic, rounded, widest
from .casts import cast, local_time
from .comparisons import compare
from .values import (
    Value,
    ValueFault,
    any_true,
    arrow_type,
    by_value,
    is_decimal,
    is_fraction,
    is_integer,
    is_number,
    not_known,
)

Evaluate = Callable[[exp.Expr], Value]
# Parts of nodes that say nothing, or what Spark does anyway.
_SILENT = ("this", "expressions", "safe", "coalesce", "ignore_nulls")


def call(node: exp.Expr, value: Evaluate, zone: str, text: str) -> Value:
    """The value of a function.

    Parameters
    ----------
    node : Expr
    value : callable
        Evaluates an argument.
    zone : str
        The session's time zone.
    text : str
        How the node is written.

    Raises
    ------
    UnsupportedQuery
        For a function, or a form of it, that is not known.
    """
    if isinstance(node, exp.Anonymous):
        made = _ANONYMOUS.get(node.name.lower())
        if made is None or len(node.expressions) != made[0]:
            raise not_known(f"{node.name}()")
        return made[1](*(value(e) for e in node.expressions))
    if type(node) in _DATES:
        return _date_part(_DATES[type(node)], node, value, zone)
    match node:
        case exp.Extract():
            part = node.name.lower()
            if part not in _EXTRACTED:
                raise not_known(text)
            return _part_of(part, value(node.expression), zone)
        case exp.Abs():
            _only(node, text)
            return absolute(value(node.this))
        case exp.Length():
            _only(node, text)
            own = value(node.this)
            size = pc.binary_length(own.data) if own.kind == "binary" else pc.utf8_length(_text(own))
            return Value("int", size.cast(pa.int32()))
        case exp.Upper() | exp.Lower():
            _only(node, text)
            return _cased(_text(value(node.this)), isinstance(node, exp.Upper))
        case exp.Trim():
            return _trimmed(node, value, text)
        case exp.Substring():
            _only(node, text, "start", "length")
            return _substring(node, value)
        case exp.Concat():
            # Two texts side by side are one in another way in every version.
            if not text.lower().startswith("concat"):
                raise not_known(text)
            values = [value(e) for e in node.expressions]
            if any(v.kind == "binary" for v in values):
                raise not_known("concat of bytes")
            parts = [_text(v) for v in values]
            return Value("string", pc.binary_join_element_wise(*parts, ""))
        case exp.Replace():
            _only(node, text, "expression", "replacement")
            return _replaced(node, value)
        case exp.StartsWith() | exp.EndsWith() | exp.Contains():
            _only(node, text, "expression")
            return _found(node, value)
        case exp.Nullif():
            return _null_if(value(node.this), value(node.expression))
        case exp.Nvl2():
            told = value(node.this).data.is_valid()
            return _chosen(told, value(node.args["true"]), value(node.args["false"]), zone)
        case exp.Greatest() | exp.Least():
            return _extreme(
                [value(e) for e in (node.this, *node.expressions)], isinstance(node, exp.Greatest)
            )
        case exp.Floor() | exp.Ceil():
            _only(node, text)
            return _whole(value(node.this), "down" if isinstance(node, exp.Floor) else "up")
        case exp.Round():
            _only(node, text, "decimals")
            return _rounded(node, value)
        case exp.Sqrt():
            _only(node, text)
            return Value("double", pc.sqrt(cast(_number(value(node.this)), "double").data))
        case exp.Sign():
            _only(node, text)
            own = _number(value(node.this))
            if is_decimal(own.kind):
                raise not_known("sign of a decimal")
            number = cast(own, "double").data
            return Value("double", pc.if_else(pc.equal(number, 0.0), number, pc.sign(number)))
        case exp.IsNan():
            own = _number(value(node.this))
            return Value("boolean", pc.is_nan(cast(own, "double").data).fill_null(False))
        case exp.TsOrDsToDate():
            _only(node, text)
            return cast(value(node.this), "date", zone)
        case exp.TsOrDsAdd():
            return _days_later(node, value, zone)
        case exp.DateDiff():
            if set(node.args) - {"this", "expression"} and node.args.get("unit") is not None:
                raise not_known(text)
            days = [cast(value(n), "date", zone).data.cast(pa.int32()) for n in (node.this, node.expression)]
            return Value("int", pc.subtract_checked(*days))
    raise not_known(text or type(node).__name__)


def like(value: Value, pattern: str, escape: str, any_case: bool) -> pa.Array:
    """Whether texts match a pattern of LIKE."""
    made, at = "", 0
    while at < len(pattern):
        sign = pattern[at]
        if sign == escape:
            if at + 1 == len(pattern) or pattern[at + 1] not in ("%", "_", escape):
                raise ValueFault(f"the pattern '{pattern}' has a {escape} before a plain letter")
            made, at = made + re.escape(pattern[at + 1]), at + 2
            continue
        made += ".*" if sign == "%" else "." if sign == "_" else re.escape(sign)
        at += 1
    texts = _text(value)
    if any_case:
        _refuse_beyond_ascii(texts)
    return pc.match_substring_regex(texts, f"(?s)^{made}\\z".replace("\\z", r"\z"), ignore_case=any_case)


def _only(node: exp.Expr, text: str, *known: str) -> None:
    """Refuse a function with an argument that is not known."""
    if any(v for k, v in node.args.items() if k not in (*_SILENT, *known)):
        raise not_known(text)


def _text(value: Value) -> pa.Array:
    return cast(value, "string").data


def _number(value: Value) -> Value:
    if value.kind == "string":
        return cast(value, "double")
    if not is_number(value.kind):
        raise not_known(f"{value.kind} as a number")
    return value


def _refuse_beyond_ascii(texts: pa.Array) -> None:
    if any_true(pc.invert(pc.string_is_ascii(texts))):
        raise not_known("upper and lower case beyond ASCII")


def _cased(texts: pa.Array, upper: bool) -> Value:
    _refuse_beyond_ascii(texts)
    return Value("string", (pc.ascii_upper if upper else pc.ascii_lower)(texts))


def _trimmed(node: exp.Trim, value: Value | Evaluate, text: str) -> Value:
    if any(v for k, v in node.args.items() if k not in ("this", "position", "expression")):
        raise not_known(text)
    letters = " "
    if node.expression is not None:
        if (
            not isinstance(node.expression, exp.Literal)
            or "\\" in text
            or not text.lower().startswith("trim")
        ):
            raise not_known(text)
        letters = str(node.expression.this)
    side = str(node.args.get("position") or "BOTH").upper()
    function = {"BOTH": pc.utf8_trim, "LEADING": pc.utf8_ltrim, "TRAILING": pc.utf8_rtrim}[side]
    assert callable(value), "evaluates"
    return Value("string", function(_text(value(node.this)), characters=letters))


def _constant(node: exp.Expr | None, value: Evaluate) -> int | None:
    """A whole number that is written, or None."""
    inner = node.this if isinstance(node, exp.Neg) else node
    if not isinstance(inner, exp.Literal) or inner.is_string or not inner.name.isdigit():
        return None
    return -int(inner.name) if isinstance(node, exp.Neg) else int(inner.name)


def _substring(node: exp.Substring, value: Evaluate) -> Value:
    texts = _text(value(node.this))
    start, length = _constant(node.args.get("start"), value), None
    if node.args.get("length") is not None:
        length = _constant(node.args["length"], value)
        if length is None:
            raise not_known("substring of a length that is not written")
    if start is None:
        raise not_known("substring from a place that is not written")

    def cut(text: str) -> str:
        first = start - 1 if start > 0 else len(text) + start if start < 0 else 0
        last = len(text) if length is None else first + max(length, 0)
        return text[max(first, 0) : max(last, 0)]

    return Value("string", by_value(texts, cut, pa.string()))


def _replaced(node: exp.Replace, value: Evaluate) -> Value:
    old, new = node.expression, node.args.get("replacement")
    if not (isinstance(old, exp.Literal) and isinstance(new, exp.Literal)) or not old.name:
        raise not_known("replace of what is not written")
    if "\\" in old.name + new.name:
        raise not_known("replace of a text with a backslash")
    return Value("string", pc.replace_substring(_text(value(node.this)), old.name, new.name))


def _found(node: exp.Expr, value: Evaluate) -> Value:
    if not isinstance(node.expression, exp.Literal) or "\\" in node.expression.name:
        raise not_known("a search for what is not written")
    functions: dict[type[exp.Expr], Callable[..., pa.Array]] = {
        exp.StartsWith: pc.starts_with,
        exp.EndsWith: pc.ends_with,
        exp.Contains: pc.match_substring,
    }
    return Value("boolean", functions[type(node)](_text(value(node.this)), node.expression.name))


def _null_if(left: Value, right: Value) -> Value:
    same = compare("=", left, right).data.fill_null(False)
    return Value(left.kind, pc.if_else(same, pa.scalar(None, left.data.type), left.data))


def _chosen(told: pa.Array, yes: Value, no: Value, zone: str) -> Value:
    kind = widest([yes.kind, no.kind])
    return Value(kind, pc.if_else(told, cast(yes, kind, zone).data, cast(no, kind, zone).data))


def _extreme(values: list[Value], greatest: bool) -> Value:
    """GREATEST and LEAST: NULLs are left out, NaN is above every number."""
    kind = widest([v.kind for v in values])
    columns = [cast(v, kind).data for v in values]
    if is_fraction(kind):
        found = columns[0]
        for other in columns[1:]:
            found = _fraction_extreme(found, other, greatest)
        return Value(kind, found)
    if not (is_number(kind) or kind in ("date", "timestamp", "timestamp_ntz")):
        raise not_known(f"greatest of {kind}")
    return Value(
        kind, (pc.max_element_wise if greatest else pc.min_element_wise)(*columns).cast(arrow_type(kind))
    )


def _fraction_extreme(a: pa.Array, b: pa.Array, greatest: bool) -> pa.Array:
    above = pc.or_(pc.greater(a, b), pc.is_nan(a)) if greatest else pc.or_(pc.less(a, b), pc.is_nan(b))
    chosen = pc.if_else(above, a, b)
    return pc.coalesce(chosen, a, b)


def _whole(value: Value, mode: str) -> Value:
    """FLOOR and CEIL: BIGINT of numbers, DECIMAL of decimals."""
    if is_decimal(value.kind):
        return rounded(value, 0, mode)
    if is_integer(value.kind):
        return cast(value, "bigint")
    number = cast(_number(value), "double").data
    whole = (pc.floor if mode == "down" else pc.ceil)(number)
    inside = pc.less(pc.abs(whole), float(1 << 62))
    if any_true(pc.invert(inside)):
        raise not_known("floor and ceil of doubles beyond 64 bits")  # versions of Spark differ
    return Value("bigint", whole.cast(pa.int64()))


def _rounded(node: exp.Round, value: Evaluate) -> Value:
    own = value(node.this)
    places = 0 if node.args.get("decimals") is None else _constant(node.args["decimals"], value)
    if places is None or places < 0:
        raise not_known("round to places that are not written")
    if is_decimal(own.kind):
        return rounded(own, places, "half_towards_infinity")
    if is_integer(own.kind):
        return Value(own.kind, own.data)
    from decimal import ROUND_HALF_UP, Decimal

    def half_up(number: Any) -> float:
        if number != number or abs(number) == float("inf"):
            return float(number)
        return float(Decimal(repr(number)).quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP))

    number = cast(_number(own), "double")
    if own.kind == "float" or any_true(pc.greater(pc.abs(number.data), 1e15)):
        raise not_known("round of such a number")
    return Value("double", by_value(number.data, half_up, pa.float64()))


def _days_later(node: exp.TsOrDsAdd, value: Evaluate, zone: str) -> Value:
    if str(node.args.get("unit")).upper() != "DAY":
        raise not_known("such an interval")
    days = value(node.expression)
    if not is_integer(days.kind) or days.kind == "bigint":
        raise not_known(f"date + {days.kind}")
    start = cast(value(node.this), "date", zone).data.cast(pa.int32())
    return Value("date", pc.add_checked(start, days.data.cast(pa.int32())).cast(pa.date32()))


def _date_part(part: str, node: exp.Expr, value: Evaluate, zone: str) -> Value:
    inner = node.this.this if isinstance(node.this, exp.TsOrDsToDate) else node.this
    if any(v for k, v in node.args.items() if k != "this"):
        raise not_known(f"{part} of several arguments")
    return _part_of(part, value(inner), zone)


def _part_of(part: str, own: Value, zone: str) -> Value:
    if part in ("hour", "minute", "second"):
        moment = own if own.kind == "timestamp_ntz" else cast(own, "timestamp", zone)
        found = getattr(pc, part)(local_time(moment.data, zone))
    else:
        day = cast(own, "date", zone).data
        found = (
            pc.day_of_week(day, count_from_zero=False, week_start=7)
            if part == "day_of_week"
            else getattr(pc, part)(day)
        )
    return Value("int", found.cast(pa.int32()))


def _positive_modulus(left: Value, right: Value) -> Value:
    if not (is_integer(left.kind) and is_integer(right.kind)):
        raise not_known("pmod of such numbers")
    rest = arithmetic("%", left, right)
    divisor = cast(right, rest.kind)
    again = arithmetic(
        "%", arithmetic("+", cast(rest, "bigint"), cast(divisor, "bigint")), cast(divisor, "bigint")
    )
    below = pc.less(rest.data, 0)
    return Value(rest.kind, pc.if_else(below, again.data.cast(rest.data.type), rest.data))


_EXTRACTED = ("year", "quarter", "month", "day", "hour", "minute")
_DATES: dict[type[exp.Expr], str] = {
    exp.Year: "year",
    exp.Month: "month",
    exp.Day: "day",
    exp.DayOfMonth: "day",
    exp.Quarter: "quarter",
    exp.DayOfYear: "day_of_year",
    exp.DayOfWeek: "day_of_week",
    exp.Hour: "hour",
    exp.Minute: "minute",
    exp.Second: "second",
}

# Functions that sqlglot has no node for: how many arguments, and what they do.
_ANONYMOUS: dict[str, tuple[int, Callable[..., Value]]] = {
    "isnull": (1, lambda v: Value("boolean", v.data.is_null())),
    "isnotnull": (1, lambda v: Value("boolean", v.data.is_valid())),
    "pmod": (2, _positive_modulus),
}
