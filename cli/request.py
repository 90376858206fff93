"""A command line, checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Request:
    """What a command line asks for.

    Attributes
    ----------
    texts : tuple of str
        SQL, in order.
    output : str
        Format of the results.
    tables : tuple of (str, str)
        Names and paths.
    conf : mapping of str to str
        Settings of Spark.
    output_file : str or None
        Where results go, if not to stdout.
    first : tuple of str
        Statements that are run first; what they give is not shown.
    """

    texts: tuple[str, ...]
    output: str
    tables: tuple[tuple[str, str], ...]
    catalog: str | None
    demo: bool
    compare: bool
    settings: Mapping[str, str]
    keep_going: bool
    progress: bool
    quiet: bool
    conf: Mapping[str, str] = field(default_factory=dict)
    timing: bool = False
    output_file: str | None = None
    first: tuple[str, ...] = ()
