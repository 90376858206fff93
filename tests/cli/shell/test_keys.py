"""Keys typed into the shell on a terminal, and the screen that they make; no JVM."""

from __future__ import annotations

import json
import stat
import sys

import pytest
from support.kept_catalog import QUERY, two_sketches
from support.shell_fuzz import fuzz
from support.terminal import COMMAND, Terminal

from skimql.cli.shell.theme import THEMES


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("home")
    two_sketches(folder / "kept")
    editor = folder / "editor.sh"
    editor.write_text('#!/bin/sh\nprintf "SHOW\\nSKETCHES" > "$1"\n')
    editor.chmod(editor.stat().st_mode | stat.S_IXUSR)
    return folder


@pytest.fixture
def start(home):
    opened = []

    def one(columns=80, lines=24, **environment):
        opened.append(
            Terminal(
                home, "--catalog", "kept", columns=columns, lines=lines, environment=environment, cwd=home
            )
        )
        opened[-1].until("2 sketches")
        return opened[-1]

    yield one
    for terminal in opened:
        terminal.close()


def entries(home):
    return [json.loads(e) for e in (home / ".local/state/skimql/history.jsonl").read_text().splitlines()]


def cell(terminal, text, offset=0):
    """The character of the screen at which the last occurrence of a text begins."""
    row = max(n for n, line in enumerate(terminal.screen.display) if text in line)
    return terminal.screen.buffer[row][terminal.screen.display[row].rindex(text) + offset]


def test_editing(start, home):
    t = start(EDITOR=str(home / "editor.sh"), VISUAL="", COLORTERM="truecolor")
    # Colours of words while they are typed, a quote that is open, brackets that belong together.
    t.keys("SELECT APPROXIMATE sum((1)) 'open")
    t.until("'open")
    t.rest()
    dark = {name: value.split()[0].removeprefix("#") for name, value in THEMES["dark"].items()}
    for text, kind in (
        ("SELECT", "keyword"),
        ("APPROXIMATE", "ours"),
        ("sum", "function"),
        ("'open", "mistake"),
    ):
        assert cell(t, text).fg == dark[kind] or len(cell(t, text).fg) == 6, (text, cell(t, text).fg)
    assert len({cell(t, text).fg for text in ("SELECT", "APPROXIMATE", "sum", "'open")}) == 4
    assert cell(t, "'open").underscore
    t.keys("ctrl-u", "SELECT (1 + (2))", "\x1b[D")
    t.until("(1 + (2))")
    t.rest()
    assert cell(t, "(1 + (2))").bold
    t.keys("ctrl-c")
    # Alt-Enter makes a line though the statement is complete; history suggests the rest of what was typed before.
    t.keys("SHOW", "alt-enter", "SKETCHES", "enter")
    t.until("s_orders")
    t.keys("SHOW SKETCHES", "enter")
    t.until(lambda t: t.scrolled.count("s_orders ") >= 2)
    t.keys("SHOW S")
    # At the prompt below the answer: the one above it says the same.
    t.until(lambda t: "skimql> SHOW SKETCHES" in t.text.rpartition(" rows; ")[2])
    t.keys("\x1b[C", "enter")
    t.until(lambda t: t.scrolled.count("s_orders ") >= 3)
    # The editor's text stands at the prompt.
    t.keys("\\e", "enter")
    t.until(lambda t: "   ...> SKETCHES" in t.text.rstrip().rpartition("skimql>")[2])
    t.keys("enter")
    t.until(lambda t: t.scrolled.count("s_orders ") >= 4)
    # What names a secret is not kept.
    t.keys("SET my.password = 'x'", "ctrl-c", "\\set password x", "enter")
    t.until("no setting 'password'")
    # A paste of 5,000 lines is one entry.
    pasted = QUERY + "\n" + "".join(f"-- {i}\n" for i in range(5000))
    t.paste(pasted + ";")
    t.until("-- 4999", 60)
    t.keys("enter")
    t.until(lambda t: "95 % interval" in t.text, 60)
    t.keys("\\q", "enter")
    t.until(lambda t: not t.process.isalive())
    kept = entries(home)
    assert (pasted + ";").strip() in kept
    assert (kept.count("SHOW\nSKETCHES"), kept.count("SHOW SKETCHES")) == (2, 1)
    assert not any("password" in e for e in kept)


def test_vi_keys_light_colours_and_a_resize_while_something_is_printed(start):
    t = start(columns=160, lines=50, COLORFGBG="0;15", COLORTERM="truecolor")
    t.keys("\\set editing vi", "enter", "SELECT 1", "\x1b")
    t.rest()
    t.keys("0dwiSHOW ", "\x1b", "dd", "i")
    t.rest()
    t.keys("\\history 9", "enter")
    t.until("skimql> \\history 9")
    t.keys("\\? ", "enter")
    for columns, lines in ((40, 10), (160, 50), (80, 24)):
        t.resize(columns, lines)
    t.until("Ctrl-D leaves")
    t.keys("SHOW SKETCHES", "enter")
    t.until("s_orders")
    assert b"38;2;11;79;174" in t.raw, "the keyword colour of light terminals"
    assert "Traceback" not in t.scrolled


def test_long_results_keep_their_head_in_the_pager(start):
    t = start(PAGER="less -SX")
    t.keys("\\set", "enter")
    t.until("setting")
    t.rest()
    assert t.text.splitlines()[0].split() == ["setting", "value", "from"]
    t.keys(" ")
    t.until("simultaneous")
    t.rest()
    heads = [line.split() for line in t.text.splitlines()]
    assert ["setting", "value", "from"] in heads
    t.keys("q", "SHOW SKETCHES", "enter")
    t.until("s_orders")


def test_ctrl_z_suspends_the_shell_of_a_terminal_and_fg_wakes_it(home):
    (home / "run_shell.py").write_text(COMMAND)
    t = Terminal(home, "--norc", "-i", program="bash", environment={"PS1": "bash> "}, cwd=home)
    try:
        t.keys(f"{sys.executable} run_shell.py --catalog kept", "enter")
        t.until("2 sketches")
        t.keys("SHOW SKET")
        t.until("skimql> SHOW SKET")
        t.keys("\x1a")
        t.until("Stopped")
        t.keys("fg", "enter")
        t.until(lambda t: "skimql> SHOW SKET" in t.text.rpartition("Stopped")[2])
        t.keys("CHES", "enter")
        t.until("s_orders")
        t.keys("ctrl-d")
        t.until(lambda t: t.text.rstrip().endswith("bash>"))
    finally:
        t.close()


def test_random_lines_harm_nothing(tmp_path, monkeypatch):
    """Two thousand of them are `python -m benchmarks.shell_fuzz`."""
    monkeypatch.setenv("JAVA_HOME", "/nonexistent")
    monkeypatch.setenv("PATH", "/nonexistent")
    fuzz(tmp_path, ["--catalog", str(two_sketches(tmp_path / "kept"))], 15, seed=20261129)
