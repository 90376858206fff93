"""`skimql demo`: four questions to real tables, each with estimate, interval, exact answer, error, bytes and times."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass

from rich.console import Console

from .. import Answer, Session, Settings, SkimqlError, demo_tables
from .progress import ProgressLine
from .render import foot_line, render


@dataclass(frozen=True, slots=True)
class Question:
    """A question, its SQL, and how Spark can answer it exactly in bearable time where the join itself cannot."""

    text: str
    sql: str
    exact_sql: str | None = None


QUESTIONS = (
    Question(
        "How many flights went with a plane whose papers we have, and how far did they fly?",
        """SELECT APPROXIMATE COUNT(*) AS flights, SUM(f.distance) AS miles, AVG(f.distance) AS miles_per_flight
FROM flights f JOIN planes p ON f.tailnum = p.tailnum""",
    ),
    Question(
        "Does rain delay flights? Flights that left in rain, and their delay in minutes (two-column key):",
        """SELECT APPROXIMATE COUNT(*) AS flights_in_rain, AVG(f.dep_delay) AS delay
FROM flights f JOIN weather w ON f.origin = w.origin AND f.time_hour = w.time_hour
WHERE w.precip > 0""",
    ),
    Question(
        "How many pairs of flights share a destination? A join of 3 billion rows, never made:",
        """SELECT APPROXIMATE COUNT(*) AS pairs, AVG(a.distance) AS miles
FROM flights a JOIN flights b ON a.dest = b.dest""",
        """SELECT SUM(n * n) AS pairs, SUM(n * s) / SUM(n * n) AS miles
FROM (SELECT COUNT(*) AS n, SUM(distance) AS s FROM flights GROUP BY dest)""",
    ),
    Question(
        "Three tables, small result over large keys: the sketch cannot know, and says so.",
        """SELECT APPROXIMATE COUNT(*) AS flights
FROM flights f JOIN planes p ON f.tailnum = p.tailnum
JOIN weather w ON f.origin = w.origin AND f.time_hour = w.time_hour
WHERE w.precip > 0.1""",
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
            shown.print(f"\n[bold]{question.text}[/bold]")
            shown.print(question.sql, markup=False)
            answer = _with_exact(session, question)
            shown.print()
            render(answer, "table", sys.stdout)
            for note in answer.notes:
                shown.print(f"note: {note}", markup=False)
            shown.print(foot_line(answer), markup=False, style="dim")
    except SkimqlError as error:
        talk.print(str(error), markup=False)
        return 1
    except KeyboardInterrupt:
        talk.print("interrupted")
        return 130
    return 0


def _with_exact(session: Session, question: Question) -> Answer:
    if question.exact_sql is None:
        return session.compare(question.sql)
    return session.compare(question.sql, exact_sql=question.exact_sql)
