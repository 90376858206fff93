"""Every combination of a question with clauses, kept sketches and routes is planned as asked, or refused with a way out.

The product is `benchmarks.matrix`'s, which runs it; here its cells are planned.
"""

from __future__ import annotations

import sys
from itertools import groupby
from pathlib import Path

import pyarrow as pa
import pytest
from support.methods_page import PAGE, table
from support.tables import register

from skimql import Estimate, Session, Settings, SkimqlError
from skimql.engine.memory_backend.backend import MemoryBackend
from skimql.engine.memory_backend.run import MemoryRun
from skimql.engine.memory_backend.tables import MemoryTables
from skimql.optimizer.methods import METHODS, NAMED
from skimql.parser import syntax

ROOT = Path(__file__).parents[1]
TABLES = {
    "flights": (
        "tailnum STRING, dest STRING, origin STRING, distance INT",
        [(f"N{i % 7}", "BOS", "JFK", i) for i in range(40)],
    ),
    "planes": ("tailnum STRING, engines INT, model STRING", [(f"N{i}", 2, "A") for i in range(5)]),
    "airports": ("faa STRING", [("BOS",)]),
}

SPARKS = ("workload", "ESTIMATE ROWS")


@pytest.fixture
def matrix(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    for name in [n for n in sys.modules if n.partition(".")[0] == "benchmarks"]:
        monkeypatch.delitem(sys.modules, name)
    from benchmarks import matrix

    return matrix


def test_no_cell_is_silently_other_than_asked(session, matrix):
    sessions = {"nothing": session, "kept": Session(session.spark), "cache": Session(session.spark)}
    for one in sessions.values():
        register(one, **TABLES)
        one._statistics = session.statistics
    for statement in matrix.CREATE:
        sessions["kept"].sql(statement)
    plain, wrong, planned = session.settings, [], 0
    for text, cells in groupby(matrix.cells(), key=lambda c: c.sql):
        cells = list(cells)
        found = _tried(matrix.resolved, session, cells[0])
        for kept, own in groupby(cells, key=lambda c: c.kept):
            one = sessions[kept]
            with one.tables.statement(text):
                for cell in own:
                    one.settings = cell.settings(plain)
                    refused = isinstance(found, SkimqlError)
                    way = found if refused else _tried(matrix.planned_in, one, cell, found)
                    if isinstance(way, SkimqlError):
                        silent = "" if matrix.refused_well(way) else f"no way out: {way}"
                    else:
                        silent = matrix.otherwise(cell, way)
                    planned += 1
                    if silent:
                        wrong.append(f"{text}; {kept}; {cell.route}: {silent}")
    session.settings = plain
    assert not wrong, "\n".join(wrong)
    assert planned == len(matrix.cells()) > 900


def test_every_question_is_answered_in_memory_by_what_was_asked(matrix):
    """Also what `cache` would keep; a workload and the user's own query are run by Spark."""
    schemas = {"STRING": pa.string(), "INT": pa.int32()}
    arrow = {}
    for name, (columns, rows) in TABLES.items():
        fields = [(c.split()[0], schemas[c.split()[1]]) for c in columns.split(", ")]
        arrow[name] = pa.table(list(zip(*rows, strict=True)), schema=pa.schema(fields))
    backend = MemoryBackend(MemoryTables(arrow))
    wrong, answered, truths = [], 0, {}
    asked = [c for c in matrix.cells() if c.route == "auto" and c.kept != "kept" and c.shape not in SPARKS]
    for cell in asked:
        method = matrix.CLAUSES[cell.clause][0]
        try:
            answer = MemoryRun.of(cell.sql, backend, cell.settings(Settings())).answer()
        except SkimqlError as fault:
            wrong += [] if matrix.refused_well(fault) or "memory" in fault.message else [f"{cell}: {fault}"]
            continue
        if cell.shape not in truths:
            truths[cell.shape] = MemoryRun.of(matrix.SHAPES[cell.shape], backend).exact()
        answered += 1
        if method is not None and answer.method != method:
            wrong.append(f"{cell}: by {answer.method}")
        if not _covers(answer, truths[cell.shape]):
            wrong.append(f"{cell}: {answer.rows} for {truths[cell.shape].rows}")
    assert not wrong, "\n".join(wrong)
    assert answered > 150


def _covers(answer, truth):
    def values(row):
        return [c for c in row if isinstance(c, Estimate)]

    def group(row):
        return str([c for c in row if not isinstance(c, Estimate)])

    exact = {group(row): values(row) for row in truth.rows}
    return all(
        cell.low <= true.value <= cell.high
        for row in answer.rows
        for cell, true in zip(values(row), exact[group(row)], strict=True)
    )


def _tried(action, *given):
    try:
        return action(*given)
    except SkimqlError as fault:
        return fault


def test_the_page_of_methods_says_what_the_registry_does():
    assert table() in PAGE.read_text(), "make it anew: python tests/support/methods_page.py [FILE]"


def test_using_takes_the_methods_of_the_registry():
    assert sorted(syntax.METHODS) == sorted(NAMED)


def test_a_method_says_what_it_can():
    for name, method in METHODS.items():
        assert method.name == name
        assert not method.named or method.sized, "SIZE is honoured by whatever USING can name"
        assert not method.chosen or method.candidate
        assert method.error in ("", "planned", "reported")
