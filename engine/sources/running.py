"""What a running statement has found: where it works, and the tables that it has looked at, each once."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ..spark.isolation import Place
    from .source_state import Sources


@dataclass
class Running:
    """A statement that runs: its text, where it works, and what it has found of tables."""

    text: str
    place: Place | None = None
    found: dict[str, DataFrame] = field(default_factory=dict)
    sources: dict[str, Sources] = field(default_factory=dict)
    looked: dict[Hashable, Any] = field(default_factory=dict)
    # By name the files that are read so that Spark counts their bytes; None where nobody asks.
    counted: dict[str, DataFrame] | None = None


# The running statement of each mapping of tables, by the identity of that.
_RUNNING: ContextVar[Mapping[int, Running]] = ContextVar("running statements", default=MappingProxyType({}))


def running_on(tables: object) -> Running | None:
    """The statement that runs on some tables in this thread or task; None between statements."""
    return _RUNNING.get().get(id(tables))


@contextmanager
def statement_on(tables: object, text: str) -> Iterator[None]:
    """Within it the statement of the text runs on the tables."""
    token = _RUNNING.set({**_RUNNING.get(), id(tables): Running(text)})
    try:
        yield
    finally:
        _RUNNING.reset(token)
