"""How many rows would a join of two DataFrames have? Asked before it runs."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...errors import BudgetExceeded, UnknownName, UnsupportedQuery
from ..results.answer import Answer
from ..results.display import format_cell
from ..sources.spark_tables import is_frame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LEFT, RIGHT = "skimql guard left", "skimql guard right"

# A column that both have, pairs of a left and a right one, or conditions such as ``a.k == b.k``; one or several.
On = Any


def guard(
    ask: Callable[[Mapping[str, DataFrame], str], Answer],
    left: DataFrame,
    right: DataFrame,
    on: On,
    most: float | None = None,
) -> Answer:
    """Estimate the rows of an inner join, and refuse it where there would be too many.

    Parameters
    ----------
    ask : function
        Gives the answer to a statement over DataFrames by name, which are no tables of the user's.
    left, right : DataFrame
    on : str, Column or sequence
        The join keys: names that both have, pairs of a left and a right name, or equalities ``left.k == right.j``.
    most : float, optional
        The estimate may not exceed this.

    Raises
    ------
    BudgetExceeded
        ``SKIMQL_JOIN_TOO_LARGE``, if it does.
    UnknownName
        If a frame has no such column.
    UnsupportedQuery
        If `on` is not made of names.
    """
    for frame in (left, right):
        if not is_frame(frame):
            raise _refused(f"a join of DataFrames is guarded, and {type(frame).__name__} is none")
    if most is not None and (
        isinstance(most, bool) or not isinstance(most, (int, float)) or math.isnan(most)
    ):
        raise _refused(f"most is a number of rows, not {most!r}")
    pairs = [
        pair
        for one in (list(on) if isinstance(on, (list, tuple)) and not _is_pair(on) else [on])
        for pair in _pairs(one, left.columns, right.columns)
    ]
    if not pairs:
        raise _refused("a join is guarded on columns")
    for frame, names in ((left, [a for a, _ in pairs]), (right, [b for _, b in pairs])):
        known = {c.lower() for c in frame.columns}
        for name in names:
            if name.lower() not in known:
                raise UnknownName(f"there is no column {name}", hint=", ".join(frame.columns))
    condition = " AND ".join(f"l.{_quoted(a)} = r.{_quoted(b)}" for a, b in pairs)
    statement = f"ESTIMATE ROWS FOR SELECT * FROM `{LEFT}` l JOIN `{RIGHT}` r ON {condition}"
    answer = ask({LEFT: left, RIGHT: right}, statement)
    if most is not None and answer.value > most:
        raise BudgetExceeded(
            f"the join would have {format_cell(answer.rows[0][0])} rows, more than {most:,.0f}",
            "SKIMQL_JOIN_TOO_LARGE",
            hint="filter a side, join on more columns, or aggregate before joining",
        )
    return answer


def _is_pair(on: Sequence[Any]) -> bool:
    """A tuple of two names is a pair; two names that both have stand in a list."""
    return isinstance(on, tuple) and len(on) == 2 and all(isinstance(n, str) for n in on)


def _pairs(on: Any, left: Sequence[str], right: Sequence[str]) -> list[tuple[str, str]]:
    """Left and right names of one entry of `on`."""
    if isinstance(on, str):
        return [(on, on)]
    if isinstance(on, (list, tuple)) and len(on) == 2 and all(isinstance(n, str) for n in on):
        return [(on[0], on[1])]
    if not (hasattr(on, "eqNullSafe") and hasattr(on, "alias")):
        raise _refused(f"a join is guarded on columns, and {on!r} is none")
    shown = re.fullmatch(r"Column<'(.*)'>", str(on), re.DOTALL)
    return [_sides(a, b, left, right) for a, b in _equalities(shown[1] if shown else "", str(on))]


def _equalities(text: str, whole: str) -> list[tuple[str, str]]:
    """The two names of each equality of a condition, as Spark prints it: ``((a = b) AND (c = d))``, or ``=(a, b)``."""
    text = text.strip()
    if text.startswith("(") and text.endswith(")"):
        inner = text[1:-1]
        for word, found in (("AND", _equalities), ("=", None)):
            at = _outside(inner, f" {word} ")
            if at is not None:
                one, other = inner[:at], inner[at + len(word) + 2 :]
                if found is not None:
                    return [*found(one, whole), *found(other, whole)]
                return [(one.strip(), other.strip())]
    called = re.match(r"(`?=`?|==|and|AND)\(", text)
    if called is not None and text.endswith(")"):
        inner = text[called.end() : -1]
        at = _outside(inner, ", ")
        if at is not None:
            one, other = inner[:at], inner[at + 2 :]
            if called[1].lower() == "and":
                return [*_equalities(one, whole), *_equalities(other, whole)]
            return [(one, other)]
    raise _refused(f"{whole} is no equality of two columns")


def _outside(text: str, word: str) -> int | None:
    """Where a word stands first outside of parentheses."""
    depth = 0
    for i, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if depth == 0 and text.startswith(word, i):
            return i
    return None


def _sides(one: str, other: str, left: Sequence[str], right: Sequence[str]) -> tuple[str, str]:
    """Which of two names is the left frame's; refused where either may be."""

    def known(name: str, columns: Sequence[str]) -> str | None:
        plain = name.replace("`", "")
        return next(
            (c for c in columns if c.lower() in (plain.lower(), plain.rpartition(".")[2].lower())), None
        )

    straight = known(one, left), known(other, right)
    turned = known(other, left), known(one, right)
    if None not in straight and None not in turned and one.lower() != other.lower():
        raise _refused(f"{one} = {other}: both sides have both columns")
    a, b = turned if None in straight else straight
    if a is None or b is None:
        raise _refused(f"{one} = {other} is no equality of a left and a right column")
    return a, b


def _refused(why: str) -> UnsupportedQuery:
    return UnsupportedQuery(why, "SKIMQL_GUARD_ON", hint="on='k', on=[('a', 'b')], or on=left.a == right.b")


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
