"""The three streams of the process, made safe to use: closed ones, full disks, encodings without our signs."""

from __future__ import annotations

import codecs
import contextlib
import os
import sys
from collections.abc import Iterator
from typing import TextIO

from .. import EnvironmentFault

# What stands for the signs that we write, where the encoding of a stream lacks them.
PLAIN = {
    "±": "+/-", "×": "x", "…": "...", "–": "-", "—": "-", "⋈": "|><|", "≤": "<=", "≥": ">=", "→": "->", "•": "*",
    "─": "-", "━": "-", "│": "|", "┃": "|", "═": "=", "║": "|",
}  # fmt: skip
_BOXES = range(0x2500, 0x2580)
_HANDLER = "skimql"
NOT_WRITTEN = "SKIMQL_NOT_WRITTEN"


def make_safe() -> None:
    """Give every standard stream a file, and an encoding that cannot fail.

    A closed stream is opened anew, so that no other file takes its number: reading finds nothing there, writing results
    fails as it would on the closed one, and what is said is lost.
    """
    codecs.register_error(_HANDLER, _replaced)
    for number, (name, mode, flags) in enumerate(
        (("stdin", "r", os.O_RDONLY), ("stdout", "w", os.O_RDONLY), ("stderr", "w", os.O_WRONLY))
    ):
        stream = getattr(sys, name)
        if stream is None or stream.closed:
            _open_as(number, flags)
            stream = open(number, mode, encoding="utf-8", closefd=False)  # noqa: SIM115
            setattr(sys, name, stream)
        if number and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=_HANDLER)


def encodes(sink: object, text: str) -> str:
    """The text, with signs that the encoding of `sink` lacks replaced by plain ones."""
    encoding = getattr(sink, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return "".join(_plain(c) if not _fits(c, encoding) else c for c in text)
    return text


def is_unicode(sink: object) -> bool:
    """Whether a stream takes every character."""
    return codecs.lookup(getattr(sink, "encoding", None) or "utf-8").name.startswith("utf")


@contextlib.contextmanager
def writing(sink: TextIO) -> Iterator[None]:
    """Results are written to `sink` within: a full disk or a closed stream is an error with a name.

    A broken pipe stays one.

    Raises
    ------
    EnvironmentFault
        ``SKIMQL_NOT_WRITTEN``.
    """
    try:
        yield
        sink.flush()
    except BrokenPipeError:
        raise
    except OSError as fault:
        raise EnvironmentFault(f"the result cannot be written: {fault.strerror}", NOT_WRITTEN) from fault


def _open_as(number: int, flags: int) -> None:
    opened = os.open(os.devnull, flags)
    if opened != number:
        os.dup2(opened, number)
        os.close(opened)


def _replaced(fault: UnicodeError) -> tuple[str, int]:
    if not isinstance(fault, UnicodeEncodeError):
        raise fault
    return "".join(map(_plain, fault.object[fault.start : fault.end])), fault.end


def _plain(character: str) -> str:
    if character in PLAIN:
        return PLAIN[character]
    if ord(character) in _BOXES:
        return "+"
    return character.encode("ascii", "backslashreplace").decode()


def _fits(character: str, encoding: str) -> bool:
    try:
        character.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True
