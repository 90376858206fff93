"""The user's own query on a sample of the keys of one join class: Spark runs it by groups and keys.

Every table of the class is filtered by the hash of its key, so that a key is there with all its tuples or with none;
the tuples without a key are always there. The keys are the clusters of a Poisson sample, and their totals what
`sketches.samples.sample_join` estimates from.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ...errors import BudgetExceeded, DataError, UnsupportedQuery
from ...optimizer.operators import SAMPLE
from ...optimizer.plan import Attribute, Plan, PlannedAggregate, PlannedTerm
from ...parser.fragment import quote_name
from ...parser.join_graph import Term
from ...parser.keys import Decomposition, Role
from ...parser.measures import is_list, measure_of
from ...parser.sampled_select import SET, SampledQuery
from ...sketches.intervals.interval import Estimate, exact
from ...sketches.intervals.rounding import slack_of
from ...sketches.samples.cluster_quantiles import ClusteredValues
from ...sketches.samples.known_keys import JoinTerms
from ...sketches.samples.sampled_hash import HASH_BITS, sample_family, seed_text
from ..observed import observed
from ..sources.keys import key_text
from ..sources.literals import literal
from .groups import span
from .sample_join import SampleJoin

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ..spark.jobs import ProgressListener

KEY = "__k"

# Groups that a sampled query may have: each is some rows of a table, and no sketch.
MOST_GROUPS = 10_000

# With more groups than this to be run exactly all of them are.
MOST_NAMED = 200

BYTES_PER_VALUE = 8


@dataclass(frozen=True, slots=True)
class Sampled:
    """What a sample gave.

    Attributes
    ----------
    groups : tuple of (tuple, SampleJoin, mapping of int to ClusteredValues)
        The values of each group that was met, what its keys add, and their values where measures are lists.
    keys : int
        How many keys were met, in all groups together.
    nbytes : int
    added : tuple of (float, float)
        Between what lies what a key adds to each measure; infinite where nothing bounds it.
    """

    groups: tuple[tuple[tuple[Any, ...], SampleJoin, dict[int, ClusteredValues]], ...]
    keys: int
    nbytes: int
    added: tuple[tuple[float, float], ...] = ()


def plan_of(query: SampledQuery, seed: int) -> Plan:
    """The aggregates of a query over its measures, each a term of its own."""
    number = {sql: n for n, sql in enumerate(query.measures)}

    def planned(terms: Sequence[Term]) -> tuple[PlannedTerm, ...]:
        return tuple(PlannedTerm(t.coefficient, (number[measure_of(t)],)) for t in terms)

    aggregates = tuple(
        PlannedAggregate(a.function, a.name, planned(a.total), planned(a.presence)) for a in query.aggregates
    )
    return Plan(query, seed, (), (), (), aggregates, ())


def sampled_text(
    query: SampledQuery, way: Decomposition, rate: float, seed: int, dense: Sequence[int] = ()
) -> str:
    """What Spark runs: the query by groups and keys, for a share of the keys and for all `dense` ones."""
    family = sample_family(seed, way.name)
    below = _threshold(rate)

    def condition(role: Role) -> str:
        column = quote_name(role.column)
        word = f"xxhash64('{seed_text(family)}', {_key(column, way)}) & {(1 << HASH_BITS) - 1}L"
        heavy = f" OR {_key(column, way)} IN ({', '.join(f'{k}L' for k in dense)})" if dense else ""
        return f"{column} IS NULL OR {word} < {below}L{heavy}"

    columns = [f"{_key(way.key, way)} AS `{KEY}`"]
    columns += [
        f"{sql if is_list(sql) else f'CAST({sql} AS DOUBLE)'} AS `__m{n}`"
        for n, sql in enumerate(query.measures)
    ]
    return query.by_key(way, condition, columns, (way.key,))


def _threshold(rate: float) -> int:
    return max(1, round(rate * (1 << HASH_BITS)))


def _key(column: str, way: Decomposition) -> str:
    return key_text(Attribute((column,), (way.kind,), way.name))


def run_sampled(
    spark: SparkSession,
    query: SampledQuery,
    text: str,
    rate: float,
    class_name: str,
    most_bytes: int,
    listener: ProgressListener | None = None,
    dense: Sequence[int] = (),
    added: Mapping[str, tuple[float, float]] | None = None,
) -> Sampled | None:
    """Run the text of a sample; None where what the keys add takes more than `most_bytes`.

    `dense` keys are there for certain, and between what lies what another one adds to a measure tells `added`.

    Raises
    ------
    UnsupportedQuery
        ``SKIMQL_SPARK_REFUSES`` if Spark refuses the text, ``SKIMQL_GROUP_TYPE`` or ``SKIMQL_UNSUPPORTED_CLAUSE`` if a
        group is of a type that nothing can be grouped by here.
    BudgetExceeded
        With more than `MOST_GROUPS` groups.
    DataError
        If the run fails, or a sum is no number.
    """
    from ..sources.python_values import in_zone
    from ..spark.jobs import run_job
    from ..spark.session import SPARK_FAULTS, first_line
    from .grouping import Statement, refuse_collated

    measures = len(query.measures)
    width = BYTES_PER_VALUE * (measures + 1 + len(query.group_texts))
    most = max(most_bytes // width, 1)
    try:
        frame = spark.sql(text).limit(most + 1)
    except SPARK_FAULTS as fault:
        raise UnsupportedQuery(
            f"Spark refuses the query by its keys: {first_line(fault)}",
            "SKIMQL_SPARK_REFUSES",
            query.sql,
            hint="EXACT SELECT ...",
        ) from fault
    if query.groups:
        kinds = [f.dataType.simpleString() for f in frame.schema.fields[: len(query.groups)]]
        statement = Statement(query.sql, span(query.groups), "EXACT SELECT ...")
        refuse_collated([g.name for g in query.groups], kinds, statement)
    try:
        with observed(SAMPLE, f"keys {class_name}") as seen:
            table = run_job(spark, f"the query on one in {1 / rate:,.0f} keys", frame.toArrow, listener)
            seen.rows, seen.bytes_held = table.num_rows, table.nbytes
    except SPARK_FAULTS as fault:
        message = f"the query on a sample of its keys failed: {first_line(fault)}"
        raise DataError(message, "SKIMQL_EXACT_FAILED", query.sql) from fault
    if table.num_rows > most or (any(map(is_list, query.measures)) and table.nbytes > most_bytes):
        return None
    return of_table(query, in_zone(spark, table), _threshold(rate) / (1 << HASH_BITS), dense, added)


def run_groups(
    spark: SparkSession,
    query: SampledQuery,
    groups: Sequence[Sequence[Any]],
    listener: ProgressListener | None = None,
) -> list[tuple[tuple[Any, ...], tuple[Estimate, ...]]]:
    """The values and the exact aggregates of some groups, by the query as it stands; others may come along.

    Raises
    ------
    DataError
        If the run fails.
    """
    from ..sources.python_values import in_zone, python_values
    from ..spark.jobs import run_job
    from ..spark.session import SPARK_FAULTS, first_line

    texts = [query.text_of(a) for a in query.aggregates]
    text = query.whole([f"{t} AS `__a{n}`" for n, t in enumerate(texts)])
    condition = _among(query.group_texts, groups)
    try:
        # Spark filters by what is grouped by before it joins.
        frame = spark.sql(f"{text}\nHAVING {condition}" if condition else text)
        table = in_zone(spark, run_job(spark, "groups exactly", frame.toArrow, listener))
    except SPARK_FAULTS as fault:
        message = f"the exact run of some groups failed: {first_line(fault)}"
        raise DataError(message, "SKIMQL_EXACT_FAILED", query.sql, hint="BEHAVIOR 'do_nothing'") from fault
    columns = [python_values(c) for c in table.columns]
    number = len(query.group_texts)
    rows = zip(*columns, strict=True) if columns else ()
    return [(row[:number], tuple(map(_known, row[number:]))) for row in rows]


def _among(texts: Sequence[str], groups: Sequence[Sequence[Any]]) -> str:
    """The condition that a group is among some, as SQL; empty where all are as well, or a value has no literal."""
    if len(groups) > MOST_NAMED:
        return ""
    try:
        one = [
            " AND ".join(f"({t}) <=> {literal(t, v)}" for t, v in zip(texts, values, strict=True))
            for values in groups
        ]
    except UnsupportedQuery:
        return ""
    return " OR ".join(f"({o})" for o in one)


def _known(value: Any) -> Estimate:
    if value is None:
        return exact(math.nan)
    return exact(value if isinstance(value, int | float) else Fraction(value))


def of_table(
    query: SampledQuery,
    table: pa.Table,
    rate: float,
    dense: Sequence[int] = (),
    added: Mapping[str, tuple[float, float]] | None = None,
) -> Sampled:
    """What the rows of a sample, one for each group and key, say of every group: see `run_sampled`."""
    keys, known = _integers(table.column(KEY))
    columns = [table.column(f"__m{n}") for n in range(len(query.measures))]
    lists = {n: _Lists(columns[n]) for n, sql in enumerate(query.measures) if is_list(sql)}
    terms = np.array([np.zeros(table.num_rows) if n in lists else _doubles(c) for n, c in enumerate(columns)])
    finite = [np.isfinite(lists[n].values if n in lists else t).all() for n, t in enumerate(terms)]
    if not all(finite):
        name = query.measures[int(np.argmin(finite))]
        message = f"{name} is no number for some keys: NaN or infinite"
        raise DataError(message, "SKIMQL_NOT_FINITE", query.sql, hint="EXACT SELECT ...")
    probabilities = np.where(known & ~np.isin(keys, np.array(dense, np.int64)), rate, 1.0)
    counting = ["count" in m.lower().split("(")[0] for m in query.measures]
    bounds = tuple(unbounded(m, query) if added is None else added[m] for m in query.measures)
    unseen = np.array(bounds).reshape(-1, 2) / rate
    if rate == 1.0:
        # Sums that are computed by key differ from Spark's in their last digits.
        unseen = np.zeros_like(unseen)
    numbers = tuple((n,) for n in range(len(query.measures)))
    slacks = [
        0.0 if counts or rate < 1.0 else slack_of(t.size, np.abs(t).sum())
        for counts, t in zip(counting, terms, strict=True)
    ]
    found = []
    for values, places in _groups(query, table):
        contributed = JoinTerms(keys[places], terms[:, places], probabilities[places], unseen)
        joined = SampleJoin(numbers, contributed, table.nbytes, (1.0,) * len(numbers), tuple(slacks))
        own = {n: held.of(places, contributed.probabilities) for n, held in lists.items()}
        found.append((values, joined, own))
    return Sampled(tuple(found), len(np.unique(keys[known])), table.nbytes, bounds)


def unbounded(measure: str, query: SampledQuery) -> tuple[float, float]:
    """Between what lies what a key adds to a measure, whatever is in the tables."""
    counts = measure.upper().startswith("COUNT")
    return 0.0 if counts else -math.inf, 1.0 if measure in query.ones else math.inf


def _groups(query: SampledQuery, table: pa.Table) -> list[tuple[tuple[Any, ...], Any]]:
    """The values of each group, and the rows of its keys; without groups all rows."""
    from ..sources.python_values import python_values

    names = [f"__g{n}" for n in range(len(query.group_texts))]
    told_apart = [*names, SET] if query.sets_of_groups else names
    if not names:
        return [((), slice(None))]
    numbered = table.select(told_apart).append_column("__row", pa.array(np.arange(table.num_rows)))
    try:
        grouped = numbered.group_by(told_apart, use_threads=False).aggregate([("__row", "list")])
    except pa.ArrowNotImplementedError as fault:
        raise UnsupportedQuery(
            "GROUP BY an array, a map or a struct cannot be estimated from a sample of keys",
            "SKIMQL_UNSUPPORTED_CLAUSE",
            query.sql,
            tuple(query.groups[0].span),
            "EXACT SELECT ...",
        ) from fault
    if grouped.num_rows > MOST_GROUPS:
        raise BudgetExceeded(
            f"more than {MOST_GROUPS:,} groups of {', '.join(g.name for g in query.groups)}",
            "SKIMQL_TOO_MANY_GROUPS",
            query.sql,
            span(query.groups),
            "EXACT SELECT ...",
        )
    columns = [python_values(grouped.column(n)) for n in names]
    rows = grouped.column("__row_list").combine_chunks()
    ends, all_rows = rows.offsets.to_numpy(), rows.values.to_numpy()
    found = [(values, all_rows[ends[n] : ends[n + 1]]) for n, values in enumerate(zip(*columns, strict=True))]
    # Rows of Spark come in any order; those of an answer do not.
    return sorted(found, key=lambda g: [(v is None, str(v)) for v in g[0]])


class _Lists:
    """A column of lists of numbers."""

    def __init__(self, column: pa.ChunkedArray) -> None:
        lists = column.combine_chunks()
        self.values = lists.values.to_numpy(zero_copy_only=False)
        self._offsets = lists.offsets.to_numpy()

    def of(self, places: Any, probabilities: Any) -> ClusteredValues:
        """The values of some rows, whose keys have these probabilities."""
        starts, ends = self._offsets[:-1][places], self._offsets[1:][places]
        counts = ends - starts
        owners = np.repeat(np.arange(len(counts)), counts)
        within = np.arange(len(owners)) - np.repeat(np.cumsum(counts) - counts, counts)
        return ClusteredValues(self.values[np.repeat(starts, counts) + within], owners, probabilities)


def _integers(column: pa.ChunkedArray) -> tuple[Any, Any]:
    """Keys, and which of them are no NULL."""
    known = np.asarray(column.is_valid())
    return column.fill_null(0).to_numpy(), known


def _doubles(column: pa.ChunkedArray) -> Any:
    """What keys add; the sum of nothing adds nothing."""
    return column.fill_null(0.0).to_numpy()
