"""Entry point of the `skimql` command.

Reading arguments costs more than answering from a catalog does, so a plain command line of a catalog (``--catalog DIR``
with -c, -f, -o, -s, -t, -q) is read here; every other one, and every mistake, is `app`'s.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import gc
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from .folders import is_configured

if TYPE_CHECKING:
    from .request import Request

DONE, FAILED, WRONG_USAGE, INTERRUPTED = 0, 1, 2, 130

# Of a stdout that is closed, full or gone.
_STREAM_FAULTS = (errno.EBADF, errno.ENOSPC, errno.EIO)

# What the quick way reads: options with a value, and flags.
_VALUES = {
    "-c": "command",
    "-e": "command",
    "--command": "command",
    "-f": "file",
    "--file": "file",
    "-o": "output",
    "--output-format": "output",
    "--catalog": "catalog",
    "-t": "table",
    "--table": "table",
    "-s": "set",
    "--set": "set",
}
_FLAGS = {"-q": "quiet", "--quiet": "quiet", "--keep-going": "keep_going"}


def run() -> None:
    """Run the command line of this process and exit."""
    # Importing makes nothing but what stays: looking for garbage meanwhile takes a seventh of a short run.
    gc.disable()
    # Py4J logs a traceback when Ctrl-C interrupts one of its calls; "interrupted" is all there is to say.
    logging.getLogger().addFilter(lambda record: "KeyboardInterrupt" not in record.getMessage())
    try:
        code = _run(sys.argv[1:])
        if code == DONE:
            sys.stdout.flush()
    except KeyboardInterrupt:
        code = INTERRUPTED
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
        if isinstance(end.code, str):
            _say(end.code)
    except BrokenPipeError:
        # Who has closed the pipe has what it wanted (`| head`).
        code = DONE
    except Exception as fault:
        code = FAILED
        if isinstance(fault, OSError) and fault.errno in _STREAM_FAULTS:
            _say(f"error: the result cannot be written: {fault.strerror}")
        else:
            from .crash import report

            _say(report(fault))
    _leave(code)


def _run(arguments: list[str]) -> int:
    """Run a command line; the exit code."""
    from .streams import make_safe

    make_safe()
    try:
        # As bytes, whatever the locale takes them for.
        arguments = [a if a.isascii() else os.fsencode(a).decode("utf-8") for a in arguments]
    except UnicodeDecodeError as fault:
        _say(f"error: the argument {fault.object!r} is not UTF-8")
        return WRONG_USAGE
    request = plain_request(arguments)
    if request is not None:
        from .run import run_texts

        _collect_again()
        return run_texts(request)
    from .app import app

    _collect_again()
    app(arguments, standalone_mode=True)
    return DONE


def _say(text: str) -> None:
    """A line on stderr; where that cannot be written to there is nobody to tell."""
    with contextlib.suppress(OSError, ValueError):
        print(text, file=sys.stderr, flush=True)


def _collect_again() -> None:
    gc.freeze()
    gc.enable()


def _leave(code: int) -> NoReturn:
    """Exit without taking the interpreter apart: a tenth of a short run; and a thread of Spark's that holds stderr then
    makes Python abort.
    """
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(code)


def plain_request(arguments: Sequence[str]) -> Request | None:
    """The request of a plain command line with a catalog; None for any other, and for one with a mistake in it."""
    if is_configured():
        return None
    given: dict[str, list[str]] = {}
    texts: list[str] = []
    flags: set[str] = set()
    left = iter(arguments)
    for argument in left:
        if argument in _FLAGS:
            flags.add(_FLAGS[argument])
            continue
        name, value = _VALUES.get(argument), next(left, None)
        if name is None or value is None:
            return None
        given.setdefault(name, []).append(value)
        if name in ("command", "file"):
            text = value if name == "command" else _read(value)
            if text is None:
                return None
            texts.append(text)
    pairs = {name: [_pair(v) for v in given.get(name, [])] for name in ("table", "set")}
    if not texts or "catalog" not in given or any(p is None for ps in pairs.values() for p in ps):
        return None
    from .formats import FORMATS, default_format
    from .request import Request

    output = given.get("output", [default_format(sys.stdout)])[-1]
    if output not in FORMATS:
        return None
    return Request(
        texts=tuple(texts),
        output=output,
        catalog=given["catalog"][-1],
        tables=tuple(p for p in pairs["table"] if p is not None),
        demo=False,
        compare=False,
        settings=dict(p for p in pairs["set"] if p is not None),
        keep_going="keep_going" in flags,
        progress="quiet" not in flags and sys.stderr.isatty(),
        quiet="quiet" in flags,
    )


def _read(path: str) -> str | None:
    if path == "-":
        # Standard input can be read once: not by a reader that may give up.
        return None
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None


def _pair(text: str) -> tuple[str, str] | None:
    name, equals, value = text.partition("=")
    return (name.strip(), value.strip()) if equals and name.strip() and value.strip() else None
