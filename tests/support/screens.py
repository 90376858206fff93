"""Screens of the shell as golden texts have them."""

from __future__ import annotations

import re


def stable(screen):
    """The screen without what differs between runs: times and ages."""
    text = re.sub(r"\d+\.\d+ s, \d+\.\d+ s(\s+)of(\s+)CPU", r"0.00 s, 0.00 s\1of\2CPU", screen)
    text = re.sub(r"\d+ (s|m|min) old", "9 s old", text)
    return re.sub(r"built \d+ \w+ ago", "built 36 h ago", text).rstrip()


def shot(terminal, shown, seconds=20):
    """The screen once `shown` and a prompt below it are there."""
    terminal.until(
        lambda t: shown in t.text and t.text.rstrip().splitlines()[-2:] != [] and _rests(t), seconds
    )
    return stable(terminal.rest(0.4))


def _rests(terminal):
    return terminal.text.rstrip().splitlines()[-1].startswith(" spark:") and "error 5 %" in terminal.text
