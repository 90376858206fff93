"""Where the sketches of a plan are made: in the JVM, or by Python workers over Arrow; and so their hash family.

Sketches that are multiplied are of one family, so that a plan goes one way as a whole. In the JVM no Python worker is
started and no tuple leaves it, but the hashes (bits of xxhash64) have no proof: the basis of intervals is *measured*.

Left to itself a plan over large tables (the engine sees to that) goes the cheaper way, as measured by
`benchmarks.scale`: in the JVM where every sketch counts tuples by one key (about the cost of ``approx_count_distinct``,
half of that over Arrow or less), over Arrow where there are weights or several keys, whose one grouping in the JVM
costs as much as Arrow or more, and where frequent keys that share a fine bucket make estimates of very skewed keys
worse.
"""

from __future__ import annotations

from dataclasses import replace

from ..sketches.hashing.spark_families import FIELD_BITS, FIELDS
from ..sketches.hashing.xi import WORD_BITS
from ..sketches.joins.count_min import MOST_ROWS
from ..sketches.joins.folding import fine_bits_for, packed_sums
from .combinations import route_fault
from .methods import METHODS
from .plan import Plan, Synopsis

ROUTES = ("auto", "jvm", "arrow")
TABULATION, FOLDED, COUNT_MIN = "tabulation", "folded", "countmin"

MOST_FINE_BITS = 18  # groups of one grouping, which travel to the driver
MOST_SUMS = 80  # of one grouping: Spark compiles no code for more than 100 columns
MOST_WORDS = 1 << 23  # of all sums in all groups together
MOST_TABLE_BYTES = 64 << 20  # of a count-min sketch in each task


def routed(plan: Plan, route: str) -> Plan:
    """The plan with the family of its sketches.

    Parameters
    ----------
    plan : Plan
    route : str
        "arrow"; "jvm": in the JVM or not at all; "auto": the cheaper way.

    Raises
    ------
    UnsupportedQuery
        If the route is "jvm" and the JVM cannot make one of the sketches.
    """
    if route == "arrow":
        return replace(plan, family=TABULATION)
    reason = obstacle(plan)
    if reason is None and (route == "jvm" or _cheap(plan)):
        return replace(plan, family=COUNT_MIN if _counts_only(plan) else FOLDED)
    if reason is not None and route == "jvm":
        raise route_fault(plan.query.sql, reason)
    return replace(plan, family=TABULATION)


def sentence(plan: Plan) -> str:
    """How the plan's sketches are made, for people."""
    if plan.family == TABULATION:
        return "made by Python workers over Arrow; 5-wise independent hashes"
    return f"made in the JVM; hashes: {plan.family}, intervals measured, not proven"


def family_parameters(plan: Plan) -> dict[str, int]:
    """The parameters of the family beside its seed, the same for all sketches of the plan."""
    if plan.family != FOLDED:
        return {}
    return {"fine_bits": fine_bits_for(max((s.buckets for s in plan.synopses if s.attributes), default=1))}


def obstacle(plan: Plan) -> str | None:
    """Why the JVM cannot make the synopses of a plan, or None."""
    if plan.sample is not None:
        return "the plan samples keys"
    if any(s.group is not None for s in plan.synopses):
        return "each group has sketches of its own"
    if plan.partitions:
        return "a domain is partitioned"
    if any(s.distinct for s in plan.synopses):
        return "distinct values are counted"
    other = next((s.method for s in plan.synopses if "jvm" not in METHODS[s.method].routes), None)
    if other is not None:
        return f"{other} is asked for"
    keyed = [s for s in plan.synopses if s.attributes]
    if not keyed or _counts_only(plan):
        return None
    buckets, rows = max(s.buckets for s in keyed), max(s.rows for s in keyed)
    fine_bits = fine_bits_for(buckets)
    if fine_bits > MOST_FINE_BITS:
        return f"{buckets:,} buckets in a row are more than {1 << (MOST_FINE_BITS - 4):,}"
    if buckets & (buckets - 1) and any(len(s.attributes) > 1 for s in keyed):
        return f"a table has several join keys, and {buckets:,} buckets are no power of two"
    for scan in plan.scans:
        synopses = [plan.synopses[i] for i in scan.synopses]
        if sum(_sums(s) for s in synopses) > min(MOST_SUMS, MOST_WORDS >> fine_bits):
            return f"{len(synopses)} sketches of {rows} rows on {scan.table} take too many sums"
        sets = len({s.attributes for s in synopses})
        room = WORD_BITS - (FIELDS - 1) * FIELD_BITS - fine_bits
        if sets > 1 and packed_sums(rows) + set_bits(sets) > room:
            return f"{rows} rows by {sets} keys of {scan.table} at once take more than one hash word"
    return None


def set_bits(sets: int) -> int:
    """Bits that tell `sets` sets of keys apart."""
    return (sets - 1).bit_length()


def _cheap(plan: Plan) -> bool:
    """Whether the JVM surely makes the synopses for less: counts by one key, and totals, which have no keys."""
    return _counts_only(plan) or not any(s.attributes for s in plan.synopses)


def _counts_only(plan: Plan) -> bool:
    """Whether every sketch counts tuples by one key, which Spark's count-min sketch does."""
    keyed = [s for s in plan.synopses if s.attributes]
    return bool(keyed) and len(keyed) == len(plan.synopses) and all(_counts_by_one_key(s) for s in keyed)


def _counts_by_one_key(synopsis: Synopsis) -> bool:
    return (
        len(synopsis.attributes) == 1
        and not synopsis.messages
        and (synopsis.weight.expression is None or synopsis.weight.presence)
        and synopsis.buckets & (synopsis.buckets - 1) == 0
        and synopsis.rows <= MOST_ROWS
        and 16 * synopsis.rows * synopsis.buckets <= MOST_TABLE_BYTES
    )


def _sums(synopsis: Synopsis) -> int:
    counted = (synopsis.weight.expression is None or synopsis.weight.presence) and not synopsis.messages
    return packed_sums(synopsis.rows) if counted else synopsis.rows + 4
