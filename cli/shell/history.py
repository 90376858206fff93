"""What was typed, kept in the XDG state folder: one entry a statement, safe with several shells at once."""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

from prompt_toolkit.history import History

# Statements with a secret in them are not kept.
_SECRET = re.compile(
    r"passw(?:or)?d|secret|credential|access.?key|private.?key|\btoken\b|auth.?token", re.IGNORECASE
)
MOST_ENTRIES = 10_000


def is_secret(text: str) -> bool:
    """Whether a statement must not be kept: it names a password or the like, or starts with a blank."""
    return text.startswith(" ") or _SECRET.search(text) is not None


class StatementHistory(History):
    """A file of JSON texts, a line each: newlines within a statement are kept, half a line harms no other."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path

    def load_history_strings(self) -> Iterator[str]:
        """The newest first."""
        yield from reversed(self._entries())

    def _entries(self) -> list[str]:
        try:
            lines = self.path.read_bytes().splitlines()
        except OSError:
            return []
        entries = []
        for line in lines[-MOST_ENTRIES:]:
            try:
                entry = json.loads(line)
            except ValueError:
                continue
            if isinstance(entry, str):
                entries.append(entry)
        return entries

    def store_string(self, string: str) -> None:
        """Append an entry, whole or not at all; where the folder takes none there is only this session's history."""
        text = string.strip()
        if not text or is_secret(string):
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            number = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                fcntl.flock(number, fcntl.LOCK_EX)
                os.write(number, json.dumps(text).encode() + b"\n")
            finally:
                os.close(number)
        except OSError:
            return
