"""Estimates that are refined on the screen."""

from __future__ import annotations

import io
from types import SimpleNamespace

import pyte
import pytest

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
