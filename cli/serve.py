"""`skimql serve`: the continuous views of a catalog run until SIGTERM or Ctrl-C, or until all have ended."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Callable, Iterator

from .. import Session, Settings, SkimqlError
from .request import Request
from .run import register

DONE, FAILED = 0, 1
_SECONDS = 1.0  # between looks at what runs


def serve(request: Request) -> int:
    """Run every view that is not paused; the exit code."""
    if request.catalog is None:
        _say("error: which catalog? skimql serve --catalog DIR")
        return 2
    stopped = threading.Event()
    try:
        with (
            Session(
                settings=Settings().with_text(request.settings),
                catalog=request.catalog,
                spark_conf=request.conf,
            ) as session,
            signals(stopped.set),
        ):
            return _served(session, request, stopped)
    except SkimqlError as fault:
        _say(str(fault))
        return FAILED


def _served(session: Session, request: Request, stopped: threading.Event) -> int:
    views = [r for r in session.answer("SHOW QUERIES").records() if r["state"] != "paused"]
    if not views:
        _say(f"error: {request.catalog} has no continuous view to run; CREATE CONTINUOUS VIEW ..., RESUME")
        return FAILED
    register(session, request)
    for view in views:
        if not stopped.is_set():
            session.answer(f"RESUME `{view['query'].replace('`', '``')}`")
            _say(f"{view['query']}: runs, over {view['streams']}")
    failed: set[str] = set()
    while not stopped.wait(_SECONDS):
        rows = session.answer("SHOW QUERIES EXTENDED").records()
        for row in rows:
            if row["state"] == "failed" and row["query"] not in failed:
                failed.add(row["query"])
                _say(f"{row['query']}: failed: {row['fault']}")
        if all(row["state"] != "running" for row in rows):
            _say("no view runs any more")
            return FAILED if failed else DONE
    _say("stopping after the batches that are on their way")
    session.finish_streams()
    return FAILED if failed else DONE


@contextlib.contextmanager
def signals(stop: Callable[[], None]) -> Iterator[None]:
    """The first SIGTERM or SIGINT asks to stop; the second ends the process as it would without us."""
    before = {s: signal.getsignal(s) for s in (signal.SIGTERM, signal.SIGINT)}

    def asked(number: int, _: object) -> None:
        signal.signal(number, before[signal.Signals(number)])
        stop()

    for number in before:
        signal.signal(number, asked)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
