"""What is known, before a sample of keys is drawn, of the tables that a query runs on: by files, else by small jobs."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

from ...optimizer.candidates.sampled_query import Part
from ...optimizer.plan import Attribute
from ...parser.fragment import quote_name
from ...parser.keys import Decomposition, Role
from ...parser.narrowing import Narrowed, Narrowing

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from ...optimizer.prediction.first_class import SeenKeys
    from ..context import Context
    from ..sources.ranges import Range
    from ..sources.selectivity import Probe

# A key is dense that this part of the tuples that are looked at has, so many of them, and so many times more than keys
# have on average; no more keys than that are.
DENSE_SHARE, LEAST_SEEN, DENSE_TIMES, MOST_DENSE = 1 / 500, 8.0, 8.0, 64

# Tuples of a table of which nothing is known and no job may ask.
UNKNOWN_TUPLES = 1e7


def heavy_keys(seen: SeenKeys) -> Iterator[tuple[int, float]]:
    """The keys that a part of the looked at tuples has, and many times more of them than keys have on average."""
    if seen.ordered or not len(seen.keys):
        return
    least = max(DENSE_SHARE * seen.tuples, DENSE_TIMES * float(seen.counts.mean()), LEAST_SEEN)
    for key, count in zip(seen.keys.tolist(), seen.counts.tolist(), strict=True):
        if count >= least:
            yield key, count / seen.tuples


@dataclass(frozen=True)
class SampledTables:
    """What is known of tables.

    Attributes
    ----------
    context : Context or None
        None where nothing is known.
    jobs : bool
        Whether a job may look at them.
    """

    context: Context | None
    jobs: bool

    def tuples(self, table: str) -> float:
        """Tuples of a table: by its files, else counted where jobs may run."""
        known = self._known_tuples
        if table not in known:
            known[table] = self._counted(table)
        return known[table]

    def most_keys(self, role: Role) -> float:
        """No more keys than that, by the footers of a table's files; infinite where they do not tell."""
        from ..sources.files import values_between

        paths = self._paths(role.table)
        if not paths:
            return math.inf
        return values_between(self._at_hand.tables.as_given(role.table), role.column, paths)

    def keys(self, role: Role) -> float:
        """About how many keys a table has: by neighbours where it is in the order of them, else all it may have."""
        known, name = self._known_keys, (role.table, role.column)
        if name not in known:
            known[name] = min(self.tuples(role.table), self.most_keys(role), self._seen_keys(role))
        return known[name]

    def _seen_keys(self, role: Role) -> float:
        from ..sources.keys_seen import keys_seen

        if role.column.lower() not in self.in_order(role.table):
            return math.inf
        column = Attribute((quote_name(role.column),), (role.kind,), role.column)
        seen = keys_seen(self._at_hand.tables.as_given(role.table), column, self._paths(role.table))
        return math.inf if seen is None else max(seen.distinct(self.tuples(role.table)), 1.0)

    def in_order(self, table: str) -> tuple[str, ...]:
        """The columns of integers that a table's files are in the order of, by their footers; Spark is not started."""
        from ..sources.listing import files_under
        from ..sources.ordered_keys import MOST_FILES, ordered_columns

        if self.context is None:
            return ()
        kind, path = self.context.tables.origin(table)
        if kind == "file":
            return ordered_columns(list(islice(files_under(path), MOST_FILES + 1)))
        return ordered_columns(self._paths(table)) if self.context.spark_runs else ()

    def fan_out(self, table: str, columns: tuple[str, ...], dense: Collection[int] | None) -> float:
        """The most tuples of a table that agree on some columns; infinite where its files do not tell.

        Of keys of the class, `dense` those that do not count, the tuples without a key come along.
        """
        from ..sources.fan_out import fan_out, nulls
        from ..sources.files import own_files

        tuples, paths = self.tuples(table), self._paths(table)
        if tuples == UNKNOWN_TUPLES or not paths:
            return math.inf
        own = tuple(c for c in columns if own_files(self._at_hand.tables, table, c)[1])
        if columns and not own:
            return math.inf
        if dense is None:
            return fan_out(paths, own, tuples)
        if own[:1] != columns[:1]:
            return math.inf
        return fan_out(paths, own, tuples, dense) + nulls(paths, columns[0])

    def column_range(self, table: str, column: str) -> Range:
        """Between what the values of a column lie, by footers; unbounded where it may have a NaN."""
        from ..sources.files import column_range, range_without_nan
        from ..sources.ranges import ANY
        from ..spark.jobs import run_job

        context = self.context
        if context is None:
            return ANY
        if not self.jobs:
            return column_range(context.tables, table, column)

        def run(frame: DataFrame, job: str) -> pa.Table:
            return run_job(context.spark, job, frame.toArrow, context.listener)

        return range_without_nan(context.tables, table, column, run)

    def dense(self, way: Decomposition) -> tuple[int, ...]:
        """The keys that many of some tuples of a table have, each far more than keys have on average.

        They are always there: what a sample would say of them by chance is then certain.
        """
        known = self._known_dense
        if way not in known:
            known[way] = self._looked_up(way)
        return known[way]

    def parts(self, way: Decomposition, narrowing: Narrowing) -> list[Part] | None:
        """What is known of the tables where they stand; None where files do not tell."""
        if self.context is None or not any(t.counts for t in narrowing.tables):
            return None
        roles = {role.place.start: role for role in way.roles}
        found = [self._part(one, roles.get(one.place)) for one in narrowing.tables]
        parts = [part for part in found if part is not None]
        if len(parts) < len(found):
            return None
        # The interval of an aggregate to which few rows add is the widest.
        known = self._known_shares
        for one in narrowing.tables:
            if one.place not in known:
                known[one.place] = self._added(one)
        shares = list(zip(*(known[one.place] for one in narrowing.tables), strict=True))
        least = min(shares, key=math.prod, default=(1.0,) * len(parts))
        return [replace(part, group=part.group * share) for part, share in zip(parts, least, strict=True)]

    def _added(self, one: Narrowed) -> tuple[float, ...]:
        """Of the tuples of a table that its conditions keep, the share of those that add to each aggregate."""
        probe = self._probe(one.table)

        def share(condition: str | None) -> float:
            if condition is None:
                return 1.0
            whole = 1.0 if one.condition is None else probe.told_share(one.condition)
            both = condition if one.condition is None else f"({one.condition}) AND ({condition})"
            part = probe.told_share(both)
            return 1.0 if not whole or part is None else part / whole

        return tuple(share(condition) for condition in one.added)

    def _part(self, one: Narrowed, role: Role | None) -> Part | None:
        """What is known of a table where it stands; None where a look at some of its tuples does not tell."""
        looked = self._looked_at
        if one.place not in looked:
            looked[one.place] = self._look_at(one)
        share, group = looked[one.place]
        if group is None or (share is None and one.counts):
            return None
        share = 1.0 if share is None else share
        tuples = self.tuples(one.table)
        if tuples == UNKNOWN_TUPLES:
            return None
        keys = None if role is None else self.keys(role)
        texts = sum(kind == "string" or "char" in kind for _, kind in one.columns)
        beside = role is not None and role.column not in {name for name, _ in one.columns}
        numbers = len(one.columns) - texts
        return Part(tuples, share, group, keys, one.counts, numbers, texts, beside)

    def _look_at(self, one: Narrowed) -> tuple[float | None, float | None]:
        """What the conditions on a table keep of some of its tuples, and the share of the least group of these."""
        probe = self._probe(one.table)
        share = 1.0 if one.condition is None else probe.told_share(one.condition)
        return share, probe.least_group(one.condition, one.groups) if one.groups else 1.0

    def _probe(self, table: str) -> Probe:
        """Some tuples of a table, looked for once."""
        from ..sources.selectivity import Probe

        probes, context = self._probes, self._at_hand
        if table not in probes:
            start = (lambda: context.spark) if self.jobs else _no_job
            frame = context.tables.as_given(table)
            probes[table] = Probe(start, frame, context.evaluate, self._paths(table))
        return probes[table]

    def _paths(self, table: str) -> list[str]:
        """The files whose columns are those of a table; none where nobody knows."""
        from ..sources.files import paths_of

        if self.context is None:
            return []
        tables = self.context.tables
        if tables.origin(table)[0] != "file" and not tables.sources(table).bare:
            return []
        return paths_of(tables, table, tables.as_given(table))

    def _looked_up(self, way: Decomposition) -> tuple[int, ...]:
        from ..sources.keys_seen import keys_of_first, keys_seen

        if self.context is None:
            return ()
        found: dict[int, float] = {}
        context = self.context
        for role in way.roles:
            column = Attribute((quote_name(role.column),), (role.kind,), way.name)
            frame, paths = context.tables.as_given(role.table), self._paths(role.table)
            counted = self._counted_keys(role) if paths else None
            seen = keys_seen(frame, column, paths) if paths and counted is None else None
            if counted is None and seen is None and self.jobs and self._starts_at_once(role.table):
                own = context.tables.frame(role.table)
                seen = keys_of_first(context.spark, role.table, own, column, context.listener)
            for key, share in counted or (() if seen is None else heavy_keys(seen)):
                found[key] = max(found.get(key, 0.0), share)
        return tuple(sorted(sorted(found, key=lambda k: -found[k])[:MOST_DENSE]))

    def _counted_keys(self, role: Role) -> Iterator[tuple[int, float]] | None:
        """As `heavy_keys`, by all tuples of a table; None where its files do not tell."""
        from ..sources.fan_out import counts_of

        tuples = self.tuples(role.table)
        counted = counts_of(self._paths(role.table), role.column, tuples)
        if counted is None or not counted.keys.size:
            return None
        least = max(DENSE_TIMES * tuples / counted.distinct, LEAST_SEEN)
        listed = zip(counted.keys.tolist(), (counted.counts / tuples).tolist(), strict=True)
        return ((key, share) for key, share in listed if share * tuples >= least)

    @property
    def _at_hand(self) -> Context:
        assert self.context is not None, "there are tables"
        return self.context

    def _starts_at_once(self, table: str) -> bool:
        """Whether the first tuples of a table are there without all others: of files and constants as they stand."""
        sources = self._at_hand.tables.sources(table)
        return sources.whole or (sources.state.complete and not sources.files)

    def _counted(self, table: str) -> float:
        from ..sources.files import files_of
        from ..spark.jobs import run_job

        if self.context is None:
            return UNKNOWN_TUPLES
        context, tables = self.context, self.context.tables
        found = files_of(tables, table, tables.as_given(table), count=True).tuples
        if found is not None:
            return float(found)
        if not self.jobs:
            return UNKNOWN_TUPLES
        frame = tables.frame(table)
        key = ("tuples", table.lower())
        return float(
            tables.once(
                key,
                lambda: run_job(context.spark, f"counting {table}", frame.count, context.listener),
            )
        )

    @cached_property
    def _known_tuples(self) -> dict[str, float]:
        return {}

    @cached_property
    def _known_keys(self) -> dict[tuple[str, str], float]:
        return {}

    @cached_property
    def _known_dense(self) -> dict[Decomposition, tuple[int, ...]]:
        return {}

    @cached_property
    def _looked_at(self) -> dict[int, tuple[float | None, float | None]]:
        return {}

    @cached_property
    def _known_shares(self) -> dict[int, tuple[float, ...]]:
        return {}

    @cached_property
    def _probes(self) -> dict[str, Probe]:
        return {}


def _no_job() -> SparkSession:
    raise LookupError("no job may run")
