"""What the shell writes: talk, results, on the terminal or into files."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
from functools import cache
from typing import TYPE_CHECKING, TextIO

from ... import SkimqlError
from ..config import Config
from ..formats import format_of_file
from ..streams import encodes, is_unicode
from .keyboard import typed_lines
from .lines import broken, in_colour
from .theme import colours, has_colours, is_dumb

if TYPE_CHECKING:
    from ... import Answer
    from .results import Screen

UNKNOWN = "SKIMQL_UNKNOWN_COMMAND"


class Display:
    """The terminal, the file of ``\\o``, and the last result.

    Attributes
    ----------
    config : Config
        Theme, pager, and whether results go down the page.
    last_answer : Answer or None
        What was shown last.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        self.last_answer: Answer | None = None
        self._sink: TextIO | None = None

    @property
    def theme(self) -> str:
        """The theme that is set."""
        return str(self.config["theme"])

    @property
    def columns(self) -> int:
        """The width of the terminal, but for its last column."""
        return max(shutil.get_terminal_size().columns - 1, 20)

    def say(self, text: str, style: str = "dim") -> None:
        """Lines beside results, broken between words."""
        width = self.columns
        lines = [broken(line, width) for line in encodes(sys.stdout, text).split("\n")]
        self._write(in_colour("\n".join(lines), self._colour(style)) + "\n")

    def page(self, text: str, head: int = 0) -> None:
        """A text of any length: through the pager where it is longer than the screen, its first lines always there."""
        size = shutil.get_terminal_size()
        lines = sum(1 + len(line) // max(size.columns, 1) for line in text.split("\n")) - 1
        if not self.config["pager"] or is_dumb() or not sys.stdout.isatty() or lines < size.lines - 2:
            self._write(text)
            return
        pager = os.environ.get("PAGER") or ("less -FRSX" if shutil.which("less") else "")
        if not pager:
            self._write(text)
            return
        if os.path.basename(pager.split()[0]) == "less":
            # It shows what colours are made of otherwise.
            pager += " -R"
        if head:
            pager, text = with_head(pager, text, head, size.lines - 1)
        with typed_lines(), contextlib.suppress(BrokenPipeError, KeyboardInterrupt):
            subprocess.run(
                pager, input=text.encode(sys.stdout.encoding or "utf-8", "replace"), shell=True, check=False
            )

    def _write(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()

    def _colour(self, name: str) -> str:
        return colours(self.theme).get(name, "")

    def screen(self) -> Screen:
        """What results are shown on."""
        from .results import Screen

        theme = colours(self.theme) if has_colours() else None
        width = shutil.get_terminal_size().columns
        return Screen(width, is_unicode(sys.stdout), theme or None, str(self.config["expanded"]))

    def show(self, answer: Answer) -> None:
        """A result on the terminal, or into the file of ``\\o``."""
        from ..render import render
        from .results import laid_out

        if self._sink is not None:
            render(answer, format_of_file(self._sink.name), self._sink)
            self._sink.flush()
            return
        self.page(*laid_out(answer, self.screen()))

    def redirect(self, path: str | None) -> None:
        """Send results to a file; None: to the terminal again.

        Raises
        ------
        SkimqlError
            If the file cannot be written.
        """
        if self._sink is not None:
            self._sink.close()
            self._sink = None
        if path is not None:
            self._sink = _opened(path)

    def copy(self, path: str) -> None:
        """Write the last result into a file, in the format of its ending.

        Raises
        ------
        SkimqlError
            If there is none, or the file cannot be written.
        """
        if self.last_answer is None:
            raise SkimqlError("there is no result yet", UNKNOWN, hint="SELECT ...")
        if path.endswith(".parquet"):
            import pyarrow.parquet as pq

            with contextlib.closing(_opened(path)):
                pq.write_table(self.last_answer.arrow(), os.path.expanduser(path))
        else:
            from ..render import render

            with contextlib.closing(_opened(path)) as sink:
                render(self.last_answer, format_of_file(path), sink)
        rows = len(self.last_answer.rows)
        self.say(f"{rows:,} row{'' if rows == 1 else 's'} in {path}")


# From this version on less keeps lines at the top itself.
_KEEPS_HEAD = 600


def with_head(pager: str, text: str, head: int, lines: int) -> tuple[str, str]:
    """The command of a pager and its text, so that the first lines of the text are at the top of each screen."""
    name = os.path.basename(pager.split()[0])
    if name == "less" and _version_of_less(pager.split()[0]) >= _KEEPS_HEAD:
        return f"{pager} --header={head}", text
    room = lines - head
    if name not in ("less", "more", "most") or room < 1:
        return pager, text
    told = text.splitlines(keepends=True)
    first, body = told[:head], told[head:]
    screens = [[*first, *body[at : at + room]] for at in range(0, max(len(body), 1), room)]
    return pager, "".join(line for screen in screens for line in screen)


@cache
def _version_of_less(command: str) -> int:
    try:
        told = subprocess.run([command, "--version"], capture_output=True, text=True, timeout=2, check=False)
    except (OSError, subprocess.SubprocessError):
        return 0
    number = re.search(r"less (\d+)", told.stdout)
    return int(number[1]) if number else 0


def _opened(path: str) -> TextIO:
    try:
        return open(os.path.expanduser(path), "w", encoding="utf-8")
    except (OSError, ValueError) as fault:
        from ...engine.sources.paths import near_file

        hint = near_file(os.path.expanduser(path)) if isinstance(fault, FileNotFoundError) else ""
        told = f"cannot write {path}: {getattr(fault, 'strerror', fault)}"
        raise SkimqlError(told, UNKNOWN, hint=hint) from fault
