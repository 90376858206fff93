"""Random questions through `Session.sql` on Spark, held against Spark's exact answer to the same SQL.

A hundred seeds are a block: one set of small tables, sessions with nothing kept, with sketches kept and with
``skimql.cache``, under four circumstances (ANSI mode on and off, three time zones), case-sensitive once. From seed
10,000 on half of the questions have the forms of `sampled_questions`: on all keys of a sample, on some, or as it is;
and Spark generates code for one block in four, since compiling it takes most of the time of a query on small tables.
"""

from __future__ import annotations

import datetime as dt
import math
import re
import shutil
import weakref
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from skimql import Answer, Estimate, Session, Settings, SkimqlError
from skimql.engine.queries import sampled_plan
from skimql.engine.queries.sampled_plan import SampledPlan
from skimql.engine.results.columns import typed
from skimql.sketches.samples.cluster_moments import TOO_FEW

from .questions import KEPT, Question, Rng, SparkWords, question
from .sampled_questions import SampledForms

BLOCK = 100
FIRST_OF_FORMS = 10_000
ANSI, ZONE, CASE = "spark.sql.ansi.enabled", "spark.sql.session.timeZone", "spark.sql.caseSensitive"
CIRCUMSTANCES: Sequence[Mapping[str, str]] = (
    {ANSI: "true", ZONE: "UTC"},
    {ANSI: "true", ZONE: "UTC"},
    {ANSI: "false", ZONE: "UTC"},
    {ANSI: "true", ZONE: "America/New_York"},
    {ANSI: "false", ZONE: "Asia/Kolkata"},
)
# Spark's settings where it generates code and plans anew as it runs, and where it interprets expressions.
FACTORY = "spark.sql.codegen.factoryMode"
GENERATED = {
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.adaptive.enabled": "true",
    FACTORY: "FALLBACK",
}
INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.adaptive.enabled": "false",
    FACTORY: "NO_CODEGEN",
}
KINDS = ("nothing", "nothing", "nothing", "kept", "cache")
ROUTES = ("auto", "auto", "arrow", "jvm")
# The share of keys that samples of the user's own query take; 0 where the product decides.
ALL = 1 - 2.0**-40
RATES = (ALL, ALL, 0.5, 0.0)
# Doubles that stand for ratios of exact sums, and what Spark rounds an AVG of a DECIMAL to.
SLACK, ROUNDED = 1e-9, 1e-6
# Codes of a value that Spark cannot compute; Spark's own run must fail as well.
OF_VALUES = ("SKIMQL_SCAN_FAILED", "SKIMQL_GROUPS_FAILED", "SKIMQL_EXACT_FAILED", "SKIMQL_BAD_ARGUMENT")
# What Spark's analysis says of the user's own query where it loses a column of USING behind CUBE.
OF_SPARKS_OWN = "Resolved attribute(s)"
# Codes that no question of ours may get: the SELECT is one that Spark reads.
OURS = (
    *("SKIMQL_SYNTAX_ERROR", "SKIMQL_PARSE_ERROR", "SKIMQL_SPARK_FAILED", "SKIMQL_SPARK_REFUSES"),
    *("SKIMQL_SPARK_GONE", "SKIMQL_WORKER_DIED", "SKIMQL_UNKNOWN_COLUMN", "SKIMQL_OVERFLOW"),
)


def tables(rng: Rng) -> dict[str, pa.Table]:
    """Three tables of some dozen to a hundred rows, keys from flat to very skewed, NULLs in every column."""
    found = {}
    texts = ["1", "2", "01", " 3", "4", "", *(["x"] if rng.random() < 0.3 else [])]
    for name in "abc":
        rows = int(rng.integers(12, 120))
        skew, keys = float(rng.choice([0.0, 0.0, 1.2, 2.0])), int(rng.choice([5, 20, 100]))

        def drawn(values: Any, kind: pa.DataType, rows: int = rows) -> pa.Array:
            return pa.array(list(values), kind, mask=rng.random(rows) < 0.05)

        def key(kind: pa.DataType, rows: int = rows, skew: float = skew, keys: int = keys) -> pa.Array:
            values = rng.zipf(max(skew, 1.01), rows) % keys if skew else rng.integers(0, keys, rows)
            return drawn(values.tolist(), kind)

        hours = rng.choice([0, 0, 3, 20, 47, 60], rows)
        days = rng.integers(1, 5, rows)
        start = dt.datetime(2026, 3, 1, tzinfo=dt.UTC)
        found[name] = pa.table(
            {
                "k": key(pa.int32()),
                "l": key(pa.int64()),
                "s": drawn(rng.choice(texts, rows).tolist(), pa.string()),
                "g": drawn(rng.integers(0, 4, rows).tolist(), pa.int32()),
                "h": drawn(rng.choice(["x", "y", "Y"], rows).tolist(), pa.string()),
                "v": drawn((np.rint(rng.lognormal(2, 1, rows)).astype(int) - 3).tolist(), pa.int32()),
                "d": drawn(
                    (Decimal(int(c)) / 100 for c in rng.integers(-300, 900, rows)), pa.decimal128(8, 2)
                ),
                "x": drawn(rng.lognormal(1, 1, rows).tolist(), pa.float64()),
                "e": drawn((dt.date(2026, 3, int(d)) for d in days), pa.date32()),
                "t": drawn((start + dt.timedelta(hours=int(h)) for h in hours), pa.timestamp("us", "UTC")),
            }
        )
    return found


class Runner:
    """Asks questions of Spark, block by block."""

    def __init__(self, spark: Any) -> None:
        self.spark = spark
        self._block, self._kept = -1, False
        self._folder = mkdtemp()
        weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self._sessions: dict[str, Session] = {}
        self._truths: dict[str, Answer | SkimqlError] = {}

    def record_of(self, seed: int) -> dict[str, Any]:
        """What came of one seed."""
        self._enter(seed // BLOCK)
        rng, place = np.random.default_rng((seed, 1)), seed % BLOCK
        kind, around = KINDS[place % len(KINDS)], CIRCUMSTANCES[place * len(CIRCUMSTANCES) // BLOCK]
        chosen = np.random.default_rng((seed, 2))
        rate = 0.0
        if seed >= FIRST_OF_FORMS and chosen.random() < 0.5:
            # Nothing of these is kept.
            kind, rate = "kept" if kind == "kept" else "nothing", float(chosen.choice(RATES))
            asked, route = SampledForms(SparkWords(rng)).question(), "auto"
        else:
            asked = question(SparkWords(rng), kept=kind != "nothing")
            route = ROUTES[int(rng.integers(len(ROUTES)))] if rng.random() < 0.5 else "auto"
        error = None if rng.random() < 0.5 else 0.05
        session = self._sessions[kind]
        if kind == "kept" and not self._kept:
            self._keep(session)
        kept_seed = 1 if kind != "nothing" else seed
        session.settings = Settings(seed=kept_seed, error=error, route=route, cache=kind == "cache")
        settings = dict(around) | ({CASE: "true"} if place == BLOCK - 1 else {})
        record: dict[str, Any] = {
            "seed": seed,
            "sql": asked.sql,
            "error": error,
            "kept": kind,
            "route": route,
        }
        record |= {"around": " ".join(v for v in settings.values()), "rate": rate}
        with _set(self.spark, settings), _sampled_at(rate):
            return record | self._outcome(session, asked, explain=seed % 7 == 0, check=seed % 4 == 0)

    def _enter(self, block: int) -> None:
        if block == self._block:
            return
        self._block = block
        self._truths = {}
        self.spark.conf.set(ZONE, "UTC")
        if block >= FIRST_OF_FORMS // BLOCK:
            for name, value in (GENERATED if block % 4 == 3 else INTERPRETED).items():
                self.spark.conf.set(name, value)
        found = tables(np.random.default_rng((block, 0)))
        frames = {name: self._given(block, name, table) for name, table in found.items()}
        for kind in KINDS:
            session = self._sessions[kind] = Session(self.spark)
            for name, frame in frames.items():
                session.table(name, frame)
        self._kept = False

    def _given(self, block: int, name: str, table: pa.Table) -> Any:
        """A table as a DataFrame of its tuples or, with forms, two blocks in three, of files: one in order."""
        form = block % 3 if block >= FIRST_OF_FORMS // BLOCK else 0
        if not form:
            return self.spark.createDataFrame(table)
        path = Path(self._folder, f"{block}_{name}")
        path.mkdir()
        ordered = table.sort_by("k") if form == 2 else table
        for part in range(2):
            size = -(-table.num_rows // 2)
            pq.write_table(ordered.slice(part * size, size), path / f"{part}.parquet", row_group_size=20)
        return self.spark.read.parquet(str(path))

    def _keep(self, session: Session) -> None:
        """Make what is kept of the block, under the first circumstances."""
        session.settings, self._kept = Settings(), True
        with _set(self.spark, CIRCUMSTANCES[0]):
            for statement in KEPT:
                session.sql(statement)

    def _outcome(self, session: Session, asked: Question, *, explain: bool, check: bool) -> dict[str, Any]:
        try:
            answer = session.answer(asked.sql)
            if explain:
                session.answer(f"EXPLAIN {asked.sql}")
        except SkimqlError as fault:
            why = {"code": fault.code, "why": fault.message}
            return {"outcome": "refused", **why, "fault": self._badly_refused(fault, asked)}
        except Exception as fault:
            return {"outcome": "raised", "fault": f"{type(fault).__name__}: {str(fault)[:400]}"}
        record = {"outcome": "answered", "method": answer.method, "rows": len(answer.rows)}
        if answer.method == "exact_run" and not check:
            # Spark's own run is not to be run twice each time.
            return record | {"estimated": 0, "missed": 0, "fault": ""}
        bare = self._truth(asked.bare)
        all_keys = _rate_of(answer) == ALL
        whole = (
            bare
            if asked.select == asked.bare or not (all_keys or is_exact(answer))
            else self._truth(asked.select)
        )
        if isinstance(bare, SkimqlError) or isinstance(whole, SkimqlError):
            # A value that the user's own run computes, and fails on, and that no estimate needs.
            return record | {"estimated": 0, "missed": 0, "fails": True, "fault": ""}
        return record | Held(asked, answer, bare, whole, all_keys=all_keys).record()

    def _badly_refused(self, fault: SkimqlError, asked: Question) -> str:
        if OF_SPARKS_OWN in fault.message and isinstance(self._truth(asked.select), SkimqlError):
            return ""
        if not fault.code.startswith("SKIMQL_") or fault.code in OURS:
            return f"refused as {fault}"
        if fault.code in OF_VALUES:
            return "" if isinstance(self._truth(asked.select), SkimqlError) else f"Spark runs it: {fault}"
        return "" if fault.hint else f"no way out: {fault}"

    def _truth(self, select: str) -> Answer | SkimqlError:
        """Spark's exact answer under the settings of now."""
        key = f"{select} {self.spark.conf.get(ANSI)} {self.spark.conf.get(ZONE)}"
        if key not in self._truths:
            try:
                text = select.replace("SELECT APPROXIMATE", "SELECT", 1)
                with _set(self.spark, {CASE: "false"}):
                    session = self._sessions["nothing"]
                    with session.tables.statement(text):
                        self._truths[key] = session.exact(text, text)
            except SkimqlError as fault:
                self._truths[key] = fault
        return self._truths[key]


def runner() -> Runner:
    """A runner on a Spark session of its own."""
    from skimql.engine.spark.session import start_spark

    return Runner(
        start_spark(
            {
                "spark.master": "local[2]",
                "spark.sql.shuffle.partitions": "2",
                "spark.driver.memory": "2g",
                ZONE: "UTC",
                "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            }
        )
    )


@contextmanager
def _set(spark: Any, settings: Mapping[str, str]) -> Iterator[None]:
    before = {name: spark.conf.get(name) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


@contextmanager
def _sampled_at(rate: float) -> Iterator[None]:
    """Samples of the user's own query take this share of the keys, as they do on large tables; 0: as it is."""
    names = ("DEFAULT_RATE", "FIRST_RATE", "LEAST_TUPLES", "MOST_FIRST", "MOST_RATE")
    before, sized = {name: getattr(sampled_plan, name) for name in names}, SampledPlan._sized
    wanted = dict.fromkeys(names, 1.0) | {"DEFAULT_RATE": rate, "FIRST_RATE": rate, "LEAST_TUPLES": 0.0}
    for name, value in wanted.items() if rate else ():
        setattr(sampled_plan, name, value)
    if rate:
        # On so few tuples none would be worth its scan.
        SampledPlan._sized = lambda self, way: None  # type: ignore[method-assign]
    try:
        yield
    finally:
        SampledPlan._sized = sized  # type: ignore[method-assign]
        for name, value in before.items():
            setattr(sampled_plan, name, value)


def _rate_of(answer: Answer) -> float:
    """The share of the keys that the answer is from, where it is of the user's own query."""
    return float(getattr(answer.attempts[-1].attempt, "rate", 0.0)) if answer.attempts else 0.0


class Held:
    """An answer, held against the exact one without HAVING, ORDER BY and LIMIT, and with them.

    An answer from all keys of a sample is to be equal, though nothing calls it exact.
    """

    def __init__(
        self, asked: Question, answer: Answer, bare: Answer, whole: Answer, *, all_keys: bool = False
    ) -> None:
        self.asked, self.answer, self.bare, self.whole = asked, answer, bare, whole
        self.faults: list[str] = []
        self.estimated = self.missed = self.loose = self.loose_missed = 0
        decided = all_keys and not any("may belong to the answer" in note for note in answer.notes)
        self.exact = decided or is_exact(answer)
        self.all_keys = all_keys

    def record(self) -> dict[str, Any]:
        """What came of it."""
        kinds = [(str(a), str(b)) for a, b in zip(self.answer.types, self.bare.types, strict=True) if a != b]
        if kinds and self.answer.types:
            self.faults.append(f"types {kinds}")
        truths = {self._key(row): row for row in self.bare.rows}
        # The group of NULL and the total of ROLLUP look alike: what is known of them is not told apart.
        twice = {k for k, number in Counter(map(self._key, self.bare.rows)).items() if number > 1}
        for row in self.answer.rows:
            if self._key(row) not in twice:
                self._row(row, truths.get(self._key(row)))
        self._groups(truths)
        self._chosen()
        counts = {name: getattr(self, name) for name in ("estimated", "missed", "loose", "loose_missed")}
        return {**counts, "fault": "; ".join(self.faults[:3])}

    def _key(self, row: Sequence[Any]) -> str:
        return repr([c.value if isinstance(c, Estimate) else c for c in row[: self.asked.groups]])

    def _row(self, row: Sequence[Any], truth: Sequence[Any] | None) -> None:
        estimates = [c for c in row if isinstance(c, Estimate)]
        if truth is None:
            if not self.asked.groups:
                self.faults.append("a row that Spark has not")
            elif estimates and all(c.exact for c in estimates):
                self.faults.append(f"a group that joins nothing: {self._key(row)}")
            return
        for name, cell, kind, true in zip(self.answer.columns, row, self.answer.types, truth, strict=True):
            if (self.all_keys or cell is None) and self._is_left_open(cell):
                continue
            if self.all_keys or not isinstance(cell, Estimate) or cell.exact:
                value = typed(cell, kind)
                if not _same(value, true, nearly=self.all_keys):
                    self.faults.append(f"{name} of {self._key(row)} is called exact: {value!r} for {true!r}")
            else:
                self._estimate(cell, true)

    def _is_left_open(self, cell: Any) -> bool:
        """Whether a value is omitted for its interval, or too few keys say anything of it."""
        if isinstance(cell, Estimate) and TOO_FEW in cell.notes:
            return True
        return (cell is None or isinstance(cell, Estimate)) and "local_omit" in self.asked.clauses

    def _estimate(self, cell: Estimate, true: Any) -> None:
        self.estimated += 1
        if true is None or math.isnan(cell.value):
            return
        value = float(true)
        slack = SLACK * abs(value) + (ROUNDED if isinstance(true, Decimal) else 0.0)
        missed = not cell.low - slack <= value <= cell.high + slack
        if cell.certified:
            self.missed += missed
        else:
            self.loose, self.loose_missed = self.loose + 1, self.loose_missed + missed

    def _groups(self, truths: Mapping[str, Sequence[Any]]) -> None:
        """Whether rows are left out that nothing leaves out."""
        asked, answer = self.asked, self.answer
        if not self.exact:
            left = truths.keys() - {self._key(row) for row in answer.rows}
            if not asked.having and not asked.limit and left and not _tells_of_groups(self.answer):
                self.faults.append(f"left out: {sorted(left)[:3]}")
            return
        wanted, got = (Counter(self._key(row) for row in a.rows) for a in (self.whole, answer))
        if asked.limit:
            known = {self._key(r) for r in self.bare.rows}
            if sum(wanted.values()) != sum(got.values()) or got.keys() - known:
                self.faults.append(f"{sum(got.values())} rows for {sum(wanted.values())}")
        elif wanted != got:
            # By all but nothing of the keys 10 rows are a trifle more, which HAVING COUNT(*) > 10 lets in.
            marked = zip(answer.rows, answer.uncertain or (), strict=False)
            unsure = Counter(self._key(row) for row, is_unsure in marked if is_unsure and self.all_keys)
            other = list((wanted - got) + (got - wanted - unsure))
            if other:
                self.faults.append(f"other rows: {other[:3]}")

    def _chosen(self) -> None:
        """Whether HAVING, ORDER BY and LIMIT hold for the rows as they are shown."""
        asked, rows = self.asked, self.answer.rows
        if asked.limit and len(rows) > int(asked.limit.split()[1]):
            self.faults.append("more rows than LIMIT")
        shown = [[_number(c) for c in row] for row in rows]
        if asked.order:
            _, _, position, way = asked.order.split()
            self._ordered(int(position) - 1, way)
        position = self._having_item()
        if position is not None:
            held = [v for row in shown if (v := row[position]) is not None and not _passes(asked.having, v)]
            if held:
                self.faults.append(f"{asked.having} lets {held} in")

    def _ordered(self, position: int, way: str) -> None:
        cells, kind = [row[position] for row in self.answer.rows], self.answer.types[position]
        column = [_number(c) for c in cells]
        if self.exact and not (self.all_keys and any(map(self._is_left_open, cells))):
            wanted = [row[position] for row in self.whole.rows]
            if not all(
                _same(typed(a, kind), b, nearly=self.all_keys) for a, b in zip(cells, wanted, strict=False)
            ):
                self.faults.append(f"not in order: {column} for {wanted}")
        elif not any(isinstance(c, Estimate) and math.isnan(c.value) for c in cells):
            # NULL comes first, or last where the order is turned round.
            keys = [(v is not None, v if v is not None else 0) for v in column]
            if keys != sorted(keys, reverse=way == "DESC"):
                self.faults.append(f"not in order: {column}")

    def _having_item(self) -> int | None:
        """The place of the item that HAVING looks at, where it is shown."""
        asked = self.asked
        if not asked.having:
            return None
        if " i0 " in asked.having:
            return asked.groups
        found = re.search(r"(?:APPROXIMATE |, )COUNT\(\*\) AS i(\d+)", asked.bare)
        return None if found is None else asked.groups + int(found[1])


def is_exact(answer: Answer) -> bool:
    """Whether every value is, and no group may be missing."""
    cells = [c for row in answer.rows for c in row if isinstance(c, Estimate)]
    return not _tells_of_groups(answer) and all(c.exact for c in cells)


def _tells_of_groups(answer: Answer) -> bool:
    """Whether a note says that there may be groups which are not shown."""
    return any("group" in note for note in answer.notes)


def _passes(having: str, value: Any) -> bool:
    words = having.split()
    if "BETWEEN" in words:
        return float(words[3]) <= value <= float(words[5])
    return value > float(words[3]) if words[2] == ">" else value <= float(words[3])


def _number(cell: Any) -> Any:
    value = cell.value if isinstance(cell, Estimate) else cell
    return None if isinstance(value, float) and math.isnan(value) else value


def _same(value: Any, true: Any, *, nearly: bool = False) -> bool:
    if isinstance(value, float) and isinstance(true, float):
        return math.isclose(value, true, rel_tol=SLACK, abs_tol=SLACK)
    if nearly and isinstance(value, Decimal) and isinstance(true, Decimal):
        # Of all keys but for a rate of nearly 1: the last digits.
        return math.isclose(value, true, rel_tol=SLACK, abs_tol=SLACK)
    return bool(value == true)
