"""Questions without Spark: the same planner and executor, and nothing of Spark's imported."""

from __future__ import annotations

import subprocess
import sys

import pytest
from support.memory import InMemory
from support.tables import CASES

from skimql import UnsupportedQuery

COUNT = "SELECT APPROXIMATE COUNT(*) AS n FROM x JOIN y ON x.id = y.id"


@pytest.mark.parametrize(
    "text", ["SELECT 1", f"EXPLAIN {COUNT}", "SHOW SKETCHES", COUNT.replace("APPROXIMATE ", "")]
)
def test_only_an_approximate_select_runs_in_memory(text):
    with pytest.raises(UnsupportedQuery, match="only SELECT APPROXIMATE runs in memory") as caught:
        InMemory(CASES).sql(text)
    assert caught.value.code == "SKIMQL_NOT_IN_MEMORY"


def test_answer_plan_and_exact_run_are_of_one_query():
    run = InMemory(CASES).run(COUNT)
    assert run.plan().build.query is run.query
    assert (run.answer().value, run.exact().value, run.exact().exact) == (2, 2, True)
    assert run.answer().columns == run.exact().columns == ("n",)


def test_no_jvm_and_no_pyspark_is_needed():
    code = (
        "import sys, pyarrow as pa\n"
        "from skimql.engine.memory_backend.backend import MemoryBackend\n"
        "from skimql.engine.memory_backend.run import MemoryRun\n"
        "from skimql.engine.memory_backend.tables import MemoryTables\n"
        "t = MemoryTables({'t': pa.table({'k': [1, 2, 2]}), 'u': pa.table({'k': [2, 2, 3]})})\n"
        "for clause in ('', ' ERROR WITHIN 5%', ' USING key_sample'):\n"
        "    run = MemoryRun.of('SELECT APPROXIMATE COUNT(*) FROM t JOIN u ON t.k = u.k' + clause, MemoryBackend(t))\n"
        "    assert run.answer().value == run.exact().value == 4\n"
        "assert not [m for m in sys.modules if m.split('.')[0] in ('pyspark', 'py4j')]\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)
