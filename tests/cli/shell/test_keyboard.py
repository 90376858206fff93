"""Keys that are pressed while no prompt is there."""

from __future__ import annotations

import os
import pty
import select
import sys
import termios

from skimql.cli.shell.keyboard import kept_keys, typed_lines


def test_keys_wait_as_they_are_and_programs_find_the_terminal_as_they_know_it(monkeypatch):
    ours, theirs = pty.openpty()
    with os.fdopen(theirs) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        before = termios.tcgetattr(theirs)
        with kept_keys():
            os.write(ours, b"\x12a\r")
            assert os.read(theirs, 10) == b"\x12a\n"
            assert termios.tcgetattr(theirs)[3] & termios.ISIG
            with typed_lines():
                os.write(ours, b"y\r")
                assert stdin.readline() == "y\n"
            os.write(ours, b"ahead\r")
            select.select([theirs], [], [], 5)
            with typed_lines(anew=True):
                os.write(ours, b"n\r")
                assert stdin.readline() == "n\n"
        assert termios.tcgetattr(theirs) == before
    # Only what was typed as a line was shown.
    assert os.read(ours, 100) == b"y\r\nn\r\n"
    os.close(ours)


def test_without_a_terminal_nothing_is_set(monkeypatch, tmp_path):
    (tmp_path / "empty").write_text("")
    with (tmp_path / "empty").open() as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        with kept_keys(), typed_lines():
            pass
