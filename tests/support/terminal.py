"""A terminal for tests: keys go in, a screen is read."""

from __future__ import annotations

import os
import sys
import time

import pexpect
import pyte

COMMAND = "import sys; sys.argv[0] = 'skimql'; from skimql.cli.main import run; run()"
KEYS = {
    "enter": "\r",
    "ctrl-l": "\x0c",
    "ctrl-c": "\x03",
    "ctrl-d": "\x04",
    "ctrl-r": "\x12",
    "ctrl-u": "\x15",
    "alt-enter": "\x1b\r",
    "tab": "\t",
    "up": "\x1b[A",
}


class Terminal:
    """The command, or another program, on a terminal of some size."""

    def __init__(self, home, *arguments, columns=80, lines=24, environment=None, cwd=None, program=None):
        self.screen = pyte.HistoryScreen(columns, lines, history=2000, ratio=0.5)
        self._stream = pyte.ByteStream(self.screen)
        self.raw = b""
        given = {
            **{
                k: v
                for k, v in os.environ.items()
                if not k.startswith(("SKIMQL_", "XDG_")) and k not in ("NO_COLOR", "COLUMNS", "LINES")
            },
            "HOME": str(home),
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "LC_ALL": "C.UTF-8",
            "PAGER": "cat",
            **(environment or {}),
        }
        self.process = pexpect.spawn(
            program or sys.executable,
            list(arguments) if program else ["-c", COMMAND, *arguments],
            dimensions=(lines, columns),
            env=given,
            cwd=str(cwd or home),
            timeout=None,
        )
        # Keys are pressed at once; pexpect waits 50 ms before each otherwise.
        self.process.delaybeforesend = None

    def _pump(self, seconds):
        try:
            data = self.process.read_nonblocking(1 << 16, timeout=seconds)
        except (pexpect.TIMEOUT, pexpect.EOF):
            return False
        self.take(data)
        return True

    def take(self, data):
        """Draw what the command has written."""
        asked = (self.raw[-3:] + data).count(b"\x1b[6n")
        self.raw += data
        self._stream.feed(data)
        # What asks for the cursor's place gets an answer, as a terminal gives one.
        if asked:
            self.process.send(f"\x1b[{self.screen.cursor.y + 1};{self.screen.cursor.x + 1}R" * asked)

    def keys(self, *keys):
        """Press keys: texts as they stand, and names of `KEYS`."""
        for key in keys:
            self.process.send(KEYS.get(key, key))

    def paste(self, text):
        """Paste a text, in brackets as terminals do."""
        self.process.send(f"\x1b[200~{text}\x1b[201~")

    def resize(self, columns, lines):
        """Another size."""
        self.process.setwinsize(lines, columns)
        self.screen.resize(lines, columns)

    @property
    def text(self):
        """The lines of the screen."""
        return "\n".join(line.rstrip() for line in self.screen.display)

    @property
    def scrolled(self):
        """The screen, and what has left it at the top."""
        above = [
            "".join(line[i].data for i in range(self.screen.columns)) for line in self.screen.history.top
        ]
        return "\n".join([*(line.rstrip() for line in above), self.text])

    def until(self, what, seconds=20.0):
        """Wait until `what`, a text or a function of this terminal, is there; the screen."""
        met = what if callable(what) else lambda terminal: what in terminal.scrolled
        end, drawn = time.monotonic() + seconds, True
        while time.monotonic() < end:
            # What is drawn changes nothing until more comes, or the command ends: looking takes longer than waiting.
            drawn = self._pump(0.05) or drawn or not self.process.isalive()
            if drawn and met(self):
                return self.text
            drawn = False
        raise AssertionError(f"{what!r} is not on the screen after {seconds} s:\n{self.scrolled}")

    def rest(self, seconds=0.3):
        """Wait until nothing comes any more; the screen."""
        end = time.monotonic() + 5
        while time.monotonic() < end and self._pump(seconds):
            pass
        return self.text

    def close(self):
        """End the process, whatever it does."""
        self.process.close(force=True)
