"""The product's own ways to an answer on Arrow tables, past the gates that keep small tables from being sampled.

Gates only: which sample, which size and what follows it is the planner's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from skimql import Settings
from skimql.engine.execution.groups import Groups
from skimql.engine.memory_backend.expressions import passing
from skimql.engine.memory_backend.keys import key_values
from skimql.engine.memory_backend.run import MemoryRun
from skimql.engine.memory_backend.summed import PROBE, summed_values
from skimql.engine.memory_backend.tables import MemoryTables
from skimql.engine.queries.adaptive import AdaptiveRun
from skimql.engine.queries.footers import Footers
from skimql.engine.queries.planner import Planner
from skimql.engine.queries.request import Request
from skimql.engine.results.answer import Answer
from skimql.engine.results.rows import Estimated
from skimql.engine.sources.joint_filters import TUPLES, Filtered, filters_together
from skimql.engine.sources.ordered_keys import KeyCounts, key_counts
from skimql.engine.sources.selectivity import Evaluate
from skimql.optimizer.candidates.candidate import Choice
from skimql.optimizer.candidates.first_sample import Size, Together, sampled_class
from skimql.optimizer.candidates.tuple_draws import TupleDraws
from skimql.optimizer.candidates.value_draws import Summed, value_draws
from skimql.optimizer.fold import class_attribute
from skimql.optimizer.messages import JoinClass, tree_of
from skimql.optimizer.objective import Objective
from skimql.optimizer.physical import Attempt, ExactRun, PhysicalPlan, SampleJoin, SketchJoin
from skimql.optimizer.prediction.first_class import SeenKeys
from skimql.optimizer.prediction.relation import RelationStatistics

from .known import KnownBackend, KnownTables

# As a glance at files: the first tuples of some row groups, about one in sixty of a large table.
GLANCES, GLANCED = 4, 64
# Files would have so many row groups.
ROW_GROUPS = 8
# As a pilot of 2^17 tuples sees of a table of two millions.
PILOT_SHARE = 1 / 16
# Tuples of the table that the largest one of a class stands for.
STANDS_FOR = 1e6
# Error for which a first sample is taken at last, where none would be for the asked one.
MOST_ASKED = 0.95
# Methods that small tables would always be answered by.
GATES = ("exact", "exact_run")


def _seeded(attempt: Any, seed: int) -> Any:
    """An attempt with another seed, which nothing else of its plan depends on."""
    plan = getattr(attempt, "plan", None)
    return attempt if plan is None else replace(attempt, plan=replace(plan, seed=seed))


def _passing(condition: str, tuples: pa.Table) -> pa.Array:
    return passing(condition, tuples, "UTC")


class MemoryFooters(Footers):
    """What Parquet files of the tables would tell."""

    @property
    def large(self) -> bool:
        """Taken to be, whatever the size."""
        return True

    @cached_property
    def tuples(self) -> tuple[float | None, ...]:
        """See `Footers.tuples`."""
        return tuple(float(self._table(v.table).num_rows) for v in self.query.graph.vertices)

    @cached_property
    def nbytes(self) -> tuple[float | None, ...]:
        """See `Footers.nbytes`."""
        return (None,) * len(self.tuples)

    @cached_property
    def sizes(self) -> tuple[Size, ...]:
        """See `Footers.sizes`."""
        vertices = self.query.graph.vertices
        return tuple(
            Size(t or 0.0, self._share(v.table, v.filter)) for v, t in zip(vertices, self.tuples, strict=True)
        )

    def _probe(self, name: str, least: int = 64) -> pa.Table:
        table = self._table(name)
        each = table.num_rows // GLANCES
        looked = min(max(each // GLANCED, least), each)
        return pa.concat_tables([table.slice(n * each, looked) for n in range(GLANCES)])

    @property
    def summed(self) -> tuple[Summed, ...]:
        """Nothing: that the keys of large values are read again is too dear for small tables, as all is."""
        return ()

    def summed_by(self, *, jobs: bool) -> tuple[Summed, ...]:
        """See `Footers.summed_by`."""
        return self.summed

    @cached_property
    def glanced(self) -> tuple[Summed, ...]:
        """See `Footers.summed`."""
        probe = max(int(max(t or 0.0 for t in self.tuples)) // GLANCED, 64 * GLANCES)
        return summed_values(self.query, self.tables_in_memory, probe)

    def _groups_of(self, vertex: int) -> int | None:
        relation = self.query.graph.vertices[vertex]
        seen = self._probe(relation.table)
        kept = None if relation.filter is None else passing(relation.filter, seen, "UTC")
        names = [g.expression.strip("`") for g in self.query.groups if g.vertex == vertex]
        if not set(names) <= set(seen.column_names):
            return None
        return (seen if kept is None else seen.filter(kept)).group_by(names).aggregate([]).num_rows or None

    @cached_property
    def keys_seen(self) -> dict[tuple[int, int], SeenKeys]:
        """See `Footers.keys_seen`; of so many tuples as have as many keys in common as those of a large table."""
        most = max(t or 0.0 for t in self.tuples)
        looked, found = int(PROBE * min(1.0, math.sqrt(most / STANDS_FOR))) // GLANCES, {}
        for number, joined in enumerate(tree_of(self.query.graph).classes):
            for v in joined.vertices:
                some = self._probe(self.query.graph.vertices[v].table, looked)
                keys = key_values(class_attribute(self.query.graph, joined, v), some)
                own = SeenKeys.of(keys.drop_null().to_numpy(), len(keys))
                condition = self.query.graph.vertices[v].filter
                if condition is not None and not own.ordered:
                    kept = keys.filter(passing(condition, some, "UTC")).drop_null()
                    own = own.behind_filter(kept.to_numpy())
                found[v, number] = own
        return found

    def _is_read(self, vertex: int, column: str) -> bool:
        return True

    def key_counts(self, vertex: int) -> KeyCounts | None:
        """See `Footers.key_counts`."""
        column = self._key_column(vertex)
        if vertex not in self.countable or column is None:
            return None
        keys = self._table(self.query.graph.vertices[vertex].table)[column].drop_null().to_numpy()
        return key_counts(iter([np.unique(keys.astype(np.int64), return_counts=True)]))

    @property
    def least_seconds(self) -> float:
        """See `Footers.least_seconds`: what is asked stands for a large table."""
        return math.inf

    def _paths(self, table: str) -> Sequence[str]:
        return (table,)

    def _filters_together(self, tables: Sequence[Filtered], evaluate: Evaluate) -> Together | None:
        most = max(t or 0.0 for t in self.tuples)
        looked = max(int(TUPLES * min(1.0, math.sqrt(most / STANDS_FOR))), 1)
        with TemporaryDirectory() as folder:
            written = []
            for number, one in enumerate(tables):
                table, path = self._table(one.paths[0]), f"{folder}/{number}.parquet"
                pq.write_table(table, path, row_group_size=max(-(-table.num_rows // ROW_GROUPS), 1))
                written.append(replace(one, paths=(path,)))
            return filters_together(written, evaluate, looked)

    def _share(self, name: str, condition: str | None) -> float:
        seen = self._probe(name)
        kept = None if condition is None else passing(condition, seen, "UTC")
        return 1.0 if kept is None else seen.filter(kept).num_rows / max(seen.num_rows, 1)

    def _distinct(self, joined: JoinClass) -> float:
        edges = [self.query.graph.edges[e] for e in joined.edges]
        keys = {(e.left, e.left_keys) for e in edges} | {(e.right, e.right_keys) for e in edges}
        return min(math.prod(self._range(v, k.strip("`")) for k in own) for v, own in keys)

    def _seen(self, joined: JoinClass) -> float:
        return math.inf

    def _range(self, vertex: int, column: str) -> float:
        table = self._table(self.query.graph.vertices[vertex].table)
        if column not in table.column_names or not pa.types.is_integer(table[column].type):
            return math.inf
        ends = pc.min_max(table[column]).as_py()
        return math.inf if ends["min"] is None else float(ends["max"] - ends["min"] + 1)

    def _table(self, name: str) -> pa.Table:
        tables: MemoryTables = self.tables_in_memory
        return tables.table(name)

    @property
    def tables_in_memory(self) -> MemoryTables:
        """Where the tables are."""
        found: Any = self.tables
        return found if isinstance(found, MemoryTables) else MemoryTables({})


@dataclass(frozen=True)
class FirstSample(Planner):
    """Plans as on large files: a sample before anything else is known, enlarged, or the exact run."""

    @cached_property
    def footers(self) -> Footers | None:
        """Those that files of the tables would have."""
        backend: Any = self.backend()
        return backend.once(
            ("f", self.query.sql), lambda: MemoryFooters(None, backend.tables, self.query, _passing)
        )  # type: ignore[arg-type]

    @property
    def _jobs_count(self) -> bool:
        return False

    def first_summed(self, *, jobs: bool) -> Sequence[Summed]:
        """See `Planner.first_summed`."""
        return self.footers.glanced if isinstance(self.footers, MemoryFooters) else ()

    def _first_sample(self, *, jobs: bool) -> SampleJoin | ExactRun | None:
        backend: Any = self.backend()
        found = backend.once(("p", self.query.sql, jobs), lambda: self._planned(jobs=jobs))
        return _seeded(found, self.settings.seed)

    def _planned(self, *, jobs: bool) -> SampleJoin | ExactRun | None:
        tuples = max(t or 0.0 for t in self.footers.tuples) if self.footers else 0.0
        found, asked = super()._first_sample(jobs=jobs), self.settings.error or 0.0
        # The sample that would be taken if less were asked; it is held against what is asked.
        while not isinstance(found, SampleJoin) and asked < MOST_ASKED:
            asked = min(2.0 * asked, MOST_ASKED)
            less = replace(self, settings=replace(self.settings, error=asked))
            found = super(FirstSample, less)._first_sample(jobs=jobs)
        return self._as_large(found, tuples) if isinstance(found, SampleJoin) else found

    def _as_large(self, attempt: SampleJoin, tuples: float) -> SampleJoin:
        """The sample with as few tuples looked at by themselves as show the same of heavy keys in a large table.

        A key that makes a given share of a join has tuples as the root of the table's: so have those looked at to be.
        What is drawn for its value is planned for these.
        """
        sample, footers = attempt.plan.sample, self.footers
        if sample is None or not sample.row_rates or not isinstance(footers, MemoryFooters):
            return attempt
        less = min(1.0, math.sqrt(tuples / STANDS_FOR))
        rates = tuple(less * r for r in sample.row_rates)
        graph = self.query.graph
        joined = sampled_class(graph, [s.tuples for s in footers.sizes])
        members = tree_of(graph).classes[joined].vertices
        own = [footers.sizes[v].filtered for v in members]
        left = max(footers.sizes[v].tuples for v in members) * math.prod(s.share for s in footers.sizes)
        left /= math.prod(footers.groups.values())
        drawn = sum(r * s for r, s in zip(rates, own, strict=True))
        draws = TupleDraws(rates, sample.hits, drawn, (math.inf,) * len(rates))
        values = value_draws(
            footers.glanced, members, own, left, self.settings.error or 1.0, sample.rate, draws
        )
        looked_at = replace(sample, row_rates=rates, value_draws=tuple(d for _, d in values))
        return self.foreseen(replace(attempt, plan=replace(attempt.plan, sample=looked_at)))


@dataclass(frozen=True)
class GivenPlan(FirstSample):
    """Begins with what another backend has planned: a sample, or sketches."""

    given: SampleJoin | SketchJoin | None = None

    def anew(self, groups: Callable[[], Groups] | None) -> PhysicalPlan:
        """See `Planner.anew`."""
        return super().anew(groups) if self.given is None else self._of(self.given)


@dataclass(frozen=True)
class WithoutExact(Request):
    """Asks for what no exact way gives, which small tables would always go."""

    @property
    def may_run(self) -> bool:
        """Never: what misses is shown."""
        return False

    def objective(self, fold_bytes: int, groups: Mapping[int, int]) -> Objective:
        """See `Request.objective`."""
        found = super().objective(fold_bytes, groups)
        return replace(found, methods=tuple(m for m in found.methods if m not in GATES))


@dataclass(frozen=True)
class Planned(Planner):
    """Plans by statistics, without the exact ways."""

    @cached_property
    def request(self) -> Request:
        """See `Planner.request`."""
        return WithoutExact(self.select, self.query, self.settings, self.counts_rows)

    def anew(self, groups: Callable[[], Groups] | None) -> PhysicalPlan:
        """See `Planner.anew`."""
        backend: Any = self.backend()
        key = ("n", self.query.sql, self.settings.max_groups, groups is None)
        found = backend.once(key, lambda: super(Planned, self).anew(groups))
        return replace(found, attempt=_seeded(found.attempt, self.settings.seed))

    def _choice(
        self, statistics: tuple[RelationStatistics, ...], fold_bytes: int, groups: dict[int, int]
    ) -> Choice:
        backend: Any = self.backend()
        key = ("c", self.query.sql, fold_bytes, tuple(groups.items()))
        return backend.once(key, lambda: super(Planned, self)._choice(statistics, fold_bytes, groups))

    def _attempt(
        self, choice: Choice, statistics: Any, fold_bytes: int, groups: dict[int, int], *, jobs: bool = True
    ) -> Attempt:
        backend: Any = self.backend()
        key = ("a", self.query.sql, fold_bytes, tuple(groups.items()), jobs)
        made = super()._attempt
        found = backend.once(key, lambda: made(choice, statistics, fold_bytes, groups, jobs=jobs))
        return _seeded(found, self.settings.seed)


class SampleRun(AdaptiveRun):
    """A run that shows its last sample, where the product would go on to an exact way."""

    def _following(self, attempt: Attempt, estimated: Estimated | None, target: float) -> Attempt | None:
        found = super()._following(attempt, estimated, target)
        return found if isinstance(found, SampleJoin) and found.enlarges else None


@dataclass(frozen=True)
class Route:
    """A way to an answer.

    Attributes
    ----------
    name : str
    clause : str
        What stands behind ERROR WITHIN.
    planner : type
    aggregates, errors : tuple
        What is asked by it.
    kinds : tuple of str
        Of the classes that are; empty: all.
    run : type
        What goes on after an attempt that misses.
    """

    name: str
    clause: str
    planner: type[Planner]
    aggregates: tuple[str, ...] = ("COUNT", "SUM", "AVG")
    errors: tuple[float, ...] = (0.05,)
    kinds: tuple[str, ...] = ()
    run: type[AdaptiveRun] = AdaptiveRun

    @property
    def settings(self) -> dict[str, Any]:
        """Those of the session: no exact messages where statistics tell that they are small."""
        return {} if self.planner is FirstSample else {"fold_bytes": 0}


ALL = ("COUNT", "SUM", "AVG", "grouped")
ERRORS = (0.01, 0.05, 0.20)
# Few counters, of which estimates are far from normal.
FEW = ("self-join", "skew", "ordinary")

ROUTES: Mapping[str, Route] = {
    r.name: r
    for r in (
        Route("first", "", FirstSample, ALL, ERRORS),
        Route("sample", "", FirstSample, ALL, ERRORS, run=SampleRun),
        Route("distinct", "", Planned, ("COUNT(DISTINCT)", "grouped DISTINCT"), ERRORS),
        Route("planned", "", Planned, ALL, ERRORS),
        Route("two_level", "USING two_level", Planned),
        Route("hash", "USING convolution", Planned, errors=(0.05, 0.20)),
        Route("sized", "SIZE 16 KB", Planned),
        Route(
            "skimmed",
            "USING skimmed",
            Planned,
            ("COUNT", "SUM"),
            errors=(0.05, 0.20),
            kinds=("skew", "self-join"),
        ),
        Route(
            "join_distinct",
            "USING join_distinct OPTIONS (buckets = 2048)",
            Planned,
            ("COUNT(DISTINCT)",),
            kinds=("hubs", "keys"),
        ),
        Route("agms 31 x 2", "USING agms OPTIONS (rows = 31, buckets = 2)", Planned, ("COUNT",), kinds=FEW),
        Route(
            "agms 101 x 16", "USING agms OPTIONS (rows = 101, buckets = 16)", Planned, ("COUNT",), kinds=FEW
        ),
        Route(
            "hash 1001 x 64",
            "USING hash OPTIONS (rows = 1001, buckets = 64)",
            Planned,
            ("COUNT",),
            kinds=("self-join",),
        ),
    )
}


class Asked:
    """One query by one route on one draw of the data, asked for many seeds."""

    def __init__(
        self, backend: KnownBackend, select: str, error: float, route: Route, most_groups: int
    ) -> None:
        self.sql = f"{select} ERROR WITHIN {100 * error:g}% {route.clause}".rstrip()
        self.route, self.backend = route, backend
        self.run = MemoryRun.of(self.sql, backend, Settings(max_groups=most_groups, **route.settings))

    def answer(self, seed: int) -> Answer:
        """What the product gives for a seed."""
        run = replace(self.run, settings=replace(self.run.settings, seed=seed))
        planner = self.route.planner(None, lambda: self.backend, run.select, run.query, run.settings)
        return self.route.run(planner, lambda: self.backend, run.exact).answer()

    def answer_from(self, given: SampleJoin | SketchJoin) -> Answer:
        """What the product gives that begins with a given plan, of its seed."""
        run = replace(self.run, settings=replace(self.run.settings, seed=given.plan.seed))
        planner = GivenPlan(None, lambda: self.backend, run.select, run.query, run.settings, given=given)
        return AdaptiveRun(planner, lambda: self.backend, run.exact).answer()

    def plan(self) -> PhysicalPlan:
        """How it is planned."""
        planner = self.route.planner(
            None, lambda: self.backend, self.run.select, self.run.query, self.run.settings
        )
        return planner.plan(lambda: self.backend.groups(self.run.query, self.run.settings.max_groups))


def backend_of(tables: Mapping[str, pa.Table]) -> KnownBackend:
    """A backend with the pilot that large tables have."""
    most = max(t.num_rows for t in tables.values())
    return KnownBackend(KnownTables(tables), max(1000, int(PILOT_SHARE * most)))
