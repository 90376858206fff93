"""Results as text: tables for people, csv, tsv, json, jsonl, markdown and vertical for whatever reads them."""

from __future__ import annotations

import base64
import csv
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any, TextIO

from .. import Answer, Estimate
from ..engine.results.display import cell_text
from .streams import encodes, is_unicode

# A table on a terminal is read by eye; more rows than this are cut, and the cut is said.
MOST_TABLE_ROWS = 1000


def render(result: Any, output: str, sink: TextIO, listener: Any = None) -> None:
    """Write an `Answer` or a Spark DataFrame, of any length, to `sink` in one of `formats.FORMATS`.

    `listener` is told how far Spark is with the DataFrame.
    """
    if not isinstance(result, Answer) and not result.columns:
        return
    if output != "table":
        _written(result, output, sink, listener)
        return
    _answer_table(shortened(result, listener), sink)


def shortened(result: Any, listener: Any = None) -> Answer:
    """As many rows of a DataFrame as a table shows, and one more; an `Answer` as it is."""
    if isinstance(result, Answer):
        return result
    from ..engine.queries.exact import collected

    return collected(result, MOST_TABLE_ROWS + 1, listener)


def _written(result: Any, output: str, sink: TextIO, listener: Any) -> None:
    writer: _Writer | None = None

    def take(names: Sequence[str], columns: Sequence[Sequence[Any]]) -> None:
        nonlocal writer
        if writer is None:
            writer = _WRITERS[output](names, sink)
        writer.add(columns)

    if isinstance(result, Answer):
        shown = result.result
        take([c.name for c in shown], [c.values for c in shown])
    else:
        from ..engine.queries.in_parts import each_part

        each_part(result, take, listener)
    if writer is not None:
        writer.end()


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


class _Writer(ABC):
    """Writes rows as they come: the head when it is made, what stands at the end when all have come."""

    def __init__(self, names: Sequence[str], sink: TextIO) -> None:
        self._names = names
        self._sink = sink

    @abstractmethod
    def add(self, columns: Sequence[Sequence[Any]]) -> None:
        """Write some rows."""

    def end(self) -> None:  # noqa: B027
        """Nothing stands at the end of most formats."""


class _Separated(_Writer):
    separator = ","

    def __init__(self, names: Sequence[str], sink: TextIO) -> None:
        super().__init__(names, sink)
        self._writer = csv.writer(sink, delimiter=self.separator, lineterminator="\n")
        self._writer.writerow(names)

    def add(self, columns: Sequence[Sequence[Any]]) -> None:
        self._writer.writerows(zip(*map(_cells, columns), strict=True))


class _ByTabs(_Separated):
    separator = "\t"


class _Json(_Writer):
    _before = "["

    def add(self, columns: Sequence[Sequence[Any]]) -> None:
        for line in _objects(self._names, columns, self._sink):
            self._sink.write(f"{self._before}{line}")
            self._before = ",\n "

    def end(self) -> None:
        self._sink.write("[]\n" if self._before == "[" else "]\n")


class _JsonLines(_Writer):
    def add(self, columns: Sequence[Sequence[Any]]) -> None:
        self._sink.writelines(f"{line}\n" for line in _objects(self._names, columns, self._sink))


class _Markdown(_Writer):
    def __init__(self, names: Sequence[str], sink: TextIO) -> None:
        super().__init__(names, sink)
        sink.write(_markdown_line(names) + _markdown_line(["---"] * len(names)))

    def add(self, columns: Sequence[Sequence[Any]]) -> None:
        rows = zip(*map(_cells, columns), strict=True)
        self._sink.writelines(_markdown_line(["" if v is None else str(v) for v in row]) for row in rows)


class _Vertical(_Writer):
    _number = 0

    def add(self, columns: Sequence[Sequence[Any]]) -> None:
        width = max(map(len, self._names), default=0)
        for row in zip(*columns, strict=True):
            self._number += 1
            self._sink.write(f"-- row {self._number}\n")
            pairs = zip(self._names, row, strict=True)
            self._sink.writelines(f"{name:<{width}}  {cell_text(value)}\n" for name, value in pairs)


_WRITERS: dict[str, type[_Writer]] = {
    "csv": _Separated,
    "tsv": _ByTabs,
    "json": _Json,
    "jsonl": _JsonLines,
    "markdown": _Markdown,
    "vertical": _Vertical,
}


def _cells(values: Sequence[Any]) -> Sequence[Any]:
    """A column as `csv` and `str` write it right: what Python writes as Spark does stays as it is, None is NULL."""
    kinds = set(map(type, values))
    if kinds <= {int, str, type(None)} or (kinds == {float} and all(map(math.isfinite, values))):
        return values
    return [None if v is None else cell_text(v) for v in values]


def _markdown_line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(c.replace("|", "\\|").replace("\n", " ") for c in cells) + " |\n"


def _objects(names: Sequence[str], columns: Sequence[Sequence[Any]], sink: TextIO) -> Iterator[str]:
    """Of every row its JSON object."""
    form = "{" + ", ".join(f"{_string(name).replace('%', '%%')}: %s" for name in names) + "}"
    lines = (form % row for row in zip(*map(_values, columns), strict=True))
    if is_unicode(sink):
        return lines
    # A stream that does not take every character gets escapes, which JSON has for them.
    return ("".join(c if c.isascii() else json.dumps(c)[1:-1] for c in line) for line in lines)


def _values(values: Sequence[Any]) -> Sequence[Any]:
    kinds = set(map(type, values))
    if kinds == {int} or (kinds == {float} and all(map(math.isfinite, values))):
        return values
    return [_value(v) for v in values]


def _members(columns: Sequence[str], row: Sequence[Any]) -> str:
    pairs = zip(columns, row, strict=True)
    return "{" + ", ".join(f"{_string(name)}: {_value(value)}" for name, value in pairs) + "}"


def _value(value: Any) -> str:
    """Strict JSON: numbers with all their digits; what has no number there (NULL, infinity, NaN) is null."""
    if isinstance(value, str):
        return _string(value)
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
