"""What a scan tells of the synopses that it has made."""

from __future__ import annotations

from collections.abc import Mapping

from ...optimizer.operator_tree import relations_in
from ...optimizer.operators import RELATION
from ...optimizer.plan import Plan, Scan
from ..observed import Observation
from ..synopses import Tally


def tell(seen: Observation, plan: Plan, scan: Scan, made: Mapping[int, tuple[int, Tally]]) -> None:
    """Tell the tuples that are in the synopses of a scan, each counted once, and their bytes.

    Parameters
    ----------
    seen : Observation
        Of the scan; where it reads several virtual relations each becomes an input of it.
    plan : Plan
    scan : Scan
    made : mapping of int to (int, Tally)
        Bytes and tally of each synopsis, by its number in the plan.
    """
    relations = relations_in(plan, scan)
    for name, own in relations.items():
        nbytes = sum(made[i][0] for i in own)
        # Synopses of the groups, or the cells, of one relation share its tuples; those of several weights do not.
        tuples: dict[object, int] = {}
        for i in own:
            what = plan.synopses[i].attributes, plan.synopses[i].weight, plan.synopses[i].method
            tuples[what] = tuples.get(what, 0) + made[i][1].tuples
        rows = max(tuples.values(), default=0)
        if len(relations) == 1:
            seen.rows, seen.bytes_held = rows, nbytes
        else:
            seen.inputs.append(Observation(RELATION, name, rows, nbytes))
