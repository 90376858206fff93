"""What travels to Spark's workers. tests/cluster.sh sends it to a real cluster."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from types import SimpleNamespace

import pytest

from skimql.engine.spark.shipping import archive, is_local, ship


def test_the_archive_is_the_package_and_runs_what_workers_run():
    program = "import sys; sys.path.insert(0, sys.argv[1]); import skimql.engine.execution.partial_aggregate as p; print(p.__file__)"
    command = [sys.executable, "-c", program, str(archive())]
    told = subprocess.run(command, capture_output=True, text=True, check=True, cwd="/").stdout
    assert told.startswith(str(archive()))
    names = zipfile.ZipFile(archive()).namelist()
    assert all(n.startswith("skimql/") for n in names)
    assert not any("/tests/" in n or "/benchmarks/" in n or ".venv" in n for n in names)


@pytest.mark.parametrize(
    ("master", "local"),
    [
        ("local", True),
        ("local[*]", True),
        ("local-cluster[2,1,1024]", False),
        ("spark://a:7077", False),
        ("yarn", False),
    ],
)
def test_only_local_masters_have_the_package_already(master, local):
    assert is_local(master) == local


def test_it_is_sent_only_where_workers_may_lack_it(tmp_path):
    sent = []

    class Spark:
        def __init__(self, master, python=sys.executable):
            self.conf = {"spark.master": master}
            self.sparkContext = SimpleNamespace(pythonExec=python)

        def addArtifacts(self, *paths, pyfile):
            sent.append((paths, pyfile))

    ship(Spark("local[2]"))
    assert not sent
    ship(Spark("spark://a:7077"))
    assert sent == [((str(archive()),), True)]
    # Another environment on this machine may have another SkimQL, or none.
    (tmp_path / "python3").symlink_to(sys.executable)
    ship(Spark("local[2]", str(tmp_path / "python3")))
    ship(Spark("local[2]", str(tmp_path / "nothing")))
    assert len(sent) == 3
    sent.pop()
    sent.pop()
    # A client of Spark Connect: the master is that of its server.
    Spark.__module__ = "pyspark.sql.connect.session"
    ship(Spark("local[2]"))
    assert len(sent) == 2
