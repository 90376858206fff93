"""What the command says beside its results: notes, errors and progress, on stderr."""

from __future__ import annotations

import contextlib
import sys
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from .progress import ProgressLine


class Talk:
    """Lines on stderr, in colours where that is a terminal; rich is loaded for a terminal only."""

    @cached_property
    def console(self) -> Console:
        """The terminal."""
        from rich.console import Console

        return Console(stderr=True, highlight=False, soft_wrap=True)

    def print(self, text: str, *, dim: bool = False) -> None:
        """Write a line as it stands; where stderr takes nothing, there is nobody to tell."""
        with contextlib.suppress(OSError, ValueError):
            if sys.stderr.isatty():
                self.console.print(text, markup=False, style="dim" if dim else None)
            else:
                print(text, file=sys.stderr)

    def progress_line(self, *, estimates: bool = False) -> ProgressLine:
        """A listener that shows running jobs, and estimates while they become better."""
        from .progress import ProgressLine, RefinedLine

        return RefinedLine() if estimates else ProgressLine()
