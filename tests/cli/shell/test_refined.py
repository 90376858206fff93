"""Estimates that are refined on the screen."""

from __future__ import annotations

import io
from types import SimpleNamespace

import pexpect
import pyte
import pytest
from support import terminal
from support.terminal import Terminal

from skimql import Answer, Estimate
from skimql.cli.shell import waiting
from skimql.cli.shell.refined import reached, so_far, taken
from skimql.cli.shell.results import Screen
from skimql.cli.shell.waiting import WaitingLine

SCREEN = Screen(60, True, {"dim": "#a0a0a0"})


def estimate(value, half, rows=1, wide=0.08, target="missed"):
    cell = Estimate(value, value - half, value + half, 0.95, True, "theorem")
    attempts = (SimpleNamespace(half_width=wide),)
    return Answer(("n",), ((cell,),) * rows, attempts=attempts, target=target)


def test_an_estimate_is_as_high_as_there_is_room():
    text = so_far(estimate(1000.0, 80.0, rows=40), SCREEN, 12)
    assert len(text.splitlines()) == 9
    assert "... 35 more lines" in text
    assert text.endswith("so far ±8 %, wider than asked; Ctrl-C takes this")
    assert "\x1b" not in text


def test_how_far_it_is_and_that_it_was_taken():
    assert reached(estimate(10.0, 1.0)) == "±8 %, wider than asked"
    assert reached(estimate(10.0, 1.0, target="unknown")) == "±8 %, not certified"
    assert reached(estimate(10.0, 1.0, wide=float("inf"))) == "without a bound, wider than asked"
    notes = taken(estimate(10.0, 1.0)).notes
    assert notes == ("stopped: this is the estimate so far, ±8 %, wider than asked; its interval holds",)


class Sink(io.StringIO):
    encoding = "utf-8"

    def isatty(self):
        return True


@pytest.fixture
def line(monkeypatch):
    """A line whose clock is ours, and what a terminal shows of it."""
    clock = [100.0]
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(waiting.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(waiting.shutil, "get_terminal_size", lambda: SimpleNamespace(columns=60, lines=12))
    sink = Sink()
    screen = pyte.Screen(60, 12)

    def display():
        screen.reset()
        pyte.Stream(screen).feed(sink.getvalue().replace("\n", "\r\n"))
        return [text.rstrip() for text in screen.display if text.strip()]

    def tick(above=""):
        clock[0] += 1
        made.tick("planning", None, above)
        return display()

    sink.write("skimql> SELECT ...\n")
    made = WaitingLine(sink)
    return SimpleNamespace(line=made, tick=tick, display=display)


def test_a_better_estimate_stands_in_the_place_of_the_last(line):
    assert len(line.tick()) == 2
    first = line.tick(so_far(estimate(1000.0, 80.0), SCREEN, 12))
    assert any("1,000" in row for row in first)
    assert first[-1].endswith("planning  2 s   Ctrl-C cancels")
    again = line.tick(so_far(estimate(1000.0, 80.0), SCREEN, 12))
    assert len(again) == len(first)
    second = line.tick(so_far(estimate(1050.0, 10.0, wide=0.01), SCREEN, 12))
    assert any("1,050" in row for row in second)
    assert not any("1,000" in row for row in second)
    assert len(second) == len(first)
    line.line.close()
    assert line.display() == ["skimql> SELECT ..."]


def test_lines_that_are_too_long_do_not_wrap(line):
    shown = line.tick("東京" * 40 + "\n" + "x" * 200)
    assert len(shown) == 4
    line.line.close()
    assert line.display() == ["skimql> SELECT ..."]


REFINING = """
import sys, time
from types import SimpleNamespace
sys.argv[0] = "skimql"
import skimql
from skimql import Answer, Estimate, JobProgress, Session
asked = Session.sql

def sql(self, text, **values):
    if "slow" not in text:
        return asked(self, text, **values)
    for value, half in ((1000.0, 300.0), (1040.0, 60.0), (1050.0, 7.0)):
        cell = Estimate(value, value - half, value + half, 0.95, True, "theorem")
        attempts = (SimpleNamespace(half_width=half / value, nbytes=4096, operators=(), attempt=None),)
        answer = Answer(("slow",), ((cell,),), attempts=attempts, target="missed", targets=("missed",))
        self.listener.estimated(answer)
        for _ in range(6 if value < 1050 else 10_000):
            time.sleep(0.1)
            self.listener.update(JobProgress("the query on one in 8 keys", 1, 4, 1000, 2.0, 3_000_000))

Session.sql = sql
from skimql.cli.main import run
run()
"""


@pytest.mark.parametrize(("columns", "lines"), [(80, 24), (160, 50)])
def test_estimates_become_better_on_a_terminal_and_the_last_one_is_taken(
    tmp_path, monkeypatch, columns, lines
):
    monkeypatch.setattr(terminal, "COMMAND", REFINING)
    t = Terminal(tmp_path, columns=columns, lines=lines)
    t.until("spark: none")
    t.keys("SELECT APPROXIMATE COUNT(*) AS slow FROM a", "enter")
    for value in ("1,000 ± 300", "1,040 ± 60", "1,050.0 ± 7.0"):
        t.until(value)
        t.until("the query on one in 8 keys  ━━━╌╌╌╌╌╌╌╌╌ 25 %")
        # In the place of the last one.
        assert t.scrolled.count("±") == 2, t.text
    t.until("so far ±0.67 %, wider than asked; Ctrl-C takes this")
    t.keys("ctrl-c")
    t.until("stopped: this is the estimate so far, ±0.67 %, wider than asked; its")
    t.until(lambda t: t.screen.display[t.screen.cursor.y].rstrip() == "skimql>")
    assert "1,000" not in t.scrolled
    assert "Ctrl-C takes" not in t.scrolled
    assert t.scrolled.count("1,050.0 ± 7.0") == 1
    assert "no scan" not in t.scrolled
    # It is the last query and answer, as any other.
    t.keys("\\copy x.csv", "enter")
    t.until(" in x.csv")
    t.keys("ctrl-d")
    t.close()


def test_the_command_refines_too_where_a_terminal_reads_it(tmp_path, monkeypatch):
    monkeypatch.setattr(terminal, "COMMAND", REFINING)
    t = Terminal(tmp_path, "-c", "SELECT APPROXIMATE COUNT(*) AS slow FROM a", "-c", "SELECT 2")
    t.until("1,040 ± 60")
    t.until("so far ±5.8 %, wider than asked; Ctrl-C takes this")
    t.keys("ctrl-c")
    t.until("interrupted")
    assert "note: stopped: this is the estimate so far, ±5.8 %, wider than asked" in t.scrolled
    assert t.scrolled.count("1,040 ± 60") == 1
    assert "Ctrl-C takes" not in t.scrolled
    t.process.expect(pexpect.EOF)
    t.process.close()
    assert t.process.exitstatus == 130
