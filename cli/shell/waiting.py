"""One line that tells what runs, how far it is and how long it may take; gone when it is over."""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING, TextIO

from ..streams import encodes, is_unicode
from .theme import is_dumb

if TYPE_CHECKING:
    from ... import JobProgress

SHOWN_AFTER = 0.3  # seconds: what is over sooner flickers
PERIOD = 0.1
CANCELS = "Ctrl-C cancels"
CANCELLING = "cancelling"
_TURNING = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_PLAIN = "|/-\\"
_BAR = 12


class WaitingLine:
    """The line, drawn at most ten times a second on a terminal that moves its cursor; an estimate may be above it."""

    def __init__(self, sink: TextIO) -> None:
        self._sink = sink
        self._shown = sink.isatty() and not is_dumb()
        self._started = time.monotonic()
        self._drawn = 0.0
        self._turns = 0
        self._above = ""
        self._height = 0

    def tick(self, phase: str, progress: JobProgress | None, above: str = "") -> None:
        """Draw the line anew, if it is time to; and what is above it, where that has changed."""
        now = time.monotonic()
        if not self._shown or now - self._started < SHOWN_AFTER or now - self._drawn < PERIOD:
            return
        self._drawn = now
        signs = _TURNING if is_unicode(self._sink) else _PLAIN
        self._turns += 1
        columns = shutil.get_terminal_size().columns
        told = line_of(phase, progress, now - self._started, is_unicode(self._sink), columns - 3)
        if above != self._above:
            self._clear()
            lines = [_cut(encodes(self._sink, line), columns - 1) for line in above.splitlines()]
            self._sink.write("".join(f"{line}\n" for line in lines))
            self._above, self._height = above, len(lines)
        text = f"{signs[self._turns % len(signs)]} {told}"
        self._sink.write(f"\r\x1b[2K{encodes(self._sink, text[: columns - 1].rstrip())}")
        self._sink.flush()

    def close(self) -> None:
        """Take it away."""
        if self._shown and self._drawn:
            self._clear()
            self._sink.flush()
            self._drawn = 0.0

    def _clear(self) -> None:
        up = f"\x1b[{self._height}A" if self._height else ""
        self._sink.write(f"\r{up}\x1b[J")
        self._above, self._height = "", 0


def _cut(line: str, columns: int) -> str:
    """A line that does not wrap."""
    if line.isascii():
        return line[:columns]
    from rich.cells import set_cell_size

    return set_cell_size(line, columns).rstrip()


def line_of(
    phase: str, progress: JobProgress | None, seconds: float, signs: bool = True, columns: int = 1000
) -> str:
    """What the line says: of a job as much as there is room for."""
    if phase == CANCELLING:
        return f"{phase}  {seconds:.0f} s"
    if progress is None:
        return f"{phase}  {seconds:.0f} s   {CANCELS}"
    parts = [progress.description]
    if progress.share is not None:
        full = round(_BAR * progress.share)
        bar = ("━" if signs else "#") * full + ("╌" if signs else ".") * (_BAR - full)
        parts.append(f"{bar} {100 * progress.share:.0f} %")
    left = progress.seconds_left
    parts.append(f"{seconds:.0f} s" if left is None else f"{seconds:.0f} s, {left:.0f} s left")
    more = [CANCELS]
    if progress.rows_per_second is not None:
        more.append(f"{short(progress.rows)} rows, {short(progress.rows_per_second)}/s")
    if progress.bytes:
        more.append(size(progress.bytes))
    while len(more) > 1 and len("  ".join([*parts, *more])) > columns:
        more.pop()
    return "  ".join([*parts, *more[1:], more[0]])


def size(nbytes: float) -> str:
    """Bytes in three digits and a unit."""
    for one, word in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "KB")):
        if nbytes >= one:
            return f"{nbytes / one:.3g} {word}"
    return f"{nbytes:.0f} B"


def short(number: float) -> str:
    """A number in three digits and a word: ``2.97 billion``."""
    for size, word in ((1e12, " trillion"), (1e9, " billion"), (1e6, " million")):
        if abs(number) >= size:
            return f"{number / size:.3g}{word}"
    return f"{number:,.0f}"
