"""The line that tells what runs."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest

from skimql import JobProgress
from skimql.cli.shell.waiting import CANCELLING, WaitingLine, line_of, short


def test_it_tells_the_phase_before_a_job_runs_and_its_figures_then():
    assert line_of("starting Spark", None, 3.2) == "starting Spark  3 s  Ctrl-C cancels".replace(
        "3 s  ", "3 s   "
    )
    job = JobProgress("one pass", 3, 12, rows=3_000_000, seconds=10.0)
    told = line_of("planning", job, 10.4)
    assert told == "one pass  ━━━╌╌╌╌╌╌╌╌╌ 25 %  10 s, 30 s left  3 million rows, 300,000/s  Ctrl-C cancels"
    assert len(told) < 90
    # Where there is less room rows go before what Ctrl-C does, and bytes before rows.
    large = replace(job, bytes=3_000_000)
    assert line_of("", large, 10.4).endswith("300,000/s  3 MB  Ctrl-C cancels")
    assert line_of("", large, 10.4, columns=90) == told
    assert line_of("", large, 10.4, columns=60).endswith("30 s left  Ctrl-C cancels")
    assert line_of("planning", job, 1, signs=False).isascii()
    assert "%" not in line_of("planning", JobProgress("one pass", 0, 0), 1)
    assert line_of(CANCELLING, job, 1) == "cancelling  1 s"


def test_nothing_is_drawn_where_there_is_no_terminal():
    sink = io.StringIO()
    line = WaitingLine(sink)
    line.tick("planning", None)
    line.close()
    assert sink.getvalue() == ""


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (5, "5"),
        (284_170, "284,170"),
        (2_970_896_868, "2.97 billion"),
        (1.5e6, "1.5 million"),
        (3e13, "30 trillion"),
    ],
)
def test_large_numbers_in_words(number, text):
    assert short(number) == text
