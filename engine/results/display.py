"""Answers for people: cells as text, tables of such cells, HTML for notebooks."""

from __future__ import annotations

import datetime
import html
import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol

from ...sketches.intervals.interval import Estimate
from .columns import ResultColumn, relative_error, typed, unique

if TYPE_CHECKING:
    import pyarrow as pa

WHOLE_IN_DOUBLE = 1 << 53


class Shown(Protocol):
    """What is shown of an answer; its attributes are those of `Answer`."""

    @property
    def columns(self) -> tuple[str, ...]: ...
    @property
    def rows(self) -> tuple[tuple[Any, ...], ...]: ...
    @property
    def notes(self) -> tuple[str, ...]: ...
    @property
    def is_text(self) -> bool: ...
    @property
    def bounds(self) -> bool: ...
    @property
    def brief(self) -> tuple[str, ...]: ...
    @property
    def compared(self) -> tuple[tuple[Any, ...] | None, ...] | None: ...
    @property
    def uncertain(self) -> tuple[bool, ...] | None: ...
    @property
    def estimated(self) -> tuple[bool, ...]: ...
    @property
    def result(self) -> tuple[ResultColumn, ...]: ...
    def type_of(self, position: int) -> pa.DataType | None: ...


@dataclass(frozen=True, slots=True)
class Grid:
    """A table of text: its header, its rows, and which columns are numbers, to be set flush right."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: tuple[bool, ...]


def grid(answer: Shown) -> Grid:
    """The answer as a table; where it was compared, a row for each aggregate, its exact value beside it."""
    if answer.compared is not None:
        return _compared(answer)
    all_names, names = unique(answer.columns)
    places = [i for i, name in enumerate(all_names) if not answer.brief or name in answer.brief]
    own = tuple(all_names[i] for i in places)
    shown = [tuple(_cell(answer, i, row[i]) for i in places) for row in answer.rows]
    numeric = tuple(_is_numeric(answer, i) for i in places)
    unsure_rows = answer.uncertain or ()
    # A column of nothing but "no" tells a reader nothing; programs have it in any case.
    if not answer.bounds or not any(unsure_rows):
        return Grid(own, tuple(shown), numeric)
    marked = zip(shown, unsure_rows, strict=True)
    return Grid(
        (*own, names.free("uncertain")),
        tuple((*row, "yes" if unsure else "no") for row, unsure in marked),
        (*numeric, False),
    )


def as_text(answer: Shown) -> str:
    """The answer in lines, its notes below."""
    notes = [f"note: {n}" for n in answer.notes]
    if answer.is_text:
        return "\n".join([str(answer.rows[0][0]), *notes])
    names, _ = unique(answer.columns)
    lines = []
    for number, row in enumerate(answer.rows):
        cells = [
            f"{name} = {_cell(answer, i, cell)}{_beside(answer, number, i)}"
            for i, (name, cell) in enumerate(zip(names, row, strict=True))
        ]
        if len(answer.rows) == 1 and answer.uncertain is None:
            lines += cells
        else:
            unsure = answer.uncertain is not None and answer.uncertain[number]
            lines.append(", ".join(cells) + (" (uncertain)" if unsure else ""))
    return "\n".join([*lines, *notes])


def as_html(answer: Shown) -> str:
    """The answer as an HTML table, an interval as a small bar beside its value."""
    notes = "".join(f"<p><small>{html.escape(n)}</small></p>" for n in answer.notes)
    if answer.is_text:
        return f"<pre>{html.escape(str(answer.rows[0][0]))}</pre>{notes}"
    table = grid(answer)
    bars = answer.compared is None
    head = "".join(f"<th>{html.escape(c)}</th>" for c in table.header)
    body = ""
    for number, row in enumerate(table.rows):
        cells = answer.rows[number] if bars else ()
        body += "<tr>"
        for i, text in enumerate(row):
            style = ' style="text-align: right"' if table.numeric[i] else ""
            bar = _range_svg(cells[i]) if i < len(cells) else ""
            body += f"<td{style}>{html.escape(text)}{bar}</td>"
        body += "</tr>"
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{notes}"


def format_cell(cell: Any, kind: pa.DataType | None = None) -> str:
    """A cell as people read it: an estimate rounded to the digits that its interval supports, all else in full."""
    if not isinstance(cell, Estimate):
        return cell_text(cell)
    width = float(max(cell.high - cell.value, cell.value - cell.low))
    if width == 0 or math.isnan(cell.value):
        return number_text(typed(cell, kind))
    if math.isinf(width):
        return f"{cell.value:,.4g} (no bound)"
    places = 1 - math.floor(math.log10(width))
    if kind is not None and str(kind).startswith("int"):
        places = min(places, 0)
    shown = max(places, 0)
    return f"{round(cell.value, places):,.{shown}f} ± {_round_up(width, places):,.{shown}f}"


def number_text(value: Any) -> str:
    """A number with all its digits, in thousands; anything else as `cell_text`."""
    if isinstance(value, Fraction):
        value = float(value)
    if isinstance(value, Decimal) and value.is_finite():
        return f"{value:,f}"
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return cell_text(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < WHOLE_IN_DOUBLE:
        return f"{value:,.0f}"
    return f"{value:,}"


def cell_text(value: Any) -> str:
    """A value as Spark shows it: years without separators, times without their zone, which is the session's."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Decimal) and value.is_finite():
        return f"{value:f}"
    if isinstance(value, datetime.datetime):
        text = value.replace(tzinfo=None).isoformat(" ")
        return text.rstrip("0") if "." in text else text
    if isinstance(value, bytes):
        return value.hex()
    return str(value)


def exact_text(answer: Shown, row: int, position: int) -> str:
    """The exact value beside an estimate of a compared answer."""
    truths = None if answer.compared is None else answer.compared[row]
    return "no such row" if truths is None else number_text(truths[position])


def _cell(answer: Shown, position: int, cell: Any) -> str:
    if isinstance(cell, Estimate):
        return format_cell(cell, answer.type_of(position))
    return number_text(cell) if answer.estimated[position] else cell_text(cell)


def _beside(answer: Shown, number: int, position: int) -> str:
    """What a compared answer says behind an estimate."""
    if answer.compared is None or not answer.estimated[position]:
        return ""
    _, exact, error, _ = _compared_cells(answer, number, position)
    return f" (exact {exact}" + ("" if error == "-" else f", error {error}") + ")"


def _compared(answer: Shown) -> Grid:
    own, _ = unique(answer.columns)
    estimated = answer.estimated
    plain = [i for i in range(len(own)) if not estimated[i]]
    rows = []
    for number, row in enumerate(answer.rows):
        group = [cell_text(row[i]) for i in plain]
        rows += [
            (*group, name, *_compared_cells(answer, number, i)) for i, name in enumerate(own) if estimated[i]
        ]
    header = (*(own[i] for i in plain), "", "estimate", "exact", "error", "in the interval")
    return Grid(
        header, tuple(rows), (*(_is_numeric(answer, i) for i in plain), False, True, True, True, False)
    )


def _compared_cells(answer: Shown, number: int, position: int) -> tuple[str, str, str, str]:
    """Estimate, exact value, error, and whether the interval holds the exact value."""
    cell, kind = answer.rows[number][position], answer.type_of(position)
    estimate, exact = _cell(answer, position, cell), exact_text(answer, number, position)
    truths = None if answer.compared is None else answer.compared[number]
    if truths is None:
        # HAVING or LIMIT leaves the group out of the exact result, or it is not there at all.
        return estimate, exact, "-", "-"
    truth = truths[position]
    error = relative_error(typed(cell, kind), truth)
    told = "-" if error is None else f"{100 * error:.2f} %"
    if not isinstance(cell, Estimate):
        # Run exactly, or left out.
        return estimate, exact, told, "-" if cell is None else "yes" if cell == truth else "no"
    if truth is None or math.isnan(cell.value) or not isinstance(truth, (int, float, Decimal)):
        inside = "yes" if truth is None and math.isnan(cell.value) else "-"
    else:
        slack = _rounding(truth)
        inside = "yes" if cell.low - slack <= float(truth) <= cell.high + slack else "no"
    return estimate, exact, told, inside


def _rounding(truth: Any) -> float:
    """How far Spark's own rounding may have moved an exact value: half a unit of a DECIMAL's last place."""
    if isinstance(truth, Decimal):
        exponent = truth.as_tuple().exponent
        return 0.5 * 10.0**exponent if isinstance(exponent, int) else 0.0
    return 1e-12 * abs(float(truth))


def _is_numeric(answer: Shown, position: int) -> bool:
    values = [row[position] for row in answer.rows]
    return any(v is not None for v in values) and all(
        v is None or (isinstance(v, (int, float, Decimal, Estimate)) and not isinstance(v, bool))
        for v in values
    )


def _round_up(width: float, places: int) -> float:
    step = 10.0**-places
    return math.ceil(width / step - 1e-9) * step


def _range_svg(cell: Any) -> str:
    """A small bar from 0 to the upper end, the interval dark in it."""
    if not isinstance(cell, Estimate) or cell.low == cell.high or math.isnan(cell.value):
        return ""
    left, right = min(0.0, cell.low), max(0.0, cell.high)
    if right <= left or math.isinf(right - left):
        return ""
    a = 120 * (cell.low - left) / (right - left)
    b = 120 * (cell.high - left) / (right - left)
    at = 120 * (cell.value - left) / (right - left)
    return (
        '<br><svg width="120" height="8"><rect width="120" height="2" y="3" fill="#ddd"/>'
        f'<rect x="{a:.1f}" y="2" width="{max(b - a, 1):.1f}" height="4" fill="#68a"/>'
        f'<rect x="{at:.1f}" width="1" height="8" fill="#000"/></svg>'
    )


def labels(names: Sequence[str], row: Sequence[Any], plain: Sequence[int]) -> str:
    """The group of a row in one line: its only value, or name and value of each."""
    if len(plain) == 1:
        return cell_text(row[plain[0]])
    return ", ".join(f"{names[i]} = {cell_text(row[i])}" for i in plain)
