"""The progress line of the command."""

import io

from support.waiting import wait_until

from skimql import Answer, JobProgress
from skimql.cli.progress import ProgressLine, RefinedLine


class Sink(io.StringIO):
    encoding = "utf-8"

    def isatty(self):
        return True


def test_the_line_tells_what_goes_on_between_jobs_and_in_them_and_goes(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    sink = Sink()
    line = ProgressLine(sink)
    with line.shown(lambda: "starting Spark"):
        wait_until(lambda: "starting Spark" in sink.getvalue())
        line.update(JobProgress("scan of x", 1, 4, 1000, 2.0, 3_000_000))
        wait_until(lambda: "scan of x" in sink.getvalue() and "25 %" in sink.getvalue())
        assert "1,000 rows, 500/s  3 MB" in sink.getvalue()
        line.done()
        assert line.progress is None
    assert sink.getvalue().endswith("\r\x1b[J")
    assert not hasattr(line, "estimated")


def test_an_estimate_stands_above_the_line(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    sink = Sink()
    line = RefinedLine(sink)
    with line.shown():
        line.estimated(Answer(("n",), ((12345,),), target="missed"))
        wait_until(lambda: "so far" in sink.getvalue())
        assert "12345" in sink.getvalue()
        assert line.above() is line.above()


def test_nothing_is_drawn_where_there_is_no_terminal():
    sink = io.StringIO()
    with ProgressLine(sink).shown():
        pass
    assert sink.getvalue() == ""
