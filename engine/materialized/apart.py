"""Synopses of each table by itself for one query: drafted as the catalog keeps them, built, joined, perhaps kept."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ...errors import BudgetExceeded, printable
from ...optimizer.apart import TableSynopsis
from ...optimizer.operators import SCAN
from ...optimizer.physical import ApartJoin
from ...parser.join_graph import Query
from ..catalog.file import StoredSketch
from ..catalog.form import Groups, Head, Lineage
from ..catalog.kinds.kind import Size
from ..catalog.kinds.registry import KINDS
from ..observed import observed
from ..results.estimator import Joined
from ..settings import Settings
from ..sources.environment import Circumstances
from .answer import GroupKey, MaterializedAnswer
from .answering import best, materialized_answers
from .appending import differences
from .building import families_of
from .definition import blank, stored, unstable
from .lookup import without_count
from .matching import JOINED, Asked
from .query_cache import QueryCache

if TYPE_CHECKING:
    from ..context import Context
    from ..synopses import Built

# How a backend builds the synopses of a head: the groups, and for each of them one for each weight.
Builder = Callable[[Head, "np.typing.NDArray[np.int64] | None"], "tuple[Groups | None, tuple[Built, ...]]"]

# Least buckets, keys or entries of a synopsis that is made smaller.
LEAST = 2
SHRINK = 0.999


@dataclass(frozen=True)
class Apart:
    """What one query builds of each of its tables.

    Attributes
    ----------
    query : Query
    attempt : ApartJoin
    settings : Settings
    context : Context or None
        None in memory, where there is no catalog.
    """

    query: Query
    attempt: ApartJoin
    settings: Settings
    context: Context | None

    def answer(self, build: Builder) -> tuple[MaterializedAnswer, Mapping[GroupKey, Joined], tuple[str, ...]]:
        """How the query is answered by what is built, what answers each group, and notes."""
        made: list[StoredSketch] = []
        kept: list[StoredSketch] = []
        notes: list[str] = []
        for synopsis in self.attempt.synopses:
            head, why = self._head(synopsis, [s.head.name for s in made])
            dense = np.array(synopsis.dense, np.int64) if synopsis.dense else None
            again = None if why or not head.lineage else self._again(head, dense)
            if again is not None:
                made.append(again)
                continue
            with observed(SCAN, synopsis.table) as seen:
                groups, built = build(head, dense)
                zoned = head.zoned or (groups is not None and "timestamp" in groups.types)
                sketch = stored(replace(head, groups=groups, zoned=zoned), built)
                seen.rows, seen.bytes_held = float(sketch.head.tuples), float(sketch.head.nbytes)
            made.append(sketch)
            if why:
                notes.append(f"the sketch of {synopsis.table} is not kept: {why}")
            elif self.attempt.keeps:
                kept.append(sketch)
        if kept and self.context is not None:
            QueryCache(self.context).put(kept)
        answer, joined = self._joined(made)
        return answer, joined, tuple(map(printable, notes))

    def _again(self, head: Head, dense: np.typing.NDArray[np.int64] | None) -> StoredSketch | None:
        """A kept sketch that is just what would be built, of the same state of its table."""
        assert self.context is not None, "what is kept is in a catalog"
        if not all((e.files or e.snapshot) and (e.state is None or e.state.complete) for e in head.lineage):
            return None  # nobody can tell whether its table has changed
        for other in self.context.catalog.heads():
            same = other.table.lower() == head.table.lower() and not other.group and not other.imported_from
            same = same and bool(other.limit_bytes) == bool(head.limit_bytes)
            if same and _read(other) == _read(head) and not differences(head, other):
                sketch = self.context.catalog.load(other.name, self.settings.max_bytes)
                known = getattr(sketch.built[0].sketch, "dense_keys", None) if sketch.built else None
                if known is None or np.array_equal(known, np.empty(0, np.int64) if dense is None else dense):
                    return sketch
        return None

    def _joined(self, made: Sequence[StoredSketch]) -> tuple[MaterializedAnswer, dict[GroupKey, Joined]]:
        sketches = {s.head.name: s for s in made}
        heads = [s.head for s in made]
        now = Circumstances(heads[0].ansi, heads[0].time_zone, heads[0].settings)
        asked = Asked(method="sample_sketch" if self.attempt.method == "sample_sketch" else None)
        query = without_count(self.query)
        found = materialized_answers(query, heads, asked, now)
        method = "hash" if self.attempt.method in JOINED else self.attempt.method
        own = [f for f in found if f.method == method or self.query.counts_distinct]
        taken = best(own, sketches.__getitem__, self.settings.confidence)
        assert taken is not None, f"what was built for {self.attempt.method} answers"
        return taken

    def _head(self, synopsis: TableSynopsis, others: Sequence[str]) -> tuple[Head, str]:
        """The head of what is built, and why it is not kept."""
        seed = self.attempt.plan.seed
        cache = QueryCache(self.context) if self.attempt.keeps and self.context is not None else None
        name = f"{len(others)}"
        if cache is not None:
            name = cache.free_name(synopsis.table, synopsis.attributes, others)
        head = blank(
            name,
            synopsis.table,
            synopsis.filter,
            synopsis.attributes,
            synopsis.weights,
            method=synopsis.method,
            seed=seed,
            rows=synopsis.rows,
            buckets=synopsis.buckets,
            sparse=synopsis.sparse,
            families=families_of(seed, (a.class_name for a in synopsis.attributes)),
            parameters=synopsis.parameters,
            groups=Groups(synopsis.groups, (), (), ()) if synopsis.groups else None,
            made_by="cache",
        )
        if cache is None or self.context is None:
            return head, ""
        expressions = (
            synopsis.filter,
            *(w.expression for w in synopsis.weights),
            *(k for a in synopsis.attributes for k in a.keys),
            *synopsis.groups,
        )
        changing = unstable(expressions, self.context.environment.own_functions)
        if changing is not None:
            return head, f"{changing} has another value tomorrow"
        found = cache.of_table(head, self.query.sql)
        return (head, "its keys are of types that cannot be kept") if found is None else (found, "")


def fitted(
    synopses: Sequence[TableSynopsis],
    settings: Settings,
    groups: Callable[[TableSynopsis], int],
    sql: str,
) -> tuple[TableSynopsis, ...]:
    """The synopses with all sizes of their kinds, within the asked bytes together.

    Parameters
    ----------
    synopses : sequence of TableSynopsis
    settings : Settings
    groups : callable
        How many groups each of them has.
    sql : str

    Raises
    ------
    BudgetExceeded
        If they may take more than `max_bytes`, or fit in no way.
    """
    sized = [replace(s, parameters=s.parameters or _defaults(s)) for s in synopses]
    size = settings.size_bytes
    samples = any(KINDS[s.method].joint for s in sized)

    def fixed(synopsis: TableSynopsis) -> bool:
        # Beside samples a sketch may be an exact map that just fits; with dense keys it is planned as none.
        return samples and not KINDS[synopsis.method].joint and not synopsis.dense

    while size is not None and (needed := bytes_of(sized, groups)) > size:
        # No smaller than they must be: what is left out costs accuracy.
        shrinking = bytes_of([s for s in sized if not fixed(s)], groups)
        share = min(SHRINK, 1.0 - (needed - size) / max(shrinking, needed - size + 1))
        smaller = [s if fixed(s) else _smaller(s, share) for s in sized]
        if smaller == sized:
            raise BudgetExceeded(
                f"{size:,} bytes are too few: the synopses of this query take {needed:,} at the least",
                sql=sql,
                hint=f"SIZE {needed} or more",
            )
        sized = smaller
    needed = bytes_of(sized, groups)
    if needed > settings.max_bytes:
        raise BudgetExceeded(
            f"the synopses of this query may take {needed / (1 << 20):,.0f} MB, more than skimql.max_bytes = "
            f"{settings.max_bytes / (1 << 20):,.0f} MB",
            "SKIMQL_MAX_BYTES",
            sql,
            hint="fewer buckets or groups, SIZE, or a larger skimql.max_bytes",
        )
    return tuple(sized)


def bytes_of(synopses: Sequence[TableSynopsis], groups: Callable[[TableSynopsis], int]) -> int:
    """The most bytes that synopses take together, but for the entries of dense keys."""
    found = 0
    for synopsis in synopses:
        kind, weights = KINDS[synopsis.method], len(synopsis.weights)
        families = families_of(0, (a.class_name for a in synopsis.attributes))
        columns, each = (weights, 1) if kind.joint else (1, weights)
        size = Size(families, synopsis.rows, synopsis.buckets, "int64", columns, 0, synopsis.parameters)
        found += groups(synopsis) * each * kind.most_bytes(size)
    return found


def _read(head: Head) -> list[Lineage]:
    """What a sketch has read, whenever that was."""
    return [replace(e, at="") for e in head.lineage]


def _defaults(synopsis: TableSynopsis) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(KINDS[synopsis.method].defaults().items()))


def _smaller(synopsis: TableSynopsis, share: float) -> TableSynopsis:
    """One of fewer buckets, and where it finds its dense keys itself of smaller levels."""
    if not synopsis.attributes:
        return synopsis
    sizes = dict(synopsis.parameters)
    if "level_buckets" in sizes:
        sizes["level_buckets"] = max(math.floor(sizes["level_buckets"] * share), LEAST)
    buckets = max(math.floor(synopsis.buckets * share), LEAST)
    return replace(synopsis, buckets=buckets, parameters=tuple(sorted(sizes.items())))
