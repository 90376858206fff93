"""How many rows would a join of two DataFrames have? Asked before it runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..errors import BudgetExceeded, UnknownName, UnsupportedQuery
from .answer import Answer
from .shown import format_cell

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from .session import Session

LEFT, RIGHT = "skimql guard left", "skimql guard right"

On = str | Sequence[str | tuple[str, str]]


def guard(session: Session, left: DataFrame, right: DataFrame, on: On, most: float | None = None) -> Answer:
    """Estimate the rows of an inner join, and refuse it where there would be too many.

    Parameters
    ----------
    session : Session
        Whose Spark and settings are used; the frames need not be registered, and are not afterwards.
    left, right : DataFrame
    on : str or sequence
        Names of the key columns: one that both have, several, or pairs of a left and a right one.
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
    pairs = [(k, k) if isinstance(k, str) else k for k in ([on] if isinstance(on, str) else list(on))]
    if not pairs or not all(isinstance(name, str) for pair in pairs for name in pair):
        raise UnsupportedQuery(
            "a join is guarded on columns by name", "SKIMQL_GUARD_ON", hint="on='k', or on=[('a', 'b')]"
        )
    for frame, names in ((left, [a for a, _ in pairs]), (right, [b for _, b in pairs])):
        known = {c.lower() for c in frame.columns}
        for name in names:
            if name.lower() not in known:
                raise UnknownName(f"there is no column {name}", hint=", ".join(frame.columns))
    condition = " AND ".join(f"l.{_quoted(a)} = r.{_quoted(b)}" for a, b in pairs)
    apart = type(session)(session.spark, session.settings, session.listener)
    apart.table(LEFT, left)
    apart.table(RIGHT, right)
    answer = apart.sql(f"ESTIMATE ROWS FOR SELECT * FROM `{LEFT}` l JOIN `{RIGHT}` r ON {condition}")
    assert isinstance(answer, Answer), "ESTIMATE ROWS gives an answer"
    if most is not None and answer.value > most:
        raise BudgetExceeded(
            f"the join would have {format_cell(answer.rows[0][0])} rows, more than {most:,.0f}",
            "SKIMQL_JOIN_TOO_LARGE",
            hint="filter a side, join on more columns, or aggregate before joining",
        )
    return answer


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
