"""How large a sample of keys the user's own query is run on first, and whether one is worth its scan.

Decided before anything is drawn, by what files tell: how many keys are expected to add to the result, what an interval
as narrow as asked takes of them, and what that takes of the time of the exact run.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

from ..groups import ASSUMED_GROUPS
from ..prediction.cost import BROADCAST_BYTES
from .first_sample import UNSURE, UNSURE_BEYOND, UNSURE_FILTER
from .spending import MOST_RATE, MOST_SPENT

# Nanoseconds for each number or text that is read, for each tuple that Spark sorts and sends to be joined with another
# large table, for each value of others that is computed with, for the hash of each key, and for each key that a sample
# groups and sends. Seconds of any query, and of ours beside it. By TPC-H at scale factor 1 (benchmarks.sampled_costs).
NUMBER_NS, TEXT_NS, JOINED_NS, PASSED_NS, HASHED_NS, SENT_NS = 25.0, 50.0, 450.0, 80.0, 20.0, 3000.0
FIXED_S, OWN_S = 0.3, 0.2

# Of what all keys take, the part that any sample of them takes, where nothing is known of the tables: the scan.
SCAN_SHARE = 0.4

# A sample is enlarged by so much more than its interval asks for, as the next one is asked at a higher confidence.
RESERVE = 1.3

NUMBER_BYTES = 8

# Of tuples of which a look at some has met none.
LEAST_SHARE = 1e-4

# The mean square of what a key adds, over the square of the mean.
VARIATION = 2.0

# So many rates in each factor of two are looked at, and one that is searched for is halved between as often.
STEPS = 4
HALVINGS = 50


@dataclass(frozen=True, slots=True)
class Part:
    """A table, where it stands.

    Attributes
    ----------
    tuples : float
    share : float
        Of them that its own conditions keep.
    group : float
        Of these that are of the least group by its columns.
    keys : float or None
        Distinct keys that it may have; None where it has no key of the class.
    counts : bool
        Whether rows of the result are made of its tuples.
    numbers, texts : int
        How many columns of each are read.
    key_beside : bool
        Whether the key is one that is read for the sample alone.
    """

    tuples: float
    share: float = 1.0
    group: float = 1.0
    keys: float | None = None
    counts: bool = True
    numbers: int = 1
    texts: int = 0
    key_beside: bool = False

    @property
    def columns(self) -> int:
        """How many are read."""
        return self.numbers + self.texts

    @property
    def left(self) -> float:
        """Tuples that its own conditions keep."""
        return self.tuples * max(self.share, LEAST_SHARE)

    @property
    def is_large(self) -> bool:
        """Whether Spark does not send it to all tasks as a whole."""
        return self.tuples * NUMBER_BYTES * (1 + self.columns) > BROADCAST_BYTES


@dataclass(frozen=True, slots=True)
class Work:
    """What a query takes.

    Attributes
    ----------
    scan : float
        Of any sample of the keys.
    rest : float
        Of what a sample takes its share.
    exact : float
        Of the exact run.
    """

    scan: float = SCAN_SHARE
    rest: float = 1.0 - SCAN_SHARE
    exact: float = 1.0

    def over_exact(self, rate: float) -> float:
        """What a sample takes of the exact run's time."""
        return (self.scan + self.rest * rate) / self.exact

    def most_next(self, tried: Sequence[float]) -> float:
        """The largest share of the keys that may be sampled after those that were; 0 where none may."""
        spent = sum(map(self.over_exact, tried))
        room = (MOST_SPENT - spent) * self.exact - self.scan
        return min(max(room / max(self.rest, 1e-9), 0.0), MOST_RATE)


def work_of(parts: Sequence[Part]) -> Work:
    """What a query on these tables takes, those sampled that have a key."""
    scan = sum(p.tuples * (NUMBER_NS * p.numbers + TEXT_NS * p.texts) for p in parts)
    several = sum(p.is_large for p in parts) > 1

    def passed(own: Iterable[Part]) -> float:
        return sum(p.left * (JOINED_NS if several and p.is_large else PASSED_NS * p.columns) for p in own)

    rest = passed(p for p in parts if p.keys is not None)
    whole = passed(p for p in parts if p.keys is None)
    hashed = sum(p.tuples * (HASHED_NS + NUMBER_NS * p.key_beside) for p in parts if p.keys is not None)
    exact = 1e-9 * (scan + rest + whole) + FIXED_S
    added = expected_keys([replace(p, group=1.0) for p in parts])
    sent = 0.0 if added is None else SENT_NS * added.keys
    return Work(1e-9 * (scan + whole + hashed) + FIXED_S + OWN_S, 1e-9 * (rest + sent), exact)


@dataclass(frozen=True, slots=True)
class Expected:
    """What is expected to add to the least group.

    Attributes
    ----------
    keys : float
    unsure : float
        How many times fewer keys there may be.
    rows : float
        Of each of them.
    surplus : float
        The most that a key may add, over what one adds on average; 0 where nothing bounds it.
    """

    keys: float
    unsure: float
    rows: float = 1.0
    surplus: float = 0.0


@dataclass(frozen=True, slots=True)
class Sized:
    """A first sample.

    Attributes
    ----------
    rate : float
        1 where all keys are cheaper.
    half_width : float
        What its widest interval is expected to have, over the value.
    needed : float
        The share of the keys that is expected to be enough.
    over_exact : float
        What it is expected to take, with what follows it where it is not enough, over the exact run.
    least_over_exact : float
        What the sample that is expected to be enough takes.
    why : str
        Why all keys are taken, where that is not for how many are needed.
    """

    rate: float
    half_width: float
    needed: float
    over_exact: float
    least_over_exact: float = 1.0
    why: str = ""


def expected_keys(parts: Sequence[Part], unread: int = 0, unread_groups: int = 0) -> Expected | None:
    """How many keys add to the least group of a result.

    Parameters
    ----------
    parts : sequence of Part
    unread : int
        Conditions of which nothing is known.
    unread_groups : int
        What is grouped by that is of no single table.

    Returns
    -------
    Expected or None
        None where no table that rows are made of has the key.

    Notes
    -----
    Conditions are taken to be independent, and every tuple to find partners. A key is left where each of its tables
    has a tuple that is; what is asked of tables beyond the class is asked of the tuples of the largest one in it.
    """
    grouped = math.prod(p.group for p in parts if not p.counts) / ASSUMED_GROUPS**unread_groups
    parts = [p for p in parts if p.counts]
    own = [p for p in parts if p.keys is not None]
    if not own:
        return None
    keys = max(min(min(p.tuples, p.keys or math.inf) for p in own), 1.0)
    beyond = grouped * math.prod(max(p.share, LEAST_SHARE) * p.group for p in parts if p.keys is None)
    largest = max(own, key=lambda p: p.tuples)
    left = keys
    for part in own:
        share = max(part.share, LEAST_SHARE) * part.group * (beyond if part is largest else 1.0)
        if share < 1.0:
            left *= -math.expm1(max(part.tuples / keys, 1.0) * math.log1p(-share))
    filters = sum(p.share < 1.0 for p in own)
    others = sum(p.share < 1.0 for p in parts) - filters + unread
    unsure = UNSURE * UNSURE_FILTER ** (max(filters - 1, 0) + unread_groups) * UNSURE_BEYOND**others
    rows = largest.left * largest.group * beyond
    return Expected(left, unsure, max(rows / max(left, 1e-9), 1.0))


def half_width(keys: float, rate: float, confidence: float, surplus: float = 0.0) -> float:
    """Of the interval of a sum over so many keys, over its value.

    One key that was not met may add `surplus` times what one adds on average, on one side of the value.
    """
    if rate >= 1.0:
        return 0.0
    met = rate * max(keys, 1e-9)
    return _quantile(confidence) * math.sqrt(VARIATION * (1.0 - rate) / met) + surplus / met


def rate_for(keys: float, error: float, confidence: float, surplus: float = 0.0) -> float:
    """The share of so many keys whose interval is as narrow as asked."""
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if half_width(keys, middle, confidence, surplus) > error else (low, middle)
    return high


def first_rate(expected: Expected, work: Work, error: float, confidence: float, least: float) -> Sized:
    """The first sample of the least expected cost, or all keys where these are expected to be cheaper.

    Parameters
    ----------
    expected : Expected
    work : Work
    error : float
        The asked relative error.
    confidence : float
        At which the first interval is asked.
    least : float
        The least share of the keys that is worth a scan.

    Notes
    -----
    All factors between 1 and `unsure` by which keys may be fewer are as likely. A sample that is not enough is followed
    by a second one where both take little more than the exact run, which is lost where that is not enough either.
    """
    needed = rate_for(expected.keys, error, confidence, expected.surplus)

    def enough(rate: float) -> float:
        """The chance that such a share of the keys is enough."""
        # The width is s * a + s * s * b for 1 / (s * s) keys.
        a = _quantile(confidence) * math.sqrt(VARIATION * (1.0 - rate) / rate)
        b = expected.surplus / rate
        s = 2.0 * error / (a + math.sqrt(a * a + 4.0 * b * error))
        times = expected.keys * s * s
        return min(max(math.log(times) / math.log(expected.unsure), 0.0), 1.0) if times > 0.0 else 0.0

    alone = work.over_exact(needed)
    best = Sized(1.0, 0.0, needed, 1.0, alone)
    rate = max(least, min(needed, MOST_RATE))
    while rate <= MOST_RATE:
        spent, following = work.over_exact(rate), work.most_next((rate,))
        first = enough(rate)
        second = max(enough(following / RESERVE), first) if following > rate else first
        again = work.over_exact(following) if following > rate else 0.0
        over = spent + (second - first) * again + (1.0 - second)
        if over < best.over_exact:
            width = half_width(expected.keys, rate, confidence, expected.surplus)
            best = Sized(rate, width, needed, over, alone)
        rate *= 2.0 ** (1.0 / STEPS)
    return best


def _quantile(confidence: float) -> float:
    return NormalDist().inv_cdf((1.0 + confidence) / 2.0)
