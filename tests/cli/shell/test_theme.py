"""Colours."""

from __future__ import annotations

import pytest

from skimql.cli.shell.theme import BACKGROUNDS, THEMES, contrast, theme_of

COLOURS = [(theme, name) for theme in BACKGROUNDS for name in THEMES[theme]]


@pytest.mark.parametrize(("theme", "name"), COLOURS)
def test_every_colour_can_be_read(theme, name):
    assert contrast(THEMES[theme][name].split()[0], BACKGROUNDS[theme]) >= 4.5


def test_contrast_is_that_of_wcag():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


def test_no_color_and_dumb_terminals_have_none(monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert theme_of("light") == "light"
    monkeypatch.setenv("COLORFGBG", "0;15")
    assert theme_of("auto") == "light"
    monkeypatch.setenv("COLORFGBG", "15;0")
    assert theme_of("auto") == "dark"
    monkeypatch.setenv("NO_COLOR", "1")
    assert theme_of("light") == "none"
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert theme_of("auto") == "none"
