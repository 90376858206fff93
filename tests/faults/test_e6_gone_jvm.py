"""A JVM that has ended: the error says so; what is kept answers on, in a new session too."""

from __future__ import annotations

import os
import subprocess
import sys

PROGRAM = """
import os, signal, sys
import skimql
from pyspark import SparkContext

session = skimql.Session(catalog=sys.argv[1], error=None)
spark = session.spark
spark.range(60).selectExpr("id % 7 AS k").write.parquet(sys.argv[2])
session.table("t", sys.argv[2])
session.sql("CREATE SKETCH s ON t (k)")
ask = "SELECT APPROXIMATE COUNT(*) FROM t a JOIN t b ON a.k = b.k"
before = session.sql(ask).value
os.kill(SparkContext._gateway.proc.pid, signal.SIGKILL)
SparkContext._gateway.proc.wait()
try:
    session.sql("SELECT APPROXIMATE COUNT(*) FROM t a JOIN t b ON a.k = b.k WHERE a.k > 1")
except skimql.SkimqlError as fault:
    print(fault.code)
with_another = skimql.Session(catalog=sys.argv[1], error=None)
print(with_another.sql(ask).value == before)
"""


def test_kept_sketches_answer_when_the_jvm_is_gone(tmp_path):
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "catalog"), str(tmp_path / "t")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=dict(os.environ))
    assert done.stdout.split() == ["SKIMQL_SPARK_GONE", "True"], done.stderr
    assert "Traceback" not in done.stderr
