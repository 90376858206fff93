"""How large a sample of keys the user's own query is run on, and over which of its join classes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import NormalDist
from typing import TYPE_CHECKING

from ...errors import UnsupportedQuery
from ...optimizer.candidates.sampled_query import (
    RESERVE,
    SCAN_SHARE,
    Sized,
    Work,
    expected_keys,
    first_rate,
    work_of,
)
from ...optimizer.candidates.spending import MOST_RATE, SPENT
from ...optimizer.physical import Nothing, Predicted
from ...optimizer.physical import SampledQuery as Attempt
from ...parser.keys import Decomposition
from ...parser.measures import measure_of
from ...parser.sampled_select import SampledQuery
from ..results.rows import Estimated, GroupNumbers
from ..settings import Settings
from .behavior import PARTLY, runs_in_full
from .sampled_bounds import Added, most_added
from .sampled_tables import SampledTables

if TYPE_CHECKING:
    from ...sketches.intervals.interval import Estimate
    from ..context import Context

# Of the keys a share that is looked at where nothing is asked, and first where an error is.
DEFAULT_RATE = 1 / 16
FIRST_RATE = 1 / 32

# A sample takes the keys of about so many tuples at least.
LEAST_TUPLES = 100_000.0

# Where an error is asked a first sample of a larger share is not worth its scan: all keys may have to follow it.
MOST_FIRST = 1 / 16

# Where nothing says how wide the interval is, so many times more keys are taken.
STEP = 8.0

# A class of fewer keys says little.
FEW_KEYS = 1000

BYTES_PER_VALUE = 8

SMALL_GROUPS = "nothing tells how small a group of values that are computed for each key may be"
NO_CHEAPER = "a sample would take as long"

# A sample that takes less than a part of the asked size is drawn anew, so large that it takes nearly all of it, even if
# chance has met fewer rows than there are by so many deviations.
LEAST_FILLED, FILLED, DEVIATIONS = 0.25, 0.8, 2.0
SEED_BITS = 48


def least_rate(tried: Sequence[float]) -> float:
    """A share of the keys that takes as much as all samples that were taken; 1 where none less than all keys does."""
    spent = sum(SCAN_SHARE + (1.0 - SCAN_SHARE) * rate for rate in tried)
    rate = (spent - SCAN_SHARE) / (1.0 - SCAN_SHARE)
    return rate if rate <= MOST_RATE else 1.0


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
        sizes = [self._sized(number) for number in range(len(ways))]
        way = min(range(len(ways)), key=lambda n: self._order(n, sizes[n]))
        found = self._first(way, sizes[way])
        if found.rate < 1.0 and self._needs_certainty and not self._may_be_certified(found.way):
            why = f"no sample would be certain enough for {self.settings.behavior}"
            return replace(self.resized(found, 1.0), why=why)
        return found

    @property
    def _needs_certainty(self) -> bool:
        """Whether the behaviour lets the exact run follow a sample whose interval is not certified."""
        if self.settings.error is None or self.settings.size_bytes is not None or self.refines:
            return False
        return runs_in_full(self.settings, self.query)

    def _may_be_certified(self, way: int) -> bool:
        """Whether it is known of all that is asked between what lies what a key adds that was not met."""
        added = self.added(way).ends
        asked = [a for a in self.query.aggregates if a.asked]
        terms = [t for a in asked for t in (*a.total, *(a.presence if a.function == "avg" else ()))]
        bounded = all(map(math.isfinite, (end for t in terms for end in added[measure_of(t)])))
        return bounded and all(a.function in ("count", "sum", "avg") for a in asked)

    def added(self, way: int) -> Added:
        """What a key of a class adds to each measure, unless it is always met; see `most_added`."""
        if way not in self._known_added:
            taken = self.query.ways[way]
            dense = self.tables.dense(taken)
            self._known_added[way] = most_added(self.query, taken, self.tables, dense)
        return self._known_added[way]

    @cached_property
    def _known_added(self) -> dict[int, Added]:
        return {}

    def _surplus(self, way: int, rows: float) -> float:
        """The most that a key adds to a count or sum, over what one of so many rows adds; 0 where nothing bounds it."""
        added, found = self.added(way).ends, [0.0]
        for aggregate in self.query.aggregates:
            if aggregate.asked and aggregate.function in ("count", "sum"):
                _, most = added[measure_of(aggregate.presence[0])]
                # Values between nothing and the largest are half of that on average.
                found.append((2.0 if aggregate.function == "sum" else 1.0) * most / rows)
        return max(f for f in found if math.isfinite(f))

    def _first(self, way: int, sized: Sized | None) -> Attempt:
        if sized is None:
            return self._of(way, self._first_rate(self.query.ways[way]), self.settings.seed)
        found = replace(self._of(way, sized.rate, self.settings.seed), predicted=Predicted(sized.half_width))
        return found if found.rate < 1.0 else replace(found, why=self._why(sized))

    def _why(self, sized: Sized) -> str:
        """Why all keys are cheaper than a sample."""
        assert self.settings.error is not None, "it is for an error that a sample is sized"
        if sized.why:
            return sized.why
        group = "the smallest group" if self.query.groups else "the value"
        share = 100 * min(sized.needed, 0.99)
        wanted = (
            f"±{100 * self.settings.error:.3g} % of {group} is expected to take {share:.2g} % of the keys"
        )
        if sized.needed > MOST_RATE or sized.least_over_exact >= 1.0:
            return f"{wanted}, which costs as much as all of them"
        return f"{wanted}, and so many may not be enough that the exact run is cheaper"

    def _sized(self, number: int) -> Sized | None:
        """The first sample of a class by how many keys are expected to add to the result; None where nothing tells."""
        error, behavior = self.settings.error, self.settings.behavior
        partly = behavior in (PARTLY, "local_omit") and bool(self.query.groups)
        if error is None or self.settings.size_bytes is not None or self.refines or partly:
            return None
        known, way = self.query.narrowing, self.query.ways[number]
        parts = self.tables.parts(way, known)
        expected = None if parts is None else expected_keys(parts, known.unread, known.unread_groups)
        if parts is None or expected is None:
            return None
        if known.computed_groups:
            return Sized(1.0, 0.0, 1.0, 1.0, why=SMALL_GROUPS)
        work, largest = work_of(parts), max(self.tables.tuples(r.table) for r in way.roles)
        least = max(FIRST_RATE, LEAST_TUPLES / max(largest, 1.0))
        if not self._adds_up:
            # How wide the intervals of means and quantiles are, nothing tells.
            over = work.over_exact(least)
            if least <= MOST_FIRST and over < 1.0:
                return Sized(least, math.nan, least, over)
            return Sized(1.0, 0.0, 1.0, 1.0, why=NO_CHEAPER)
        confidence = 1.0 - SPENT[0] * (1.0 - self.settings.confidence)
        found = first_rate(expected, work, error, confidence, least)
        if found.rate == 1.0:
            return found
        # What bounds a key is looked for where a sample would be drawn.
        surplus = self._surplus(number, expected.rows)
        return first_rate(replace(expected, surplus=surplus), work, error, confidence, least)

    def affordable(self, attempt: Attempt, tried: Sequence[float]) -> float:
        """The largest share of the keys that may follow the samples that were taken."""
        parts = self.tables.parts(self.query.ways[attempt.way], self.query.narrowing)
        return (Work() if parts is None else work_of(parts)).most_next(tried)

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
        largest = max(self.tables.tuples(r.table) for r in way.roles)
        if self.settings.size_bytes is not None:
            keys = max(map(self.tables.keys, way.roles))
            return min(FILLED * self.settings.size_bytes / self.row_bytes / max(keys, 1.0), 1.0)
        least = LEAST_TUPLES / max(largest, 1.0)
        if self.settings.error is None:
            rate = max(DEFAULT_RATE, least)
            return rate if rate <= MOST_RATE else 1.0
        rate = max(FIRST_RATE, least)
        if not self.refines and not self.tables.dense(way):
            rate = max(rate, self._least_rate(way, self.settings.error))
        return rate if rate <= MOST_FIRST else 1.0

    @property
    def _adds_up(self) -> bool:
        """Whether a count or sum is asked for."""
        return any(a.function in ("count", "sum") for a in self.query.aggregates if a.asked)

    def _least_rate(self, way: Decomposition, error: float) -> float:
        """The share of the keys that an error takes at least of counts and sums: if each key added the same."""
        if not self._adds_up:
            return 0.0
        keys = sum(map(self.tables.keys, way.roles))
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
        dense = self.tables.dense(taken) if rate < 1.0 else ()
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
            if 2.0 * rate <= MOST_RATE:
                wanted = min(wanted, MOST_RATE)
        else:
            # The variance of a sum goes with (1 - rate) / rate.
            odds = (1.0 - rate) / rate / (RESERVE * excess * excess)
            wanted = 1.0 / (1.0 + odds)
        return self.resized(attempt, wanted if wanted <= MOST_RATE else 1.0)

    def exact_groups(
        self, numbers: Sequence[GroupNumbers], estimated: Estimated
    ) -> dict[GroupNumbers, Sequence[Estimate]]:
        """The exact aggregates of some of the groups that a sample has met."""
        from ..execution.sampled_query import run_groups

        wanted = {repr(tuple(estimated.evaluators[n].group)): n for n in numbers}
        values = [tuple(estimated.evaluators[n].group) for n in numbers]
        found = run_groups(self.context.spark, self.query, values, self.context.listener)
        return {wanted[repr(group)]: known for group, known in found if repr(group) in wanted}

    def _order(self, number: int, sized: Sized | None) -> tuple[bool, bool, float, float]:
        """Classes of many keys first, then those whose samples can be certified, then those of the least cost.

        The error falls with the number of keys that are drawn: of a class of fewer keys a larger share is to be taken.
        """
        way = self.query.ways[number]
        sampled = sum(self.tables.tuples(r.table) for r in way.roles)
        whole = sum(self.tables.tuples(t) for t in way.whole)
        most = max(map(self._keys, self.query.ways))
        rate = min(DEFAULT_RATE * most / max(self._keys(way), 1.0), 1.0)
        over = math.inf if sized is None else sized.over_exact
        certain = sized is not None and sized.rate < 1.0 and self._may_be_certified(number)
        return self._few(way), not certain, over, whole + rate * sampled

    def _keys(self, way: Decomposition) -> float:
        """About as many keys are in every table of a class at most."""
        return min(map(self.tables.keys, way.roles))

    def _few(self, way: Decomposition) -> bool:
        return any(self.tables.most_keys(r) < FEW_KEYS for r in way.roles)

    @cached_property
    def tables(self) -> SampledTables:
        """What is known of the tables."""
        return SampledTables(self.context, self.jobs)
