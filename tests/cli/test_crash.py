"""A fault of our own: two lines, the whole of it in a file."""

import re
from pathlib import Path

from skimql.cli.crash import report


def fault():
    try:
        raise RuntimeError("never seen")
    except RuntimeError as found:
        return found


def test_the_report_is_in_a_file_that_is_named(monkeypatch, tmp_path):
    monkeypatch.delenv("SKIMQL_DEBUG", raising=False)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    told = report(fault())
    assert "Traceback" not in told
    path = next(Path(p) for p in re.findall(r"/\S+", told) if Path(p.rstrip(".,")).is_file())
    assert "never seen" in path.read_text()
    path.unlink()


def test_whoever_debugs_sees_all_of_it(monkeypatch):
    monkeypatch.setenv("SKIMQL_DEBUG", "1")
    assert "Traceback" in report(fault())
