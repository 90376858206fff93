"""SkimQL: approximate SQL for joins on Spark, an interval beside every value.

    import skimql

    session = skimql.Session()
    session.table("flights", "flights.parquet")
    session.table("planes", "planes.parquet")
    answer = session.sql("SELECT APPROXIMATE COUNT(*) FROM flights f JOIN planes p ON f.tailnum = p.tailnum")
    answer.value, answer.low, answer.high

Importing the package starts nothing: Spark is loaded when a session first needs it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .engine.extension.catalog_only import register
    from .engine.extension.enable import disable, enable
    from .engine.results.answer import Answer, Message
    from .engine.session import Session
    from .engine.settings import Settings
    from .engine.sources.demo import demo_tables
    from .engine.spark.jobs import Progress as JobProgress
    from .engine.vocabulary import Vocabulary, vocabulary
    from .errors import (
        AccuracyNotReached,
        BudgetExceeded,
        CorruptSketch,
        DataError,
        EnvironmentFault,
        IncompatibleSketches,
        ParseError,
        SkimqlError,
        StreamError,
        UnknownName,
        UnsupportedQuery,
    )
    from .parser.complete import is_complete
    from .parser.tokens import Token, tokens
    from .sketches.intervals.interval import Estimate

__version__ = "0.1.0"

# Public name -> module that defines it (and its name there, if another).
_HOME = {
    "AccuracyNotReached": "errors",
    "Answer": "engine.results.answer",
    "BudgetExceeded": "errors",
    "CorruptSketch": "errors",
    "DataError": "errors",
    "EnvironmentFault": "errors",
    "Estimate": "sketches.intervals.interval",
    "IncompatibleSketches": "errors",
    "JobProgress": "engine.spark.jobs:Progress",
    "Message": "engine.results.answer",
    "ParseError": "errors",
    "Session": "engine.session",
    "Settings": "engine.settings",
    "SkimqlError": "errors",
    "StreamError": "errors",
    "Token": "parser.tokens",
    "UnknownName": "errors",
    "UnsupportedQuery": "errors",
    "Vocabulary": "engine.vocabulary",
    "demo_tables": "engine.sources.demo",
    "disable": "engine.extension.enable",
    "enable": "engine.extension.enable",
    "is_complete": "parser.complete",
    "load_ipython_extension": "cli.notebook",
    "register": "engine.extension.catalog_only",
    "tokens": "parser.tokens",
    "vocabulary": "engine.vocabulary",
}

__all__ = [
    "AccuracyNotReached",
    "Answer",
    "BudgetExceeded",
    "CorruptSketch",
    "DataError",
    "EnvironmentFault",
    "Estimate",
    "IncompatibleSketches",
    "JobProgress",
    "Message",
    "ParseError",
    "Session",
    "Settings",
    "SkimqlError",
    "StreamError",
    "Token",
    "UnknownName",
    "UnsupportedQuery",
    "Vocabulary",
    "__version__",
    "demo_tables",
    "disable",
    "enable",
    "is_complete",
    "load_ipython_extension",
    "register",
    "tokens",
    "vocabulary",
]


def __getattr__(name: str) -> Any:
    """Load a public name from its module on first use, so that ``import skimql`` starts no Spark."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module, _, own_name = _HOME[name].partition(":")
    value = getattr(import_module(f".{module}", __name__), own_name or name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
