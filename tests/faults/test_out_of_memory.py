"""Python without memory, in a worker of Spark's or here: an error of ours, nothing kept in part, and all goes on."""

from __future__ import annotations

import subprocess
import sys

import pytest
from pyspark.errors import PySparkException
from support.kept import kept, remember

from skimql import EnvironmentFault
from skimql.engine.catalog.catalog import Catalog
from skimql.engine.execution import build as building
from skimql.engine.materialized import building as keeping
from skimql.engine.spark.session import out_of_room

QUERY = "SELECT APPROXIMATE COUNT(*) FROM a JOIN b ON a.k = b.k"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Traceback ...\n  File x\nMemoryError\n\n\tat org.apache", "MemoryError"),
        (
            "Traceback\nnumpy._core._exceptions._ArrayMemoryError: Unable to allocate 500. MiB for an array\n",
            "Unable to allocate 500. MiB for an array",
        ),
        ("Traceback\npyarrow.lib.ArrowMemoryError: malloc of size 9 failed\n", "malloc of size 9 failed"),
    ],
)
def test_workers_without_memory_are_told_by_the_end_of_their_traceback(text, said):
    told = out_of_room(PySparkException(text), "SELECT 1")
    assert told is not None
    assert told.code == "SKIMQL_OUT_OF_MEMORY"
    assert said in told.message
    assert "route = jvm" in told.hint
    assert out_of_room(PySparkException(f"a column 'MemoryError: x' in {text[:3]}")) is None


# Answered once before, so that no module is loaded at the limit: a library that cannot be mapped fails as it likes.
LIMITED = """
import resource, sys
from skimql import Session, SkimqlError
session, small, large = Session(catalog=sys.argv[1]), sys.argv[2], sys.argv[3]
session.sql(small)
before = resource.getrlimit(resource.RLIMIT_AS)
pages = int(open("/proc/self/statm").read().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (16 << 20), before[1]))
try:
    session.sql(large)
except SkimqlError as error:
    print(error.code)
    print(error, file=sys.stderr)
resource.setrlimit(resource.RLIMIT_AS, before)
print(session.sql(large).value)
"""


def test_a_process_at_its_limit_says_so_and_answers_when_there_is_room(tmp_path):
    sketches = [kept(name, name, {"k": range(5_000)}, buckets=1 << 18, sparse=False) for name in "ab"]
    sketches += [kept(name, name, {"k": range(50)}, sparse=False) for name in "cd"]
    remember(Catalog(tmp_path), *sketches)
    small = QUERY.replace("a JOIN b ON a.k = b.k", "c JOIN d ON c.k = d.k")
    command = [sys.executable, "-c", LIMITED, str(tmp_path), small, QUERY]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    code, value = done.stdout.split()
    assert code == "SKIMQL_OUT_OF_MEMORY", done.stderr
    assert int(value) == pytest.approx(5_000, rel=0.1)


@pytest.mark.spark
def test_a_worker_and_a_driver_without_memory_keep_nothing_in_part_and_go_on(session, spark, monkeypatch):
    session.table("a", spark.sql("SELECT id % 7 AS k FROM range(50)"))
    session.table("b", spark.sql("SELECT id % 5 AS k FROM range(50)"))

    def greedy(*arguments):
        def run(batches):
            raise MemoryError("Unable to allocate 500. MiB")

        return run

    def full(*arguments):
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr(building, "task", greedy)
        with pytest.raises(EnvironmentFault, match=r"worker.*Unable to allocate 500. MiB") as told:
            session.sql(QUERY)
        assert told.value.code == "SKIMQL_OUT_OF_MEMORY"
    with monkeypatch.context() as patched:
        patched.setattr(building, "add_up", full)
        patched.setattr(keeping, "added", full)
        for text in (QUERY, "CREATE SKETCH sa ON a (k)"):
            with pytest.raises(EnvironmentFault, match="this process has no more memory"):
                session.sql(text)
    assert session.sql("SHOW SKETCHES").rows == ()
    assert session.sql(QUERY).value == 360
