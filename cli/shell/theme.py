"""Colours of the shell, for dark and light terminals; every one is told from its background at 4.5 : 1 or better."""

from __future__ import annotations

import os
from collections.abc import Mapping

BACKGROUNDS = {"dark": "#1e1e1e", "light": "#ffffff"}

THEMES: Mapping[str, Mapping[str, str]] = {
    "dark": {
        "keyword": "#7fb4ff bold",
        "ours": "#ffb86b bold",
        "function": "#8fd7d0",
        "text": "#a5d68c",
        "number": "#d7a8f0",
        "comment": "#9a9a9a italic",
        "quoted_name": "#e6d28a",
        "mistake": "#ff8f8f underline",
        "unknown": "#ff8f8f underline",
        "prompt": "#8fd7d0 bold",
        "dim": "#a0a0a0",
        "toolbar": "#b8b8b8",
        "error": "#ff8f8f",
        "bar": "#8fd7d0",
    },
    "light": {
        "keyword": "#0b4fae bold",
        "ours": "#9a4a00 bold",
        "function": "#00696b",
        "text": "#2f6b1a",
        "number": "#7a2a9a",
        "comment": "#6a6a6a italic",
        "quoted_name": "#75590a",
        "mistake": "#b3261e underline",
        "unknown": "#b3261e underline",
        "prompt": "#00696b bold",
        "dim": "#666666",
        "toolbar": "#555555",
        "error": "#b3261e",
        "bar": "#00696b",
    },
    "none": {},
}  # fmt: skip

# The same for terminals of 16 colours, in those that are told from the background there.
OF_SIXTEEN: Mapping[str, Mapping[str, str]] = {
    "dark": {
        "keyword": "bright_cyan bold",
        "ours": "bright_yellow bold",
        "function": "cyan",
        "text": "green",
        "number": "bright_green",
        "comment": "white italic",
        "quoted_name": "yellow",
        "mistake": "bright_magenta underline",
        "unknown": "bright_magenta underline",
        "prompt": "cyan bold",
        "dim": "white",
        "toolbar": "white",
        "error": "bright_magenta",
        "bar": "cyan",
    },
    "light": {
        "keyword": "blue bold",
        "ours": "magenta bold",
        "function": "bright_blue",
        "text": "bright_blue",
        "number": "magenta",
        "comment": "black italic",
        "quoted_name": "bright_blue",
        "mistake": "red underline",
        "unknown": "red underline",
        "prompt": "blue bold",
        "dim": "black",
        "toolbar": "black",
        "error": "red",
        "bar": "blue",
    },
    "none": {},
}  # fmt: skip


def colours(name: str) -> Mapping[str, str]:
    """The styles of a theme on this terminal."""
    return (OF_SIXTEEN if has_sixteen() else THEMES)[theme_of(name)]


def has_sixteen() -> bool:
    """Whether the terminal is not known to have more than 16 colours."""
    term = os.environ.get("TERM", "").lower()
    return not has_all() and not any(known in term for known in ("256color", "direct", "kitty", "alacritty"))


def has_all() -> bool:
    """Whether the terminal says that it has every colour."""
    return os.environ.get("COLORTERM", "").lower() in ("truecolor", "24bit")


def theme_of(name: str) -> str:
    """The theme that a setting means here: none without colours, else what the terminal says of its background."""
    if not has_colours():
        return "none"
    if name != "auto":
        return name
    background = os.environ.get("COLORFGBG", "").rpartition(";")[2]
    return "light" if background in ("7", "15") else "dark"


def has_colours() -> bool:
    """Whether the terminal may be sent colours: no NO_COLOR, no dumb terminal."""
    return not os.environ.get("NO_COLOR") and not is_dumb()


def is_dumb() -> bool:
    """Whether the terminal moves no cursor."""
    return os.environ.get("TERM", "dumb").lower() in ("dumb", "unknown", "")


def contrast(one: str, other: str) -> float:
    """Ratio of the luminances of two colours, as WCAG 2 defines it."""
    high, low = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
