"""Every console and Python block of README and docs runs, block after block of a page, and prints what the page says."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import traceback

import pytest
from support.blocks import blocks, difference
from support.imports import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
_CODES = re.compile(r"\x1b\[[0-9;]*m")
LONG = bool(os.environ.get("SKIMQL_TEST_DOCS"))
ALL = {page: blocks(page.read_text(encoding="utf-8")) for page in PAGES}


def _is_run(block):
    return not block.reason or (LONG and not block.never)


TO_RUN = [page for page, found in ALL.items() if any(_is_run(b) for b in found if b.language != "before")]


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
def test_the_blocks_of_a_page_print_what_it_says(
    page, spark, as_users_have_it, tmp_path, tmp_path_factory, monkeypatch
):
    from support.extension import with_jar
    from support.tables import forget_views

    monkeypatch.chdir(tmp_path)
    # The benchmarks of the project, not the folder of their tests.
    monkeypatch.syspath_prepend(str(ROOT))
    for name in [n for n in sys.modules if n.partition(".")[0] == "benchmarks"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
    names = {"spark": spark, "__name__": "__main__"}
    before = _work_in(spark, tmp_path)
    needs_jar = any("skimql.enable(" in step.text for block in ALL[page] for step in block.steps)
    try:
        with with_jar(tmp_path_factory.mktemp("jar")) if needs_jar else contextlib.nullcontext():
            _hold(page, names, tmp_path, monkeypatch)
    finally:
        _work_in(spark, before)
        forget_views(spark)


def _hold(page, names, folder, monkeypatch):
    """Run a page's steps in order, each held against what the page says of it."""
    for block in ALL[page]:
        for step in block.steps if _is_run(block) else []:
            came = _run(step, names, monkeypatch)
            found = difference(step.expected, _told(came, folder))
            assert not found, f"{page.name}, line {step.line}: {found}"


def _work_in(spark, folder):
    """Relative paths that Spark reads are those of `folder`, as if it had been started there; where it was before."""
    files = spark._jvm.org.apache.hadoop.fs
    disk = files.FileSystem.get(spark._jsc.hadoopConfiguration())
    before = disk.getWorkingDirectory().toString()
    disk.setWorkingDirectory(files.Path(str(folder)))
    return before


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
    """What a reader sees: no codes for colours, paths of this machine as those of anybody."""
    return (
        _CODES.sub("", text)
        .replace(f"{folder}/", "")
        .replace(str(folder), ".")
        .replace(os.path.expanduser("~"), "~")
    )
