"""A Python that the jar starts by itself, where Spark's configuration names the extension and nobody has enabled it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.extension import refused, with_jar

from skimql import EnvironmentFault
from skimql.engine.extension import bridge
from skimql.engine.extension.enable import _classes, disable, enable


def children(spark):
    """The process numbers of the Pythons that the JVM has started for our statements."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words, status = (folder / "cmdline").read_text(), (folder / "status").read_text()
        except OSError:
            continue
        if "skimql.engine.extension.bridge" in words and f"PPid:\t{spark._sc._gateway.proc.pid}\n" in status:
            found.append(int(folder.name))
    return found


@pytest.fixture
def configured(spark, tmp_path):
    """A session as one that was started with the extension in its configuration."""
    with with_jar(tmp_path):
        extensions = _classes(spark).extensions
        extensions().apply(spark._jsparkSession.extensions())
        extensions.attach(spark._jsparkSession)
        yield spark
        enable(spark)
        disable(spark)


def test_a_python_is_started_for_our_statements_again_if_it_died_and_ends_when_one_enables(configured):
    spark = configured
    assert [tuple(r) for r in spark.sql("SELECT 1").collect()] == [(1,)]
    assert refused(spark, "SELECT error FRM t x")[1] == "PARSE_SYNTAX_ERROR"
    assert children(spark) == []
    spark.sql("SELECT id AS k FROM range(3)").createOrReplaceTempView("bt")
    query = "SELECT n FROM (SELECT APPROXIMATE COUNT(*) AS n FROM bt a JOIN bt b ON a.k = b.k) q"
    assert [tuple(r) for r in spark.sql(query).collect()] == [(3,)]
    (first,) = children(spark)
    os.kill(first, signal.SIGKILL)
    assert [tuple(r) for r in spark.sql(query).collect()] == [(3,)]
    (second,) = children(spark)
    assert second != first
    assert (
        refused(spark, "SELECT APPROXIMATE COUNT(*) FROM bt a JOIN bt b ON a.k < b.k")[1]
        == "SKIMQL_NON_EQUI_JOIN"
    )
    enable(spark)
    assert children(spark) == []
    spark.catalog.dropTempView("bt")


def test_what_it_cannot_serve_it_says():
    with pytest.raises(EnvironmentFault) as fault:
        bridge.serve({"version": "another", "port": 1, "token": "t"})
    assert fault.value.code == "SKIMQL_OTHER_JAR"
    told = subprocess.run(
        [sys.executable, "-m", "skimql.engine.extension.bridge"],
        input=json.dumps({"version": "another", "port": 1, "token": "t"}) + "\n",
        capture_output=True,
        text=True,
        check=False,
    )
    assert "another" in json.loads(told.stdout)["error"]
    assert told.returncode == 1
