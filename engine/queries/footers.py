"""What the files of a query's tables tell without a job: how many tuples, what filters keep of some, and key ranges."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from ...errors import SkimqlError
from ...optimizer.candidates.first_sample import LEAST_SHARE, Size, Together, is_large, sampled_class
from ...optimizer.fold import class_attribute
from ...optimizer.groups import ASSUMED_GROUPS, grouped_vertices
from ...optimizer.messages import JoinClass, tree_of
from ...optimizer.plan import LONGER, Attribute
from ...optimizer.prediction.cost import distinct_synopses, exact_distinct, exact_join, pilots, scans
from ...parser.join_graph import Query, Vertex
from ..sources.files import files_of, own_files, paths_of, values_between
from ..sources.joint_filters import Filtered, filters_together
from ..sources.keys_seen import column_of, distinct_keys, seen_distinct
from ..sources.ordered_keys import KeyCounts, counted_in_order
from ..sources.selectivity import Evaluate, Probe
from ..sources.tables import Tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from ...optimizer.candidates.value_draws import Summed
    from ...optimizer.prediction.first_class import SeenKeys

# How many times more than with keys of equal weights a join may put out, where nothing is known of them.
SKEWED = 10.0

# Most tuples of a table whose keys are read as a whole: a hundredth of a CPU second.
MOST_READ = 1 << 17

# Most tuples of a table whose keys are counted in the driver: some four CPU seconds of one core.
MOST_KEYS_COUNTED = 2e8

# And most of one of which it is told before anything runs: a tenth of a CPU second, which the run that follows saves.
MOST_COUNTED_SOON = float(1 << 22)

# How filters go together is looked at where the exact run takes as many CPU seconds: thirty times as long as the look.
LEAST_SECONDS = 4.0

# So many tuples of a key, among those looked at, tell what a filter keeps of it.
SEVERAL = 8

# What Spark takes a value to take, and a row beside its values.
NUMBER_BYTES, STRING_BYTES = 8, 20


@dataclass(frozen=True)
class Footers:
    """Of the tables of one query.

    Attributes
    ----------
    spark : callable
        Gives the session to work in, where that is needed.
    tables
        The session's.
    query : Query
        With every key type known.
    evaluate : callable or None
        Evaluates expressions on some tuples without Spark.
    """

    spark: Callable[[], SparkSession]
    tables: Tables
    query: Query
    evaluate: Evaluate | None = None

    @property
    def large(self) -> bool:
        """Whether a table is so large that a sample is tried before anything else is known."""
        return is_large(self.tuples)

    @cached_property
    def tuples(self) -> tuple[float | None, ...]:
        """Tuples of the table of each vertex, where files tell."""
        return tuple(
            files_of(self.tables, v.table, self.tables.as_given(v.table), count=True).tuples
            for v in self.query.graph.vertices
        )

    @cached_property
    def sizes(self) -> tuple[Size, ...]:
        """Tuples of each vertex, and what its filter keeps of some of them."""
        return self._sizes(jobs=True)

    def sizes_by(self, *, jobs: bool) -> tuple[Size, ...]:
        """As `sizes`; where no job may run, without a look at filters that read other tables."""
        return (
            self.sizes
            if jobs or not any(map(self._reads, self.query.graph.vertices))
            else self._sizes(jobs=False)
        )

    def _sizes(self, *, jobs: bool) -> tuple[Size, ...]:
        sizes = []
        for vertex, tuples in zip(self.query.graph.vertices, self.tuples, strict=True):
            looked_at = vertex.filter is not None and (jobs or not self._reads(vertex))
            share = self._probe(vertex.table).share(vertex.filter or "") if looked_at else 1.0
            sizes.append(Size(tuples or 0.0, share))
        return tuple(replace(s, nbytes=n) for s, n in zip(sizes, self.nbytes, strict=True))

    @staticmethod
    def _reads(vertex: Vertex) -> bool:
        """Whether a filter reads other tables."""
        return vertex.filter is not None and bool(_tables_in(vertex.filter))

    @cached_property
    def filters_look_at_large(self) -> bool:
        """Whether a filter has a subquery over a table that is large, or of which files do not tell.

        It would be run for a glance at the filter, and once in each scan of a sample.
        """
        filters = [v.filter for v in self.query.graph.vertices if v.filter is not None]
        return any(self._is_large(t) for f in filters for t in _tables_in(f))

    def _is_large(self, table: str) -> bool:
        try:
            told = files_of(self.tables, table, self.tables.as_given(table), count=True).tuples
        except (KeyError, SkimqlError):
            return True
        return is_large([told]) if told is not None else True

    @cached_property
    def nbytes(self) -> tuple[float | None, ...]:
        """For how large Spark takes what it reads of the table of each vertex, where files tell.

        Without statistics of its own it shares the bytes of the files out by the widths of the columns.
        """
        return tuple(self._bytes_read(v) for v in range(len(self.query.graph.vertices)))

    def _bytes_read(self, vertex: int) -> float | None:
        frame, graph = self._frame(vertex), self.query.graph
        table = graph.vertices[vertex]
        whole = files_of(self.tables, table.table, frame, count=True).bytes
        if whole is None or not math.isfinite(whole):
            return None
        keys = {k for e in graph.edges_at(vertex) for k in graph.edges[e].keys_of(vertex)}
        terms = [t for a in self.query.aggregates for t in (*a.total, *a.presence)]
        factors = {f.expression for t in terms if (f := t.factor_of(vertex)) is not None}
        read = len(keys) + len(factors) + (table.filter is not None)
        read += sum(g.vertex == vertex for g in self.query.groups)
        widths = [
            STRING_BYTES if f.dataType.typeName() == "string" else NUMBER_BYTES for f in frame.schema.fields
        ]
        return whole * min(1.0, NUMBER_BYTES * (1 + read) / (NUMBER_BYTES + sum(widths)))

    @property
    def bare_sizes(self) -> tuple[Size, ...]:
        """Tuples of each vertex, its filter not looked at."""
        return tuple(Size(t or 0.0, nbytes=n) for t, n in zip(self.tuples, self.nbytes, strict=True))

    @cached_property
    def values(self) -> float:
        """Most distinct keys that the class of a first sample can have; infinite where files do not tell."""
        graph = self.query.graph
        return self._distinct(tree_of(graph).classes[sampled_class(graph, [t or 0.0 for t in self.tuples])])

    @cached_property
    def summed(self) -> tuple[Summed, ...]:
        """The expressions that are summed over the join and are of one vertex, with what is known of their values."""
        from ..sources.summed import summed_values

        return summed_values(self.spark(), self.tables, self.query, self._probe)

    def summed_by(self, *, jobs: bool) -> tuple[Summed, ...]:
        """As `summed`; where no job may run, by the tuples of files that have been looked at alone."""
        return self.summed if jobs else self._summed_by_files

    @cached_property
    def _summed_by_files(self) -> tuple[Summed, ...]:
        from ..sources.summed import summed_values

        return summed_values(self.spark(), self.tables, self.query, self._probe, jobs=False)

    @cached_property
    def groups(self) -> dict[int, int]:
        """By grouped vertex the groups among some of its tuples; as many as are assumed where files do not tell."""
        return {v: self._groups_of(v) or ASSUMED_GROUPS for v in grouped_vertices(self.query)}

    def _groups_of(self, vertex: int) -> int | None:
        relation = self.query.graph.vertices[vertex]
        expressions = [g.expression for g in self.query.groups if g.vertex == vertex]
        return self._probe(relation.table).groups(relation.filter, expressions)

    @cached_property
    def keys_seen(self) -> dict[tuple[int, int], SeenKeys]:
        """By vertex and join class the keys of some tuples, as far as files tell."""
        from ..sources.keys_seen import keys_seen

        tree, found = tree_of(self.query.graph), {}
        for number, joined in enumerate(tree.classes):
            for vertex in joined.vertices:
                attribute = class_attribute(self.query.graph, joined, vertex)
                own = keys_seen(
                    self._frame(vertex), attribute, self._paths(self.query.graph.vertices[vertex].table)
                )
                if own is not None:
                    found[vertex, number] = self._behind_filter(own, vertex, attribute)
        return found

    def _behind_filter(self, seen: SeenKeys, vertex: int, attribute: Attribute) -> SeenKeys:
        """The keys with what the filter keeps of them, where some are there often and files tell."""
        relation = self.query.graph.vertices[vertex]
        column = column_of(attribute.keys[0]) if len(attribute.keys) == 1 else None
        often = not seen.ordered and int(seen.counts.max(initial=0)) >= SEVERAL
        if relation.filter is None or column is None or not often or self._reads(relation):
            return seen
        keys = self._probe(relation.table).passing(relation.filter, column)
        return seen if keys is None else seen.behind_filter(keys)

    @cached_property
    def together(self) -> Together | None:
        """How the filters of the tables of a first sample's class go together, where two have one and files tell."""
        tree = tree_of(self.query.graph)
        number = sampled_class(self.query.graph, [t or 0.0 for t in self.tuples])
        joined = tree.classes[number]
        members = sorted(joined.vertices, key=lambda v: -(self.tuples[v] or 0.0))
        filters = [self.query.graph.vertices[v].filter is not None for v in members]
        in_order = all(k.ordered for v in members if (k := self.keys_seen.get((v, number))) is not None)
        if any(map(self._reads, self.query.graph.vertices)) or sum(filters) < 2 or not in_order:
            return None
        if self.least_seconds < LEAST_SECONDS:
            return None
        if self.evaluate is None:
            return None
        keys = [class_attribute(self.query.graph, joined, v).keys for v in members]
        columns = [column_of(k[0]) if len(k) == 1 else None for k in keys]
        if None in columns:
            return None
        vertices = self.query.graph.vertices
        return self._filters_together(
            [
                Filtered(
                    self._paths(vertices[v].table),
                    c or "",
                    vertices[v].filter,
                    max(self.sizes[v].share, LEAST_SHARE),
                )
                for v, c in zip(members, columns, strict=True)
            ],
            self.evaluate,
        )

    def _filters_together(self, tables: Sequence[Filtered], evaluate: Evaluate) -> Together | None:
        return filters_together(tables, evaluate)

    def _paths(self, table: str) -> Sequence[str]:
        return self._probe(table).paths

    @cached_property
    def countable(self) -> dict[int, float]:
        """The vertices of a first sample's class whose keys files can count, with the most tuples that one usually has.

        Those in the order of their keys: what has been looked at has all tuples of neighbours.
        """
        tree, found = tree_of(self.query.graph), {}
        number = sampled_class(self.query.graph, [t or 0.0 for t in self.tuples])
        for vertex in tree.classes[number].vertices:
            seen = self.keys_seen.get((vertex, number))
            column = self._key_column(vertex)
            if not (self.tuples[vertex] or 0.0) <= MOST_KEYS_COUNTED:
                continue
            if seen is None or not seen.together or not seen.keys.size or column is None:
                continue
            if self._is_read(vertex, column):
                most = float(seen.counts.max())
                found[vertex] = most if most == 1.0 else LONGER * most
        return found

    def key_counts(self, vertex: int) -> KeyCounts | None:
        """How many tuples the keys of a vertex that is countable have, where its table is soon looked through."""
        column = self._key_column(vertex)
        if (
            vertex not in self.countable
            or column is None
            or not (self.tuples[vertex] or 0.0) <= MOST_COUNTED_SOON
        ):
            return None
        return counted_in_order(self._paths(self.query.graph.vertices[vertex].table), column)

    def _key_column(self, vertex: int) -> str | None:
        """The column that is the key of a vertex in a first sample's class; None of an expression, or of several."""
        tree = tree_of(self.query.graph)
        joined = tree.classes[sampled_class(self.query.graph, [t or 0.0 for t in self.tuples])]
        key = class_attribute(self.query.graph, joined, vertex).keys
        return column_of(key[0]) if len(key) == 1 else None

    def _is_read(self, vertex: int, column: str) -> bool:
        """Whether a column of a vertex's table is one of its files, as it stands there."""
        return bool(own_files(self.tables, self.query.graph.vertices[vertex].table, column)[1])

    @cached_property
    def outputs(self) -> tuple[float, ...]:
        """Tuples of the joins of the first two tables, of the first three, ..., if keys are spread evenly.

        In the order in which Spark joins; infinite where files do not tell.
        """
        tree = tree_of(self.query.graph)
        order, distinct = tree.joined_order(), [self._distinct(joined) for joined in tree.classes]
        distinct = [
            d if math.isfinite(d) else self._seen(j) for d, j in zip(distinct, tree.classes, strict=True)
        ]
        if None in self.tuples or not all(map(math.isfinite, distinct)):
            return (math.inf,) * (len(order) - 1)
        sizes = []
        for number in range(2, len(order) + 1):
            size = math.prod(max(self.tuples[v] or 0.0, 1.0) for v in order[:number])
            for joined, keys in zip(tree.classes, distinct, strict=True):
                here = len(set(order[:number]).intersection(joined.vertices))
                size /= max(keys, 1.0) ** max(here - 1, 0)
            sizes.append(size)
        return tuple(sizes)

    @cached_property
    def exact_seconds(self) -> float:
        """CPU seconds of the exact run, should keys be `SKEWED`; infinite where files do not tell."""
        sizes = [SKEWED * s for s in self.outputs]
        if not all(map(math.isfinite, sizes)):
            return math.inf
        order, tables = tree_of(self.query.graph).joined_order(), self.bare_sizes
        return exact_join([tables[v].input for v in order], sizes).seconds

    @property
    def least_seconds(self) -> float:
        """CPU seconds of the exact run at the least: of its scans and joins, whatever these put out."""
        order, tables = tree_of(self.query.graph).joined_order(), self.bare_sizes
        return exact_join([tables[v].input for v in order], [0.0] * (len(order) - 1)).seconds

    @property
    def looking_seconds(self) -> float:
        """CPU seconds of a pilot, by which statistics are gathered where nothing is known."""
        return pilots([s.input for s in self.bare_sizes]).seconds

    @property
    def exact_distinct_is_cheap(self) -> bool:
        """Whether an exact COUNT(DISTINCT) costs no more than a pilot and the least synopses, of evenly spread keys."""
        tables = [s.input for s in self.bare_sizes]
        order = tree_of(self.query.graph).joined_order() if self.outputs else range(len(tables))
        put_out = self.outputs[-1] if self.outputs else tables[0].tuples
        if not max(self.outputs, default=0.0) <= sum(t.tuples for t in tables):
            return False
        most = min(put_out, max(t.tuples for t in tables))
        counts = [most for a in self.query.aggregates if a.function == "count_distinct"]
        exact = exact_distinct([tables[v] for v in order], self.outputs, counts)
        least = distinct_synopses([min(tables, key=lambda t: t.tuples)], ["levels"], len(tables))
        return exact.seconds <= pilots(tables).plus(scans(tables)).plus(least).seconds

    def _keys(self, joined: JoinClass) -> set[tuple[int, tuple[str, ...]]]:
        """The vertices of a class with the columns of their keys."""
        edges = [self.query.graph.edges[e] for e in joined.edges]
        return {(e.left, e.left_keys) for e in edges} | {(e.right, e.right_keys) for e in edges}

    def _seen(self, joined: JoinClass) -> float:
        """About as many distinct keys as a class has at the least, by some tuples; infinite where they do not tell."""
        found = []
        for vertex, own in self._keys(joined):
            tuples, some = self.tuples[vertex], self._probe(self.query.graph.vertices[vertex].table)
            if tuples is not None:
                found.append(seen_distinct(some.paths, [k.strip("`") for k in own], tuples))
        return min(found, default=math.inf)

    def _distinct(self, joined: JoinClass) -> float:
        """Most distinct keys that a class can have, as far as files tell; infinite where they do not."""
        keys = self._keys(joined)
        told = min(math.prod(self._values_between(v, k) for k in own) for v, own in keys)
        return told if math.isfinite(told) else min(self._counted(v, own) for v, own in keys)

    def _values_between(self, vertex: int, key: str) -> float:
        some = self._probe(self.query.graph.vertices[vertex].table)
        return values_between(some.frame, key.strip("`"), some.paths)

    def _counted(self, vertex: int, keys: Sequence[str]) -> float:
        """The distinct keys of a small table, all of which are read; infinite of another."""
        tuples = self.tuples[vertex]
        if tuples is None or tuples > MOST_READ:
            return math.inf
        table = self.query.graph.vertices[vertex].table
        return distinct_keys(self._probe(table).paths, [k.strip("`") for k in keys])

    def _probe(self, table: str) -> Probe:
        """Some tuples of a table, looked for once."""
        if table not in self._probes:
            frame = self.tables.as_given(table)
            files = paths_of(self.tables, table, frame)
            self._probes[table] = Probe(self.spark, frame, self.evaluate, files)
        return self._probes[table]

    @cached_property
    def _probes(self) -> dict[str, Probe]:
        return {}

    def _frame(self, vertex: int) -> DataFrame:
        return self.tables.as_given(self.query.graph.vertices[vertex].table)


def _tables_in(condition: str) -> list[str]:
    """The tables that the subqueries of a filter read."""
    if "select" not in condition.lower():
        return []
    try:
        found = sqlglot.parse_one(condition, dialect="spark").find_all(exp.Table)
        return [table.sql(dialect="spark", comments=False) for table in found]
    except SqlglotError:
        return ["?"]
