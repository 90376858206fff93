"""Colours."""

from __future__ import annotations

import pytest
from rich.color import Color, ColorSystem

from skimql.cli.shell.editor import _MENU
from skimql.cli.shell.theme import BACKGROUNDS, OF_SIXTEEN, THEMES, colours, contrast, theme_of

COLOURS = [(theme, name) for theme in BACKGROUNDS for name in THEMES[theme]]


@pytest.mark.parametrize(("theme", "name"), COLOURS)
def test_every_colour_can_be_read(theme, name):
    assert contrast(THEMES[theme][name].split()[0], BACKGROUNDS[theme]) >= 4.5


@pytest.mark.parametrize("style", _MENU.values())
def test_the_menu_can_be_read(style):
    back, fore = style.removeprefix("bg:").split()
    assert contrast(back, fore) >= 4.5


# As xterm has them.
SIXTEEN = {
    "black": "#000000", "red": "#cd0000", "green": "#00cd00", "yellow": "#cdcd00", "blue": "#0000ee", "magenta": "#cd00cd",
    "cyan": "#00cdcd", "white": "#e5e5e5", "bright_green": "#00ff00", "bright_yellow": "#ffff00", "bright_blue": "#5c5cff",
    "bright_magenta": "#ff00ff", "bright_cyan": "#00ffff",
}  # fmt: skip


@pytest.mark.parametrize(("theme", "name"), COLOURS)
def test_every_colour_can_be_read_among_sixteen_and_among_256(theme, name):
    of_sixteen = SIXTEEN[OF_SIXTEEN[theme][name].split()[0]]
    assert contrast(of_sixteen, BACKGROUNDS[theme]) >= 4.5
    palette = Color.parse(THEMES[theme][name].split()[0]).downgrade(ColorSystem.EIGHT_BIT)
    assert contrast(palette.get_truecolor().hex, BACKGROUNDS[theme]) >= 4.5


def test_a_terminal_that_tells_no_more_has_sixteen_colours(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.delenv("COLORTERM", raising=False)
    for term, told in (
        ("xterm-16color", "blue bold"),
        ("linux", "blue bold"),
        ("xterm-256color", "#0b4fae bold"),
    ):
        monkeypatch.setenv("TERM", term)
        assert colours("light")["keyword"] == told
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLORTERM", "truecolor")
    assert colours("light")["keyword"] == "#0b4fae bold"


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
