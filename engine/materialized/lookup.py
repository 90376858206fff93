"""Queries and the catalog: what is answered from kept sketches, and what is built beside them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ...errors import IncompatibleSketches, printable
from ...optimizer.operators import LOAD
from ...optimizer.physical import MaterializedJoin
from ...optimizer.plan import Plan, Synopsis
from ...parser.join_graph import Query
from ...parser.statement import ApproximateSelect
from ..catalog.catalog import Catalog
from ..catalog.file import StoredSketch
from ..catalog.form import Head
from ..catalog.manifest import StoredWorkload
from ..observed import observed
from ..results.estimator import Joined, SketchJoin
from ..settings import Settings
from ..synopses import Built
from .answer import LINEAR, GroupKey, MaterializedAnswer, grouping_of
from .answering import best, materialized_answers
from .matching import JOINED, Asked, Reuse, Unlike, reuse, unlike
from .parts import BESIDE, added_up, of_all_parts
from .query_cache import QueryCache
from .staleness import other_source, stale_note

if TYPE_CHECKING:
    from ..context import Context


# Between the names of the sketches of a workload that are read as one.
JOINT = "\0"


@dataclass(frozen=True, slots=True)
class Supply:
    """How a query is answered, what answers each of its groups by their values, and what is to be told.

    `stale` says that a table has changed since some synopses were made.
    """

    plan: Plan
    joined: Mapping[GroupKey, Joined]
    notes: tuple[str, ...] = ()
    stale: bool = False


@dataclass(frozen=True, slots=True)
class Declared:
    """A workload that has just the question of a query, its plan for it, and its sketches."""

    workload: StoredWorkload
    plan: Plan
    heads: Sequence[Head]


@dataclass(frozen=True, slots=True)
class Narrowest:
    """The narrowest answer of kept sketches alone, with what gives it where that had to be loaded to tell."""

    answer: MaterializedAnswer
    joined: Mapping[GroupKey, Joined] | None = None


# What of the catalog answers a query: found once, then shown or run.
Found = Declared | Narrowest | Reuse


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

    def find(self, select: ApproximateSelect, query: Query, settings: Settings) -> Found | None:
        """What the catalog has for a query, some or all of its synopses; None where it has nothing for it.

        Raises
        ------
        CorruptSketch
            If one that has to be read for that is damaged.
        """
        if not self.catalog.manifest.sketches:
            return None
        declared = self.declared(select, query, settings)
        if declared is not None:
            return declared
        answers = self.answers(select, query, settings)
        if len(answers) == 1:
            return Narrowest(answers[0])
        if answers:
            # Which of several is the narrowest they tell when they are asked.
            return Narrowest(*self._best(answers, settings))
        return self.usable(select, query, settings)

    def attempt(self, query: Query, found: Found) -> MaterializedJoin:
        """How the catalog answers a query, nothing loaded."""
        match found:
            case Declared():
                return _join(found.plan, found.heads)
            case Narrowest():
                return _join(replace(found.answer.plan, query=query), found.answer.heads)
            case Reuse():
                return _join(found.plan, found.heads, found.missing)

    def supply(self, query: Query, found: Found, settings: Settings) -> Supply:
        """The synopses of a query, those that the catalog has not built now.

        Raises
        ------
        CorruptSketch
            If one that is read is damaged.
        SkimqlError
            As `build`, for what is missing.
        """
        match found:
            case Declared():
                return self._declared(found, settings)
            case Narrowest(answer, joined):
                if joined is None:
                    joined = answer.joined(lambda name: self._load(name, settings))
                stale = self._stale(answer.heads)
                notes = (*_notes(answer.heads, ()), *stale)
                return Supply(replace(answer.plan, query=query), joined, notes, bool(stale))
            case Reuse():
                return self._completed(found, settings)

    def _completed(self, found: Reuse, settings: Settings) -> Supply:
        """Kept sketches with those that are missing, which are built now."""
        new: tuple[Built, ...] = ()
        if found.missing:
            from ..execution.build import build

            missing, cache = found.plan_of_missing(), QueryCache(self.context)
            readings = cache.readings(missing) if settings.cache else {}
            new = build(self.context.spark, missing, self.context.tables, self.context.listener)
            if settings.cache:
                cache.keep(found.plan, dict(zip(found.missing, new, strict=True)), readings)
        built = found.all_built(lambda name: self._load(name, settings), new)
        stale = self._stale(found.heads)
        notes = (*_notes(found.heads, [found.plan.synopses[i] for i in found.missing]), *stale)
        return Supply(found.plan, {(): SketchJoin(found.plan, built)}, notes, bool(stale))

    def passed_over(self, select: ApproximateSelect, query: Query, settings: Settings) -> tuple[str, ...]:
        """Why sketches that somebody made for a query do not answer it, for one that nothing kept answers.

        Raises
        ------
        IncompatibleSketches
            If hash sketches are asked for by USING, and those that are kept do not fit each other.
        """
        if not self.catalog.manifest.sketches:
            return ()
        notes = [*self._unreadable(query)]
        heads = self._of_tables(query)
        notes += [
            f"sketch {named(h)} is not used: it may take {h.most_bytes:,} bytes, more than skimql.max_bytes ="
            f" {settings.max_bytes:,}"
            for h in heads
            if not _fits(h, settings)
        ]
        if heads and not query.counts_distinct:
            now = self.context.environment.circumstances()
            found = unlike(
                without_count(query), self._usable(query, settings), asked_of(select), now, grouping_of(query)
            )
            if found is not None:
                if select.method in JOINED:
                    raise _refused(
                        found, select, {h.name: self._file(h) for h in (found.first, found.second)}
                    )
                kept = " and ".join(found.told(h) for h in (found.first, found.second))
                notes.append(f"not from kept sketches: {kept} cannot be joined")
        return tuple(map(printable, notes))

    def _load(self, name: str, settings: Settings) -> StoredSketch:
        """A sketch of the catalog, or those of `together` under their joint name."""
        with observed(LOAD, _spelt(name)) as seen:
            parts = [self._of_cells(n, settings) for n in name.split(JOINT)]
            sketch = parts[0]
            if len(parts) > 1:
                (head,) = together([p.head for p in parts])
                by_weight = {p.head.weights[0]: p.built[0] for p in parts}
                sketch = StoredSketch(head, tuple(by_weight[w] for w in head.weights))
            # Measures that one synopsis keeps have it in common.
            synopses = {id(b.sketch): b.sketch.nbytes for b in sketch.built}
            seen.rows = sum(max(b.tally.tuples for b in own) for own in sketch.groups)
            seen.bytes_held, seen.bytes_read = sum(synopses.values()), seen.bytes_read or 0.0
        return sketch

    def _of_cells(self, name: str, settings: Settings) -> StoredSketch:
        """A sketch of the catalog, or those of all cells of a relation as one."""
        names = name.split(BESIDE)
        loaded = [self.catalog.load(n, settings.max_bytes) for n in names]
        return loaded[0] if len(loaded) == 1 else added_up(loaded)

    def usable(self, select: ApproximateSelect, query: Query, settings: Settings) -> Reuse | None:
        """How kept sketches serve a query with others built beside, within what its settings allow."""
        found = self.plan(select, query, settings)
        if found is None or _too_large(found.heads, settings):
            return None
        # Kept sketches are made by Python workers, and what is missing would have to be.
        return None if found.missing and settings.route == "jvm" else found

    def answers(
        self, select: ApproximateSelect, query: Query, settings: Settings
    ) -> list[MaterializedAnswer]:
        """Every way in which kept sketches alone answer a query, within its SIZE.

        Each answers without a scan: of the candidates of a planner they are the ones that cost nothing.
        """
        heads = self._usable(query, settings)
        if not heads:
            return []
        now = self.context.environment.circumstances()
        found = materialized_answers(without_count(query), heads, asked_of(select), now)
        return [
            f
            for f in found
            if not _too_large(f.heads, settings) and f.number_of_groups <= settings.max_groups
        ]

    def _best(
        self, answers: Sequence[MaterializedAnswer], settings: Settings
    ) -> tuple[MaterializedAnswer, dict[GroupKey, Joined]]:
        """The narrowest of one or more, loaded."""
        found = best(answers, lambda name: self._load(name, settings), settings.confidence)
        assert found is not None, "there are some"
        return found

    def plan(self, select: ApproximateSelect, query: Query, settings: Settings) -> Reuse | None:
        """How kept hash sketches would serve a query, with others built beside, nothing loaded."""
        if query.counts_distinct or query.groups or select.size_bytes is not None:
            return None
        if select.method == "sample_sketch":
            return None  # hash sketches beside samples, not alone
        heads = [h for h in self._usable(query, settings) if h.method in LINEAR]
        if not heads:
            return None
        now = self.context.environment.circumstances()
        return reuse(query, heads, asked_of(select), now)

    def _of_tables(self, query: Query) -> list[Head]:
        """The sketches of tables of a query, those of another table of the same name left out."""
        tables = {v.table.lower() for v in query.graph.vertices}
        heads = (h for h in self.catalog.heads() if h.table.lower() in tables)
        return [h for h in heads if not other_source(h, self.context.tables, self.context.spark_runs)]

    def _usable(self, query: Query, settings: Settings) -> list[Head]:
        """Those of `_of_tables` that may be loaded."""
        return together([h for h in self._of_tables(query) if _fits(h, settings)])

    def _unreadable(self, query: Query) -> list[str]:
        """What there is to say of sketches of a newer SkimQL, where they are of tables of a query."""
        tables = {v.table.lower() for v in query.graph.vertices}
        return [
            f"sketch {e.name} is not used: a newer SkimQL wrote it"
            for e in self.catalog.manifest.sketches.values()
            if e.head is None and str(e.metadata.get("table")).lower() in tables
        ]

    def _file(self, head: Head) -> str:
        """Where a sketch lies."""
        entry = self.catalog.entry(head.name)
        return self.catalog.where if entry is None else f"{self.catalog.where}/{entry.file}"

    def _declared(self, found: Declared, settings: Settings) -> Supply:
        """From the sketches of a workload that has just this question."""
        built = tuple(self._load(h.name, settings).built[0] for h in found.heads)
        told = printable(f"from the sketches {found.workload.name}, as of {found.heads[0].updated}")
        stale = self._stale(found.heads)
        return Supply(found.plan, {(): SketchJoin(found.plan, built)}, (told, *stale), bool(stale))

    def declared(self, select: ApproximateSelect, query: Query, settings: Settings) -> Declared | None:
        """A workload that has just this question, nothing loaded; raises as `Catalog.members`."""
        if select.options or select.method or select.seed is not None or select.size_bytes is not None:
            return None
        if not self.catalog.manifest.workloads:
            return None
        from .declared import asked_in, plan_from

        for workload in self.catalog.manifest.workloads.values():
            if not asked_in(workload.plans, query) or not self._readable(workload):
                continue
            heads = self.catalog.members(workload)
            try:
                plan = plan_from(workload.plans, query, heads)
            except ValueError as fault:
                raise self.catalog.unlike_planned(workload) from fault
            if plan is None:
                continue
            circumstances = self.context.environment.circumstances()
            usable = all(
                circumstances.fit(h) and not other_source(h, self.context.tables, self.context.spark_runs)
                for h in heads
            )
            usable = usable and all(_fits(h, settings) for h in heads)
            if usable and not _too_large(heads, settings):
                return Declared(workload, plan, heads)
        return None

    def _readable(self, workload: StoredWorkload) -> bool:
        """Whether no newer SkimQL wrote one of its sketches."""
        entries = (self.catalog.entry(name) for name in workload.sketches)
        return all(e is None or e.head is not None for e in entries)

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
    return MaterializedJoin(plan, tuple(map(named, heads)), missing, method=plan.method, expected=expected)


def _refused(found: Unlike, select: ApproximateSelect, files: Mapping[str, str]) -> IncompatibleSketches:
    """The error where hash sketches are asked for, and two that are kept do not fit each other."""
    first, second = found.first, found.second
    span = select.clause_spans.get("method")
    told = " and ".join(f"{found.told(h)} ({files[h.name]})" for h in (first, second))
    return IncompatibleSketches(
        f"{told} cannot be joined",
        sql=select.sql,
        span=None if span is None else (span.start, span.end),
        hint=f"CREATE OR REPLACE SKETCH {second.name} ... with the same {found.reason}, or leave USING out: then they"
        " are not used",
    )


def together(heads: Sequence[Head]) -> list[Head]:
    """Heads; those of a workload that are cells of one relation, or differ in their weight alone, are one."""
    found: dict[object, list[Head]] = {}
    for head in of_all_parts(heads):
        same: object = head.name
        if head.group:
            same = (head.group, head.table, head.filter, head.attributes, head.families, head.buckets)
        found.setdefault(same, []).append(head)
    joined = []
    for own in found.values():
        by_weight = {h.weights[0]: h for h in own} if own[0].group else {}
        if len(by_weight) < 2:
            joined.append(own[0])
            continue
        members = list(by_weight.values())
        joined.append(
            replace(
                own[0],
                name=JOINT.join(h.name for h in members),
                measures=tuple(h.measures[0] for h in members),
                rows=min(h.rows for h in members),
            )
        )
    return joined


def without_count(query: Query) -> Query:
    """A grouped query without ORDER BY and LIMIT, which are of its rows.

    One that counts distinct values of one table also without the COUNT(*) that tells what joins.
    """
    if query.groups:
        query = replace(query, order=(), limit=None)
    if not query.groups or query.graph.edges or not query.counts_distinct:
        return query
    *others, last = query.aggregates
    if any(a.function != "count_distinct" for a in others) or last.span != query.groups[0].span:
        return query
    return replace(query, aggregates=query.aggregates[:-1])


def _notes(heads: Sequence[Head], missing: Sequence[Synopsis]) -> tuple[str, ...]:
    told = ", ".join(f"{named(h)} (as of {h.updated})" for h in heads)
    notes = [f"from the kept sketch{'es' if len(heads) > 1 else ''} {told}"]
    new = dict.fromkeys(f"{s.table} by {', '.join(a.class_name for a in s.attributes)}" for s in missing)
    if new:
        notes.append(f"built for this query: {'; '.join(new)}")
    return tuple(map(printable, notes))


def named(head: Head) -> str:
    """A kept sketch as people are told of it: those of a workload with its name."""
    name = _spelt(head.name)
    return f"{name} of the sketches {head.group}" if head.group else name


def _spelt(name: str) -> str:
    """The names of sketches that are read as one."""
    return name.replace(JOINT, ", ").replace(BESIDE, ", ")


def _fits(head: Head, settings: Settings) -> bool:
    """Whether a sketch may be loaded."""
    return max(head.most_bytes, head.nbytes) <= settings.max_bytes


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
