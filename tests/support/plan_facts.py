"""Facts of analysed plans, to be compared."""

from __future__ import annotations


def told(facts):
    """What the analysed plan of a DataFrame tells, of `PlanFacts`, to be compared."""
    return (
        facts.deterministic,
        facts.chain,
        facts.in_catalog,
        facts.settled,
        facts.leaves,
        facts.is_cached(),
        facts.canonical(),
    )
