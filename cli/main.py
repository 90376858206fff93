"""Entry point of the `skimql` command.

Reading arguments costs more than answering from a catalog does, so a plain command line of a catalog (``--catalog DIR``
with -c, -f, -o, -s, -t, -q) is read here; every other one, and every mistake, is `app`'s.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from .run import Request

INTERRUPTED = 130

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
        request = plain_request(sys.argv[1:])
        if request is not None:
            from .run import run_texts

            _collect_again()
            _leave(run_texts(request))
        from .app import app

        _collect_again()
        code = app(standalone_mode=True)
    except KeyboardInterrupt:
        code = INTERRUPTED
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
    _leave(code)


def _collect_again() -> None:
    gc.freeze()
    gc.enable()


def _leave(code: int) -> NoReturn:
    """Exit without taking the interpreter apart: a tenth of a short run; and a thread of Spark's that holds stderr then
    makes Python abort.
    """
    atexit._run_exitfuncs()
    # Who has closed the pipe has what it wanted.
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


def plain_request(arguments: Sequence[str]) -> Request | None:
    """The request of a plain command line with a catalog; None for any other, and for one with a mistake in it."""
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
    from .render import FORMATS, default_format
    from .run import Request

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
