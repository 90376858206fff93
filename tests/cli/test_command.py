"""The command as a process: what reaches stdout and stderr, and exit codes."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
import time

import pytest
from support.waiting import wait_until

from skimql.engine.spark.session import find_java

COMMAND = [sys.executable, "-c", "from skimql.cli.main import run; run()"]


def skimql(*arguments, stdin="", cwd=None, env=None):
    return subprocess.run(
        [*COMMAND, *arguments], input=stdin, capture_output=True, text=True, timeout=300, cwd=cwd, env=env
    )


@pytest.fixture
def java_seen(tmp_path):
    """An environment whose Java makes a file when a JVM starts, and the file."""
    seen, java = tmp_path / "a JVM starts", tmp_path / "home" / "bin" / "java"
    java.parent.mkdir(parents=True)
    script = f"""#!/bin/sh
[ "$1" = -version ] || : > {shlex.quote(str(seen))}
exec {shlex.quote(str(find_java()))} "$@"
"""
    java.write_text(script)
    java.chmod(0o755)
    return {**os.environ, "JAVA_HOME": str(java.parent.parent)}, seen


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "x.csv").write_text("id,n\n1,10\n2,20\n")
    (tmp_path / "y.csv").write_text("id,m\n1,100\n1,101\n3,300\n")
    return tmp_path


def test_stdout_holds_data_and_nothing_else(folder):
    (folder / "two.sql").write_text("SELECT 'a;b' AS t; -- c; d\n/* e; */ SELECT 9007199254740993 AS big;")
    query = "SELECT APPROXIMATE COUNT(*) AS n, AVG(m) AS a FROM x JOIN y ON x.id = y.id"
    empty = "SELECT APPROXIMATE SUM(m) AS s FROM x JOIN y ON x.id = y.id WHERE m > 1000"
    done = skimql(
        *("-t", "x=x.csv", "-t", "y=y.csv", "-o", "json", "-c", query, "-f", "two.sql", "-c", empty),
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    results = [json.loads(line) for line in done.stdout.splitlines()]
    record = results[0][0]
    assert list(record) == [
        "n",
        "n_low",
        "n_high",
        "a",
        "a_low",
        "a_high",
        "confidence",
        "certified",
        "target",
    ]
    assert (record["n"], record["a"]) == (2.0, 100.5)
    assert results[1:3] == [[{"t": "a;b"}], [{"big": 9007199254740993}]]
    assert results[3][0]["s"] is None
    # Nothing of Spark's log, no warning of Python's: only the foot lines.
    assert all("interval" in line or "exact" in line for line in done.stderr.splitlines()), done.stderr
    assert sorted(p.name for p in folder.iterdir()) == ["two.sql", "x.csv", "y.csv"]


def test_wrong_usage_exits_with_2_and_starts_nothing(java_seen):
    environment, seen = java_seen
    for arguments in (
        ["--nosuch"],
        ["-o", "xml", "-c", "SELECT 1"],
        ["-t", "x", "-c", "SELECT 1"],
        ["-f", "nosuch.sql"],
    ):
        done = skimql(*arguments, env=environment)
        assert (done.returncode, done.stdout) == (2, ""), arguments
        assert done.stderr
    assert not seen.exists(), "usage errors must not wait for Spark"


def test_help_and_version_go_to_stdout():
    assert "--compare" in skimql("--help").stdout
    assert skimql("--version").stdout.startswith("skimql ")


def test_a_file_that_is_not_there_is_said_before_spark_starts(tmp_path, java_seen):
    environment, seen = java_seen
    done = skimql("-t", "x=nosuch.csv", "-c", "SELECT 1", cwd=tmp_path, env=environment)
    assert done.returncode == 1
    assert "nosuch.csv" in done.stderr
    assert "Traceback" not in done.stderr
    assert not seen.exists()


def test_ctrl_c_cancels_and_exits_with_130():
    # 10^11 pairs that must be made one by one: it neither ends nor overflows before it is cancelled.
    slow = (
        "EXACT SELECT COUNT(*) FROM range(1000000) a JOIN range(1000000) b ON a.id % 7 = b.id % 7"
        " WHERE (a.id * b.id) % 11 = 3"
    )
    process = subprocess.Popen(
        [*COMMAND, "-c", "SELECT 1 AS started", "-c", slow, "-o", "json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert json.loads(process.stdout.readline()) == [{"started": 1}]
    time.sleep(3)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=300)
    assert process.returncode == 130
    assert "interrupted" in told
    assert "Traceback" not in told


def test_ctrl_c_while_spark_starts_says_interrupted_and_no_more(folder, java_seen):
    environment, seen = java_seen
    process = subprocess.Popen(
        [*COMMAND, "-t", "x=x.csv", "-c", "SELECT 1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        start_new_session=True,
        env=environment,
    )
    wait_until(seen.exists)
    process.send_signal(signal.SIGINT)
    shown, told = process.communicate(timeout=300)
    assert (process.returncode, shown, told) == (130, "", "interrupted\n")
    try:
        wait_until(lambda: not is_there(process.pid))
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def is_there(group):
    """Whether a process of that group still runs, a JVM that is left behind say."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
