"""The words of the dialect, for completion, colours and help: Spark's, ours, methods, settings and their values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from types import MappingProxyType

from ..optimizer.methods import METHODS
from ..optimizer.route import ROUTES
from ..parser.spark_words import FUNCTIONS, KEYWORDS
from ..parser.tokens import OURS
from .settings import BEHAVIORS, SWITCHES, Settings

_EXAMPLES = {
    "error": ("5%", "1%", "10%", "none"),
    "confidence": ("95%", "99%", "90%"),
    "seed": ("1",),
    "rows": ("11",),
    "buckets": ("4096",),
    "size_bytes": ("'64 KB'",),
    "max_groups": ("100",),
    "fold_bytes": ("'8 MB'",),
    "max_bytes": ("'64 MB'", "'256 MB'"),
    "max_exact_seconds": ("3600",),
}


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The words of the dialect.

    Attributes
    ----------
    keywords : tuple of str
        Spark's, in capitals.
    ours : tuple of str
        What SkimQL adds, in capitals.
    functions : tuple of str
        Spark's, in lower case.
    methods : tuple of str
        What may stand behind USING, as a method by name.
    settings : mapping of str to tuple of str
        Names behind ``SET skimql.``, with values that each takes: all of them, or examples.
    """

    keywords: tuple[str, ...]
    ours: tuple[str, ...]
    functions: tuple[str, ...]
    methods: tuple[str, ...]
    settings: Mapping[str, tuple[str, ...]]


@cache
def vocabulary() -> Vocabulary:
    """The words of the dialect that this version knows.

    Examples
    --------
    >>> vocabulary().settings["cache"]
    ('true', 'false')
    """
    known: dict[str, tuple[str, ...]] = {
        **_EXAMPLES,
        "behavior": tuple(f"'{b}'" for b in BEHAVIORS),
        "route": ROUTES,
        **dict.fromkeys(SWITCHES, ("true", "false")),
        "bounds": ("true", "none", "false"),
    }
    return Vocabulary(
        tuple(sorted(KEYWORDS)),
        tuple(sorted(OURS)),
        tuple(sorted(FUNCTIONS)),
        tuple(sorted(m.name for m in METHODS.values() if m.named)),
        MappingProxyType({f.name: known.get(f.name, ()) for f in fields(Settings)}),
    )
