"""EXPLAIN in its three formats, of a run in memory."""

import json
import xml.etree.ElementTree as ET
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pytest

from skimql import Settings
from skimql.engine.memory_backend.backend import MemoryBackend
from skimql.engine.memory_backend.run import MemoryRun
from skimql.engine.memory_backend.tables import MemoryTables
from skimql.engine.queries.explain import explained

TABLES = MemoryTables({n: pa.table({"k": np.arange(50) % 7}) for n in ("a", "b")})
COUNT = "SELECT APPROXIMATE COUNT(*) FROM a JOIN b ON a.k = b.k"


@dataclass
class Run:
    run: MemoryRun

    @property
    def query(self):
        return self.run.query

    def plan(self):
        return self.run.plan()

    def analyzed(self):
        return self.run.plan(), self.run.answer()


def told(sql, form="text", analyze=False):
    return explained(
        Run(MemoryRun.of(sql, MemoryBackend(TABLES), Settings(error=None))), form, analyze=analyze
    )


def test_the_plan_stands_behind_the_query_and_what_was_measured_behind_the_plan():
    planned, analyzed = told(COUNT), told(COUNT, analyze=True)
    assert "hash" in planned
    assert analyzed.startswith(planned[:60])
    assert len(analyzed.splitlines()) > len(planned.splitlines())


def test_json_has_the_plan_beside_the_query():
    assert "attempt" in str(json.loads(told(COUNT, "json"))["plan"])


def test_a_diagram_has_both():
    drawn = told(COUNT, "mermaid")
    assert 'v0["a"]' in drawn
    assert 'plan["hash"]' in drawn


@pytest.mark.parametrize("analyze", [False, True])
def test_a_drawing_has_a_box_for_each_table_and_the_plan(analyze):
    shapes = [e.get("rx") for e in ET.fromstring(told(COUNT, "svg", analyze=analyze)).iter()]
    assert shapes.count("5") >= (5 if analyze else 3)
