"""The half-widths that an answer from a sample will report, of each aggregate by itself.

What is reported follows from the interval's own construction: the estimators of `sketches.samples.sample_join` are
asked on keys that are made up by statistics, with the room for unseen keys that the plan of the sample makes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...parser.join_graph import Aggregate, Factor, Query, Term
from ...sketches.intervals.interval import Estimate
from ...sketches.samples.dual_frame import OVERLOOKED, DualFrame
from ...sketches.samples.known_keys import JoinTerms, combined, product_range, products
from ...sketches.samples.sample_join import estimate_ratio, estimate_total
from ..plan import Plan, Sample, ValueDraw
from .made_up_keys import MOST_KEYS, Keys, Sampled, Values, received

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

SEED = 20040401
# How often keys are made up: where there are few, and where there are more than so many.
TIMES_OF_FEW, TIMES, FEW = 7, 3, 512
# By how much widths differ that chance alone decides; all above the value say the same.
APART = 4.0
# Sampled keys that are aimed at where all keys are made up, and the most of these.
WANTED, MOST_MADE = 1024, 1 << 16
# Values that are there.
PRESENT = Values(np.ones(1), 0.0, 1.0)
# In the place of the logarithm of no chance at all.
NEVER = -1e6


@dataclass(frozen=True, slots=True, eq=False)
class SampledClass:
    """The class of a sample, as its keys are made up.

    Attributes
    ----------
    keys : Keys
    vertices : tuple of int
        Of the query's join graph, one for each table of the keys.
    behind : mapping of int to int
        For every vertex of the query the table of the class that it is or hangs from.
    tuples : tuple of float
        Of each table behind its filter.
    heaviest : tuple of float
        The most tuples that a key of each table is taken to have.
    values : mapping
        By vertex and expression what has been looked at.
    """

    keys: Keys
    vertices: tuple[int, ...]
    behind: Mapping[int, int]
    tuples: tuple[float, ...]
    heaviest: tuple[float, ...]
    values: Mapping[tuple[int, str], Values]


def sample_widths(
    query: Query, plan: Plan, known: SampledClass, confidence: float, groups: Mapping[int, int]
) -> tuple[float, ...]:
    """The relative half-width of each aggregate, as an answer tells it; NaN where it is not known.

    Parameters
    ----------
    query : Query
    plan : Plan
        With a sample.
    known : SampledClass
    confidence : float
        Of the intervals of this sample.
    groups : mapping of int to int
        How many groups each grouped vertex has: the width is that of a group of their mean size.
    """
    sample = plan.sample
    assert sample is not None, "a sample is predicted"
    made = _Made(query, plan, sample, known, groups)
    found = np.array([made.widths(confidence, np.random.default_rng((SEED, n))) for n in range(made.times)])
    return tuple(_settled(own) for own in found.T)


def _settled(widths: Floats) -> float:
    """What several draws agree on; NaN where it is for chance to say how wide an interval is."""
    least, most = float(widths.min()), float(widths.max())
    if math.isnan(most) or min(most, 1.0) > APART * min(least, 1.0):
        return math.nan
    return float(np.median(widths))


class _Made:
    """One sample, whose keys are made up as often as they are asked for."""

    def __init__(
        self, query: Query, plan: Plan, sample: Sample, known: SampledClass, groups: Mapping[int, int]
    ) -> None:
        self.query, self.sample, self.known = query, sample, known
        members = [plan.vertices[v] for v, _ in sample.members]
        self.rows = [known.vertices.index(v) for v in members]
        self.keys = known.keys
        for vertex, number in groups.items():
            self.keys = self.keys.shares(known.behind[vertex], number)
        relations = [plan.synopses[t] for t in plan.aggregates[0].total[0].synopses]
        drawn = [
            (relations[v].table, relations[v].filter, relations[v].attributes[p]) for v, p in sample.members
        ]
        self.draws = tuple(drawn.index(d) for d in drawn)
        self.frame = self._frame()
        self.terms: list[Term] = []
        self.aggregates = [self._columns(a) for a in query.aggregates]
        self.unseen = self._unseen([self._cap(r) for r in self.rows])

    @property
    def is_drawn(self) -> bool:
        return any(self.sample.row_rates) and self.sample.rate < 1.0

    @property
    def times(self) -> int:
        """How often keys are made up."""
        joining = self.keys.counts * np.minimum(self.keys.tuples, 1.0).prod(axis=0)
        return TIMES_OF_FEW if self.sample.rate * float(joining.sum()) < FEW else TIMES

    def _frame(self) -> DualFrame:
        sample = self.sample
        rates = sample.row_rates or (0.0,) * len(self.rows)
        tuples = [self.known.tuples[r] for r in self.rows]
        drawn = math.fsum(rates[d] * tuples[d] for d in dict.fromkeys(self.draws))
        return DualFrame(min(sample.rate, 1.0), rates, sample.hits, drawn, self.draws)

    def _columns(self, aggregate: Aggregate) -> tuple[list[tuple[int, float]], list[tuple[int, float]]]:
        found = []
        for terms in (aggregate.total, aggregate.presence):
            own = []
            for term in terms:
                bare = Term(term.factors)
                if bare not in self.terms:
                    self.terms.append(bare)
                own.append((self.terms.index(bare), term.coefficient))
            found.append(own)
        return found[0], found[1]

    def _chances(self, tuples: Ints) -> Floats:
        if not self.is_drawn:
            return np.full(tuples.shape[1], min(self.sample.rate, 1.0))
        return self.frame.probabilities(tuples[self.rows])

    def _values(self, factor: Factor) -> Values | None:
        found = self.known.values.get((factor.vertex, factor.expression))
        # What is counted and has not been looked at is taken to be there.
        return PRESENT if found is None and factor.presence else found

    def _unseen(self, most_tuples: Sequence[float]) -> Floats:
        """What an unseen key may add to each term, by its probability: the bounds that the scans will find.

        `most_tuples` are those of a key of each member which is not evaluated.
        """
        sample, known = self.sample, self.known
        bounds = np.tile([-np.inf, np.inf], (len(self.terms), 1))
        if sample.rate == 1.0:
            return np.zeros_like(bounds)
        caps = [
            most if rate == 1.0 else math.inf
            for most, rate in zip(most_tuples, self.frame.tuple_rates, strict=True)
        ]
        most = self.frame.largest_product(caps) if self.is_drawn else math.inf
        for number, term in enumerate(self.terms):
            if self.is_drawn:
                low, high = self._of_a_tuple(term)
                bounds[number] = _times(min(low, 0.0), most), _times(max(high, 0.0), most)
            if not any(f.expression is not None and not f.presence for f in term.factors):
                bounds[number] = 0.0, min(bounds[number, 1], sample.largest_product / sample.rate)
            if sample.largest_other and not term.factors and len(self.rows) == len(known.behind):
                alone = math.prod(sample.largest_other) / sample.rate
                bounds[number] = 0.0, min(bounds[number, 1], alone)
            for draw in sample.value_draws if self.is_drawn else ():
                if any(self._is_drawn_for(draw, f) for f in term.factors):
                    beside = Term(tuple(f for f in term.factors if not self._is_drawn_for(draw, f)))
                    of_one = max(map(abs, self._of_a_tuple(beside)))
                    value = draw.least * most + self.frame.largest_value(draw.member, draw.unit, caps)
                    bound = _times(of_one, value)
                    bounds[number] = max(bounds[number, 0], -bound), min(bounds[number, 1], bound)
        return bounds

    def _cap(self, table: int) -> float:
        """The most tuples of a table, drawn as a whole, that a key is taken to have which is not met often enough."""
        rates = np.array(self.frame.tuple_rates)
        left = rates @ self.known.keys.tuples[self.rows] < self.sample.hits
        tuples = self.known.keys.tuples[table, left]
        met = (
            self.known.heaviest[table]
            if tuples.size < 2
            else min(float(tuples.max()), self.known.heaviest[table])
        )
        return max(min(self.sample.hits - 1.0, math.ceil(met)), 1.0)

    def _is_drawn_for(self, draw: ValueDraw, factor: Factor) -> bool:
        vertex = self.known.vertices[self.rows[draw.member]]
        return factor.vertex == vertex and factor.expression == draw.expression and not factor.presence

    def _of_a_tuple(self, term: Term) -> tuple[float, float]:
        """Between which lies the product of what one tuple of each table of the class adds."""
        low, high = np.ones(1), np.ones(1)
        for table, each in enumerate(self.keys.messages):
            beyond = table not in self.rows or any(
                m == table and v != self.known.vertices[table] for v, m in self.known.behind.items()
            )
            if beyond:
                low, high = product_range(low, high, np.zeros(1), np.array([each.largest]))
        for factor in term.factors:
            values = self._values(factor)
            ends = (-math.inf, math.inf) if values is None else values.range(factor.presence)
            low, high = product_range(low, high, np.array([ends[0]]), np.array([ends[1]]))
        return float(low[0]), float(high[0])

    def widths(self, confidence: float, rng: np.random.Generator) -> list[float]:
        """One draw of keys, and the half-widths of the aggregates on them."""
        contributions = self._contributions(rng)
        if not contributions.keys.size and self.sample.rate < 1.0:
            return [math.nan] * len(self.aggregates)
        overlooked = OVERLOOKED * (1 + bool(self.sample.value_draws)) if self.is_drawn else 0.0
        asked = min(confidence + overlooked, 1.0 - 1e-9)
        found = []
        for aggregate, (top, bottom) in zip(self.query.aggregates, self.aggregates, strict=True):
            factors = [f for n, _ in top for f in self.terms[n].factors if not f.presence]
            known = [self._values(f) for f in factors]
            if aggregate.function == "count_distinct" or any(v is None for v in known):
                found.append(math.nan)
                continue
            if aggregate.function == "avg":
                columns = combined(contributions, [self._unit(top), self._unit(bottom)])
                estimate, present = estimate_ratio(columns, asked), 1.0
            else:
                estimate = estimate_total(combined(contributions, [self._unit(top)]), asked)
                present = combined(contributions, [self._unit(bottom)]).total() if bottom else 0.0
            told = (
                v is not None and v.tells and self._bounds(f, v) for f, v in zip(factors, known, strict=True)
            )
            if all(told):
                found.append(_relative(estimate))
            else:
                found.append(wider_than_itself(_reach(estimate), present * self._largest_mean(top)))
        return found

    def _largest_mean(self, columns: Sequence[tuple[int, float]]) -> float:
        """The most that the mean of what a joined tuple adds is taken to be from 0."""
        found = 0.0
        for number, coefficient in columns:
            factors = [f for f in self.terms[number].factors if not f.presence]
            means = [v.largest_mean for f in factors if (v := self._values(f)) is not None]
            found += abs(coefficient) * math.prod(means)
        return found

    def _bounds(self, factor: Factor, values: Values) -> bool:
        """Whether no value that has not been looked at makes the spread: it is drawn, or nobody has one so large."""
        drawn = self.sample.value_draws if self.is_drawn else ()
        return values.is_spread or any(self._is_drawn_for(d, factor) for d in drawn)

    def _unit(self, columns: Sequence[tuple[int, float]]) -> Floats:
        unit = np.zeros(len(self.terms))
        for number, coefficient in columns:
            unit[number] += coefficient
        return unit

    def _contributions(self, rng: np.random.Generator) -> JoinTerms:
        """What keys add to each term."""
        draws = self.sample.value_draws if self.is_drawn else ()
        if draws:
            # Which keys are evaluated follows from their values: all are made up, and then drawn.
            most = min(max(MOST_KEYS, int(WANTED / self.sample.rate)), MOST_MADE)
            found = self.keys.sampled(lambda t: np.ones(t.shape[1]), rng, most)
        else:
            found = self.keys.sampled(self._chances, rng)
        columns, unvalued = self._added(found, rng)
        p, unseen = found.probabilities, self.unseen
        if draws:
            p = np.where(found.dense, 1.0, self.frame.probabilities(found.tuples[self.rows], unvalued))
            there = rng.random(p.size) < p
            left = [self._left(n, found, p, rng, most) for n in range(len(self.rows))]
            unseen = self._unseen(np.minimum(left, [self._cap(r) for r in self.rows]).tolist())
            columns, p, found = columns[:, there], p[there], found.only(there)
        columns, p = np.repeat(columns, found.times, axis=1), np.repeat(p, found.times)
        return JoinTerms(np.arange(p.size), columns, p, unseen)

    def _left(self, member: int, found: Sampled, p: Floats, rng: np.random.Generator, most: int) -> int:
        """The most tuples of a key, with a partner or without, that is not evaluated, of a table drawn as a whole."""
        if self.frame.tuple_rates[member] < 1.0:
            return 1
        own, times = self.keys.alone(self.rows[member], rng, most)
        tuples, unvalued = np.zeros((len(self.rows), own.size), np.int64), np.zeros(own.size)
        tuples[member] = own
        for draw in self.sample.value_draws:
            seen = self.known.values.get((self.known.vertices[self.rows[member]], draw.expression))
            if draw.member == member and seen is not None:
                unvalued += np.minimum(seen.added(own, rng, _missed(seen.seen, draw))[2], 0.0)
        left = times * (1.0 - self.frame.probabilities(tuples, unvalued))
        all_tuples = np.concatenate([found.tuples[self.rows[member]], own])
        return _most_of(all_tuples, np.concatenate([found.times * (1.0 - p), left]))

    def _added(self, found: Sampled, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """What keys add to each term, and the logarithm of the chance that no tuple of each is drawn for its value."""
        number = found.tuples.shape[1]
        columns, unvalued = np.ones((len(self.terms), number)), np.zeros(number)
        for table, each in enumerate(self.keys.messages):
            tuples, weight = received(found.tuples[table], each, rng)
            added: dict[tuple[int, str], tuple[Floats, Floats]] = {}
            for n, term in enumerate(self.terms):
                part = tuples.astype(np.float64)
                for factor in term.factors:
                    values = self._values(factor)
                    if self.known.behind[factor.vertex] != table or values is None:
                        continue
                    at = factor.vertex, factor.expression
                    if at not in added:
                        draw = next(
                            (d for d in self.sample.value_draws if self._is_drawn_for(d, factor)), None
                        )
                        missed = None if draw is None else _missed(values.seen, draw)
                        *sums, logs = values.added(tuples, rng, missed)
                        added[at] = sums[0], sums[1]
                        # The normal sums of many logarithms may leave what a chance can be.
                        unvalued += np.minimum(logs, 0.0)
                    # Of several factors behind one table each is taken to be independent of the others.
                    part = part * added[at][int(factor.presence)] / np.maximum(tuples, 1)
                columns[n] *= part * weight
        return columns, unvalued


def wider_than_itself(reach: float, most: float) -> float:
    """The relative half-width of a value that is at most `most` from 0, which it is not told from; NaN if narrower."""
    return reach / most if reach >= most > 0.0 else math.nan


def _most_of(tuples: Ints, expected: Floats) -> int:
    """The most tuples of some keys, of which so many are expected each: one as large is there more likely than not."""
    order = np.argsort(-tuples, kind="stable")
    at = int(np.searchsorted(np.cumsum(expected[order]), math.log(2.0)))
    return int(tuples[order[at]]) if at < tuples.size else 1


def _missed(seen: Floats, draw: ValueDraw) -> Floats:
    """The logarithm of the chance that tuples of these values are not drawn."""
    sizes = np.abs(np.nan_to_num(seen))
    chances = np.where(sizes >= draw.least, np.minimum(sizes / draw.unit, 1.0), 0.0)
    with np.errstate(divide="ignore"):
        return np.maximum(np.log1p(-chances), NEVER)


def _times(a: float, b: float) -> float:
    return float(products(np.array([a]), b)[0])


def _relative(found: Estimate) -> float:
    """The half-width over the value, as the widest interval of an answer is told."""
    if found.exact:
        return 0.0
    if not found.value or not math.isfinite(found.value):
        return math.inf
    return _reach(found) / abs(found.value)


def _reach(found: Estimate) -> float:
    return max(found.high - found.value, found.value - found.low)
