"""What is known of the virtual relations of a query before anything is built: frozen statistics.

A virtual relation is a table with its filter and the weight of its tuples (1 for a COUNT, the argument of a
SUM). Whoever gathers statistics fills in what is cheap to get and leaves the rest out: row counts from file
footers, column statistics with histograms, or a pilot over a part of the rows. `complete` puts assumptions in
the place of what is missing and names each of them, so that a plan can say on what it rests.

All figures are of the relation *behind* its filter, and of tuples whose join keys are not NULL.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ...sketches.samples.known_keys import KnownKeys
from ...sketches.samples.two_level_plan import Candidates
from .histograms import Histogram

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

SOURCES = ("exact", "spark column statistics", "pilot", "row count", "assumed")
ASSUMED_TUPLES = 1e6
NO_KEYS: Ints = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class RowSample:
    """The keys of a Bernoulli sample of the tuples.

    Parameters
    ----------
    keys : ndarray of int64, shape (n,)
        Distinct, ascending.
    counts : ndarray of int64, shape (n,)
        In how many of the tuples each is.
    share : float
        With which probability a tuple is one of them.
    """

    keys: Ints
    counts: Ints
    share: float

    def counted(self, keys: Ints) -> Ints:
        """In how many of the tuples some keys are."""
        if not self.keys.size:
            return np.zeros(keys.size, np.int64)
        at = np.minimum(np.searchsorted(self.keys, keys), self.keys.size - 1)
        return np.where(self.keys[at] == keys, self.counts[at], 0)


@dataclass(frozen=True, slots=True, eq=False)
class AttributeStatistics:
    """One join attribute of a virtual relation; None where a figure is not known.

    Parameters
    ----------
    distinct : float, optional
        Number of distinct keys.
    self_join_size : float, optional
        F2, the sum of the squared weights of the keys.
    heavy : Candidates, optional
        The heaviest keys with their weights, and a bound on the weight of any other key (``inf``: no bound). Best
        with the heavy keys of *all* relations of the class, counted in each, 0 where a key does not occur.
    histogram : Histogram, optional
        Of the keys, if they are integers.
    pilot : KnownKeys, optional
        A coordinated sample of the keys, one weight column: all keys whose hash is below a threshold, with the
        *same* hash function in all relations of the join class, which need not be that of the synopses. `ranks`
        are the hashes as fractions of all hashes. What `KeySample.known` returns.
    rows : RowSample, optional
        Tells of keys that are heavy in another relation what they weigh in this one.
    """

    distinct: float | None = None
    self_join_size: float | None = None
    heavy: Candidates | None = None
    histogram: Histogram | None = None
    pilot: KnownKeys | None = None
    rows: RowSample | None = None

    def __post_init__(self) -> None:
        for name, figure in (("distinct", self.distinct), ("self_join_size", self.self_join_size)):
            if figure is not None and not (figure >= 0 and math.isfinite(figure)):
                raise ValueError(f"{name} is a finite number of 0 or more, not {figure}")


@dataclass(frozen=True, slots=True, eq=False)
class RelationStatistics:
    """One virtual relation.

    Parameters
    ----------
    tuples : float, optional
        Total weight behind the filter: the number of tuples for a COUNT.
    attributes : tuple of AttributeStatistics
        One for each join class of the vertex, in the order of `messages.JoinTree.classes_of`.
    scanned : float, optional
        Tuples of the table before the filter: what a scan has to read. Default: `tuples`.
    joint_self_join_size : float, optional
        F2 over the combinations of all join attributes. Default: the least of the attributes' F2 and the number
        of tuples squared; with several attributes the number of tuples if one of them is a key.
    joint_distinct : float, optional
        Number of distinct combinations of all attributes, of which there are several.
    row_fraction : float
        Share of the table's rows that heavy keys and pilot samples were counted on; weights are as counted, not
        scaled up. `tuples`, `distinct` and `self_join_size` are of the whole relation.
    source : str
        One of `SOURCES`.
    gathered_at : float, optional
        Seconds since the epoch.
    """

    tuples: float | None = None
    attributes: tuple[AttributeStatistics, ...] = ()
    scanned: float | None = None
    joint_self_join_size: float | None = None
    joint_distinct: float | None = None
    row_fraction: float = 1.0
    source: str = "assumed"
    gathered_at: float | None = None

    def __post_init__(self) -> None:
        if self.source not in SOURCES:
            raise ValueError(f"statistics come from one of {', '.join(SOURCES)}, not {self.source!r}")
        if not 0.0 < self.row_fraction <= 1.0:
            raise ValueError(f"a share of the rows lies in (0, 1], not {self.row_fraction}")
        if self.tuples is not None and not (self.tuples >= 0 and math.isfinite(self.tuples)):
            raise ValueError(f"tuples are a finite number of 0 or more, not {self.tuples}")

    def age(self, now: float) -> float | None:
        """Seconds since the figures were gathered, None if that is not known."""
        return None if self.gathered_at is None else max(0.0, now - self.gathered_at)


@dataclass(frozen=True, slots=True, eq=False)
class Attribute:
    """A join attribute with every figure filled in; `heavy` is empty where nothing is known, and scaled to all rows."""

    distinct: float
    self_join_size: float
    heavy: Candidates
    histogram: Histogram | None
    pilot: KnownKeys | None
    row_fraction: float = 1.0
    rows: RowSample | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Relation:
    """A virtual relation with every figure filled in, and the assumptions that took."""

    tuples: float
    attributes: tuple[Attribute, ...]
    scanned: float
    joint_self_join_size: float
    source: str
    gathered_at: float | None
    assumptions: tuple[str, ...] = field(default=())
    joint_distinct: float | None = None


def complete(statistics: RelationStatistics, attributes: int) -> Relation:
    """Fill in what is missing.

    Parameters
    ----------
    statistics : RelationStatistics
    attributes : int
        Number of join classes of the vertex.

    Notes
    -----
    Without a row count a million tuples; without a distinct count that of the histogram or the pilot, else
    every tuple its own key (which makes messages and samples look as large as they can get); without F2 that of
    the heavy keys and geometric weights of the others.
    """
    notes = []
    tuples = statistics.tuples
    if tuples is None:
        known = [a.histogram.tuples for a in statistics.attributes if a.histogram is not None]
        tuples = max(known, default=ASSUMED_TUPLES)
        if not known:
            notes.append(f"{tuples:,.0f} tuples")
    given = statistics.attributes or (AttributeStatistics(),) * attributes
    if len(given) != attributes:
        raise ValueError(f"a relation of {attributes} join attributes has statistics of {len(given)}")
    completed = []
    for attribute in given:
        done, assumed = _complete_attribute(attribute, tuples, statistics.row_fraction)
        completed.append(done)
        notes += assumed
    joint = statistics.joint_self_join_size
    if joint is None:
        # Every combination is at most as frequent as the rarest of its parts, and no combination less than once.
        joint = min([a.self_join_size for a in completed], default=tuples**2)
        if attributes > 1:
            joint = max(
                tuples, joint * math.prod(min(1.0, tuples / max(a.distinct, 1.0) ** 2) for a in completed[1:])
            )
            notes.append("independent join attributes")
    scanned = tuples if statistics.scanned is None else statistics.scanned
    return Relation(
        tuples,
        tuple(completed),
        scanned,
        joint,
        statistics.source,
        statistics.gathered_at,
        tuple(dict.fromkeys(notes)),
        statistics.joint_distinct,
    )


def _complete_attribute(
    given: AttributeStatistics, tuples: float, row_fraction: float
) -> tuple[Attribute, list[str]]:
    notes = []
    heavy = given.heavy or Candidates(NO_KEYS, NO_KEYS, math.inf)
    pilot = given.pilot
    if row_fraction < 1.0:
        heavy = _scaled(heavy, row_fraction)
    distinct = given.distinct
    if distinct is None and given.histogram is not None:
        distinct = given.histogram.distinct_count
    if distinct is None and pilot is not None and row_fraction == 1.0:
        distinct = pilot.keys.size / pilot.probability
    if distinct is None:
        distinct = tuples
        notes.append("every tuple has a key of its own")
    occurring = float(np.count_nonzero(heavy.weights))
    distinct = min(max(distinct, occurring, min(tuples, 1.0)), max(tuples, occurring))
    f2 = given.self_join_size
    if f2 is None:
        f2 = _self_join_size(given, heavy, pilot, tuples, distinct, row_fraction)
        if given.histogram is None and pilot is None:
            notes.append("geometric weights of the keys that are not listed")
    f2 = max(f2, tuples**2 / max(distinct, 1.0), float(np.sum(heavy.weights.astype(np.float64) ** 2)))
    return Attribute(distinct, f2, heavy, given.histogram, pilot, row_fraction, given.rows), notes


def _self_join_size(
    given: AttributeStatistics,
    heavy: Candidates,
    pilot: KnownKeys | None,
    tuples: float,
    distinct: float,
    row_fraction: float,
) -> float:
    """F2 from the heavy keys plus the pilot's, the histogram's or an even spread's figure for the others."""
    weights = heavy.weights.astype(np.float64)
    certain = float(weights @ weights)
    if pilot is not None:
        others = pilot.weights[0, ~np.isin(pilot.keys, heavy.keys)].astype(np.float64)
        # Bernoulli rows: E[w'(w' - 1)] = q^2 w (w - 1).
        squares = (float(others @ others) - (1.0 - row_fraction) * float(others.sum())) / row_fraction**2
        return certain + max(squares, 0.0) / pilot.probability
    if given.histogram is not None:
        return max(certain, given.histogram.self_join_size)
    left, keys = max(tuples - float(weights.sum()), 0.0), max(distinct - np.count_nonzero(weights), 0.0)
    # Geometric weights of that mean: 1 for every key of a key column, twice the square of an even spread elsewhere.
    mean = left / keys if keys else 0.0
    return certain + keys * max(2.0 * mean**2 - mean, mean**2)


def _scaled(heavy: Candidates, row_fraction: float) -> Candidates:
    return Candidates(
        heavy.keys, _scaled_weights(heavy.weights, row_fraction), heavy.largest_other / row_fraction
    )


def _scaled_weights(weights: Ints | Floats, row_fraction: float) -> Ints:
    return np.rint(weights / row_fraction).astype(np.int64)
