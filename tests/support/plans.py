"""Several plans carried out as one: each table is read once for all of them."""

from __future__ import annotations

from dataclasses import replace

from skimql.optimizer.plan import Scan


def together(plans):
    """All synopses of several plans in one, a scan for each table."""
    synopses = tuple(dict.fromkeys(s for plan in plans for s in plan.synopses))
    tables = dict.fromkeys(s.table for s in synopses)
    scans = tuple(Scan(t, tuple(i for i, s in enumerate(synopses) if s.table == t)) for t in tables)
    return replace(plans[0], synopses=synopses, scans=scans, edges=(), aggregates=())


def own_of(plan, whole, built):
    """The synopses of one plan among those that were built for all."""
    return tuple(built[whole.synopses.index(s)] for s in plan.synopses)
