"""The formats of results, and which one is meant where nobody says."""

from __future__ import annotations

from pathlib import Path
from typing import TextIO

FORMATS = ("table", "csv", "tsv", "json", "jsonl", "markdown", "vertical")
_ENDINGS = {"md": "markdown", "ndjson": "jsonl", "txt": "table"}


def default_format(sink: TextIO) -> str:
    """The format where none is asked for: a table on a terminal, else csv."""
    return "table" if sink.isatty() else "csv"


def format_of_file(path: str) -> str:
    """The format that the ending of a file tells; csv where it tells none."""
    ending = Path(path).suffix.removeprefix(".").lower()
    return _ENDINGS.get(ending, ending if ending in FORMATS else "csv")
