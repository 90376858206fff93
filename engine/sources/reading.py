"""A statement read as Spark would read it: by its settings of double quotes, and none whose meaning is not followed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ...parser.lexing import with_quoted_names
from ...parser.statement import (
    ApproximateSelect,
    EstimateRows,
    ExactSelect,
    Explain,
    parse_statement,
)
from ...parser.syntax import AppendSketch, CreateSketch, CreateSketches, Statement
from .environment import Circumstances
from .settings_followed import DOUBLE_QUOTED, refuse_not_followed

# Statements with expressions that the parser reads before Spark does.
_READ_BY_US = (ApproximateSelect, EstimateRows, Explain, CreateSketch, CreateSketches, AppendSketch)


def read_statement(text: str, circumstances: Callable[[], Circumstances]) -> Statement:
    """One statement, read as a Spark session of some circumstances would read it.

    Raises
    ------
    SkimqlError
        As `parse_statement`, and for a setting of Spark's that gives the text a meaning that is not followed.
    """
    statement = parse_statement(text)
    if not isinstance(statement, _READ_BY_US) or _is_exact(statement):
        return statement
    now = circumstances()
    if '"' in text and now.ansi and (DOUBLE_QUOTED, "true") in now.settings:
        statement = _with_quoted_names(statement)
    if now.settings:
        refuse_not_followed(statement.sql, now.settings)
    return statement


def _with_quoted_names(statement: Statement) -> Statement:
    """The statement with names for its texts in double quotes, but for those in our own clauses of a SELECT."""
    match statement:
        case ApproximateSelect():
            return replace(statement, select_sql=with_quoted_names(statement.select_sql))
        case EstimateRows(select=select):
            return replace(statement, select=replace(select, select_sql=with_quoted_names(select.select_sql)))
        case Explain(statement=ApproximateSelect() | EstimateRows() as inner):
            named = _with_quoted_names(inner)
            assert isinstance(named, (ApproximateSelect, EstimateRows)), "the same statement"
            return replace(statement, statement=named)
    return parse_statement(with_quoted_names(statement.sql))


def _is_exact(statement: Statement) -> bool:
    return isinstance(statement, Explain) and isinstance(statement.statement, ExactSelect)
