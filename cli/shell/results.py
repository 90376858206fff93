"""Results for people: a table, or down the page where that is too wide; intervals as bars where there is room."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ... import Answer, Estimate
from .waiting import short

MOST_ROWS = 1000
BAR = 12
# From here on a number is told in words too.
LARGE = 10_000_000
# Of results with more rows numbers are not told twice.
FEW_ROWS = 3


@dataclass(frozen=True, slots=True)
class Screen:
    """What a result is shown on."""

    width: int
    unicode: bool = True
    theme: Mapping[str, str] | None = None
    expanded: str = "auto"


def shown(answer: Answer, screen: Screen) -> str:
    """The result as text, with the terminal's own signs for colours where the screen has a theme."""
    return laid_out(answer, screen)[0]


def laid_out(answer: Answer, screen: Screen) -> tuple[str, int]:
    """The result as text, and how many lines of it are a head that holds for all below."""
    if answer.is_text:
        return f"{answer.rows[0][0]}\n", 0
    table = _Cells.of(answer, screen)
    if not table.header:
        return "", 0
    head = 0
    wide = table.width(with_bars=False) > screen.width
    if answer.compared is None and (screen.expanded == "on" or (screen.expanded == "auto" and wide)):
        text = _down_the_page(table, screen)
    else:
        text, head = _across(table, screen, bars=table.width(with_bars=True) <= screen.width), 2
    if len(answer.rows) > MOST_ROWS:
        text += f"... the first {MOST_ROWS:,} of {len(answer.rows):,} rows; \\copy FILE writes all\n"
    return text, head


@dataclass(frozen=True, slots=True)
class _Cell:
    text: str
    style: str = ""
    bar: str = ""
    under: str = ""


@dataclass(frozen=True, slots=True)
class _Cells:
    header: tuple[str, ...]
    rows: tuple[tuple[_Cell, ...], ...]
    numeric: tuple[bool, ...]

    @classmethod
    def of(cls, answer: Answer, screen: Screen) -> _Cells:
        grid = answer.grid()
        if answer.compared is not None:
            rows = tuple(tuple(_Cell(_plain(text, screen)) for text in row) for row in grid.rows)
            return cls(grid.header, rows, grid.numeric)
        places = [i for i, name in enumerate(answer.columns) if not answer.brief or name in answer.brief]
        scales = {i: _scale([row[i] for row in answer.rows]) for i in places}
        estimates = any(isinstance(c, Estimate) and not c.exact for row in answer.rows for c in row)
        made: list[tuple[_Cell, ...]] = []
        for row, texts in zip(answer.rows[:MOST_ROWS], grid.rows, strict=False):
            cells = [
                _cell(
                    row[i],
                    text,
                    scales[i],
                    answer.estimated[i] and estimates,
                    len(answer.rows) <= FEW_ROWS,
                    screen,
                )
                for i, text in zip(places, texts, strict=False)
            ]
            cells += [_Cell("?" if text == "yes" else "", "dim") for text in texts[len(places) :]]
            made.append(tuple(cells))
        return cls(tuple(_plain(h, screen) for h in grid.header), tuple(made), grid.numeric)

    def width(self, *, with_bars: bool) -> int:
        """Terminal columns that a table of these takes."""
        from rich.cells import cell_len

        total = 3 * max(len(self.header) - 1, 0)
        for i, name in enumerate(self.header):
            widest = max((max(cell_len(r[i].text), cell_len(r[i].under)) for r in self.rows), default=0)
            bars = BAR + 1 if with_bars and any(r[i].bar for r in self.rows) else 0
            total += max(cell_len(name), widest + bars)
        return total


def _plain(text: str, screen: Screen) -> str:
    from ..streams import PLAIN

    shown_text = text.replace("\r", "\\r").replace("\n", "\\n").replace("\x1b", "\\x1b")
    return shown_text if screen.unicode else "".join(PLAIN.get(c, c) for c in shown_text)


def _cell(
    value: Any, text: str, scale: tuple[float, float] | None, told_exact: bool, few: bool, screen: Screen
) -> _Cell:
    if value is None:
        return _Cell("NULL", "dim")
    text = _plain(text, screen)
    if isinstance(value, str):
        return _Cell(f"'{text}'" if value == "NULL" else text)
    under = _words(value) if few else ""
    if not isinstance(value, Estimate):
        return _Cell(f"{text} exact" if told_exact else text, "", "", under)
    if value.exact:
        return _Cell(f"{text} exact" if told_exact else text, "", "", under)
    bar = _bar(value, scale, screen.unicode) if scale is not None and value.low < value.high else ""
    if not value.certified:
        return _Cell(f"{text} ?", "dim", bar, under)
    return _Cell(text, "", bar, under)


def _words(value: Any) -> str:
    number = float(value.value) if isinstance(value, Estimate) else value
    if isinstance(number, bool) or not isinstance(number, (int, float)) or not math.isfinite(number):
        return ""
    return short(float(number)) if abs(number) >= LARGE else ""


def _scale(values: Sequence[Any]) -> tuple[float, float] | None:
    """From where to where the bars of a column go; zero is on it."""
    cells = [v for v in values if isinstance(v, Estimate)]
    low = min((float(c.low) for c in cells), default=0.0)
    high = max((float(c.high) for c in cells), default=0.0)
    low, high = min(low, 0.0), max(high, 0.0)
    if not cells or not math.isfinite(low) or not math.isfinite(high) or high <= low:
        return None
    return low, high


def _bar(value: Estimate, scale: tuple[float, float] | None, signs: bool) -> str:
    """The interval on the scale of its column: ``├──●─┤``."""
    ends = (float(value.low), float(value.high), float(value.value))
    if scale is None or ends[0] == ends[1] or not all(map(math.isfinite, ends)):
        return ""
    low, high = scale
    a, b, at = (
        min(BAR - 1, max(0, round((float(v) - low) / (high - low) * (BAR - 1))))
        for v in (value.low, value.high, value.value)
    )
    line = [" "] * BAR
    for i in range(a, b + 1):
        line[i] = "─" if signs else "-"
    line[a], line[b] = ("├", "┤") if signs else ("[", "]")
    line[at] = "●" if signs else "o"
    return "".join(line)


def _console(screen: Screen, sink: io.StringIO) -> Any:
    from rich.console import Console

    return Console(
        file=sink,
        width=max(screen.width, 20),
        force_terminal=bool(screen.theme),
        color_system="auto" if screen.theme else None,
        no_color=not screen.theme,
        highlight=False,
        markup=False,
        emoji=False,
        safe_box=not screen.unicode,
        legacy_windows=False,
    )


def _styled(screen: Screen, name: str) -> str:
    return (screen.theme or {}).get(name, "") if name else ""


def _across(cells: _Cells, screen: Screen, *, bars: bool) -> str:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD if screen.unicode else box.ASCII2, show_edge=False, pad_edge=False)
    for name, numeric in zip(cells.header, cells.numeric, strict=True):
        table.add_column(Text(name), justify="right" if numeric else "left", no_wrap=True)
    for row in cells.rows:
        texts = []
        for cell in row:
            text = Text(cell.text, style=_styled(screen, cell.style))
            if bars and cell.bar:
                text = Text.assemble((cell.bar, _styled(screen, "bar")), " ", text)
            if cell.under:
                text = Text.assemble(text, "\n", (cell.under, _styled(screen, "dim")))
            texts.append(text)
        table.add_row(*texts)
    sink = io.StringIO()
    # What is wider than the screen was asked for so.
    wide = replace(screen, width=max(screen.width, cells.width(with_bars=bars)))
    _console(wide, sink).print(table, crop=False)
    return sink.getvalue()


def _down_the_page(cells: _Cells, screen: Screen) -> str:
    from rich.cells import cell_len
    from rich.text import Text

    width = max(map(cell_len, cells.header), default=0)
    sink = io.StringIO()
    console = _console(screen, sink)
    for number, row in enumerate(cells.rows, 1):
        rule = "─" if screen.unicode else "-"
        console.print(
            Text(f"{rule * 2} row {number} {rule * 20}", style=_styled(screen, "dim")), soft_wrap=True
        )
        for name, cell in zip(cells.header, row, strict=True):
            text = Text(f"{name}{' ' * (width - cell_len(name))}  ")
            text.append(cell.text, style=_styled(screen, cell.style))
            if cell.bar and screen.width > width + cell_len(cell.text) + BAR + 4:
                text.append(f"  {cell.bar}", style=_styled(screen, "bar"))
            if cell.under:
                text.append(f"  ({cell.under})", style=_styled(screen, "dim"))
            console.print(text, soft_wrap=True)
    return sink.getvalue()
