"""Run the statements of a command line: register, ask, print; the first error stops unless told otherwise."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from .. import Answer, EnvironmentFault, Message, Session, Settings, SkimqlError
from ..parser.statement import is_approximate, split_statements
from .progress import PLANNING, ProgressLine, RefinedLine
from .render import foot_line, render, shortened
from .request import Request
from .streams import NOT_WRITTEN, is_unicode, writing
from .talk import Talk

DONE, FAILED, INTERRUPTED = 0, 1, 130


def run_texts(request: Request) -> int:
    """Run every statement of every text in order and print each result; the exit code."""
    talk = Talk()
    code = DONE
    refines = request.output == "table" and request.output_file is None and sys.stdout.isatty()
    listener = talk.progress_line(estimates=refines) if request.progress else None
    try:
        session = _session(request, listener)
        with _sink(request) as sink:
            _prepare(session, request, listener)
            for text in request.texts:
                for statement in split_statements(text):
                    try:
                        _run_one(session, statement.sql, request, talk, sink, listener)
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


def plot(request: Request, sql: str, to: Path | None) -> int:
    """Draw a query's predicted error against bytes, on stdout or with its answer into a file; the exit code."""
    from .pictures import chart, curve, draw

    talk = Talk()
    try:
        listener = talk.progress_line() if request.progress else None
        session = _session(request, listener)
        _prepare(session, request, listener)
        with _waiting(session, listener):
            points = curve(session, sql)
        if to is None:
            with writing(sys.stdout):
                sys.stdout.write(
                    chart(points, shutil.get_terminal_size().columns, unicode=is_unicode(sys.stdout))
                )
            return DONE
        with _waiting(session, listener):
            answer = session.sql(sql)
        draw(points, answer if isinstance(answer, Answer) else None, str(to))
        talk.print(f"drawn in {to}")
    except SkimqlError as error:
        talk.print(str(error))
        return FAILED
    except KeyboardInterrupt:
        talk.print("interrupted")
        return INTERRUPTED
    return DONE


def _session(request: Request, listener: ProgressLine | None) -> Session:
    return Session(
        settings=Settings().with_text(request.settings),
        listener=listener,
        catalog=request.catalog,
        spark_conf=request.conf,
    )


def _prepare(session: Session, request: Request, listener: ProgressLine | None) -> None:
    """Register the tables of a request, and run what comes before its statements."""
    with _waiting(session, listener):
        register(session, request)
        for text in request.first:
            for statement in split_statements(text):
                session.sql(statement.sql)


def _waiting(session: Session, listener: ProgressLine | None) -> contextlib.AbstractContextManager[None]:
    """Within, who looks at the terminal is told what goes on."""
    if listener is None:
        return contextlib.nullcontext()
    return listener.shown(lambda: "starting Spark" if session.spark_state == "starting" else PLANNING)


@contextlib.contextmanager
def _sink(request: Request) -> Iterator[TextIO]:
    """Where results go: stdout, or the file that was asked for."""
    if request.output_file is None:
        yield sys.stdout
        return
    try:
        sink = open(request.output_file, "w", encoding="utf-8")  # noqa: SIM115
    except OSError as fault:
        raise EnvironmentFault(
            f"cannot write {request.output_file}: {fault.strerror}", NOT_WRITTEN
        ) from fault
    with sink:
        yield sink


def register(session: Session, request: Request) -> None:
    """Register the tables of a request."""
    if request.demo:
        from .. import demo_tables

        for name, path in demo_tables().items():
            session.table(name, path)
    for name, source in request.tables:
        session.table(name, source)


def _run_one(
    session: Session,
    sql: str,
    request: Request,
    talk: Talk,
    sink: TextIO,
    listener: ProgressLine | None,
) -> None:
    wall, cpu = time.perf_counter(), time.process_time()
    if isinstance(listener, RefinedLine):
        listener.estimate = None
    stopped: KeyboardInterrupt | None = None
    try:
        with _waiting(session, listener):
            result: Any = (
                session.compare(sql) if request.compare and is_approximate(sql) else session.sql(sql)
            )
            if not sink.isatty():
                # On a terminal the line and the rows would write into each other.
                _write(result, request, sink, listener)
            elif request.output == "table" and result.columns:
                result = shortened(result, listener)
    except KeyboardInterrupt as fault:
        if not isinstance(listener, RefinedLine) or listener.estimate is None:
            raise
        from .shell.refined import taken

        stopped, result = fault, taken(listener.estimate)
    if sink.isatty():
        _write(result, request, sink, None)
    if isinstance(result, Answer) and not isinstance(result, Message) and not request.quiet:
        for note in result.notes:
            talk.print(f"note: {note}")
        foot = foot_line(result)
        if foot:
            talk.print(foot, dim=True)
    if request.timing:
        took = time.perf_counter() - wall
        talk.print(f"{took:.3f} s, {time.process_time() - cpu:.3f} s of CPU in this process", dim=True)
    if stopped is not None:
        raise stopped


def _write(result: Any, request: Request, sink: TextIO, listener: ProgressLine | None) -> None:
    if not isinstance(result, Message):
        with writing(sink):
            render(result, request.output, sink, listener)
