"""A first sample of large tables, by their row counts and a glance at their filters.

On large tables a pilot costs as much as an answer. A sample of the keys by which the largest tables meet costs little
more than the scan, and its own interval says whether it was enough; if not, it says how much would be.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from ...parser.join_graph import JoinGraph
from ..messages import tree_of
from ..plan import ValueDraw
from ..prediction.cost import (
    Input,
    asked_for_keys,
    counting,
    drawing,
    exact_groups,
    exact_join,
    first_scans,
    jobs,
    listed_groups,
    received,
    scans,
)
from ..prediction.cost import first_sample as sampling
from .tuple_draws import MOST_PART, MOST_WHOLE, MOST_WHOLE_EVER, PART, SKEWED, TupleDraws, tuple_draws
from .value_draws import MOST_DEAR, Summed, times_means, value_draws

# Below this many tuples in the largest table statistics are cheaper than a sample that was wrong.
LARGE = 1e6

# Keys with partners that make an interval of the asked width where what a key adds varies as much as its mean (1.96^2
# (1 + 1) / 0.05^2) and the error is this one. Half the error takes four times as many.
NEEDED = 3074.0
NEEDED_ERROR = 0.05

# So many times more keys are tried where the interval of as many as are usually needed is predicted to be too wide.
MORE = (1.0, 2.0, 4.0)

# Parts of the asked error that may be left to unseen keys; with more than the widest one no interval is narrow enough.
PARTS = (PART / 4.0, PART / 2.0, PART, 2.0 * PART, MOST_PART)
WIDEST_PART = 0.3

# A table of which those looked at have so many keys has another one in each tuple.
UNIQUE = 0.99

# The quantile of a standard normal variable for the usual confidence.
QUANTILE = 1.96

# How many times too few keys may be expected to be enough, since fewer contribute or what they add varies more: with at
# most one filter, for each further one on tables that meet in the sampled key, and for each on tables beyond. All
# factors in between are as likely.
UNSURE = 2.0
UNSURE_FILTER = 5.0
UNSURE_BEYOND = 2.0

# With so many times fewer than needed at the highest rate no sample is enough.
HOPELESS = 4.0

# Most joined tuples that a sample takes, and most keys of the smallest table, which the next tables are asked for.
MOST = 4e6
MOST_WANTED = 1 << 20

# The steps in which a rate is looked for that is enough.
STEP = 1.25

# A sample that has to be enlarged is enlarged by so much more than its interval asks for, also because the next one is
# asked at a higher confidence.
RESERVE = 1.75

# With a larger share of the keys the exact run is cheaper.
MOST_RATE = 0.25

# Nor is a sample worth while that is expected to cost more of what the exact run does: some cost a third more than is
# expected.
WORTH = 0.8

# A share that a glance has not met at all.
LEAST_SHARE = 0.002


# The logarithm of realised over predicted half-widths deviates so: 95 % of them are within a factor of two.
WIDTH_DEVIATION = math.log(2.0) / 1.96


@dataclass(frozen=True, slots=True)
class ClassSample:
    """Which keys of a join class (by its number in the join tree) are kept; figures as in `Sample`.

    `over_exact` is what a first sample is expected to cost, over what the exact run does; NaN of another.
    """

    joined: int
    rate: float
    dense: tuple[int, ...] = ()
    largest_other: tuple[float, ...] = ()
    row_rates: tuple[float, ...] = ()
    largest_product: float = math.inf
    hits: int = 4
    value_draws: tuple[ValueDraw, ...] = ()
    over_exact: float = math.nan
    counted: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Size:
    """Tuples of a vertex's table, and the share of them that its filter keeps, as far as a glance can tell.

    `nbytes` is for how large Spark takes the columns that are read, where files tell.
    """

    tuples: float
    share: float = 1.0
    nbytes: float | None = None

    @property
    def filtered(self) -> float:
        """Tuples behind the filter."""
        return self.tuples * max(self.share, LEAST_SHARE)

    @property
    def input(self) -> Input:
        """What it costs by."""
        return Input(self.filtered, self.tuples, self.nbytes)


@dataclass(frozen=True, slots=True)
class Together:
    """How the filters of the tables of the sampled class go together, by tuples that have been looked at.

    Attributes
    ----------
    times : float
        How many times more of the class's join passes them than if they were independent.
    deviation : float
        The standard error of that, relative to it.
    """

    times: float
    deviation: float


def is_large(tuples: Sequence[float | None]) -> bool:
    """Whether a first sample is worth while: all sizes are known, and one is large."""
    return None not in tuples and max((t for t in tuples if t is not None), default=0.0) >= LARGE


def sampled_class(graph: JoinGraph, tuples: Sequence[float]) -> int:
    """The join class whose keys a first sample takes, where the second largest table is largest; `tuples` by vertex."""
    classes = tree_of(graph).classes
    return max(range(len(classes)), key=lambda c: (sorted(tuples[v] for v in classes[c].vertices)[-2], -c))


def first_sample(
    graph: JoinGraph,
    sizes: Sequence[Size],
    error: float,
    values: float = math.inf,
    groups: float = 1.0,
    most_drawn: float = math.inf,
    summed: Sequence[Summed] = (),
    grouped: Sequence[int] = (),
    jobs_count: bool = True,
    told: Mapping[int, float] | None = None,
    more: float = 1.0,
    together: Together | None = None,
    countable: Mapping[int, float] | None = None,
) -> ClassSample | None:
    """The sample that is tried before anything else is known.

    Parameters
    ----------
    graph : JoinGraph
    sizes : sequence of Size
        One for each vertex.
    error : float
        The asked relative error.
    values : float
        Most distinct keys that the sampled class can have.
    groups : float
        How many groups of equal weights are asked for.
    most_drawn : float
        Most tuples of a table that may be drawn one by one.
    summed : sequence of Summed
        The expressions that are summed, as far as they are of one vertex.
    grouped : sequence of int
        The vertices by whose columns the query groups.
    jobs_count : bool
        Whether what a job takes is held against the sample: not of small tables that stand for large ones.
    told : mapping of int to float, optional
        By vertex of the sampled class the distinct keys that its table has, where those looked at tell.
    more : float
        So many times more keys than are needed where what each adds varies as much as its mean.
    together : Together, optional
        What is known of the filters of the sampled class's tables.
    countable : mapping of int to float, optional
        The vertices of the sampled class of which the keys with the most tuples can be counted in files, and how many
        tuples a key of them usually has at most.

    Returns
    -------
    ClassSample or None
        None where the exact run looks cheaper, or no sample of a size worth while can be enough.

    Notes
    -----
    Filters are taken to be independent, but for what is known of those that go together, and every tuple of the largest
    table to find partners: what is left of the join is then its tuples times the shares of all filters, spread over the
    keys at random. The rate is the one of
    the least expected cost: what is sampled, and for a sample that turns out too small all of the scans once more, or
    the exact run where that is cheaper. So is what the sample is held against the exact run by.
    """
    joined = sampled_class(graph, [s.tuples for s in sizes])
    members = tree_of(graph).classes[joined].vertices
    left = max(sizes[v].tuples for v in members) * math.prod(max(s.share, LEAST_SHARE) for s in sizes)
    left *= together.times if together is not None else 1.0
    first = min(sizes[v].filtered for v in members)
    most_keys = max(min(first, values), 1.0)
    keys = max(most_keys * -math.expm1(-left / most_keys), 1.0)
    needed = NEEDED * more * groups * (NEEDED_ERROR / error) ** 2 / keys
    most = min(MOST_RATE, MOST / max(left, 1.0), MOST_WANTED / max(first, 1.0))
    if needed > HOPELESS * most:
        return None
    tables = [s.input for s in sizes]
    each = sampling(tables, [sizes[v].input for v in members], first + left).seconds
    filters = sum(sizes[v].share < 1.0 for v in members)
    beyond = sum(s.share < 1.0 for s in sizes) - filters
    alike = UNSURE_FILTER ** max(filters - 1, 0)
    if together is not None:
        alike = min(alike, math.exp(QUANTILE * together.deviation))
    unsure = UNSURE * alike * UNSURE_BEYOND**beyond
    # Both scan the tables, and sizes of results on the way are not known.
    order = tree_of(graph).joined_order()
    ordered, outputs = [tables[v] for v in order], [left] * (len(order) - 1)
    whole = exact_groups(ordered, outputs, groups) if grouped else exact_join(ordered, outputs)
    exact = whole.seconds - scans(tables).seconds - jobs(len(tables) * jobs_count).seconds
    own = [sizes[v].filtered for v in members]
    keys_of = [(told or {}).get(v, math.inf) for v in members]
    heaviest = [_heaviest(sizes[v], k) for v, k in zip(members, keys_of, strict=True)]
    # The groups are listed before, and each tuple that is scanned is told its own.
    numbered = [tables[v] for v in grouped]
    listing = math.fsum(listed_groups(t, groups).seconds + received(t, 1).seconds for t in numbered)

    def planned(
        part: float, most_whole: float, counted: tuple[float, ...]
    ) -> tuple[float, ClassSample] | None:
        """A sample that leaves such a part of the error to unseen keys, with what it adds to the scans.

        Tables of no more than so many tuples are drawn as a whole, but for those whose keys are counted.
        """
        draws = tuple_draws(
            own, most_keys, left / groups, error, most_drawn, part, keys_of, heaviest, most_whole, counted
        )
        # A key may add its tuples times the largest value, but of values that are drawn.
        if part > PART and any(part * r > MOST_PART for r in dear if r <= MOST_DEAR):
            return None
        times = max(
            (r for r in (*dear, all_of_them) if part * r <= MOST_PART or r == all_of_them), default=1.0
        )
        room, drawn_for = error * left / groups, any(part * r > MOST_PART for r in dear)
        wanted = min(needed * more_keys(max(part, 2.0 * PART * drawn_for)), most)
        while times > 1.0 and needed * more_keys(times * draws.largest(wanted) / room) > wanted:
            if wanted == most:
                return None
            wanted = min(STEP * wanted, most)
        # A key of middling weight is met neither by many tuples nor by its hash, unless more keys are sampled.
        least = wanted
        while draws.largest(least) * times > MOST_PART * room:
            if least == most:
                return None
            least = min(2.0 * least, most)
        again = first_scans(tables).seconds + unsure * wanted * each
        # The expected cost of a rate r is r each + (1 - log(r / wanted) / log(unsure)) again.
        rate = min(max(wanted, again / (math.log(unsure) * each)), unsure * wanted, most)
        rate = max(rate, least)
        found = costed(draws, rate, wanted, again, room / times, counted)
        # What unseen keys may add falls with more keys, which often cost less than more draws.
        while found[1] > 0.0 and rate < most:
            rate = min(2.0 * rate, most)
            larger = costed(draws, rate, wanted, again, room / times, counted)
            if larger[0] >= found[0]:
                break
            found = larger
        seconds, _, sampled = found
        return seconds, sampled

    def costed(
        draws: TupleDraws, rate: float, wanted: float, again: float, room: float, counted: tuple[float, ...]
    ) -> tuple[float, float, ClassSample]:
        """What a sample of this rate adds to the scans, and the chance that unseen keys may add more than `room`."""
        valued = value_draws(summed, members, own, left / groups, error, rate, draws)
        # Fewer tuples may join: then too few keys are sampled, or what unseen ones may add is too much of the answer,
        # and the exact run follows.
        missed = _missed(rate / wanted, unsure)
        unseen = _missed(WIDEST_PART * room / max(draws.largest(rate), 1e-9), unsure)
        repeated = max(missed - unseen, 0.0) * min(again, whole.seconds) + unseen * whole.seconds
        looked_through = [sizes[v].tuples for v, c in zip(members, counted, strict=False) if math.isfinite(c)]
        seconds = rate * each + drawing(draws.drawn).seconds + listing + repeated
        seconds += counting(looked_through).seconds
        drawn = math.fsum(one.drawn(d, sizes[one.vertex].filtered) for one, d in valued)
        if drawn > 1.0:
            first, *further = dict.fromkeys(one.vertex for one, _ in valued)
            others = [sizes[v].input for v in members if v != first]
            seconds += drawing(drawn * len(members)).seconds + asked_for_keys(others).seconds
            if further:
                # What was read before is read again for the keys of the later ones.
                own_tables = [sizes[v].input for v in members]
                seconds += first_scans(own_tables).seconds + asked_for_keys(own_tables).seconds
        over = (whole.seconds - exact + seconds) / whole.seconds
        sampled = ClassSample(
            joined,
            rate,
            row_rates=draws.rates,
            hits=draws.hits,
            value_draws=tuple(d for _, d in valued),
            over_exact=over,
            counted=counted,
        )
        return seconds, unseen, sampled

    dear, all_of_them = times_means(summed)
    parts = {*PARTS, *(p / r for p in PARTS for r in (*dear, all_of_them) if 1.0 < r <= MOST_DEAR)}
    wholes = [MOST_WHOLE, *([MOST_WHOLE_EVER] if any(MOST_WHOLE < s <= MOST_WHOLE_EVER for s in own) else [])]
    ways = product(sorted(parts, reverse=True), wholes, _counted(members, own, countable or {}))
    tried = [planned(*way) for way in ways]
    # Of two that are expected to cost the same the exact run does so for certain.
    found = [one for one in tried if one is not None and one[1].over_exact <= WORTH]
    return min(found, key=lambda one: one[0])[1] if found else None


def _counted(
    members: Sequence[int], tuples: Sequence[float], countable: Mapping[int, float]
) -> list[tuple[float, ...]]:
    """Of which members the keys may be counted: of none, of all that can be, of all of these but one of the largest."""
    found = tuple(countable.get(v, math.inf) for v in members)
    largest = sorted(range(len(members)), key=lambda n: -tuples[n])[:2]
    but_one = [tuple(math.inf if n == left else c for n, c in enumerate(found)) for left in largest]
    return [(), *dict.fromkeys(c for c in (found, *but_one) if any(map(math.isfinite, c)))]


def _heaviest(size: Size, keys: float) -> float:
    """The most tuples that a key of a table is taken to have by how many keys it has; infinite where nothing tells."""
    if not math.isfinite(keys):
        return math.inf
    return 1.0 if keys >= UNIQUE * size.tuples else SKEWED * max(size.filtered / max(keys, 1.0), 1.0)


def _missed(margin: float, unsure: float) -> float:
    """The chance that what is expected is too much by more than `margin`; all factors up to `unsure` are as likely."""
    return min(max(1.0 - math.log(max(margin, 1.0)) / math.log(unsure), 0.0), 1.0)


def more_keys(part: float) -> float:
    """How many times more keys chance needs if such a part of the error is left to unseen keys, over those for `PART`.

    The gamma interval reaches ``w + z sqrt(v + w^2)`` if an unseen key may add w: infinite where none is narrow enough.
    """

    def variance(w: float) -> float:
        return ((1.0 - w) / QUANTILE) ** 2 - w**2

    left = variance(part)
    return max(variance(PART) / left, 1.0) if part < 1.0 and left > 0.0 else math.inf


def is_worth_while(sample: ClassSample, predicted: float, error: float) -> bool:
    """Whether a first sample costs less than the exact run, which follows it where it misses the asked error.

    Parameters
    ----------
    sample : ClassSample
    predicted : float
        The half-width that its widest interval is predicted to have, over the value; NaN where that is not known.
    error : float
        The asked one.
    """
    if math.isnan(predicted) or not predicted > 0.0 or math.isnan(sample.over_exact):
        return True
    missed = 0.5 * math.erfc(-math.log(predicted / error) / (WIDTH_DEVIATION * math.sqrt(2.0)))
    return sample.over_exact + missed <= 1.0


def enlarged(rate: float, excess: float) -> float | None:
    """The rate at which an interval `excess` times too wide would be narrow enough; None where exact is cheaper.

    The variance of a sample falls with the rate: the interval's width with its root.
    """
    if not math.isfinite(excess):
        return None
    needed = rate * excess**2 * RESERVE
    return needed if needed <= MOST_RATE else None
