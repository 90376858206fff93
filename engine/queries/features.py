"""What this engine runs beyond aggregates over one join tree, by the names of `Feature`."""

from __future__ import annotations

from ...parser.join_graph import Query

# Features that take sketches for every group.
GROUPING = frozenset({"GROUP BY", "GROUP BY over several tables", "HAVING", "ORDER BY", "LIMIT", "OFFSET"})

# Features that take synopses of distinct values.
DISTINCT = frozenset({"COUNT(DISTINCT)", "set expression"})

RUNS = frozenset({"expression over aggregates", "bounds in SELECT"}) | GROUPING | DISTINCT


def is_grouped(query: Query) -> bool:
    """Whether the query groups, filters, orders or cuts its result."""
    return any(f.name in GROUPING for f in query.features)
