"""The shell with Spark: one process with a JVM of its own, which starts, is given up, starts again and leaves."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import pytest
from support.golden_text import assert_golden
from support.screens import shot
from support.terminal import Terminal

# Of tasks that look whether they are wanted: a join of few keys looks but between its rows of one side.
SLOW = "EXACT SELECT COUNT(*) FROM range(1000000000000) WHERE id % 11 = 3"


@pytest.fixture
def terminal(tmp_path):
    (tmp_path / "x.csv").write_text("id,n\n1,10\n2,20\n")
    (tmp_path / "y.csv").write_text("id,m\n1,100\n1,101\n3,300\n")
    (tmp_path / "semi.csv").write_text("alpha;beta\n6;7\n")
    (tmp_path / "bin").mkdir()
    t = Terminal(tmp_path, columns=160, lines=50)
    yield t
    t.close()


def children(process):
    """The processes that a process has started, and those that these have."""
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            parent = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()[1]
        except OSError:
            continue
        if int(parent) == process:
            found += [int(entry), *children(int(entry))]
    return found


def demo_screens(terminal):
    """An estimate beside what it was made of, its exact values, groups, and a table."""
    t, shots = terminal, {}
    for name, typed, shown in (
        ("groups", "SELECT APPROXIMATE carrier, COUNT(*) AS n FROM flights GROUP BY carrier ORDER BY n DESC LIMIT 3", "EV"),
        ("estimate", "SELECT APPROXIMATE COUNT(*) AS n, AVG(f.distance) AS miles FROM flights f JOIN planes p ON f.tailnum = p.tailnum SIZE 64 KB OPTIONS (sparse = false)", "CPU"),
        ("compare", "\\compare", "yes"),
        ("explain", "\\explain", "counters"),
        ("table", "\\d planes", "tuples"),
    ):  # fmt: skip
        t.keys("ctrl-l")
        t.rest(0.3)
        t.keys(typed, "enter")
        shots[name] = shot(t, shown, 60)
    told = "\n".join(f"== {name} ==\n{screen}" for name, screen in shots.items())
    # What was taken differs in its times, and so in where its lines break.
    told = re.sub(r"(?m)^(95 % interval|exact|\d+ rows?);[^\n]*(\n  \S[^\n]*)*", r"\1; ...", told)
    return re.sub(r"\n\s*\n+", "\n", told)


def test_spark_starts_when_it_is_needed_and_goes_when_it_is_not(terminal):
    t = terminal
    t.until("spark: none")
    assert children(t.process.pid) == []
    # Ctrl-C while Spark starts leaves no JVM.
    t.keys("SELECT 1 AS one", "enter")
    t.until("starting Spark", 60)
    t.keys("ctrl-c")
    t.until("cancelled", 5)
    t.until(lambda t: "spark: none" in t.text, 60)
    for _ in range(100):
        if not children(t.process.pid):
            break
        time.sleep(0.1)
    assert children(t.process.pid) == []
    # Then it starts, and files are tables.
    t.keys("SELECT APPROXIMATE COUNT(*) AS joined FROM 'x.csv' x JOIN 'y.csv' y ON x.id = y.id", "enter")
    t.until(lambda t: "joined" in t.text.partition("JOIN")[2] and "spark: ready" in t.text, 120)
    # What runs is cancelled at once, and the shell goes on.
    t.keys(SLOW, "enter")
    t.until("exact answer", 60)
    started = time.monotonic()
    t.keys("ctrl-c")
    t.until(lambda t: t.scrolled.count("cancelled") >= 2, 10)
    assert time.monotonic() - started < 5
    # A mistake has its correction, which Enter takes.
    t.keys("\\t flights=x.csv", "enter")
    t.until(lambda t: "tables" in t.text)
    t.keys("SELECT APPROXIMATE SUM(n) AS summed FROM flihgts", "enter")
    t.until("Enter: SELECT APPROXIMATE SUM(n) AS summed FROM flights", 60)
    t.keys("enter")
    t.until(lambda t: "30" in t.text.rpartition("summed")[2], 60)
    # What Spark refuses has its place and its correction too; a file's separator is told by its head.
    t.keys("SELECT beat FROM 'semi.csv'", "enter")
    t.until("Enter: SELECT beta FROM 'semi.csv'", 60)
    t.keys("enter")
    t.until(lambda t: t.text.rpartition("beta")[2].split()[1:2] == ["7"], 60)
    # The demo tables at two sizes.
    t.keys("\\demo", "enter")
    t.until(lambda t: "weather" in t.text and "8 tables" in t.text, 60)
    for columns, lines in ((80, 24), (160, 50)):
        t.resize(columns, lines)
        assert_golden("screens", f"spark-{columns}x{lines}.txt", demo_screens(t))
    t.keys("ctrl-d")
    for _ in range(300):
        t.rest(0.1)
        if not t.process.isalive():
            break
    assert not t.process.isalive()
    assert "Traceback" not in t.scrolled
