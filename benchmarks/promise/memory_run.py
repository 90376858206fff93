"""Cells in memory: one draw of a class serves many seeds, errors and routes."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skimql import Estimate, SkimqlError
from skimql.engine.memory_backend.tables import MemoryTables

from .cells import RAISED, Seen, key_of, most, record_of, seen
from .data import GROUPED, Data, DataClass
from .known import KnownBackend
from .routes import ROUTES, Asked, Route, backend_of

AGGREGATES = ("COUNT", "SUM", "AVG", "COUNT(DISTINCT)", *GROUPED)
BESIDE = ("COUNT", "SUM", "AVG")
DRAWS = 4  # of the data; the seeds are shared among them


# After so many seeds a cell ends that is exact, or has broken its promise whatever follows; a plan without a sample
# is the same for every seed.
PLANNED, LOOKS = 3, (40, 100, 200)
CELLS = 2000  # at most; a bound for more of them would be larger


def wanted(
    chosen: DataClass, routes: Sequence[str], errors: Sequence[float]
) -> Iterator[tuple[str, float, str]]:
    """The cells of a class."""
    for route in (ROUTES[name] for name in routes):
        if route.kinds and chosen.kind not in route.kinds:
            continue
        for aggregate in route.aggregates:
            for error in route.errors:
                if error in errors:
                    yield aggregate, error, route.name


def _integers(table: pa.Table) -> pa.Table:
    for n, field in enumerate(table.schema):
        if pa.types.is_float64(field.type):
            values = table.column(n).to_numpy()
            if np.all(values == np.rint(values)):
                table = table.set_column(n, field.name, pa.array(values.astype(np.int64)))
    return table


def _settled(found: Sequence[Seen], seeds: int) -> bool:
    """Whether no further seed changes what is said of a cell."""
    if len(found) < LOOKS[0]:
        return all(s.state == "exact" and s.attempts == 1 for s in found)
    worst = max(
        sum(s.wrong and s.state == "met" for s in found), sum(s.certified and not s.covered for s in found)
    )
    return all(s.state == "exact" for s in found) or worst > most(seeds, 0.05, CELLS)


class Draw:
    """One draw of a class, and the truths of its queries."""

    def __init__(self, chosen: DataClass, number: int, tuples: int) -> None:
        self.data: Data = chosen.data(number, tuples)
        tables = self.data.arrow()
        self.backend: KnownBackend = backend_of(tables)
        # Whole numbers in doubles are added up as integers: sums of doubles have no exact truth otherwise.
        self.whole = KnownBackend(MemoryTables({n: _integers(t) for n, t in tables.items()}), None)
        self.truths: dict[str, dict[str, float]] = {}
        self.exact_cpu: dict[str, float] = {}
        started = time.process_time()
        for table in tables.values():
            for column in table.columns:
                pc.min_max(column)
        self.scan_cpu = time.process_time() - started

    def truth(self, aggregate: str) -> dict[str, float]:
        """The exact values by group."""
        if aggregate not in self.truths:
            started = time.process_time()
            # Of all groups, whichever are shown.
            every = replace(self.data, behind="")
            run = Asked(self.whole, every.select(aggregate), 0.05, ROUTES["first"], 100_000).run
            answer = run.exact()
            self.exact_cpu[aggregate] = time.process_time() - started
            found = {}
            for row in answer.rows:
                cell: Any = row[-1]
                value = cell.value if isinstance(cell, Estimate) else cell
                found[key_of(row[:-1])] = math.nan if value is None else float(value)
            self.truths[aggregate] = found
        return self.truths[aggregate]


def statements(
    asked: Iterable[tuple[str, float, str]], *, together: bool
) -> list[tuple[tuple[str, ...], float, str]]:
    """The cells as statements: one each, or one for all aggregates that can stand beside each other."""
    found: dict[tuple[float, str, str], list[str]] = {}
    for aggregate, error, route in asked:
        alone = not together or aggregate not in BESIDE
        found.setdefault((error, route, aggregate if alone else ""), []).append(aggregate)
    return [(tuple(aggregates), error, route) for (error, route, _), aggregates in found.items()]


def cells(
    chosen: DataClass,
    asked: Iterable[tuple[str, float, str]],
    seeds: range,
    tuples: int,
    draws: int = DRAWS,
    *,
    together: bool = False,
) -> Iterator[dict[str, Any]]:
    """One record for each cell."""
    drawn = [Draw(chosen, n, tuples) for n in range(min(draws, len(seeds)))]
    scan = float(np.median([d.scan_cpu for d in drawn]))
    for aggregates, error, route in statements(asked, together=together):
        found, sql, refused = _answers(drawn, aggregates, error, ROUTES[route], seeds)
        for aggregate, values in found.items():
            exact = float(np.median([d.exact_cpu.get(aggregate, math.nan) for d in drawn]))
            yield {
                "class": chosen.name,
                "kind": chosen.kind,
                "aggregate": aggregate,
                "sql": sql,
                "route": route,
                "backend": "memory",
                "error_asked": error,
                "from": seeds.start,
                "refused": refused,
                **record_of(values, scan, exact),
            }


def _answers(
    drawn: Sequence[Draw], aggregates: tuple[str, ...], error: float, route: Route, seeds: range
) -> tuple[dict[str, list[Seen]], str, str]:
    """What a statement gave for every seed by aggregate, its text, and why it was not answered."""
    found: dict[str, list[Seen]] = {a: [] for a in aggregates}
    sql = drawn[0].data.select(*aggregates)
    try:
        questions = [
            Asked(d.backend, d.data.select(*aggregates), error, route, d.data.max_groups) for d in drawn
        ]
        sql = questions[0].sql
        for number, seed in enumerate(seeds, 1):
            draw, question = drawn[seed % len(drawn)], questions[seed % len(drawn)]
            started = time.process_time()
            answer = question.answer(seed + 1)
            cpu = time.process_time() - started
            for n, aggregate in enumerate(aggregates):
                one = seen(answer, draw.truth(aggregate), error, seed // len(drawn), cpu, n)
                if one is not None:
                    found[aggregate].append(one)
            if number in (PLANNED, *LOOKS) and all(_settled(f, len(seeds)) for f in found.values()):
                break
    except SkimqlError as fault:
        return found, sql, f"{fault.code}: {fault.message}"
    except Exception as fault:
        return found, sql, f"{RAISED} {type(fault).__name__}: {fault}"
    return found, sql, ""
