"""What a catalog keeps of a workload beside its sketches: plans, checked, and what they were made of."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

from . import checks

_MOST = 1 << 16  # vertices, edges and positions


def made_of(checksums: Iterable[str]) -> str:
    """One checksum of the files of a workload's sketches, in their order."""
    return hashlib.sha256("\n".join(checksums).encode()).hexdigest()


def check_plans(value: Any, sketches: int) -> Any:
    """The plans of a workload of so many sketches, as `standing.workload_json` writes them; ValueError otherwise."""
    plans = checks.mapping(value, "plans")
    checks.text(plans["stages"], "stages")
    checks.optional(plans.get("gathered_at"), lambda v: checks.number(v, 0, "gathered_at"))
    for found in checks.items(plans["queries"], "queries"):
        query = checks.mapping(found, "a query")
        checks.text(query["question"], "question")
        for edge in checks.items(query["edges"], "edges"):
            *ends, name = checks.row(edge, 5, "an edge")
            for end in ends:
                checks.integer(end, 0, _MOST, "an end of an edge")
            checks.text(name, "a join class")
        for aggregate in checks.items(query["aggregates"], "aggregates"):
            function, name, total, presence = checks.row(aggregate, 4, "an aggregate")
            checks.text(function, "a function")
            checks.text(name, "a name")
            for terms in (total, presence):
                _check_terms(terms, sketches)
    return plans


def _check_terms(value: Any, sketches: int) -> None:
    for term in checks.items(value, "terms"):
        coefficient, numbers = checks.row(term, 2, "a term")
        checks.number(coefficient, -1e308, "a coefficient")
        for number in checks.items(numbers, "sketches of a term"):
            checks.integer(number, 0, sketches - 1, "the number of a sketch")
