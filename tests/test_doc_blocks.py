"""Every console and Python block of README and docs runs, block after block of a page, and prints what the page says."""

from __future__ import annotations

import contextlib
import io
import os
import shlex
import subprocess
import sys
import traceback

import pytest
from support.blocks import blocks, difference
from support.imports import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
LONG = bool(os.environ.get("SKIMQL_TEST_DOCS"))
ALL = {page: blocks(page.read_text(encoding="utf-8")) for page in PAGES}
TO_RUN = [page for page, found in ALL.items() if any(not b.reason for b in found if b.language != "before")]


class Captured(io.TextIOWrapper):
    """A stdout that is kept, and takes itself for a terminal where results are tables."""

    def __init__(self, terminal: bool) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", write_through=True)
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal

    @property
    def text(self) -> str:
        return self.buffer.getvalue().decode("utf-8")


@pytest.mark.parametrize("page", TO_RUN, ids=lambda p: str(p.relative_to(ROOT)))
def test_the_blocks_of_a_page_print_what_it_says(page, spark, as_users_have_it, tmp_path, monkeypatch):
    from support.tables import forget_views

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("NO_COLOR", "1")
    names = {"spark": spark, "__name__": "__main__"}
    try:
        for block in ALL[page]:
            for step in [] if block.reason else block.steps:
                came = _run(step, names, monkeypatch)
                found = difference(step.expected, _told(came, tmp_path))
                assert not found, f"{page.name}, line {step.line}: {found}"
    finally:
        forget_views(spark)


def _run(step, names, monkeypatch):
    if step.language != "console":
        return _python(step, names)
    words = shlex.split(step.text.replace("\\\n", ""), comments=True)
    if words[0] != "skimql" or {"|", ">", "<", "&&"} & set(words):
        done = subprocess.run(["bash", "-c", step.text], capture_output=True, text=True, timeout=60)
        return done.stdout + done.stderr
    from skimql.cli import main

    out, err = Captured(terminal=True), Captured(terminal=False)
    monkeypatch.setattr(sys, "argv", words)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), contextlib.suppress(SystemExit):
        main._run(words[1:])
    return out.text + err.text


def _python(step, names):
    """What a piece of Python prints; the last line of what it raises."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        try:
            mode = "single" if step.language == "pycon" else "exec"
            exec(compile(step.text, f"line {step.line}", mode), names)
        except Exception as fault:
            if "Traceback" not in step.expected:
                raise
            return "Traceback (most recent call last):\n" + "".join(traceback.format_exception_only(fault))
    return out.getvalue()


def _told(text, folder):
    """Paths of this machine as those of anybody."""
    return text.replace(f"{folder}/", "").replace(str(folder), ".").replace(os.path.expanduser("~"), "~")
