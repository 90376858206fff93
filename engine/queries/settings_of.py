"""Settings of one statement: the session's, then OPTIONS, then the clauses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ...parser.statement import ApproximateSelect
from ..settings import BadSetting, Settings


def settings_of(ours: Settings, statement: ApproximateSelect) -> Settings:
    """Settings of a session, with those of a statement's OPTIONS and clauses over them.

    Raises
    ------
    BadSetting
        If an option does not exist, or cannot take its value.
    """
    try:
        settings = ours.with_text(statement.options)
        asked = statement.accuracy
        clauses: Mapping[str, Any] = {
            "error": asked.relative_error,
            "confidence": asked.confidence,
            "behavior": asked.behavior,
            "seed": statement.seed,
            "size_bytes": statement.size_bytes,
        }
        found = replace(settings, **{k: v for k, v in clauses.items() if v is not None})
    except BadSetting as fault:
        span = span_of(statement.clause_spans, "options")
        raise BadSetting(fault.message, fault.code, statement.sql, span, fault.hint) from fault
    return replace(found, error=None) if _asks_otherwise(statement, found) else found


def _asks_otherwise(statement: ApproximateSelect, settings: Settings) -> bool:
    """Whether a statement says by what it is answered, and not how well: the session's error is no measure of it."""
    sized = statement.size_bytes is not None or statement.method is not None or settings.by_hand
    return sized and statement.accuracy.relative_error is None and settings.behavior == "do_nothing"


def span_of(spans: Mapping[str, Any], clause: str) -> tuple[int, int] | None:
    """Where a clause stands in the statement, None where it does not."""
    span = spans.get(clause)
    return (span.start, span.end) if span is not None else None


def places_of(statement: ApproximateSelect) -> dict[str, tuple[int, int]]:
    """Where each clause of a statement stands."""
    return {name: (s.start, s.end) for name, s in statement.clause_spans.items()}
