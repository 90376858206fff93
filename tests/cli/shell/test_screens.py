"""Golden screens of the shell at two sizes, looked at once by eye: keys are typed, the screen is read. No JVM."""

from __future__ import annotations

import pytest
from support.golden_text import assert_golden
from support.kept_catalog import two_sketches
from support.screens import shot
from support.terminal import Terminal

SIZES = [(80, 24), (160, 50)]
QUERY = "SELECT APPROXIMATE COUNT(*) AS n, SUM(l.price) AS s\nFROM orders o JOIN lines l ON o.id = l.oid"


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("home")
    two_sketches(folder / "kept")
    return folder


@pytest.fixture
def start(home):
    opened = []

    def one(*arguments, columns, lines, **environment):
        opened.append(
            Terminal(home, *arguments, columns=columns, lines=lines, environment=environment, cwd=home)
        )
        return opened[-1]

    yield one
    for terminal in opened:
        terminal.close()


@pytest.mark.parametrize(("columns", "lines"), SIZES)
def test_screens(start, columns, lines):
    t = start("--catalog", "kept", columns=columns, lines=lines)
    shots = {"prompt": shot(t, "2 sketches")}
    t.keys(QUERY.replace("\n", "\r"), "enter")
    shots["answer"] = shot(t, "CPU here")
    t.keys("\\explain", "enter")
    shots["explain"] = shot(t, "of counters")
    t.keys("\\d lines", "enter")
    shots["table"] = shot(t, "updated")
    t.keys("\\x on", "enter")
    t.until("expanded is on")
    t.keys("\\sketches", "enter")
    shots["down the page"] = shot(t, "row 2")
    t.keys("\\x auto", "enter")
    t.until("expanded is auto")
    t.keys("SELECT APPROXIMATE SUM(l.prise) FROM orders o JOIN lines l ON o.id = l.oid", "enter")
    shots["mistake"] = shot(t, "Enter: SELECT")
    t.keys("enter")
    shots["corrected"] = shot(t, "sum(price)")
    t.keys("\\skteches", "enter")
    shots["unknown command"] = shot(t, "\\skteches\n")
    t.keys("SELECT COUNT(*) FROM ", "tab")
    shots["candidates"] = shot(t, "a subquery")
    told = "\n".join(f"== {name} ==\n{screen}" for name, screen in shots.items())
    assert_golden("screens", f"{columns}x{lines}.txt", told)


@pytest.mark.parametrize(("columns", "lines"), SIZES)
def test_first_page_and_help(start, columns, lines):
    t = start(columns=columns, lines=lines)
    shots = {"first page": shot(t, "0 sketches")}
    t.keys("\\?", "enter")
    t.until("what was typed last")
    shots["help"] = shot(t, "EXPLAIN SELECT")
    told = "\n".join(f"== {name} ==\n{screen}" for name, screen in shots.items())
    assert_golden("screens", f"first-{columns}x{lines}.txt", told)
