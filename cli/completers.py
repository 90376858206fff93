"""What the completion of the user's own shell offers for the arguments of the command."""

from __future__ import annotations


def files(incomplete: str) -> list[str]:
    """Files that begin so, behind ``NAME=`` too."""
    from .shell import names

    name, equals, path = incomplete.partition("=")
    return [f"{name}={f}" for f in names.files(path)] if equals else names.files(incomplete)


def plan_formats(incomplete: str) -> list[str]:
    """Formats of EXPLAIN."""
    return [f for f in ("text", "json", "mermaid", "svg") if f.startswith(incomplete)]


def formats(incomplete: str) -> list[str]:
    """Formats of results."""
    from .formats import FORMATS

    return [f for f in FORMATS if f.startswith(incomplete)]


def settings_of_queries(incomplete: str) -> list[str]:
    """``NAME=``, and behind it the values."""
    from .. import vocabulary

    name, equals, _ = incomplete.partition("=")
    known = vocabulary().settings
    if equals:
        return [
            f"{name}={value}" for value in known.get(name, ()) if f"{name}={value}".startswith(incomplete)
        ]
    return [f"{n}=" for n in known if n.startswith(incomplete)]
