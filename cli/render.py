"""Results as text: tables for people, csv, tsv, json, jsonl, markdown and vertical for whatever reads them."""

from __future__ import annotations

import base64
import csv
import io
import json
import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, TextIO

from .. import Answer, Estimate
from ..engine.results.display import cell_text
from .streams import encodes, is_unicode

# A table on a terminal is read by eye; more rows than this are cut, and the cut is said.
MOST_TABLE_ROWS = 1000


def render(result: Any, output: str, sink: TextIO) -> None:
    """Write an `Answer` or a Spark DataFrame to `sink` in one of `formats.FORMATS`."""
    if not isinstance(result, Answer):
        if not result.columns:
            return
        from ..engine.queries.exact import collected

        result = collected(result, MOST_TABLE_ROWS + 1 if output == "table" else None)
    if output == "table":
        _answer_table(result, sink)
        return
    columns = result.result
    rows = tuple(zip(*(c.values for c in columns), strict=True))
    _WRITERS[output]([c.name for c in columns], rows, sink)


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
    if answer.is_text:
        sink.write(f"{answer.rows[0][0]}\n")
        return
    text_table(answer, sink)


def text_table(answer: Answer, sink: TextIO) -> None:
    """A table for people; a compared answer has a row for each aggregate."""
    # Late: it takes longer to import than to print an answer.
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    grid = answer.grid()
    header = [encodes(sink, name) for name in grid.header]
    rows = [[encodes(sink, text) for text in row] for row in grid.rows[:MOST_TABLE_ROWS]]
    # Piped, a table is as wide as its content; on a terminal one that does not fit goes down the page.
    console = Console(
        file=sink,
        width=None if sink.isatty() else 10_000,
        highlight=False,
        markup=False,
        emoji=False,
        safe_box=is_unicode(sink),
    )
    if _width(header, rows) > console.width:
        _down_the_page(header, rows, sink)
    else:
        table = Table(
            box=box.SIMPLE_HEAD if is_unicode(sink) else box.ASCII2, show_edge=False, pad_edge=False
        )
        for name, numeric in zip(header, grid.numeric, strict=True):
            table.add_column(Text(name), justify="right" if numeric else "left", no_wrap=True)
        for row in rows:
            table.add_row(*map(Text, row))
        console.print(table)
    if len(grid.rows) > MOST_TABLE_ROWS:
        console.print(f"... the first {MOST_TABLE_ROWS:,} rows; ask for csv or json to get all")


def _width(header: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
    """Terminal columns of a table: what its widest lines take, and the space between columns."""
    from rich.cells import cell_len

    widest = [
        max(cell_len(line) for cell in column for line in (cell.splitlines() or [""]))
        for column in zip(header, *rows, strict=True)
    ]
    return sum(widest) + 3 * max(len(widest) - 1, 0)


def _down_the_page(header: Sequence[str], rows: Sequence[Sequence[str]], sink: TextIO) -> None:
    """Name and value in a line, row after row, for a table that is wider than the terminal."""
    width = max(map(len, header), default=0)
    for number, row in enumerate(rows, 1):
        sink.write(f"-- row {number}\n")
        sink.writelines(f"{name:<{width}}  {text}\n" for name, text in zip(header, row, strict=True))


def _separated(separator: str) -> Callable[[Sequence[str], Sequence[Sequence[Any]], TextIO], None]:
    def write(columns: Sequence[str], rows: Sequence[Sequence[Any]], sink: TextIO) -> None:
        writer = csv.writer(sink, delimiter=separator, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(["" if v is None else cell_text(v) for v in row] for row in rows)

    return write


def _json(columns: Sequence[str], rows: Sequence[Sequence[Any]], sink: TextIO) -> None:
    lines = ",\n ".join(_object(columns, row, sink) for row in rows)
    sink.write(f"[{lines}]\n")


def _jsonl(columns: Sequence[str], rows: Sequence[Sequence[Any]], sink: TextIO) -> None:
    sink.writelines(_object(columns, row, sink) + "\n" for row in rows)


def _object(columns: Sequence[str], row: Sequence[Any], sink: TextIO) -> str:
    # A stream that does not take every character gets escapes, which JSON has for them.
    text = _members(columns, row)
    return text if is_unicode(sink) else "".join(c if c.isascii() else json.dumps(c)[1:-1] for c in text)


def _members(columns: Sequence[str], row: Sequence[Any]) -> str:
    pairs = zip(columns, row, strict=True)
    return "{" + ", ".join(f"{_string(name)}: {_value(value)}" for name, value in pairs) + "}"


def _value(value: Any) -> str:
    """Strict JSON: numbers with all their digits; what has no number there (NULL, infinity, NaN) is null."""
    if isinstance(value, (float, Decimal)):
        if not math.isfinite(value):
            return "null"
        return f"{value:f}" if isinstance(value, Decimal) else repr(value)
    if isinstance(value, dict):
        return _members([str(k) for k in value], list(value.values()))
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_value, value))}]"
    if value is None or isinstance(value, (bool, int)):
        return json.dumps(value)
    if isinstance(value, bytes):
        return _string(base64.b64encode(value).decode())
    return _string(cell_text(value))


def _string(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _markdown(columns: Sequence[str], rows: Sequence[Sequence[Any]], sink: TextIO) -> None:
    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(c.replace("|", "\\|").replace("\n", " ") for c in cells) + " |\n"

    sink.write(line(columns) + line(["---"] * len(columns)))
    sink.writelines(line(["" if v is None else cell_text(v) for v in row]) for row in rows)


def _vertical(columns: Sequence[str], rows: Sequence[Sequence[Any]], sink: TextIO) -> None:
    width = max(map(len, columns), default=0)
    out = io.StringIO()
    for number, row in enumerate(rows, 1):
        out.write(f"-- row {number}\n")
        for name, value in zip(columns, row, strict=True):
            out.write(f"{name:<{width}}  {cell_text(value)}\n")
    sink.write(out.getvalue())


_WRITERS: dict[str, Callable[[Sequence[str], Sequence[Sequence[Any]], TextIO], None]] = {
    "csv": _separated(","),
    "tsv": _separated("\t"),
    "json": _json,
    "jsonl": _jsonl,
    "markdown": _markdown,
    "vertical": _vertical,
}
