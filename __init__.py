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
    from .engine.answer import Answer
    from .engine.session import Session
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
    from .sketches.interval import Estimate

__version__ = "0.1.0"

_HOME = {
    "Answer": ".engine.answer",
    "Session": ".engine.session",
    "Estimate": ".sketches.interval",
    "AccuracyNotReached": ".errors",
    "BudgetExceeded": ".errors",
    "CorruptSketch": ".errors",
    "DataError": ".errors",
    "EnvironmentFault": ".errors",
    "IncompatibleSketches": ".errors",
    "ParseError": ".errors",
    "SkimqlError": ".errors",
    "StreamError": ".errors",
    "UnknownName": ".errors",
    "UnsupportedQuery": ".errors",
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
    "ParseError",
    "Session",
    "SkimqlError",
    "StreamError",
    "UnknownName",
    "UnsupportedQuery",
    "__version__",
]


def __getattr__(name: str) -> Any:
    """Load a public name from its module on first use, so that ``import skimql`` starts no Spark."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_HOME[name], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
