"""Keys that are pressed while no prompt is there: kept for the next one as they are, and not shown meanwhile."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def kept_keys() -> Iterator[None]:
    """Within, keys wait for who reads them: no echo, no line of the terminal's own; Ctrl-C stays a signal."""
    with _changed(lines=False):
        yield


@contextlib.contextmanager
def typed_lines(*, anew: bool = False) -> Iterator[None]:
    """Within, the terminal is as programs expect it: it shows keys and gives whole lines.

    `anew`: what was typed before is forgotten, since it answers no question that was not there yet.
    """
    with _changed(lines=True, anew=anew):
        yield


@contextlib.contextmanager
def _changed(*, lines: bool, anew: bool = False) -> Iterator[None]:
    try:
        import termios

        number = sys.stdin.fileno()
        before = termios.tcgetattr(number)
    except Exception:
        # No terminal, or a system without any.
        yield
        return
    changed = [*before]
    local = termios.ECHO | termios.ICANON | termios.IEXTEN
    changed[3] = before[3] | local if lines else before[3] & ~local
    termios.tcsetattr(number, termios.TCSAFLUSH if anew else termios.TCSADRAIN, changed)
    try:
        yield
    finally:
        termios.tcsetattr(number, termios.TCSADRAIN, before)
