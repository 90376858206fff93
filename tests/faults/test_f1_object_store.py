"""A catalog on a real S3 server: kept and read by several processes, changed by several, killed, and beside foreign objects."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from pyarrow.fs import FileSelector, FileSystem
from support.dying import DyingFolder, Killed
from support.kept import kept, remember, same

from skimql import CorruptSketch, DataError, Session
from skimql.engine.catalog.catalog import Catalog
from skimql.engine.catalog.folder import RemoteFolder, open_folder
from skimql.engine.spark.own import OwnSpark

HERE = Path(__file__).parents[1]
A = kept("a", "t", {"k": [1, 2, 2]}, rows=3, buckets=8)
B = kept("b", "u", {"k": range(40)}, rows=3, buckets=8, sparse=False)

# In a process of its own, which may warn of what it likes.
SERVER = """
import logging, sys
logging.getLogger("werkzeug").setLevel(logging.ERROR)
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
sys.stdin.read()
"""
KEYS = {"AWS_ACCESS_KEY_ID": "me", "AWS_SECRET_ACCESS_KEY": "hunter2-xyz", "AWS_DEFAULT_REGION": "us-east-1"}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """The port of an S3 server on this machine, with a bucket, and credentials for it."""
    with pytest.MonkeyPatch.context() as patched:
        for name, value in {**KEYS, "AWS_EC2_METADATA_DISABLED": "true"}.items():
            patched.setenv(name, value)
        patched.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        process = subprocess.Popen(
            [sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )  # fmt: skip
        port = process.stdout.readline().strip()
        options = f"endpoint_override=127.0.0.1:{port}&scheme=http"
        FileSystem.from_uri(f"s3://bucket?{options}&allow_bucket_creation=true")[0].create_dir("bucket")
        yield options
        process.communicate()


@pytest.fixture
def place(server, request):
    """The URI of an empty folder."""
    return f"s3://bucket/{request.node.name.partition('[')[0]}?{server}"


def objects(place):
    folder = open_folder(place)
    found = folder.file_system.get_file_info(FileSelector(folder.path, recursive=True, allow_not_found=True))
    return {f.base_name: f.size for f in found if f.is_file}


READER = """
import sys
from skimql import Session
from skimql.engine.spark.own import OwnSpark
OwnSpark.running = lambda self: None
session = Session(catalog=sys.argv[1])
print(session.sql("SELECT APPROXIMATE COUNT(*) FROM t a JOIN t b ON a.k = b.k").value)
"""
WRITER = """
import sys
from support.kept import kept
from skimql.engine.catalog.catalog import Catalog
catalog = Catalog(sys.argv[1])
for i in range(3):
    catalog.put(kept(f"{sys.argv[2]}{i}", "t", {"k": [i]}, rows=3, buckets=8))
"""


def python(code, *arguments, **settings):
    environment = {**os.environ, "PYTHONPATH": f"{HERE}:{os.environ.get('PYTHONPATH', '')}", **settings}
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )  # fmt: skip


def test_what_is_kept_there_is_changed_exported_and_answered_from_by_others(place, server, monkeypatch):
    monkeypatch.setattr(OwnSpark, "running", lambda self: None)
    catalog = remember(Catalog(place), A, B)
    assert isinstance(catalog.folder, RemoteFolder)
    other = Catalog(place)
    assert same(other.load("a"), A)
    # A change in the same second, by one who has looked just before: nobody goes by a stamp of seconds.
    appended = kept("a", "t", {"k": [1, 2, 2, 2]}, rows=3, buckets=8)
    catalog.put(appended, based_on={"a": catalog.entry("a").file})
    other.folder._stamps.clear()
    assert same(other.load("a"), appended)
    with pytest.raises(DataError, match="another writer has changed sketch a"):
        other.put(A, based_on={"a": None})
    reader = python(READER, place)
    told, wrong = reader.communicate(timeout=300)
    assert told == "10\n", wrong
    session = Session(catalog=place)
    target = f"s3://bucket/exported.parquet?{server}"
    session.sql(f"EXPORT SKETCH b TO '{target}'")
    with pytest.raises(DataError, match="there is a file"):
        session.sql(f"EXPORT SKETCH b TO '{target}'")
    session.sql(f"IMPORT SKETCH c FROM '{target}'")
    session.sql("DROP SKETCH a")
    assert [h.name for h in Catalog(place).heads()] == ["b", "c"]


def test_writers_at_once_lose_nothing(place):
    writers = [python(WRITER, place, name) for name in "xy"]
    for writer in writers:
        _, wrong = writer.communicate(timeout=300)
        assert writer.returncode == 0, wrong
    assert [h.name for h in Catalog(place).heads()] == [f"{w}{i}" for w in "xy" for i in range(3)]


@pytest.mark.parametrize("after", [False, True])
def test_a_killed_writer_leaves_one_state_or_the_other_and_foreign_objects_stay(after, place, server):
    place = place.replace("?", f"{after}?")
    catalog = remember(Catalog(place), A)
    folder = open_folder(place)
    foreign = ["mine.parquet", "0" * 32 + ".parquet", "x.partial", "deeper/y", "catalog-00000099.json"]
    for name in foreign:
        with folder.file_system.open_output_stream(f"{folder.path}/{name}") as sink:
            sink.write(b"mine")
    for steps in range(12):
        before = catalog.manifest.generation
        try:
            Catalog(DyingFolder(open_folder(place), steps, after=after)).put(B, forget=["b"])
            done = True
        except Killed:
            done = False
        catalog = Catalog(place)
        assert catalog.manifest.generation - before in (0, 1)
        assert same(catalog.load("a"), A)
        if done:
            break
    assert done
    for _ in range(2):
        catalog.put(A, forget=["a"])
    ours = {e.file for e in catalog.manifest.sketches.values()} | {
        f for f in catalog.manifest.garbage if f.endswith("parquet")
    }
    numbers = {f"catalog-{catalog.manifest.generation - n:08d}.json" for n in (0, 1)}
    names = {Path(n).name for n in foreign}
    assert set(objects(place)) == ours | numbers | {"catalog.json"} | names
    for name in foreign:
        assert folder.read(name) == b"mine"


def test_a_prefix_of_others_is_no_catalog(place):
    folder = open_folder(place)
    folder.write("a.parquet", b"mine")
    with pytest.raises(DataError, match=r"is no catalog, and not empty: it holds a\.parquet") as caught:
        Catalog(place).put(A)
    assert caught.value.code == "SKIMQL_NOT_A_CATALOG"
    assert objects(place) == {"a.parquet": 4}


def test_a_catalog_without_manifests_there_keeps_its_sketches(place):
    remember(Catalog(place), A)
    folder = open_folder(place)
    for name in folder.names():
        if name.endswith(".json"):
            folder.delete(name)
    with pytest.raises(DataError, match="files that look like sketches"):
        Catalog(place).put(B)
    assert any(n.endswith(".parquet") for n in folder.names())


class Unsigned(BaseHTTPRequestHandler):
    """As S3 answers who has no credentials."""

    def do_GET(self):
        self.send_response(403)
        self.end_headers()

    do_HEAD = do_PUT = do_POST = do_GET

    def log_message(self, *told):
        pass


@pytest.fixture
def refusing():
    """The port of a server that refuses every request."""
    with HTTPServer(("127.0.0.1", 0), Unsigned) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


REFUSED = """
import sys
from skimql import SkimqlError
from skimql.engine.catalog.catalog import Catalog
for use in (lambda catalog: catalog.heads(), lambda catalog: catalog.put()):
    try:
        use(Catalog(sys.argv[1]))
    except SkimqlError as fault:
        print(fault.code, fault)
"""


def test_without_credentials_or_a_bucket_one_clear_line_says_so(place, server, refusing):
    nobody = dict.fromkeys(("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"), "/none") | dict.fromkeys(
        KEYS, ""
    )
    elsewhere = place.replace(server, f"endpoint_override=127.0.0.1:{refusing}&scheme=http")
    runs = {
        "ACCESS_DENIED": python(REFUSED, elsewhere, **nobody),
        "": python(REFUSED, place.replace("bucket", "nosuch")),
    }
    for said, run in runs.items():
        told, wrong = run.communicate(timeout=300)
        assert wrong == ""
        assert "SKIMQL_CATALOG_" in told
        assert said in told
        assert "AWS_ACCESS_KEY_ID" in told
        assert "hunter2" not in told


def test_a_damaged_object_is_named(place):
    catalog = remember(Catalog(place), A)
    folder = open_folder(place)
    file = catalog.entry("a").file
    folder.replace(file, folder.read(file)[:-5], "")
    with pytest.raises(CorruptSketch, match=file):
        Catalog(place).load("a")
