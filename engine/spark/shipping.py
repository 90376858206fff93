"""Sending the package to Spark's workers, so that it need be installed on the driver only."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import sys
import zipfile
from functools import cache
from pathlib import Path

from pyspark.sql import SparkSession

from ...errors import EnvironmentFault
from .scratch import scratch_folder
from .session import SPARK_FAULTS, first_line, workers_python

PACKAGE = __package__.split(".", maxsplit=1)[0]
FOLDERS = ("engine", "grammar", "optimizer", "parser", "sketches")
MADE = (1980, 1, 1, 0, 0, 0)  # of every file in the archive: equal code makes equal bytes


def ship(spark: SparkSession) -> None:
    """Make the package importable by Python workers; to be called before any function of ours is sent to them.

    Workers that are started here, in the Python environment of this process, have the package. Everywhere else, and
    behind Spark Connect whatever its master is called, they get the archive of the driver's code, in front of whatever
    version they have installed. Once a session; after that it does nothing.

    Raises
    ------
    EnvironmentFault
        If Spark does not take the archive.
    """
    behind = type(spark).__module__.startswith("pyspark.sql.connect")
    if not behind and is_local(str(spark.conf.get("spark.master", ""))) and _is_own(workers_python(spark)):
        return
    try:
        spark.addArtifacts(str(archive()), pyfile=True)
    except SPARK_FAULTS as fault:
        raise EnvironmentFault(
            f"Spark does not send SkimQL to its workers: {first_line(fault)}",
            "SKIMQL_NOT_SHIPPED",
            hint="install skimql on every worker, or SET skimql.route = jvm",
        ) from fault


def is_local(master: str) -> bool:
    """Whether a Spark's workers run on this machine, as children of its JVM."""
    return master == "local" or master.startswith("local[")


@cache
def _is_own(python: str) -> bool:
    """Whether a Python, of PYSPARK_PYTHON or on PATH, is that of this process's environment."""
    found = shutil.which(python)
    # Links are not followed: an environment's Python is a link to one that many have.
    return found is not None and os.path.abspath(os.path.dirname(found)) == os.path.dirname(sys.executable)


@cache
def archive() -> Path:
    """The package as a zip file that Python can import from; named by its content, so that equal code is equal."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as packed:
        for file in _files():
            entry = zipfile.ZipInfo(f"{PACKAGE}/{file.relative_to(_root())}", MADE)
            packed.writestr(entry, file.read_bytes(), zipfile.ZIP_DEFLATED)
    digest = hashlib.sha256(buffer.getvalue()).hexdigest()[:12]
    # Not in Spark's own scratch folder: the session that started it may not be ours.
    folder = scratch_folder("skimql-ship-")
    path = folder / f"{PACKAGE}-{digest}.zip"
    path.write_bytes(buffer.getvalue())
    return path


def _root() -> Path:
    return Path(__file__).parents[2]


def _files() -> list[Path]:
    inner = (f for folder in FOLDERS for f in (_root() / folder).rglob("*") if f.suffix in (".py", ".lark"))
    return sorted([*_root().glob("*.py"), *inner])
