"""What this engine runs beyond aggregates over one join tree, by the names of `Feature`."""

from __future__ import annotations

from ...optimizer.methods import GROUPING

# Features that take synopses of distinct values.
DISTINCT = frozenset({"COUNT(DISTINCT)", "set expression"})

RUNS = frozenset({"expression over aggregates", "bounds in SELECT"}) | GROUPING | DISTINCT
