"""What is known of Java and Spark before one starts, and what its faults mean; nothing is started."""

from types import SimpleNamespace

import pytest
from pyspark.errors import AnalysisException, PySparkException

from skimql.engine.spark.session import (
    explained,
    find_java,
    first_line,
    is_gone,
    is_stopped,
    java_version,
    out_of_room,
)


def java(folder, says, code=0):
    path = folder / "java"
    path.write_text(f"#!/bin/sh\ncat >&2 <<'X'\n{says}\nX\nexit {code}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("says", "version"),
    [
        ('openjdk version "17.0.11" 2024-04-16', 17),
        ('openjdk version "21-ea" 2023-09-19', 21),
        ('java version "1.8.0_402"', 1),
        ("no number at all", None),
    ],
)
def test_the_version_of_a_java(tmp_path, says, version):
    assert java_version(java(tmp_path, says)) == version


def test_a_java_that_fails_or_is_not_there_has_no_version(tmp_path):
    assert java_version(java(tmp_path, 'openjdk version "17"', code=1)) is None
    assert java_version(tmp_path / "missing") is None


def test_java_home_goes_before_the_path(tmp_path, monkeypatch):
    (tmp_path / "home" / "bin").mkdir(parents=True)
    own, other = java(tmp_path / "home" / "bin", ""), java(tmp_path, "")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    assert find_java() == own
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    assert find_java() == other


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[TABLE_OR_VIEW_NOT_FOUND] no table x\n  at org.apache", "no table x"),
        ("plain\nmore", "plain"),
        ("[not closed", "[not closed"),
        ("", "ValueError"),
    ],
)
def test_what_spark_said_without_its_class_and_trace(text, line):
    assert first_line(ValueError(text)) == line


def test_what_spark_s_faults_mean():
    assert explained(ValueError("x"), "SELECT 1") is None
    assert explained(ConnectionResetError(), "SELECT 1").code == "SKIMQL_SPARK_GONE"
    assert explained(AnalysisException("no such function"), "SELECT 1").code == "SKIMQL_SPARK_FAILED"
    lacking = out_of_room(PySparkException("java.lang.OutOfMemoryError: Java heap space"))
    assert "spark.driver.memory" in lacking.hint
    assert "spark.local.dir" in out_of_room(PySparkException("No space left on device")).hint
    assert out_of_room(PySparkException("division by zero")) is None


def test_a_session_that_was_stopped_here_is_gone_without_asking_its_jvm():
    stopped = SimpleNamespace(_jsc=None, sparkContext=SimpleNamespace(_jsc=None))
    assert is_gone(stopped)
    assert is_stopped(stopped)
    assert not is_gone(SimpleNamespace(is_stopped=True)), "one of Spark Connect has no JVM here"
    assert is_stopped(SimpleNamespace(is_stopped=True))
    assert not is_stopped(SimpleNamespace(is_stopped=False))
