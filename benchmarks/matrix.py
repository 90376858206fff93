"""Every combination of a question with clauses, kept sketches and routes: answered by what was asked, or refused.

``python -m benchmarks.matrix --json FILE [--only-plan] [--range FIRST:LAST]``. On the demo tables. Records that FILE
has are not made again. Exits with 1 if a cell is other than asked, and no refusal says so.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from skimql import Answer, Session, Settings, SkimqlError
from skimql.engine.materialized.apart import bytes_of
from skimql.engine.materialized.declared import selects_of
from skimql.engine.materialized.query_cache import keepable
from skimql.engine.materialized.workloads import Workloads
from skimql.engine.results.compare import beside
from skimql.optimizer.methods import ANSWERED, DISTINCT, GROUPING, METHODS, NAMED
from skimql.optimizer.physical import ApartJoin, MaterializedJoin, PhysicalPlan, SampleJoin, SketchJoin
from skimql.optimizer.plan import most_bytes
from skimql.optimizer.route import TABULATION
from skimql.parser.resolve import resolve_rows
from skimql.parser.statement import ApproximateSelect, EstimateRows
from skimql.parser.syntax import CreateSketches

ERROR, SIZE = 0.05, 512 << 10
JOIN = "FROM flights f JOIN planes p ON f.tailnum = p.tailnum"
CHAIN = "FROM airports a JOIN flights f ON a.faa = f.dest JOIN planes p ON f.tailnum = p.tailnum"
SUMS = "COUNT(*) AS n, SUM(f.distance) AS miles"
ROWS, WORKLOAD = "ESTIMATE ROWS", "workload"
SHAPES: Mapping[str, str] = {
    "ungrouped": f"SELECT APPROXIMATE {SUMS} {JOIN}",
    "ungrouped, two classes": f"SELECT APPROXIMATE {SUMS} {CHAIN}",
    "one table": f"SELECT APPROXIMATE {SUMS} FROM flights f",
    "grouped by one table": f"SELECT APPROXIMATE f.origin, {SUMS} {JOIN} GROUP BY f.origin",
    "grouped by several tables": f"SELECT APPROXIMATE f.origin, p.engines, {SUMS} {JOIN} GROUP BY f.origin, p.engines",
    "HAVING without groups": f"SELECT APPROXIMATE {SUMS} {JOIN} HAVING COUNT(*) > 1000",
    "COUNT(DISTINCT)": f"SELECT APPROXIMATE COUNT(DISTINCT f.dest) AS d {JOIN}",
    "COUNT(DISTINCT) of two tables": f"SELECT APPROXIMATE COUNT(DISTINCT f.dest, p.model) AS d {JOIN}",
    "set expression": "SELECT APPROXIMATE COUNT(DISTINCT k) AS d "
    "FROM (SELECT tailnum AS k FROM flights INTERSECT SELECT tailnum AS k FROM planes)",
    ROWS: f"ESTIMATE ROWS FOR SELECT * {JOIN}",
    WORKLOAD: f"SELECT {SUMS} {JOIN}",
}
# Where an asked error is held against the answer, and not planned for.
REPORTED = frozenset(s for s in SHAPES if s.startswith(("grouped", "HAVING")))
_USING = {f"USING {m}": m for m in NAMED}
CLAUSES: Mapping[str, tuple[str | None, float | None, int | None]] = {
    "": (None, None, None),
    f"ERROR WITHIN {ERROR:.0%}": (None, ERROR, None),
    f"SIZE {SIZE >> 10} KB": (None, None, SIZE),
    **{text: (m, None, None) for text, m in _USING.items()},
    **{f"ERROR WITHIN {ERROR:.0%} {text}": (m, ERROR, None) for text, m in _USING.items()},
}
KEPT = ("nothing", "kept", "cache")
ROUTES = ("auto", "arrow", "jvm")
CREATE = (
    "CREATE SKETCH kf ON flights (tailnum) FOR SUM(distance)",
    "CREATE SKETCH kp ON planes (tailnum)",
)


@dataclass(frozen=True, slots=True)
class Cell:
    """A question of one shape, with a clause, in a session with something kept, by a route."""

    shape: str
    clause: str
    kept: str
    route: str

    @property
    def question(self) -> str:
        """The SELECT with its clause."""
        return f"{SHAPES[self.shape]} {self.clause}".rstrip()

    @property
    def sql(self) -> str:
        """The statement."""
        if self.shape != WORKLOAD:
            return self.question
        return f"CREATE SKETCHES w FOR QUERIES ({self.question}) SIZE 1 MB MINIMIZE AVERAGE ERROR"

    def settings(self, settings: Settings) -> Settings:
        """Those of a session in which it is asked."""
        return replace(settings, route=self.route, cache=self.kept == "cache")


@dataclass(frozen=True, slots=True)
class Way:
    """What a cell is planned to be answered by: method, route, planned error, bytes of synopses, and what is kept."""

    method: str
    source: str
    route: str
    error: float | None = None
    nbytes: float = 0.0
    keeps: bool = False


def way_of(physical: PhysicalPlan, session: Session) -> Way:
    """The way that a physical plan begins with."""
    attempt = physical.attempt
    planned = physical.choice is not None or (isinstance(attempt, SampleJoin) and attempt.enlarges)
    match attempt:
        case MaterializedJoin():
            source, plan = "partly kept" if attempt.missing else "kept", attempt.plan
            route = "arrow" if attempt.missing and plan.family == TABULATION else "jvm"
            method = plan.method
        case SketchJoin():
            source, plan, method = "built", attempt.plan, attempt.method
            route = "arrow" if plan.family == TABULATION else "jvm"
        case ApartJoin():
            nbytes = float(bytes_of(attempt.synopses, lambda s: 10 if s.groups else 1))
            error = physical.error if planned else None
            return Way(attempt.method, "built", "arrow", error, nbytes, attempt.keeps)
        case SampleJoin():
            return Way(attempt.method, "none", "jvm", physical.error, attempt.predicted.nbytes)
        case _:
            # Running exactly meets any error.
            return Way(attempt.method, "none", "jvm", physical.error)
    keeps = session.settings.cache and keepable(plan, session.environment.own_functions)
    nbytes = float(sum(map(most_bytes, plan.synopses)))
    if isinstance(attempt, MaterializedJoin) and not attempt.missing:
        # What is kept takes what it takes, however wide its sketches could grow.
        nbytes = float(sum(h.nbytes for h in session.context.catalog.heads() if h.name in attempt.names))
    return Way(method, source, route, physical.error if planned else None, nbytes, keeps)


def cells() -> list[Cell]:
    """The whole product."""
    return [Cell(*c) for c in product(SHAPES, CLAUSES, KEPT, ROUTES)]


def planned(session: Session, cell: Cell) -> Way:
    """The way of a cell, nothing built; raises as its statement would."""
    found = resolved(session, cell)
    with session.tables.statement(cell.sql):
        return planned_in(session, cell, found)


def resolved(session: Session, cell: Cell) -> tuple[Any, Any]:
    """The statement of a cell and what it asks: the same by every route, and whatever is kept."""
    statement = session._read(cell.sql)
    with session.tables.statement(cell.sql):
        match statement:
            case EstimateRows():
                return statement.select, resolve_rows(statement, session.tables, ansi=True)
            case CreateSketches():
                known = ANSWERED - GROUPING - DISTINCT
                return statement, [session.typed(session._resolved(s, known)) for s in selects_of(statement)]
            case ApproximateSelect():
                return statement, session._resolved(statement)
    raise AssertionError(f"{cell.sql} is no question")


def planned_in(session: Session, cell: Cell, found: tuple[Any, Any]) -> Way:
    """The way of a cell that is `resolved`, within its statement."""
    statement, query = found
    if cell.shape != WORKLOAD:
        return way_of(session._run_of(statement, query, counts_rows=cell.shape == ROWS).plan(), session)
    declared, _ = Workloads(session.context).plan(statement, query)
    plan = declared.plans[0]
    return Way(plan.method, "built", "arrow", None, sum(map(most_bytes, plan.synopses)), True)


def otherwise(cell: Cell, way: Way) -> str:
    """What of the way is other than asked; empty where all is honoured."""
    method, error, size = CLAUSES[cell.clause]
    read = way.source in ("kept", "partly kept")
    known = METHODS[way.method]
    if method is not None and way.method != method:
        return f"by {way.method}"
    if error is not None and way.error != error and not read and cell.shape not in REPORTED and known.error:
        return "not planned for the error"
    if size is not None and way.nbytes > size:
        return f"{way.nbytes:,.0f} bytes"
    if cell.route == "jvm" and way.route != "jvm":
        return "by Python workers"
    if cell.route == "arrow" and way.route != "arrow" and not read and "arrow" in known.routes:
        return "in the JVM"
    if cell.kept == "cache" and way.source != "none" and not way.keeps:
        return "nothing is kept"
    if cell.kept == "kept" and cell.shape in ("ungrouped", ROWS) and not cell.clause and way.source != "kept":
        return "kept sketches are not read"
    return ""


def refused_well(fault: SkimqlError) -> bool:
    """Whether a refusal has a code and a way out."""
    return fault.code.startswith("SKIMQL_") and bool(fault.hint)


class Runner:
    """Runs cells on the demo tables, each in a session as it asks for."""

    def __init__(self) -> None:
        from skimql import demo_tables
        from skimql.engine.spark.session import start_spark

        self.spark = start_spark(
            {
                "spark.master": "local[2]",
                "spark.sql.shuffle.partitions": "2",
                "spark.driver.memory": "2g",
                "spark.sql.session.timeZone": "UTC",
            }
        )
        self.paths = demo_tables()
        self.lasting: dict[str, Session] = {}
        self.truths: dict[str, Answer] = {}

    def session(self, kept: str) -> Session:
        """A session of a kind; one in which queries keep what they build is new each time."""
        if kept in self.lasting:
            return self.lasting[kept]
        session = Session(self.spark)
        for name, path in self.paths.items():
            session.table(name, path)
        if kept != "cache":
            self.lasting[kept] = session
        if kept == "kept":
            for statement in CREATE:
                session.sql(statement)
        return session

    def record(self, cell: Cell, only_plan: bool) -> dict[str, Any]:
        """What came of a cell."""
        session = self.session(cell.kept)
        before, session.settings = session.settings, cell.settings(session.settings)
        record = {"shape": cell.shape, "clause": cell.clause, "kept": cell.kept, "route": cell.route}
        silent = ""
        try:
            way = planned(session, cell)
            silent = otherwise(cell, way)
            record |= {"outcome": "answered", "method": way.method, "code": None}
            if not only_plan:
                answer = self._answer(session, cell)
                silent = silent or self._unlike(cell, way, answer)
                record |= {"method": answer.method, **self._accuracy(cell, answer)}
        except SkimqlError as fault:
            record |= {"outcome": "refused", "method": None, "code": fault.code, "reason": fault.message}
            record |= {"way_out": fault.hint}
            silent = "" if refused_well(fault) else "no way out"
        finally:
            session.settings = before
        return record | {"silently": silent}

    def _answer(self, session: Session, cell: Cell) -> Answer:
        if cell.shape != WORKLOAD:
            found: Answer = session.sql(cell.sql)
            return found
        session.sql(cell.sql)
        try:
            answer: Answer = session.sql(SHAPES[WORKLOAD].replace("SELECT", "SELECT APPROXIMATE", 1))
        finally:
            session.sql("DROP SKETCH w")
        return answer

    def _unlike(self, cell: Cell, way: Way, answer: Answer) -> str:
        """Whether the answer came by another way than was said, of what was asked."""
        method, error, _ = CLAUSES[cell.clause]
        if not answer.method:
            return "the answer does not say its method"
        if method is not None and answer.method != method:
            return f"by {answer.method}"
        by_planner = error is not None or METHODS[answer.method].statistics
        if not by_planner and cell.shape != WORKLOAD and answer.method != way.method:
            return f"by {answer.method}, and EXPLAIN said {way.method}"
        return ""

    def _accuracy(self, cell: Cell, answer: Answer) -> dict[str, Any]:
        if answer.exact:
            return {"relative_error": 0.0, "covered": True}
        if cell.shape not in self.truths:
            text = (
                SHAPES[cell.shape]
                .replace("APPROXIMATE ", "")
                .replace("ESTIMATE ROWS FOR SELECT *", "SELECT COUNT(*)")
            )
            self.truths[cell.shape] = self.session("nothing").sql(f"EXACT {text}")
        compared = beside(answer, self.truths[cell.shape])
        errors, covered = [], True
        for row, truth in zip(compared.rows, compared.compared or (), strict=True):
            # A group that joins nothing is shown where sketches cannot tell: there it counts and adds 0.
            for value, true in zip(row, (0.0,) * len(row) if truth is None else truth, strict=True):
                if hasattr(value, "low") and true is not None:
                    errors.append(abs(value.value - float(true)) / max(abs(float(true)), 1.0))
                    # Doubles that hold a sum of many are rounded.
                    slack = 1e-9 * abs(float(true))
                    covered &= bool(value.low - slack <= float(true) <= value.high + slack)
        worst = max(errors, default=0.0)
        return {"relative_error": worst if math.isfinite(worst) else None, "covered": covered}


def _ranges(text: str, most: int) -> range:
    first, _, last = text.partition(":")
    return range(int(first or 0), min(int(last or most), most))


def _left(found: list[dict[str, Any]], wanted: range) -> Iterator[tuple[int, Cell]]:
    known = {(r["shape"], r["clause"], r["kept"], r["route"]) for r in found}
    for number, cell in enumerate(cells()):
        if number in wanted and (cell.shape, cell.clause, cell.kept, cell.route) not in known:
            yield number, cell


def main() -> int:
    """Run the cells that are asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--range", default=":", help="numbers of cells, FIRST:LAST")
    parser.add_argument("--only-plan", action="store_true", help="nothing is built")
    options = parser.parse_args()
    found = json.loads(options.json.read_text()) if options.json.exists() else []
    runner, started = Runner(), time.perf_counter()
    total = len(cells())
    for number, cell in _left(found, _ranges(options.range, total)):
        record = runner.record(cell, options.only_plan)
        found.append(record)
        told = record["silently"] or record["outcome"]
        words = (f"{number + 1}/{total}", f"{time.perf_counter() - started:.0f} s", cell.shape, cell.clause)
        print(
            *words, cell.kept, cell.route, record["method"] or record["code"], told, sep="; ", file=sys.stderr
        )
        if number % 10 == 0 or record["silently"]:
            options.json.write_text(json.dumps(found, indent=1))
    options.json.write_text(json.dumps(found, indent=1))
    silent = [r for r in found if r["silently"]]
    for record in silent:
        print("SILENT", record)
    print(
        f"{len(found)} cells, {sum(r['outcome'] == 'refused' for r in found)} refused, {len(silent)} silent"
    )
    return 1 if silent else 0


if __name__ == "__main__":
    sys.exit(main())
