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
    """The line, drawn at most ten times a second on a terminal that moves its cursor."""

    def __init__(self, sink: TextIO) -> None:
        self._sink = sink
        self._shown = sink.isatty() and not is_dumb()
        self._started = time.monotonic()
        self._drawn = 0.0
        self._turns = 0

    def tick(self, phase: str, progress: JobProgress | None) -> None:
        """Draw the line anew, if it is time to."""
        now = time.monotonic()
        if not self._shown or now - self._started < SHOWN_AFTER or now - self._drawn < PERIOD:
            return
        self._drawn = now
        signs = _TURNING if is_unicode(self._sink) else _PLAIN
        self._turns += 1
        told = line_of(phase, progress, now - self._started, is_unicode(self._sink))
        text = f"{signs[self._turns % len(signs)]} {told}"
        columns = shutil.get_terminal_size().columns
        self._sink.write(f"\r\x1b[2K{encodes(self._sink, text[: columns - 1].rstrip())}")
        self._sink.flush()

    def close(self) -> None:
        """Take the line away."""
        if self._shown and self._drawn:
            self._sink.write("\r\x1b[2K")
            self._sink.flush()
            self._drawn = 0.0


def line_of(phase: str, progress: JobProgress | None, seconds: float, signs: bool = True) -> str:
    """What the line says."""
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
    if progress.rows_per_second is not None:
        parts.append(f"{short(progress.rows)} rows, {short(progress.rows_per_second)}/s")
    return "  ".join([*parts, CANCELS])


def short(number: float) -> str:
    """A number in three digits and a word: ``2.97 billion``."""
    for size, word in ((1e12, " trillion"), (1e9, " billion"), (1e6, " million")):
        if abs(number) >= size:
            return f"{number / size:.3g}{word}"
    return f"{number:,.0f}"
