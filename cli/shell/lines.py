"""Lines of talk: broken between words, in colours of a theme."""

from __future__ import annotations

import textwrap


def broken(line: str, width: int) -> str:
    """A line that is too long, broken between words; what has a layout of its own stays."""
    if len(line) <= width or line.startswith("  "):
        return line
    return textwrap.fill(line, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def in_colour(text: str, style: str) -> str:
    """A text in a colour of a theme, as the terminal wants it told."""
    if not style:
        return text
    from rich.color import Color, ColorSystem
    from rich.console import Console

    system = Console().color_system
    if system is None:
        return text
    wanted = {"truecolor": ColorSystem.TRUECOLOR, "256": ColorSystem.EIGHT_BIT}.get(
        system, ColorSystem.STANDARD
    )
    codes = ";".join(Color.parse(style.split()[0]).downgrade(wanted).get_ansi_codes())
    return f"\x1b[{codes}m{text}\x1b[0m"
