"""The command line never shows a traceback: closed streams, full disks, broken pipes, paths and texts that are none."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from support.kept import kept, remember

from skimql import DataError, ParseError, Session
from skimql.cli.crash import report
from skimql.engine.catalog.catalog import Catalog

RUN = [sys.executable, "-c", "from skimql.cli.main import run; run()"]
ASK = "SELECT APPROXIMATE COUNT(*) AS n FROM orders o JOIN lines l ON o.id = l.oid"
WRONG = "DROP SKETCH nosuch"


@pytest.fixture(scope="module")
def catalog(tmp_path_factory):
    folder = tmp_path_factory.mktemp("catalog")
    sizes = {"buckets": 512, "sparse": False}
    lines = kept("s_lines", "lines", {"oid": [1, 1, 2, 9]}, classes=["id"], **sizes)
    remember(Catalog(folder), kept("s_orders", "orders", {"id": range(5)}, **sizes), lines)
    return folder


def run(redirect, *arguments, **environment):
    """The command with its streams redirected by a shell; exit code, stdout and stderr as bytes."""
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", f'"$@" {redirect}', "bash", *RUN, *arguments],
        capture_output=True,
        timeout=300,
        env={**os.environ, **environment},
    )
    assert b"Traceback" not in done.stdout + done.stderr, done.stderr.decode()
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("redirect", "text", "code", "told"),
    [
        (">&-", ASK, 1, b"cannot be written"),
        (">/dev/full", ASK, 1, b"cannot be written"),
        ("</dev/null >&- 2>&-", WRONG, 1, b""),
        ("<&- >&- 2>&-", WRONG, 1, b""),
        ("<&-", ASK, 0, b"interval"),
        ("2>&-", ASK, 0, b""),
        ("2>/dev/full", WRONG, 1, b""),
        (">/dev/full 2>/dev/full", ASK, 1, b""),
        ("| head -c 0", ASK, 0, b""),
    ],
)
def test_streams_that_are_closed_full_or_left(catalog, redirect, text, code, told):
    ended, _, said = run(redirect, "--catalog", str(catalog), "-c", text)
    assert ended == code
    assert told in said
    assert said.count(b"error") <= 1


@pytest.mark.parametrize(
    ("redirect", "arguments", "code"),
    [
        ("<&-", (), 0),
        (">/dev/full", ("--help",), 1),
        ("<&- >&- 2>&-", ("--nosuch",), 2),
        ("", ("-f", "/tmp"), 2),
        ("", ("-f", sys.executable), 2),
        ("", ("-c", os.fsdecode(b"SELECT '\xff'")), 2),
        ("", ("-t", os.fsdecode(b"a=\xff.csv"), "-c", "x"), 2),
        ("", ("--catalog", "~nosuch/x", "-c", "SHOW SKETCHES"), 1),
        ("", ("--catalog", "s3://", "-c", "SHOW SKETCHES"), 1),
        ("", ("--catalog", "/dev/null", "-c", "SHOW SKETCHES"), 1),
        ("", ("-s", "buckets=x", "-c", "SHOW SKETCHES"), 1),
        ("", ("-s", "buckets", "-c", "x"), 2),
        ("", ("-o", "xml", "-c", "x"), 2),
    ],
)  # fmt: skip
def test_wrong_usage_and_paths_are_told_in_a_line(redirect, arguments, code):
    ended, _, said = run(redirect, *arguments)
    assert ended == code
    if not redirect.endswith("2>&-") and arguments:
        assert said


def test_stdin_that_is_not_utf8():
    done = subprocess.run(RUN, input=b"SELECT '\xff'", capture_output=True, timeout=300)
    assert (done.returncode, b"Traceback" in done.stderr) == (2, False)
    assert b"UTF-8" in done.stderr


def test_a_fault_of_our_own_is_told_in_two_lines_and_written_to_a_file(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.delenv("SKIMQL_DEBUG", raising=False)
    try:
        raise KeyError("inside")
    except KeyError as fault:
        said = report(fault)
        monkeypatch.setenv("SKIMQL_DEBUG", "1")
        whole = report(fault)
    first, second = said.splitlines()
    assert "KeyError: 'inside'" in first
    with open(second.split()[-1], encoding="utf-8") as written:
        assert "Traceback" in written.read()
    assert "Traceback" in whole


@pytest.mark.parametrize(
    "uri", ["s3://", "gs://", "foo://bar", "://", "file://", "~nosuch/x", "a\0b", "fsspec+x://y", "/dev/null"]
)
def test_catalogs_that_cannot_be_are_refused(uri):
    with pytest.raises(DataError):
        Session(catalog=uri).sql("SHOW SKETCHES")


@pytest.mark.parametrize("path", ["~nosuch/x", "a\0b", "://", "/tmp", ""])
def test_imports_of_what_is_no_file(path):
    with pytest.raises(DataError):
        Session().sql(f"IMPORT SKETCH s FROM '{path}'")


def test_text_that_is_no_unicode_is_refused_before_spark():
    with pytest.raises(ParseError, match="UTF-8"):
        Session().sql("SELECT '\udcff'")


def test_nul_in_a_path_of_a_table():
    with pytest.raises(DataError, match="NUL"):
        Session().table("t", "a\0b.csv")


def test_results_go_on_after_a_reader_left_only_to_nobody(catalog):
    code, shown, _ = run("", "--catalog", str(catalog), "-o", "json", "-c", ASK)
    assert (code, json.loads(shown)[0]["n"]) == (0, 3)
