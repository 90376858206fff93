"""The sketches of a plan from Arrow tables: the same counters as Spark's scans make, by either route."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from ...errors import DataError
from ...optimizer.operators import SCAN
from ...optimizer.plan import Attribute, Message, Plan, Scan, Weight
from ...optimizer.route import TABULATION, family_parameters
from ...sketches.joins.sparse import SparseFirstSketch
from ..execution.message_limit import DEFAULT_LIMIT_BYTES
from ..execution.partial_aggregate import (
    Feed,
    Partial,
    SketchPlan,
    cell_number,
    feed_batch,
    group_column,
    sketch_plan,
)
from ..execution.scanned import tell
from ..observed import observed
from ..synopses import NOT_FINITE, Built, Sketch, not_finite
from .groups import MemoryGroups
from .relations import Relation, Relations
from .tables import MemoryTables
from .weights import Weights, product

Feeding: TypeAlias = Callable[[pa.RecordBatch, Feed, Mapping[int, Partial]], None]


def build(
    plan: Plan,
    tables: MemoryTables,
    message_bytes: int | None = DEFAULT_LIMIT_BYTES,
    groups: MemoryGroups | None = None,
) -> tuple[Built, ...]:
    """Every sketch of the plan, after the exact messages into it.

    Parameters
    ----------
    plan : Plan
    tables : MemoryTables
    message_bytes : int or None
        Bytes that one message may take; None for any number.
    groups : MemoryGroups, optional
        The groups of a query that the plan tells apart.

    Raises
    ------
    DataError
        If a value cannot be computed, a weight is not finite, or a counter overflows.
    UnsupportedQuery
        If an expression is not known in memory, or an argument of SUM is no number.
    MessageTooLarge
        If a message takes more bytes than it may.
    """
    return build_from(plan, Relations(plan, tables if groups is None else groups.tables, message_bytes))


def build_from(
    plan: Plan,
    relations: Relations,
    times: Mapping[str, str | None] | None = None,
    feeding: Feeding = feed_batch,
) -> tuple[Built, ...]:
    """`build` from the virtual relations of the plan, which know then what the messages took.

    `times`, by scanned table, says how often each tuple counts, negative where it deletes; without it once. `feeding`
    is what adds tuples to sketches.
    """
    parts: dict[int, tuple[Partial, float]] = {}
    for scan in plan.scans:
        with explained(plan.query.sql, scan.table), observed(SCAN, scan.table) as seen:
            own = _scanned(plan, scan, relations, (times or {}).get(scan.table), feeding)
            tell(seen, plan, scan, {i: (part.sketch.nbytes, part.tally) for i, (part, _) in own.items()})
            parts |= own
    found = [parts[i] for i in range(len(plan.synopses))]
    sketches = [part.sketch for part, _ in found]
    if plan.family != TABULATION:
        sketches = _as_the_jvm(plan, sketches)
    return tuple(Built(s, part.tally, scale) for s, (part, scale) in zip(sketches, found, strict=True))


@contextmanager
def explained(sql: str, table: str) -> Iterator[None]:
    """Faults of values as DataError, with the table they are in."""
    try:
        yield
    except OverflowError as fault:
        raise DataError(
            f"a sum over {table} leaves 64 bits",
            "SKIMQL_OVERFLOW",
            sql,
            hint="SUM(CAST(... AS DOUBLE))",
        ) from fault
    except ValueError as fault:
        if NOT_FINITE in str(fault):
            raise not_finite(sql, table, str(fault)) from fault
        raise DataError(f"scan of {table} failed: {fault}", "SKIMQL_SCAN_FAILED", sql) from fault


def _scanned(
    plan: Plan, scan: Scan, relations: Relations, times: str | None, feeding: Feeding
) -> dict[int, tuple[Partial, float]]:
    """The sketches of one table, with the factors of their weights; a pass for each virtual relation."""
    members: dict[tuple[str | None, tuple[Message, ...]], list[int]] = {}
    for i in scan.synopses:
        synopsis = plan.synopses[i]
        key = synopsis.filter, tuple(m.relation for m in synopsis.messages)
        members.setdefault(key, []).append(i)
    parts: dict[int, tuple[Partial, float]] = {}
    for (condition, _), own in members.items():
        relation = Relation(relations.tuples(scan.table, condition))
        relation = relations.joined(relation, [plan.synopses[i].messages for i in own])
        parts |= _fed(plan, own, relation, relations, times, feeding)
    return parts


def _fed(
    plan: Plan,
    own: Sequence[int],
    relation: Relation,
    relations: Relations,
    times: str | None,
    feeding: Feeding,
) -> dict[int, tuple[Partial, float]]:
    """The sketches of one virtual relation."""
    weights: dict[object, Weights] = {}
    signs = [] if times is None else [relations.weights(Weight(times), (), relation)]
    columns: dict[object, pa.Array] = {"one": pa.array(np.ones(relation.tuples.num_rows, np.int64))}
    made: dict[int, tuple[SketchPlan, Weights]] = {}
    fed: dict[tuple[tuple[Attribute, ...], int | None, object], dict[int, list[int]]] = {}
    domains = dict(plan.partitions)
    for i in own:
        synopsis = plan.synopses[i]
        what = synopsis.weight, () if synopsis.distinct else synopsis.messages
        if what not in weights:
            weights[what] = product([relations.weights(*what, relation), *signs])
            if weights[what].values is not None:
                columns[what] = pa.array(weights[what].values)
            if weights[what].slack is not None:
                columns["slack", what] = pa.array(weights[what].slack)
        for attribute in synopsis.attributes:
            if attribute not in columns:
                columns[attribute] = relations.keys(attribute, relation.tuples)
        grouped, number = synopsis.group or (None, cell_number(synopsis, domains))
        if grouped is not None:
            columns["group", grouped] = relation.tuples[group_column(grouped)].combine_chunks()
        size = (synopsis.rows, synopsis.buckets) if grouped is None and not synopsis.cell else None
        fed.setdefault((synopsis.attributes, grouped, size), {}).setdefault(number, []).append(i)
        parameters = family_parameters(plan)
        weighing = weights[what]
        sketch = sketch_plan(synopsis, plan.seed, weighing.dtype, plan.family, **parameters)
        made[i] = sketch, weighing
    names = {what: f"c{n}" for n, what in enumerate(columns)}
    batch = pa.RecordBatch.from_arrays([_flat(c) for c in columns.values()], list(names.values()))
    parts = {i: Partial.empty(sketch) for i, (sketch, _) in made.items()}
    for (attributes, grouped, _), members in fed.items():
        first = [plan.synopses[i] for i in members[0]]
        partitions = tuple(domains.get(a.class_name) for a in attributes) if first[0].cell else ()
        split = grouped is not None or bool(partitions)
        feed = Feed(
            None,
            tuple(names[a] for a in attributes),
            tuple(names.get((s.weight, () if s.distinct else s.messages)) for s in first),
            () if split else tuple(members[0]),
            names["group", grouped] if grouped is not None else None,
            tuple(tuple(members[n]) for n in range(len(members))) if split else (),
            partitions,
            tuple(names.get(("slack", (s.weight, () if s.distinct else s.messages))) for s in first),
        )
        feeding(batch, feed, parts)
    return {i: (part, made[i][1].scale) for i, part in parts.items()}


def _flat(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _as_the_jvm(plan: Plan, sketches: Sequence[Sketch]) -> list[Sketch]:
    """Counters in the place of exact maps, unless all sketches are such maps: a join is exact where all of them are.

    The JVM makes counters first, and maps by a second pass alone.
    """
    keyed = [bool(s.attributes) for s in plan.synopses]
    linear = [s if isinstance(s, SparseFirstSketch) else None for s in sketches]
    if all(s is None or s.exact is not None or not k for s, k in zip(linear, keyed, strict=True)):
        return list(sketches)
    return [
        SparseFirstSketch.from_state(s.spec, s.dense().state(), s.limit_bytes) if s is not None and k else own
        for own, s, k in zip(sketches, linear, keyed, strict=True)
    ]
