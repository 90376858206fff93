"""How large a sample of keys the user's own query is run on, and over which of its join classes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import NormalDist
from typing import TYPE_CHECKING

from ...errors import UnsupportedQuery
from ...optimizer.physical import Nothing
from ...optimizer.physical import SampledQuery as Attempt
from ...optimizer.plan import Attribute
from ...parser.fragment import quote_name
from ...parser.keys import Decomposition, Role
from ...parser.measures import measure_of
from ...parser.sampled_select import SampledQuery
from ..results.rows import Estimated, GroupNumbers
from ..settings import Settings
from .behavior import PARTLY

if TYPE_CHECKING:
    from ...optimizer.prediction.first_class import SeenKeys
    from ...sketches.intervals.interval import Estimate
    from ..context import Context

# Of the keys a share that is looked at where nothing is asked, and first where an error is.
DEFAULT_RATE = 1 / 16
FIRST_RATE = 1 / 32

# A sample takes the keys of about so many tuples at least.
LEAST_TUPLES = 100_000.0

# With a larger share of the keys all of them are cheaper.
MOST_RATE = 0.25

# Where an error is asked a first sample of a larger share is not worth its scan: all keys may have to follow it.
MOST_FIRST = 1 / 16

# A sample is enlarged by so much more than its interval asks for, as the next one is asked at a higher confidence.
RESERVE = 1.3

# Where nothing says how wide the interval is, so many times more keys are taken.
STEP = 8.0
MOST_STEP = 1 / 8

# Of what all keys take, the part that any sample of them takes: the scan.
SCAN_SHARE = 0.4

# A class of fewer keys says little.
FEW_KEYS = 1000

# A key is dense that this part of the tuples that are looked at has, so many of them, and so many times more than keys
# have on average; no more keys than that are.
DENSE_SHARE, LEAST_SEEN, DENSE_TIMES, MOST_DENSE = 1 / 500, 8.0, 8.0, 64

BYTES_PER_VALUE = 8

# A sample that takes less than a part of the asked size is drawn anew, so large that it takes nearly all of it, even if
# chance has met fewer rows than there are by so many deviations.
LEAST_FILLED, FILLED, DEVIATIONS = 0.25, 0.8, 2.0
SEED_BITS = 48

# Tuples of a table of which nothing is known and no job may ask.
UNKNOWN_TUPLES = 1e7


def least_rate(tried: Sequence[float]) -> float:
    """A share of the keys that takes as much as all samples that were taken; 1 where none less than all keys does."""
    spent = sum(SCAN_SHARE + (1.0 - SCAN_SHARE) * rate for rate in tried)
    rate = (spent - SCAN_SHARE) / (1.0 - SCAN_SHARE)
    return rate if rate <= MOST_RATE else 1.0


def _heavy(seen: SeenKeys) -> Iterator[tuple[int, float]]:
    """The keys that a part of the looked at tuples has, and many times more of them than keys have on average."""
    if seen.ordered or not len(seen.keys):
        return
    least = max(DENSE_SHARE * seen.tuples, DENSE_TIMES * float(seen.counts.mean()), LEAST_SEEN)
    for key, count in zip(seen.keys.tolist(), seen.counts.tolist(), strict=True):
        if count >= least:
            yield key, count / seen.tuples


@dataclass(frozen=True)
class SampledPlan:
    """Plans one query on a sample of keys.

    Attributes
    ----------
    context : Context
    query : SampledQuery
    settings : Settings
    jobs : bool
        Whether tuples may be counted by a job.
    refines : bool
        Whether the answer of each sample is shown, of the first too.
    """

    context: Context
    query: SampledQuery
    settings: Settings
    jobs: bool
    refines: bool = False

    def first(self) -> Attempt | Nothing:
        """The first sample; nothing where files tell what is asked.

        Raises
        ------
        UnsupportedQuery
            ``SKIMQL_CLAUSE`` where single groups of ROLLUP and its like are to be run exactly,
            ``SKIMQL_UNSUPPORTED_AGGREGATE`` where files do not tell a MIN or MAX.
        """
        known = self.extremes
        if self.query.is_in_files:
            asked = [a for a in self.query.aggregates if a.asked]
            return Nothing("files tell it", tuple(known[measure_of(a.total[0])] for a in asked))
        if self.settings.behavior == PARTLY and self.query.sets_of_groups:
            raise UnsupportedQuery(
                f"{PARTLY} runs single groups exactly, which is not done of several sets of them",
                "SKIMQL_CLAUSE",
                self.query.sql,
                hint="BEHAVIOR 'run_on_full_table'",
            )
        ways = self.query.ways
        way = min(range(len(ways)), key=lambda n: self._order(ways[n]))
        return self._of(way, self._first_rate(ways[way]), self.settings.seed)

    @cached_property
    def extremes(self) -> dict[str, int]:
        """What files tell of the measures that they are to tell."""
        from ..sources.files import integer_range

        found = {}
        for measure, extreme in self.query.extremes:
            told = integer_range(self.context.tables, extreme.table, extreme.column)
            if told is None:
                raise extreme.refusal(self.query.sql)
            found[measure] = told[extreme.function == "max"]
        return found

    def _first_rate(self, way: Decomposition) -> float:
        largest = max(self.tuples(r.table) for r in way.roles)
        if self.settings.size_bytes is not None:
            keys = max(min(self.tuples(r.table), self._range(r)) for r in way.roles)
            return min(FILLED * self.settings.size_bytes / self.row_bytes / max(keys, 1.0), 1.0)
        least = LEAST_TUPLES / max(largest, 1.0)
        if self.settings.error is None:
            rate = max(DEFAULT_RATE, least)
            return rate if rate <= MOST_RATE else 1.0
        rate = max(FIRST_RATE, least)
        if not self.refines and not self._dense(way):
            rate = max(rate, self._least_rate(way, self.settings.error))
        return rate if rate <= MOST_FIRST else 1.0

    def _least_rate(self, way: Decomposition, error: float) -> float:
        """The share of the keys that an error takes at least of counts and sums: if each key added the same."""
        if all(a.function not in ("count", "sum") for a in self.query.aggregates if a.asked):
            return 0.0
        keys = sum(min(self.tuples(r.table), self._range(r)) for r in way.roles)
        normal = NormalDist().inv_cdf((1.0 + self.settings.confidence) / 2)
        return 1.0 / (1.0 + keys * (error / normal) ** 2)

    @property
    def row_bytes(self) -> int:
        """What a key takes, once for each of its groups."""
        return BYTES_PER_VALUE * (1 + len(self.query.measures) + len(self.query.group_texts))

    def _of(self, way: int, rate: float, seed: int) -> Attempt:
        from ..execution.sampled_query import plan_of, sampled_text

        taken = self.query.ways[way]
        plan = plan_of(self.query, seed)
        tables = tuple(r.table for r in taken.roles)
        dense = self._dense(taken) if rate < 1.0 else ()
        text = sampled_text(self.query, taken, rate, seed, dense)
        enlarges = self.settings.error is not None and self.settings.size_bytes is None
        return Attempt(plan, text, way, taken.name, rate, tables, taken.whole, enlarges, dense=dense)

    def resized(self, attempt: Attempt, rate: float) -> Attempt:
        """The same with another share of the keys."""
        return replace(self._of(attempt.way, min(rate, 1.0), attempt.plan.seed), enlarges=attempt.enlarges)

    def filling(self, attempt: Attempt, nbytes: int, taken: int) -> Attempt | None:
        """A sample that takes the asked size, of other keys, after one of `nbytes`; None where that is enough.

        Parameters
        ----------
        attempt : SampledQuery
        nbytes : int
        taken : int
            How many samples were drawn so far: the next one is independent of them, so that an interval is no
            narrower for what was looked at before.
        """
        size = self.settings.size_bytes
        if size is None or attempt.rate == 1.0 or nbytes >= LEAST_FILLED * size:
            return None
        met = nbytes / self.row_bytes
        most = met + DEVIATIONS * math.sqrt(met) + DEVIATIONS
        rate = attempt.rate * FILLED * size / (most * self.row_bytes)
        seed = self.settings.seed ^ taken << SEED_BITS
        return self._of(attempt.way, min(rate, 1.0), seed) if rate > attempt.rate else None

    def enlarged(self, attempt: Attempt, excess: float) -> Attempt:
        """A larger sample after one whose interval was `excess` times too wide; all keys where that is cheaper."""
        rate = attempt.rate
        if excess == float("inf"):
            wanted = STEP * rate
            if wanted > MOST_STEP and not self.refines:
                # Nothing says that so many keys would be enough, and all of them take little more.
                return self.resized(attempt, 1.0)
        else:
            # The variance of a sum goes with (1 - rate) / rate.
            odds = (1.0 - rate) / rate / (RESERVE * excess * excess)
            wanted = 1.0 / (1.0 + odds)
        return self.resized(attempt, wanted if wanted <= MOST_RATE else 1.0)

    @cached_property
    def _dense(self) -> Callable[[Decomposition], tuple[int, ...]]:
        known: dict[Decomposition, tuple[int, ...]] = {}

        def dense(way: Decomposition) -> tuple[int, ...]:
            if way not in known:
                known[way] = self._looked_up(way)
            return known[way]

        return dense

    def _looked_up(self, way: Decomposition) -> tuple[int, ...]:
        """The keys that many of some tuples of a table have, each far more than keys have on average.

        They are always there: what a sample would say of them by chance is then certain.
        """
        from ..sources.keys_seen import keys_seen

        found: dict[int, float] = {}
        for role in way.roles:
            if self._is_file(role.table):
                column = Attribute((quote_name(role.column),), (role.kind,), way.name)
                seen = keys_seen(self.context.tables.frame(role.table), column)
                for key, share in () if seen is None else _heavy(seen):
                    found[key] = max(found.get(key, 0.0), share)
        return tuple(sorted(sorted(found, key=lambda k: -found[k])[:MOST_DENSE]))

    def _is_file(self, table: str) -> bool:
        return self.context is not None and self.context.tables.origin(table)[0] == "file"

    def exact_groups(
        self, numbers: Sequence[GroupNumbers], estimated: Estimated
    ) -> dict[GroupNumbers, Sequence[Estimate]]:
        """The exact aggregates of some of the groups that a sample has met."""
        from ..execution.sampled_query import run_groups

        wanted = {repr(tuple(estimated.evaluators[n].group)): n for n in numbers}
        values = [tuple(estimated.evaluators[n].group) for n in numbers]
        found = run_groups(self.context.spark, self.query, values, self.context.listener)
        return {wanted[repr(group)]: known for group, known in found if repr(group) in wanted}

    def _order(self, way: Decomposition) -> tuple[bool, float]:
        """Classes of many keys first, then those that leave little to be read for the same error.

        The error falls with the number of keys that are drawn: of a class of fewer keys a larger share is to be taken.
        """
        sampled = sum(self.tuples(r.table) for r in way.roles)
        whole = sum(self.tuples(t) for t in way.whole)
        most = max(map(self._keys, self.query.ways))
        rate = min(DEFAULT_RATE * most / max(self._keys(way), 1.0), 1.0)
        return self._few(way), whole + rate * sampled

    def _keys(self, way: Decomposition) -> float:
        """No more keys than that are in every table of a class."""
        return min(min(self.tuples(r.table), self._range(r)) for r in way.roles)

    def _few(self, way: Decomposition) -> bool:
        return any(self._range(r) < FEW_KEYS for r in way.roles)

    def _range(self, role: Role) -> float:
        """No more keys than that, by the footers of a table's files."""
        from ..sources.files import values_between

        tables = self.context.tables
        if not self._is_file(role.table):
            return math.inf
        return values_between(tables.frame(role.table), role.column)

    def tuples(self, table: str) -> float:
        """Tuples of a table: by its files, else counted where jobs may run."""
        return self._tuples(table)

    @cached_property
    def _tuples(self) -> Callable[[str], float]:
        known: dict[str, float] = {}

        def tuples(table: str) -> float:
            if table not in known:
                known[table] = self._counted(table)
            return known[table]

        return tuples

    def _counted(self, table: str) -> float:
        from ..sources.files import files_of
        from ..spark.jobs import run_job

        tables = self.context.tables
        frame = tables.frame(table)
        found = files_of(tables, table, frame, count=True).tuples
        if found is not None:
            return float(found)
        if not self.jobs:
            return UNKNOWN_TUPLES
        key = ("tuples", table.lower())
        return float(
            tables.once(
                key,
                lambda: run_job(self.context.spark, f"counting {table}", frame.count, self.context.listener),
            )
        )
