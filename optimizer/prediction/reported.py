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
from ...sketches.intervals.interval import Estimate, clip
from ...sketches.samples.dual_frame import OVERLOOKED, DualFrame
from ...sketches.samples.known_keys import JoinTerms, combined, product_range, products
from ...sketches.samples.sample_join import estimate_ratio, estimate_total
from ..plan import LONGER, Plan, Sample, ValueDraw
from .made_up_keys import (
    MOST_KEYS,
    TAIL,
    Keys,
    Sampled,
    Values,
    combined_mean,
    heaviest_beyond,
    received,
)

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
        self.means = [self._mean(top) for top, _ in self.aggregates]
        self.unseen = self._unseen([self._cap(r) for r in self.rows])

    @property
    def is_drawn(self) -> bool:
        return self.sample.is_guarded

    @property
    def times(self) -> int:
        """How often keys are made up."""
        joining = float(self.keys.joining.sum())
        return TIMES_OF_FEW if self.sample.rate * joining < FEW else TIMES

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
        # Of what files count the most is what has been looked at, whether a filter leaves fewer or not.
        caps = [
            max(c / LONGER, 1.0) if math.isfinite(c) else cap
            for c, cap in zip(sample.counted or (math.inf,) * len(caps), caps, strict=True)
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
                    value = max(draw.least * most, draw.unit * self.frame.largest_beside(draw.member, caps))
                    bound = _times(of_one, value)
                    bounds[number] = max(bounds[number, 0], -bound), min(bounds[number, 1], bound)
        return bounds

    def _cap(self, table: int) -> float:
        """The most tuples of a table, drawn as a whole, that a key is taken to have which is not met often enough."""
        rates = np.array(self.frame.tuple_rates)
        left = rates @ self.known.keys.tuples[self.rows] < self.sample.hits
        tuples, met = self.known.keys.tuples[table, left], self.known.heaviest[table]
        if tuples.size > 1:
            met = min(heaviest_beyond(tuples, self.known.keys.counts[left]), met)
        elif not tuples.size and left.size >= TAIL:
            # Each of the keys that are known is met often enough, and so will the others be.
            met = 1.0
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
        overlooked = OVERLOOKED if self.is_drawn else 0.0
        asked = min(confidence + overlooked, 1.0 - 1e-9)
        found = []
        of_each = zip(self.query.aggregates, self.aggregates, self.means, strict=True)
        for aggregate, (top, bottom), means in of_each:
            factors = [f for n, _ in top for f in self.terms[n].factors if not f.presence]
            known = [self._values(f) for f in factors]
            if aggregate.function == "count_distinct" or any(v is None for v in known):
                found.append(math.nan)
                continue
            if aggregate.function == "avg":
                columns = combined(contributions, [self._unit(top), self._unit(bottom)])
                estimate, present = clip(estimate_ratio(columns, asked), *self._ends(top)), 1.0
            else:
                estimate = estimate_total(combined(contributions, [self._unit(top)]), asked)
                present = combined(contributions, [self._unit(bottom)]).total() if bottom else 0.0
            told = (
                v is not None
                and (v.tells_mean if aggregate.function == "avg" else v.tells)
                and self._bounds(f, v)
                for f, v in zip(factors, known, strict=True)
            )
            mean, error = means
            if error > abs(mean):
                found.append(wider_than_itself(_reach(estimate), present * (abs(mean) + error)))
            elif all(told):
                found.append(_relative(estimate))
            else:
                found.append(wider_than_itself(_reach(estimate), present * self._largest_mean(top)))
        return found

    def _mean(self, columns: Sequence[tuple[int, float]]) -> tuple[float, float]:
        """The mean of what several terms add, and what it may be off by: they may cancel out. One term does not."""
        if len(columns) < 2:
            return 1.0, 0.0
        own = [(c, [self._values(f) for f in self.terms[n].factors if not f.presence]) for n, c in columns]
        return combined_mean((c, [v for v in values if v is not None]) for c, values in own)

    def _largest_mean(self, columns: Sequence[tuple[int, float]]) -> float:
        """The most that the mean of what a joined tuple adds is taken to be from 0."""
        found = 0.0
        for number, coefficient in columns:
            factors = [f for f in self.terms[number].factors if not f.presence]
            means = [v.largest_mean for f in factors if (v := self._values(f)) is not None]
            found += abs(coefficient) * math.prod(means)
        return found

    def _ends(self, columns: Sequence[tuple[int, float]]) -> tuple[float, float]:
        """Between which an average lies for certain, by what its values lie between."""
        low = high = 0.0
        for number, coefficient in columns:
            least = most = np.array([coefficient])
            for factor in self.terms[number].factors:
                values = None if factor.presence else self._values(factor)
                ends = (0.0, 1.0) if values is None else (values.low, values.high)
                least, most = product_range(least, most, np.array([ends[0]]), np.array([ends[1]]))
            low, high = low + float(least[0]), high + float(most[0])
        return low, high

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
        """What keys add to each term, and tuples that are drawn for their values."""
        found = self.keys.sampled(self._chances, rng)
        columns, _ = self._added(found, rng)
        parts = [np.repeat(columns, found.times, axis=1)]
        chances = [np.repeat(found.probabilities, found.times)]
        for draw in self.sample.value_draws if self.is_drawn else ():
            added, p = self._drawn(draw, rng)
            parts, chances = [*parts, added], [*chances, p]
        p = np.concatenate(chances)
        return JoinTerms(np.arange(p.size), np.concatenate(parts, axis=1), p, self.unseen)

    def _drawn(self, draw: ValueDraw, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """What tuples that are drawn for their values add to each term, and with what chance each is drawn."""
        table = self.rows[draw.member]
        summed = [any(self._is_drawn_for(draw, f) for f in t.factors) for t in self.terms]
        factor = next((f for t in self.terms for f in t.factors if self._is_drawn_for(draw, f)), None)
        values = None if factor is None else self._values(factor)
        if values is None:
            return np.empty((len(self.terms), 0)), np.empty(0)
        seen = np.nan_to_num(values.seen)
        q = np.where(np.abs(seen) >= draw.least, np.minimum(np.abs(seen), draw.unit) / draw.unit, 0.0)
        most = min(max(MOST_KEYS, int(WANTED / self.sample.rate)), MOST_MADE)
        found = self.keys.sampled(lambda t: np.ones(t.shape[1]), rng, most)
        each, tuples = self._added(found, rng, table)
        left = np.where(self._estimated_alone(found, draw), tuples * found.times, 0)
        owner = np.repeat(np.arange(left.size), rng.poisson(left * float(q.mean())))
        which = rng.choice(seen.size, owner.size, p=q / q.sum()) if owner.size else np.empty(0, np.int64)
        added, p = seen[which], q[which]
        # What nobody has met, and is there, if it has a partner.
        unmet = values.unmet[np.abs(values.unmet) >= max(draw.least, draw.unit)]
        unmet = unmet[rng.random(unmet.size) * self.known.tuples[table] < left.sum()]
        if unmet.size:
            owner = np.append(owner, rng.choice(left.size, unmet.size, p=left / left.sum()))
            added, p = np.append(added, unmet), np.append(p, np.ones(unmet.size))
        return each[:, owner] * np.where(np.array(summed)[:, np.newaxis], added, 0.0), p

    def _estimated_alone(self, found: Sampled, draw: ValueDraw) -> npt.NDArray[np.bool_]:
        """Whether the large values of keys are estimated tuple by tuple."""
        return ~(found.dense | self.frame.found_beside(found.tuples[self.rows], draw.member))

    def _added(
        self, found: Sampled, rng: np.random.Generator, beside: int | None = None
    ) -> tuple[Floats, Ints]:
        """What keys add to each term; or each tuple of the table `beside` but for its values, and how many these are.

        Of values that are drawn for those that are left to the key.
        """
        columns = np.ones((len(self.terms), found.tuples.shape[1]))
        left = np.zeros(found.tuples.shape[1], np.int64)
        for table, each in enumerate(self.keys.messages):
            tuples, weight = received(found.tuples[table], each, rng)
            if table == beside:
                columns, left = columns * weight, tuples
                continue
            added: dict[tuple[int, str], tuple[Floats, Floats]] = {}
            for n, term in enumerate(self.terms):
                part = tuples.astype(np.float64)
                for factor in term.factors:
                    values = self._values(factor)
                    if self.known.behind[factor.vertex] != table or values is None:
                        continue
                    at = factor.vertex, factor.expression
                    if at not in added:
                        added[at] = values.added(tuples, rng)
                    # Of several factors behind one table each is taken to be independent of the others.
                    part = part * added[at][int(factor.presence)] / np.maximum(tuples, 1)
                    for draw in self.sample.value_draws if self.is_drawn else ():
                        if self._is_drawn_for(draw, factor):
                            small = np.where(np.abs(values.seen) < draw.least, values.seen, 0.0)
                            sums, _ = Values(small).added(tuples, rng)
                            part = np.where(self._estimated_alone(found, draw), sums, part)
                columns[n] *= part * weight
        return columns, left


def wider_than_itself(reach: float, most: float) -> float:
    """The relative half-width of a value that is at most `most` from 0, which it is not told from; NaN if narrower."""
    return reach / most if reach >= most > 0.0 else math.nan


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
