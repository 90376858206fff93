"""Run the statements of a command line: register, ask, print; the first error stops unless told otherwise."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .. import Answer, Message, Session, Settings, SkimqlError
from ..parser.statement import is_approximate, split_statements
from .render import foot_line, render
from .streams import NOT_WRITTEN, writing
from .talk import Talk

DONE, FAILED, INTERRUPTED = 0, 1, 130


@dataclass(frozen=True, slots=True)
class Request:
    """A command line, checked."""

    texts: tuple[str, ...]
    output: str
    tables: tuple[tuple[str, str], ...]
    catalog: str | None
    demo: bool
    compare: bool
    settings: Mapping[str, str]
    keep_going: bool
    progress: bool
    quiet: bool


def run_texts(request: Request) -> int:
    """Run every statement of every text in order and print each result; the exit code."""
    talk = Talk()
    code = DONE
    listener = talk.progress_line() if request.progress else None
    try:
        settings = Settings().with_text(request.settings)
        session = Session(settings=settings, listener=listener, catalog=request.catalog)
        if request.demo or request.tables:
            with _status(talk, request.progress, "starting Spark"):
                _register(session, request)
        for text in request.texts:
            for statement in split_statements(text):
                try:
                    _run_one(session, statement.sql, request, talk)
                except SkimqlError as error:
                    talk.print(str(error))
                    code = FAILED
                    if not request.keep_going or error.code == NOT_WRITTEN:
                        return code
    except SkimqlError as error:
        talk.print(str(error))
        return FAILED
    except KeyboardInterrupt:
        talk.print("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has what it wanted (`| head`): what is left goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code


def _register(session: Session, request: Request) -> None:
    if request.demo:
        from .. import demo_tables

        for name, path in demo_tables().items():
            session.table(name, path)
    for name, source in request.tables:
        session.table(name, source)


def _run_one(session: Session, sql: str, request: Request, talk: Talk) -> None:
    result: Any = session.compare(sql) if request.compare and is_approximate(sql) else session.sql(sql)
    if isinstance(result, Message):
        return
    with writing():
        render(result, request.output, sys.stdout)
    if isinstance(result, Answer) and not request.quiet:
        for note in result.notes:
            talk.print(f"note: {note}")
        foot = foot_line(result)
        if foot:
            talk.print(foot, dim=True)


def _status(talk: Talk, shown: bool, text: str) -> contextlib.AbstractContextManager[Any]:
    return talk.console.status(text) if shown else contextlib.nullcontext()
