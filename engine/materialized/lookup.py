"""Queries and the catalog: what is answered from kept sketches, what is built beside them, and what `cache` keeps."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ...errors import UnsupportedQuery, printable
from ...optimizer.methods import CACHED
from ...optimizer.operators import LOAD
from ...optimizer.physical import MaterializedJoin
from ...optimizer.plan import Plan, Synopsis, Weight
from ...parser.join_graph import Query
from ...parser.statement import ApproximateSelect
from ..catalog.catalog import Catalog
from ..catalog.file import StoredSketch
from ..catalog.form import Head, Measure
from ..catalog.manifest import StoredWorkload
from ..observed import observed
from ..results.estimator import Joined, SketchJoin
from ..settings import Settings
from ..synopses import Built, Tally
from .answering import GroupKey, MaterializedAnswer, best, materialized_answers
from .definition import now, stored, typed, unstable
from .lineage import table_lineage
from .matching import Asked, Reuse, reuse
from .staleness import other_source, stale_note

if TYPE_CHECKING:
    from ..context import Context


# What is multiplied vertex by vertex, and so may be built beside what is kept.
LINEAR = ("hash", "convolution", "total")


@dataclass(frozen=True, slots=True)
class Supply:
    """The synopses of a query: their plan, where they come from, and how long building took.

    `stale` says that a table has changed since some were made. `joined` is what answers, where that is not linear
    sketches that are multiplied.
    """

    plan: Plan
    built: tuple[Built, ...]
    notes: tuple[str, ...] = ()
    build_seconds: float = 0.0
    stale: bool = False
    joined: Joined | None = None


@dataclass(frozen=True, slots=True)
class GroupedSupply:
    """What kept sketches know of each group of a query: how it is answered, by the values of the group."""

    plan: Plan
    joined: Mapping[GroupKey, Joined]
    notes: tuple[str, ...]
    stale: bool


@dataclass
class MaterializedLookup:
    """Looks into the catalog of a session for its queries."""

    context: Context

    @property
    def catalog(self) -> Catalog:
        """Where the session keeps its sketches."""
        return self.context.catalog

    def key_types(self) -> dict[tuple[str, str], str]:
        """Types of key expressions that kept sketches know, by lower-cased table and expression."""
        heads = self.catalog.heads()
        now = self.context.environment.circumstances() if heads else None
        return {
            (h.table.lower(), key): kind
            for h in heads
            if now is not None and now.fit(h)
            for a, own in zip(h.attributes, h.key_types, strict=True)
            for key, kind in zip(a.keys, own, strict=True)
        }

    def supply(self, select: ApproximateSelect, query: Query, settings: Settings) -> Supply | None:
        """The synopses of a query, some or all from the catalog; None where it has none for it.

        Raises
        ------
        IncompatibleSketches
            If all its sketches are there, and cannot be joined with one another.
        CorruptSketch
            If one that would be read is damaged.
        SkimqlError
            As `build`, for what is missing.
        """
        if not self.catalog.manifest.sketches:
            return None
        declared = self._declared(select, query, settings)
        if declared is not None:
            return declared
        whole = self.answer(select, query, settings)
        if whole is not None:
            answer, joined = whole
            stale = self._stale(answer.heads)
            notes = (*_notes(answer.heads, ()), *stale)
            one = joined[()]
            built = tuple(one.built) if isinstance(one, SketchJoin) else ()
            return Supply(answer.plan, built, notes, stale=bool(stale), joined=one)
        found = self.usable(select, query, settings)
        if found is None:
            return None
        started = time.perf_counter()
        new: tuple[Built, ...] = ()
        if found.missing:
            from ..execution.build import build

            missing = found.plan_of_missing()
            new = build(self.context.spark, missing, self.context.tables, self.context.listener)
            if settings.cache:
                self.keep(found.plan, dict(zip(found.missing, new, strict=True)))
        seconds = time.perf_counter() - started if found.missing else 0.0
        built = found.all_built(lambda name: self._load(name, settings), new)
        stale = self._stale(found.heads)
        notes = (*_notes(found.heads, [found.plan.synopses[i] for i in found.missing]), *stale)
        return Supply(found.plan, built, notes, seconds, bool(stale))

    def _load(self, name: str, settings: Settings) -> StoredSketch:
        """A sketch of the catalog."""
        with observed(LOAD, name) as seen:
            sketch = self.catalog.load(name, settings.max_bytes)
            # Measures that one synopsis keeps have it in common.
            synopses = {id(b.sketch): b.sketch.nbytes for b in sketch.built}
            seen.rows = sum(max(b.tally.tuples for b in own) for own in sketch.groups)
            seen.bytes_held, seen.bytes_read = sum(synopses.values()), seen.bytes_read or 0.0
        return sketch

    def usable(self, select: ApproximateSelect, query: Query, settings: Settings) -> Reuse | None:
        """How kept sketches serve a query, within what its settings allow; raises as `supply`."""
        found = self.plan(select, query)
        if found is None or _too_large(found.heads, settings):
            return None
        # Kept sketches are made by Python workers, and what is missing would have to be.
        return None if found.missing and settings.route == "jvm" else found

    def answers(
        self, select: ApproximateSelect, query: Query, settings: Settings
    ) -> list[MaterializedAnswer]:
        """Every way in which kept sketches alone answer a query, within its SIZE; raises as `supply`.

        Each answers without a scan: of the candidates of a planner they are the ones that cost nothing.
        """
        heads = self._usable(query)
        if not heads or len({g.vertex for g in query.groups}) > 1:
            return []
        now = self.context.environment.circumstances()
        found = materialized_answers(_without_count(query), heads, asked_of(select), now, self._files())
        return [f for f in found if not _too_large(f.heads, settings)]

    def answer(
        self, select: ApproximateSelect, query: Query, settings: Settings
    ) -> tuple[MaterializedAnswer, dict[GroupKey, Joined]] | None:
        """The narrowest of `answers`, loaded."""
        if query.groups:
            query = replace(query, order=(), limit=None)
        found = self.answers(select, query, settings)
        return self._best(found, settings) if found else None

    def _best(
        self, answers: Sequence[MaterializedAnswer], settings: Settings
    ) -> tuple[MaterializedAnswer, dict[GroupKey, Joined]]:
        """The narrowest of one or more, loaded."""
        found = best(answers, lambda name: self._load(name, settings), settings.confidence)
        assert found is not None, "there are some"
        return found

    def grouped(self, select: ApproximateSelect, query: Query, settings: Settings) -> GroupedSupply | None:
        """What kept sketches know of the groups of a query; None where they do not answer it."""
        if not self.catalog.manifest.sketches or not query.groups:
            return None
        whole = self.answer(select, query, settings)
        if whole is None:
            return None
        answer, joined = whole
        stale = self._stale(answer.heads)
        notes = (*_notes(answer.heads, ()), *stale)
        return GroupedSupply(replace(answer.plan, query=query), joined, notes, bool(stale))

    def attempt(self, select: ApproximateSelect, query: Query, settings: Settings) -> MaterializedJoin | None:
        """How the catalog would answer a query, nothing loaded; None where it cannot; raises as `supply`."""
        if not self.catalog.manifest.sketches:
            return None
        declared = self.declared(select, query, settings)
        if declared is not None:
            _, plan, heads = declared
            return _join(plan, heads)
        bare = replace(query, order=(), limit=None) if query.groups else query
        found_whole = self.answers(select, bare, settings)
        if found_whole:
            # Which of several is the narrowest, and so answers, they tell when they are asked.
            taken = found_whole[0] if len(found_whole) == 1 else self._best(found_whole, settings)[0]
            return _join(replace(taken.plan, query=query), taken.heads)
        found = None if query.groups else self.usable(select, query, settings)
        if found is None:
            return None
        return _join(found.plan, found.heads, found.missing)

    def plan(self, select: ApproximateSelect, query: Query) -> Reuse | None:
        """How kept hash sketches would serve a query, with others built beside, nothing loaded; raises as `supply`."""
        if query.counts_distinct or query.groups or select.size_bytes is not None:
            return None
        heads = [h for h in self._usable(query) if h.method in LINEAR]
        if not heads:
            return None
        now = self.context.environment.circumstances()
        return reuse(query, heads, asked_of(select), now, self._files())

    def _usable(self, query: Query) -> list[Head]:
        """The sketches of tables of a query, those of another table of the same name left out."""
        tables = {v.table.lower() for v in query.graph.vertices}
        return [
            h
            for h in self.catalog.heads()
            if h.table.lower() in tables and not other_source(h, self.context.tables)
        ]

    def _files(self) -> dict[str, str]:
        return {e.name: f"{self.catalog.where}/{e.file}" for e in self.catalog.manifest.sketches.values()}

    def keep(self, plan: Plan, built: Mapping[int, Built]) -> None:
        """Keep what was built for a query: the virtual relations whose sketches are all among `built`."""
        sketches: list[StoredSketch] = []
        for numbers in _relations(plan, self.context.environment.own_functions):
            if all(i in built for i in numbers):
                sketch = self._cached(plan, numbers, [built[i] for i in numbers], sketches)
                if sketch is not None:
                    sketches.append(sketch)
        if sketches:
            for sketch in sketches:
                self.context.environment.remember(sketch.head.table)
            self.catalog.put(*sketches)

    def _cached(
        self, plan: Plan, numbers: Sequence[int], built: Sequence[Built], others: Sequence[StoredSketch]
    ) -> StoredSketch | None:
        synopses = [plan.synopses[i] for i in numbers]
        one, tables = synopses[0], self.context.tables
        made = now()
        draft = Head(
            name=self._free_name(one, [s.head.name for s in others]),
            table=one.table,
            filter=one.filter,
            attributes=one.attributes,
            key_types=(),
            families=(),
            method=one.method,
            seed=plan.seed,
            rows=one.rows,
            buckets=one.buckets,
            limit_bytes=int(one.sparse),
            measures=tuple(Measure(s.weight, "int64", 1.0, Tally(), True, 0) for s in synopses),
            columns=(),
            ansi=True,
            time_zone="",
            zoned=False,
            lineage=(),
            created=made,
            updated=made,
            made_by="cache",
        )
        try:
            head = typed(
                draft, tables, self.context.environment.circumstances(), plan.query.sql, compared=True
            )
        except UnsupportedQuery:
            return None
        reading = table_lineage(tables, one.table, tables.frame(one.table))
        return stored(replace(head, lineage=(reading,)), built)

    def _free_name(self, synopsis: Synopsis, others: Sequence[str]) -> str:
        words = ["cached", synopsis.table, *(a.class_name for a in synopsis.attributes)]
        base = "_".join("".join(c if c.isalnum() else "_" for c in w) for w in words)
        taken = {n.lower() for n in others}
        name, number = base, 2
        while name.lower() in taken or self.catalog.entry(name) or self.catalog.workload(name):
            name, number = f"{base}_{number}", number + 1
        return name

    def _declared(self, select: ApproximateSelect, query: Query, settings: Settings) -> Supply | None:
        """From the sketches of a workload that has just this question."""
        found = self.declared(select, query, settings)
        if found is None:
            return None
        workload, plan, heads = found
        built = tuple(self._load(h.name, settings).built[0] for h in heads)
        told = printable(f"from the sketches {workload.name}, as of {heads[0].updated}")
        stale = self._stale(heads)
        return Supply(plan, built, (told, *stale), stale=bool(stale))

    def declared(
        self, select: ApproximateSelect, query: Query, settings: Settings
    ) -> tuple[StoredWorkload, Plan, Sequence[Head]] | None:
        """A workload that has just this question, its plan for it and its sketches, nothing loaded."""
        if select.options or select.method or select.seed is not None or select.size_bytes is not None:
            return None
        if not self.catalog.manifest.workloads:
            return None
        from .declared import asked_in, plan_from

        for workload in self.catalog.manifest.workloads.values():
            if not asked_in(workload.plans, query):
                continue
            heads = self.catalog.members(workload)
            try:
                plan = plan_from(workload.plans, query, heads)
            except ValueError as fault:
                raise self.catalog.unlike_planned(workload) from fault
            if plan is None:
                continue
            circumstances = self.context.environment.circumstances()
            usable = all(circumstances.fit(h) and not other_source(h, self.context.tables) for h in heads)
            if usable and not _too_large(heads, settings):
                return workload, plan, heads
        return None

    def _stale(self, heads: Iterable[Head]) -> tuple[str, ...]:
        """What has changed since the sketches were made, one sentence for each that is out of date."""
        runs = self.context.spark_runs
        notes = (stale_note(head, self.context.tables, runs) for head in heads)
        return tuple(printable(n) for n in notes if n)


def _join(plan: Plan, heads: Sequence[Head], missing: tuple[int, ...] = ()) -> MaterializedJoin:
    """The attempt that reads sketches of the catalog."""
    expected = tuple(
        (max(m.tally.tuples for m in h.measures), sum(m.nbytes for m in h.measures)) for h in heads
    )
    return MaterializedJoin(
        plan, tuple(h.name for h in heads), missing, method=plan.method, expected=expected
    )


def _without_count(query: Query) -> Query:
    """A query that counts distinct values of one table in groups, without the COUNT(*) that tells what joins."""
    if not query.groups or query.graph.edges or not query.counts_distinct:
        return query
    *others, last = query.aggregates
    if any(a.function != "count_distinct" for a in others) or last.span != query.groups[0].span:
        return query
    return replace(query, aggregates=query.aggregates[:-1])


def _notes(heads: Sequence[Head], missing: Sequence[Synopsis]) -> tuple[str, ...]:
    told = ", ".join(f"{h.name} (as of {h.updated})" for h in heads)
    notes = [f"from the kept sketch{'es' if len(heads) > 1 else ''} {told}"]
    new = dict.fromkeys(f"{s.table} by {', '.join(a.class_name for a in s.attributes)}" for s in missing)
    if new:
        notes.append(f"built for this query: {'; '.join(new)}")
    return tuple(map(printable, notes))


def _too_large(heads: Sequence[Head], settings: Settings) -> bool:
    """Whether the kept sketches alone take more than the session allows a query."""
    return settings.size_bytes is not None and sum(h.nbytes for h in heads) > settings.size_bytes


def asked_of(select: ApproximateSelect) -> Asked:
    """What a statement fixes of its sketches.

    Raises
    ------
    BadSetting
        If an option has no such value.
    """
    given = Settings().with_text(select.options)
    return Asked(
        select.seed if select.seed is not None else given.seed if "seed" in select.options else None,
        given.rows if "rows" in select.options else None,
        given.buckets if "buckets" in select.options else None,
        given.sparse if "sparse" in select.options else None,
        select.method,
    )


def keepable(plan: Plan, functions: Callable[[], Collection[str]]) -> bool:
    """Whether the catalog can keep all synopses of a plan; `functions` as `unstable` wants them."""
    return sum(map(len, _relations(plan, functions))) == len(plan.synopses)


def _relations(plan: Plan, functions: Callable[[], Collection[str]]) -> list[list[int]]:
    """The synopses that can be kept, those of one virtual relation, size and order of attributes together."""
    groups: dict[Synopsis, list[int]] = {}
    for number, synopsis in enumerate(plan.synopses):
        simple = synopsis.method in CACHED and synopsis.group is None and not synopsis.messages
        expressions = (
            synopsis.filter,
            synopsis.weight.expression,
            *(k for a in synopsis.attributes for k in a.keys),
        )
        if simple and unstable(expressions, functions) is None:
            groups.setdefault(replace(synopsis, weight=Weight()), []).append(number)
    return list(groups.values())
