"""A statement of the command that is stopped while its estimate is refined on the terminal."""

from __future__ import annotations

import sys

import pytest

from skimql import Answer
from skimql.cli import run as running
from skimql.cli.request import Request


class Refining:
    """A session that has an estimate, and is stopped on the way to a better one."""

    spark_state = "ready"

    def __init__(self, listener, found):
        self.listener, self.found = listener, found

    def sql(self, text):
        for answer in self.found:
            self.listener.estimated(answer)
        raise KeyboardInterrupt


@pytest.fixture
def stopped(monkeypatch, capsys):
    def go(*found, output="table"):
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
        monkeypatch.setattr(running, "_session", lambda request, listener: Refining(listener, found))
        request = Request(
            ("SELECT APPROXIMATE 1", "SELECT 2"), output, (), None, False, False, {}, False, True, False
        )
        code = running.run_texts(request)
        told = capsys.readouterr()
        return code, told.out, told.err

    return go


def test_the_last_estimate_is_printed_and_said_to_be_one(stopped):
    answers = [Answer(("n",), ((n,),), target="missed") for n in (1234, 1250)]
    code, out, err = stopped(*answers)
    assert code == 130
    assert "1250" in out
    assert "1234" not in out
    assert "note: stopped: this is the estimate so far" in err
    assert err.endswith("interrupted\n")


def test_without_an_estimate_nothing_is_printed(stopped):
    assert stopped() == (130, "", "interrupted\n")


def test_what_reads_other_formats_gets_no_estimate(stopped):
    with pytest.raises(AttributeError):
        stopped(Answer(("n",), ((1,),)), output="csv")
