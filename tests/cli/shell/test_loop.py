"""The shell on a terminal, by keys and screens; no JVM."""

from __future__ import annotations

import json

import pytest
from support.kept_catalog import QUERY, two_sketches
from support.terminal import Terminal


@pytest.fixture(scope="module")
def catalog(tmp_path_factory):
    return two_sketches(tmp_path_factory.mktemp("kept"))


@pytest.fixture
def terminal(tmp_path, catalog):
    opened = []

    def start(*arguments, **options):
        opened.append(Terminal(tmp_path, "--catalog", str(catalog), *arguments, **options))
        return opened[-1]

    yield start
    for one in opened:
        one.close()


def test_a_first_hour_at_eighty_columns(terminal, tmp_path):
    t = terminal()
    t.until("spark: none")
    t.until("2 tables, 2 sketches")
    # Half a query, Ctrl-C: the line is cleared, the shell is there.
    t.keys("SELECT 'a", "ctrl-c", "SHOW SKETCHES", "enter")
    t.until("s_orders   orders")
    # Completion, then a statement over two lines: Enter makes a line until it is complete.
    t.keys("SELECT APPROXIMATE COUNT(*) AS n", "enter", "FROM ord")
    t.until("   ...> FROM ord")
    t.keys("tab", " o JOIN lines l ON ")
    t.until("JOIN lines l ON")
    t.keys("o.id = l.oid", "enter")
    t.until("95 % interval")
    t.until(lambda t: "spark: none" in t.text)  # a stored answer needs no JVM
    t.keys("\\d lines", "enter")
    t.until("oid      bigint   s_lines")
    t.keys("\\tighten", "enter")
    t.until("nothing to tighten")
    t.keys("\\dx", "enter")
    t.until("there is no command \\dx")
    # DROP asks once.
    t.keys("DROP SKETCH s_lines", "enter")
    t.until("really? [y/N]")
    t.keys("n", "enter")
    t.until("nothing done")
    # A text of many lines is pasted whole, and is one entry of the history.
    lines = "".join(f"-- line {i}\n" for i in range(400))
    pasted = f"SELECT APPROXIMATE COUNT(*) AS pasted\n{lines}FROM orders o JOIN lines l ON o.id = l.oid;"
    t.paste(pasted)
    t.until("l.oid;")
    t.keys("enter")
    t.until(lambda t: "\npasted\n" in t.text, 30)
    # Ctrl-R finds inside.
    t.keys("ctrl-r", "JOIN lines l ON o")
    t.until("I-search backward")
    t.keys("ctrl-c", "\\q", "enter")
    for _ in range(100):
        t.rest(0.1)
        if not t.process.isalive():
            break
    assert not t.process.isalive()
    entries = [
        json.loads(line) for line in (tmp_path / ".local/state/skimql/history.jsonl").read_text().splitlines()
    ]
    assert pasted in entries
    assert "SELECT APPROXIMATE COUNT(*) AS n\nFROM orders o JOIN lines l ON o.id = l.oid" in entries
    assert "Traceback" not in t.scrolled


def test_two_shells_a_resize_and_no_colours(terminal, tmp_path):
    wide = terminal(columns=160, lines=50, environment={"NO_COLOR": "1"})
    wide.until("2 sketches")
    narrow = terminal()
    narrow.until("2 sketches")
    wide.keys(QUERY, "enter")
    wide.until("95 % interval")
    assert b"\x1b[38;" not in wide.raw, "no colours"
    narrow.resize(100, 30)
    narrow.keys("SELECT 7 AS", "ctrl-c", "\\x on", "enter")
    narrow.until("expanded is on")
    narrow.keys("SHOW SKETCHES", "enter")
    narrow.until("── row 2")
    for t in (wide, narrow):
        t.keys("ctrl-d")
        t.rest()
    entries = (tmp_path / ".local/state/skimql/history.jsonl").read_text().splitlines()
    assert sorted(json.loads(e)[:6] for e in entries) == ["SELECT", "SHOW S", "\\x on"]


def test_a_dumb_terminal_without_utf_8(terminal):
    t = terminal(
        environment={
            "TERM": "dumb",
            "LANG": "C",
            "LC_ALL": "C",
            "PYTHONUTF8": "0",
            "PYTHONCOERCECLOCALE": "0",
        }
    )
    t.until("skimql>")
    t.keys(QUERY.replace(" AS s", " AS s\n"), "enter")
    t.until("95 % interval")
    t.keys("quit", "enter")
    t.rest()
    assert b"\x1b" not in t.raw
    assert t.raw.isascii()
