"""Results as text: tables for people, csv, tsv, json, jsonl, markdown and vertical for whatever reads them."""

from __future__ import annotations

import csv
import datetime
import io
import json
import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, TextIO

from .. import Answer, Estimate, format_cell

# A table on a terminal is read by eye; more rows than this are cut, and the cut is said.
MOST_TABLE_ROWS = 1000


def default_format(sink: TextIO) -> str:
    """The format where none is asked for: a table on a terminal, else csv."""
    return "table" if sink.isatty() else "csv"


def render(result: Any, output: str, sink: TextIO) -> None:
    """Write an `Answer` or a Spark DataFrame to `sink` in one of `FORMATS`."""
    if isinstance(result, Answer):
        if output == "table":
            _answer_table(result, sink)
            return
        columns, rows = (result.columns, result.rows)
        if not result.exact:
            columns, rows = result.names, tuple(tuple(r.values()) for r in result.records())
    else:
        arrow = result.limit(MOST_TABLE_ROWS + 1).toArrow() if output == "table" else result.toArrow()
        columns = tuple(arrow.column_names)
        rows = tuple(zip(*(c.to_pylist() for c in arrow.columns), strict=True))
        if not columns:
            return
    FORMATS[output](columns, rows, sink)


def foot_line(answer: Answer) -> str:
    """One line on how the numbers came about; the empty text where there is nothing to say."""
    seconds = answer.seconds
    if answer.exact and "exact" not in seconds:
        return f"built in {seconds['build']:.1f} s" if "build" in seconds else ""
    if answer.exact or answer.plan is None:
        return f"exact, {seconds.get('exact', 0.0):.1f} s"
    plan = answer.plan
    sizes = sorted(
        {
            "keys sampled" if plan.sample else f"{s.method} {s.rows} x {s.buckets:,}"
            for s in plan.synopses
            if s.attributes
        }
    )
    cells = [c for row in answer.rows for c in row if isinstance(c, Estimate)]
    confidences = sorted({c.confidence for c in cells if not c.exact})
    parts = [
        " and ".join(f"{100 * c:g} %" for c in confidences) + " interval"
        if confidences
        else "exact: few enough keys to keep them all",
        _synopses(len(plan.synopses), sizes, bool(confidences)),
        _bytes(answer.bytes_used),
        f"build {seconds.get('build', 0.0):.1f} s, answer {1000 * seconds.get('answer', 0.0):.1f} ms",
    ]
    if "exact" in seconds:
        parts.append(f"exact {seconds['exact']:.1f} s")
    if not all(c.certified for c in cells):
        parts.append("not certified")
    return "; ".join(parts)


def _synopses(number: int, sizes: Sequence[str], sketched: bool) -> str:
    if not sizes:
        return "totals"
    what = "sketch" if sketched else "key map"
    plural = "" if number == 1 else "es" if sketched else "s"
    text = f"{number} {what}{plural}"
    return f"{text} ({', '.join(sizes)})" if sketched else text


def _bytes(size: int) -> str:
    return f"{size / 1024:,.0f} KB" if size >= 1024 else f"{size} B"


def _answer_table(answer: Answer, sink: TextIO) -> None:
    if answer.columns == ("plan",):
        # A plan is a text of its own layout.
        sink.write(answer.value + "\n")
        return
    if answer.compared is None:
        rows = [[format_cell(c) for c in row] for row in answer.rows]
        columns = answer.columns
        if answer.uncertain is not None and answer.bounds:
            columns = (*columns, "uncertain")
            rows = [[*row, "yes" if u else "no"] for row, u in zip(rows, answer.uncertain, strict=True)]
        _text_table(columns, rows, sink)
    else:
        compared_table(answer, sink)


def compared_table(answer: Answer, sink: TextIO) -> None:
    """Each aggregate of a compared answer in a row: estimate, exact value, error, whether the interval holds it.

    In front stand the columns that a query groups by.
    """
    assert answer.compared is not None, "an answer of Session.compare"
    plain = [i for i, is_estimate in enumerate(answer.estimated) if not is_estimate]
    rows = []
    for row, exact in zip(answer.rows, answer.compared, strict=True):
        group = [format_cell(row[i]) for i in plain]
        for i, name in enumerate(answer.columns):
            if i not in plain:
                rows.append([*group, *_compared_row(name, row[i], exact, i)])
    header = (*(answer.columns[i] for i in plain), "", "estimate", "exact", "error", "in the interval")
    _text_table(header, rows, sink)


def _compared_row(name: str, cell: Any, exact: Sequence[Any] | None, position: int) -> list[str]:
    from .. import relative_error

    if exact is None:
        # HAVING or LIMIT leaves the group out of the exact result, or it is not there at all.
        return [name, format_cell(cell), "no such row", "-", "-"]
    truth = exact[position]
    if not isinstance(cell, Estimate):
        return [name, format_cell(cell), _exact_text(truth), "-", "-"]
    error = relative_error(cell.value, truth)
    if truth is None or math.isnan(cell.value):
        inside = "yes" if truth is None and math.isnan(cell.value) else "-"
    else:
        slack = _rounding(truth)
        inside = "yes" if cell.low - slack <= float(truth) <= cell.high + slack else "no"
    return [
        name,
        format_cell(cell),
        _exact_text(truth),
        "-" if error is None else f"{100 * error:.2f} %",
        inside,
    ]


def _rounding(truth: Any) -> float:
    """How far Spark's own rounding may have moved an exact value: half a unit of a DECIMAL's last place."""
    if isinstance(truth, Decimal):
        exponent = truth.as_tuple().exponent
        return 0.5 * 10.0**exponent if isinstance(exponent, int) else 0.0
    return 1e-12 * abs(float(truth))


def _exact_text(truth: Any) -> str:
    """An exact value beside an estimate: as many digits as anyone compares."""
    return f"{truth:,.6g}" if isinstance(truth, float) and abs(truth) < 1e6 else format_cell(truth)


def _text_table(columns: Sequence[str], rows: Sequence[Sequence[Any]], sink: TextIO) -> None:
    # Late: it takes longer to import than to print an answer.
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for i, name in enumerate(columns):
        numeric = all(isinstance(r[i], (int, float, Decimal)) or _looks_numeric(r[i]) for r in rows)
        table.add_column(name, justify="right" if rows and numeric else "left", overflow="fold")
    for row in rows[:MOST_TABLE_ROWS]:
        table.add_row(*(v if isinstance(v, str) else format_cell(v) for v in row))
    # Piped, a table is as wide as its content; on a terminal it folds into the window.
    width = None if sink.isatty() else 10_000
    console = Console(file=sink, width=width, highlight=False, markup=False, emoji=False)
    console.print(table)
    if len(rows) > MOST_TABLE_ROWS:
        console.print(f"... the first {MOST_TABLE_ROWS:,} rows; ask for csv or json to get all")


def _looks_numeric(value: Any) -> bool:
    return isinstance(value, str) and value[:1] in "0123456789-N" and value[:1] != "" and "-" not in value[1:]


def _separated(separator: str) -> Callable[[Sequence[str], Sequence[Sequence[Any]], TextIO], None]:
    def write(columns: Sequence[str], rows: Sequence[Sequence[Any]], sink: TextIO) -> None:
        writer = csv.writer(sink, delimiter=separator, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(["" if v is None else _scalar(v) for v in row] for row in rows)

    return write


def _json(columns: Sequence[str], rows: Sequence[Sequence[Any]], sink: TextIO) -> None:
    lines = ",\n ".join(_object(columns, row) for row in rows)
    sink.write(f"[{lines}]\n")


def _jsonl(columns: Sequence[str], rows: Sequence[Sequence[Any]], sink: TextIO) -> None:
    sink.writelines(_object(columns, row) + "\n" for row in rows)


def _object(columns: Sequence[str], row: Sequence[Any]) -> str:
    # Strict JSON: what has no number there (NULL, infinity, NaN) is null.
    return json.dumps(
        dict(zip(columns, map(_jsonable, row), strict=True)), ensure_ascii=False, allow_nan=False, default=str
    )


def _jsonable(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, dict):
        return {str(k): _jsonable(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_jsonable(v) for v in value]
    return value


def _scalar(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (datetime.datetime, datetime.date)):
        return value.isoformat(" ") if isinstance(value, datetime.datetime) else value.isoformat()
    return value


def _markdown(columns: Sequence[str], rows: Sequence[Sequence[Any]], sink: TextIO) -> None:
    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(c.replace("|", "\\|").replace("\n", " ") for c in cells) + " |\n"

    sink.write(line(columns) + line(["---"] * len(columns)))
    sink.writelines(line(["" if v is None else str(_scalar(v)) for v in row]) for row in rows)


def _vertical(columns: Sequence[str], rows: Sequence[Sequence[Any]], sink: TextIO) -> None:
    width = max(map(len, columns), default=0)
    out = io.StringIO()
    for number, row in enumerate(rows, 1):
        out.write(f"-- row {number}\n")
        for name, value in zip(columns, row, strict=True):
            out.write(f"{name:<{width}}  {'NULL' if value is None else _scalar(value)}\n")
    sink.write(out.getvalue())


FORMATS: dict[str, Callable[[Sequence[str], Sequence[Sequence[Any]], TextIO], None]] = {
    "table": _text_table,
    "csv": _separated(","),
    "tsv": _separated("\t"),
    "json": _json,
    "jsonl": _jsonl,
    "markdown": _markdown,
    "vertical": _vertical,
}
