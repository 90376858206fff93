"""A query on a sample of the keys of one join class, evaluated exactly, table by table.

The error depends on the sampled class alone, whatever the number of tables. The same scans draw tuples one by one; a
key of which enough are drawn is evaluated too, and what one that is not evaluated can add is bounded: see
`sketches.samples.dual_frame`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ...optimizer.candidates.first_sample import MOST_WANTED
from ...optimizer.distinct_count import DistinctCount
from ...optimizer.plan import Plan, PlannedTerm, Sample, ValueDraw, Weight
from ...sketches.intervals.interval import Estimate, exact, uncertified
from ...sketches.intervals.rounding import slack_of
from ...sketches.samples.dual_frame import OVERLOOKED, DualFrame
from ...sketches.samples.known_keys import (
    JoinTerms,
    KnownKeys,
    combined,
    join_terms,
    product_range,
    products,
    with_certain,
)
from ...sketches.samples.sample_join import (
    complete_ratio,
    complete_total,
    estimate_ratio,
    estimate_total,
    is_complete,
)
from ...sketches.samples.sampled_hash import HASH_BITS, sample_family
from ..sources.tables import Frames
from ..spark.jobs import ProgressListener
from .absolutes import with_absolutes
from .sample_tree import Counts, Grouped, Rows, SampleTree, asks_for_dense

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEFAULT_LIMIT_BYTES = 256 << 20

BOUNDS_FAIL = "the bound on unseen keys does not hold with the asked confidence"

# With more keys than this that the drawn tuples meet often enough, it takes more hits.
MOST_HEAVY = 4096

# More keys of tuples drawn for their values are not evaluated: the sample is then as if none had been drawn.
MOST_VALUED = 1 << 19

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class SampleJoin:
    """The contributions of the sampled keys to every term of a plan.

    Attributes
    ----------
    terms : tuple of tuples of int
        The synopses of each term, by which it is known.
    contributions : JoinTerms
        One column for each of them.
    nbytes : int
        In-memory bytes of all messages, sampled and exact.
    scales : tuple of float
        For each term the factor that made its contributions integers.
    slacks : tuple of float
        For each term how far rounding may have moved its sums of doubles, where no key is left to chance.
    overlooked : float
        The chance with which what bounds unseen keys does not hold.
    """

    terms: tuple[tuple[int, ...], ...]
    contributions: JoinTerms
    nbytes: int
    scales: tuple[float, ...]
    slacks: tuple[float, ...]
    overlooked: float = 0.0

    def total(self, terms: Sequence[PlannedTerm], confidence: float, *, bounded: bool = False) -> Estimate:
        """See `Joined.total`; what is known of unseen keys bounds it in any case."""
        columns = combined(self.contributions, [self._coefficients(terms)])
        if not is_complete(columns):
            return self._leaving(confidence, lambda c: estimate_total(columns, c))
        known = self.known(terms)
        return complete_total(columns, 0, self._slack(terms)) if known is None else exact(known)

    def ratio(self, top: Sequence[PlannedTerm], bottom: Sequence[PlannedTerm], confidence: float) -> Estimate:
        """See `Joined.ratio`."""
        columns = combined(self.contributions, [self._coefficients(top), self._coefficients(bottom)])
        if not is_complete(columns):
            return self._leaving(confidence, lambda c: estimate_ratio(columns, c))
        above, below = self.known(top), self.known(bottom)
        if above is None or below is None:
            return complete_ratio(columns, self._slack(top))
        return exact(Fraction(above) / Fraction(below)) if below else exact(math.nan)

    def without_unseen(self) -> SampleJoin:
        """The same as if no key were unseen: intervals are then as wide as chance alone makes them."""
        nothing = np.zeros_like(self.contributions.unseen)
        return replace(self, contributions=replace(self.contributions, unseen=nothing))

    def _leaving(self, confidence: float, estimate: Callable[[float], Estimate]) -> Estimate:
        """An estimate that leaves a part of its chance to fail to the bounds on unseen keys."""
        if confidence + self.overlooked >= 1.0:
            return uncertified(estimate(confidence), BOUNDS_FAIL)
        found = estimate(confidence + self.overlooked)
        return found if found.exact else replace(found, confidence=confidence)

    def known(self, terms: Sequence[PlannedTerm]) -> int | Fraction | None:
        """See `Joined.known`; of integers and decimals alone, with all their digits."""
        total: Fraction | int = 0
        for term in terms:
            only = combined(self.contributions, [self._unit(term)])
            if not is_complete(only):
                return None
            found = complete_total(only, 0, self._slack([replace(term, coefficient=1.0)]))
            if not found.exact:
                return None
            total += (
                Fraction(found.value) * Fraction(repr(term.coefficient)) / Fraction(repr(self._scale(term)))
            )
        return int(total) if total.denominator == 1 else total

    def _slack(self, terms: Sequence[PlannedTerm]) -> float:
        """How far rounding may have moved sums of doubles before contributions were made of them."""
        return sum(abs(t.coefficient) * self.slacks[self.terms.index(t.synopses)] for t in terms)

    def _unit(self, term: PlannedTerm) -> Floats:
        unit = np.zeros(len(self.terms))
        unit[self.terms.index(term.synopses)] = 1.0
        return unit

    def _scale(self, term: PlannedTerm) -> float:
        return self.scales[self.terms.index(term.synopses)]

    def distinct(self, count: DistinctCount, confidence: float) -> Estimate:
        """Never asked: a plan that counts distinct values has no sample of join keys."""
        raise ValueError("distinct values are not counted on a sample of join keys")

    def _coefficients(self, terms: Sequence[PlannedTerm]) -> Floats:
        coefficients = np.zeros(len(self.terms))
        for term in terms:
            coefficients[self.terms.index(term.synopses)] += term.coefficient / self._scale(term)
        return coefficients


def run_sample(
    spark: SparkSession,
    plan: Plan,
    tables: Frames,
    listener: ProgressListener | None = None,
    limit_bytes: int = DEFAULT_LIMIT_BYTES,
    expected: Mapping[int, float] | None = None,
    groups: Collection[int] = (),
) -> dict[tuple[int, ...], SampleJoin]:
    """Evaluate a plan with a sample: one scan for each vertex of its residual tree.

    Where vertices are grouped there is a join for each combination of groups that the sample has met, by the number
    of a group of each grouped vertex, ascending; without groups there is one, of no numbers.

    A second scan of each follows where keys turn up that are too heavy to be left to chance. `expected` are the
    tuples of the vertices of the query's join graph behind their filters, as far as they are known.

    Raises
    ------
    BudgetExceeded
        If what a table sends takes more than `limit_bytes`.
    UnsupportedQuery
        If Spark refuses an expression.
    """
    from .sample_scan import SampleScans  # late: it needs Spark

    def scans(plan: Plan, terms: Sequence[tuple[int, ...]]) -> SampleScans:
        tuples = [(expected or {}).get(v, math.inf) for v in plan.vertices]
        return SampleScans(spark, plan, terms, tables, listener, limit_bytes, tuples, groups)

    return sample_join(plan, scans)


def sample_join(
    plan: Plan, scans: Callable[[Plan, Sequence[tuple[int, ...]]], SampleTree]
) -> dict[tuple[int, ...], SampleJoin]:
    """Evaluate a plan with a sample on the scans that a backend makes for its terms."""
    sample = plan.sample
    assert sample is not None, "a plan without a sample is built from sketches"
    planned = (t for a in plan.aggregates for t in (*a.total, *a.presence))
    terms = tuple(dict.fromkeys(t.synopses for t in planned))
    absolutes: dict[int, int] = {}
    if sample.rate == 1.0:
        plan, terms, absolutes = with_absolutes(plan, terms)
    made = scans(plan, terms)
    found = Evaluation(plan, terms, made).contributions(sample)
    overlooked = OVERLOOKED * (1 + bool(sample.value_draws)) if is_drawn(sample) else 0.0
    scales = tuple(map(math.prod, zip(*made.scales.values(), strict=True))) or (1.0,) * len(terms)
    doubles = [any(own) for own in zip(*made.doubles.values(), strict=True)]
    absolutes = {n: a for n, a in absolutes.items() if doubles[n]}
    counting = [n for n, t in enumerate(terms) if all(counts(plan, i) for i in t)]
    return {
        n: SampleJoin(
            terms, known, made.nbytes, scales, _slacks(terms, known, absolutes, counting), overlooked
        )
        for n, known in found.items()
    }


def is_drawn(sample: Sample) -> bool:
    """Whether tuples are drawn one by one beside the sampled keys."""
    return any(sample.row_rates) and sample.rate < 1.0


def _slacks(
    terms: Sequence[tuple[int, ...]], known: JoinTerms, absolutes: Mapping[int, int], counting: Sequence[int]
) -> tuple[float, ...]:
    """How far rounding may have moved each term: every tuple that adds something joins, and counts for one at least."""
    counted = max((known.total(n) for n in counting), default=0.0) if absolutes else 0.0
    return tuple(
        slack_of(len(term) * counted, known.total(absolutes[n])) if n in absolutes else 0.0
        for n, term in enumerate(terms)
    )


def counts(plan: Plan, synopsis: int) -> bool:
    """Whether a synopsis counts tuples."""
    weight = plan.synopses[synopsis].weight
    return weight.expression is None or weight.presence


@dataclass(frozen=True)
class _Sent:
    """What is known of one member of the sampled class: in all, and for each combination of groups behind it.

    `vertices` are the grouped vertices of the plan behind the member, in the order of the numbers of a group.
    """

    whole: KnownKeys
    parts: Mapping[tuple[int, ...], KnownKeys]
    vertices: tuple[int, ...]
    rows: Rows

    @property
    def nothing(self) -> KnownKeys:
        """The same of no key at all."""
        none = np.empty(0, np.int64)
        return replace(
            self.whole,
            keys=none,
            weights=self.whole.weights[:, :0],
            certain=none.astype(np.bool_),
            ranks=none.astype(np.float64),
        )


@dataclass(frozen=True)
class Evaluation:
    """Evaluates the terms of a plan on the keys that its scans send."""

    plan: Plan
    terms: tuple[tuple[int, ...], ...]
    scans: SampleTree

    def contributions(self, sample: Sample) -> dict[tuple[int, ...], JoinTerms]:
        """What every known key adds to each term, by the numbers of its groups where vertices are grouped."""
        sent = self._sent(sample)
        found = {n: self._bounded(sample, k) for n, k in self._joined(sent).items()}
        if not is_drawn(sample):
            return found
        frame, heavy, drawn = self._frame(sample, sent)
        tuples, unvalued = [m.rows.tuples for m in sent], [m.rows.unvalued for m in sent]
        if len(heavy):
            dense = replace(sample, dense=tuple(heavy.tolist()), rate=0.0, row_rates=())
            met = self._sent(dense)
            certain, nothing = self._joined(met), join_terms([m.nothing for m in sent])
            found = {
                n: with_certain(found.get(n, self._bounded(sample, nothing)), certain.get(n, nothing), heavy)
                for n in sorted({*found, *certain})
            }
            tuples = [_either(a, b.rows.tuples, heavy) for a, b in zip(tuples, met, strict=True)]
            unvalued = [_either(a, b.rows.unvalued, heavy) for a, b in zip(unvalued, met, strict=True)]
        # Of a table that was drawn as a whole no key that is not evaluated has more tuples than were met.
        evaluated = np.union1d(heavy, np.array(sample.dense, np.int64))
        caps = [
            float(h.counts[~np.isin(h.keys, evaluated)].max(initial=0)) if rate == 1.0 else math.inf
            for h, rate in zip((m.rows.hits for m in sent), sample.row_rates, strict=True)
        ]
        unseen = self._unseen_sums(sample, frame, caps, drawn)
        return {
            n: self._weighed(k, frame, tuples, unvalued if drawn else (), unseen) for n, k in found.items()
        }

    def _unseen_sums(
        self, sample: Sample, frame: DualFrame, caps: Sequence[float], drawn: Sequence[ValueDraw]
    ) -> Floats:
        """The least and the most that a key that is not evaluated adds to each term, by its probability."""
        most = frame.largest_product(caps)
        weights = [self.scans.tuple_weights(v, sample.edges) for v, _ in sample.members]
        low, high = _product_of(weights)
        low, high = products(np.minimum(low, 0.0), most), products(np.maximum(high, 0.0), most)
        for draw in drawn:
            vertex, _ = sample.members[draw.member]
            beside = [*weights[: draw.member], *weights[draw.member + 1 :]]
            each = _product_of([self.scans.weights_beside(vertex, sample.edges), *beside])
            of_one = np.maximum(np.abs(each[0]), np.abs(each[1]))
            value = draw.least * most + frame.largest_value(draw.member, draw.unit, caps)
            summed = [self._weight(t, vertex) == Weight(draw.expression) for t in self.terms]
            bound = np.where(summed, products(of_one, value), np.inf)
            low, high = np.maximum(low, -bound), np.minimum(high, bound)
        return np.stack([low, high], axis=1)

    def _weight(self, term: tuple[int, ...], vertex: int) -> Weight:
        return self.plan.synopses[term[vertex]].weight

    def _frame(self, sample: Sample, sent: Sequence[_Sent]) -> tuple[DualFrame, Ints, tuple[ValueDraw, ...]]:
        """How keys are found, those that the drawn tuples meet often enough, and the draws of values that count."""
        draws = tuple(self.scans.draw(sample, n) for n in range(len(sample.members)))
        each = [sent[d].rows.hits for d in dict.fromkeys(draws)]
        hits = Counts.counted(*(np.concatenate([getattr(h, a) for h in each]) for a in ("keys", "counts")))
        dense = np.array(sample.dense, np.int64)
        others = ~np.isin(hits.keys, dense)
        keys, counts = hits.keys[others], hits.counts[others]
        needed = sample.hits
        if np.count_nonzero(counts >= needed) > MOST_HEAVY:
            needed = int(np.partition(counts, -MOST_HEAVY - 1)[-MOST_HEAVY - 1]) + 1
        heavy, drawn = keys[counts >= needed], sample.value_draws
        valued = np.unique(np.concatenate([m.rows.valued.keys for m in sent]))
        number = float(sum(m.rows.valued.counts.sum() for m in sent))
        if len(valued) > MOST_VALUED:
            drawn, valued, number = (), valued[:0], 0.0
        frame = DualFrame(
            sample.rate, sample.row_rates, needed, float(hits.counts.sum()), draws, valued=number
        )
        return frame, np.union1d(heavy, np.setdiff1d(valued, dense)), drawn

    def _weighed(
        self,
        known: JoinTerms,
        frame: DualFrame,
        tuples: Sequence[Counts],
        unvalued: Sequence[Counts],
        unseen: Floats,
    ) -> JoinTerms:
        """What keys add, with the probability of each by its tuples, and what unseen ones can add."""
        by_table = np.array([t.of(known.keys) for t in tuples], np.int64).reshape(len(tuples), -1)
        chances = np.zeros(len(known.keys))
        for theirs in unvalued:
            chances += theirs.of(known.keys)
        found = frame.probabilities(by_table, chances)
        # Some are known for certain without.
        dense = np.isin(known.keys, np.array(self.plan.sample.dense if self.plan.sample else (), np.int64))
        low, high = known.unseen.T
        bounds = np.stack([np.maximum(low, unseen[:, 0]), np.minimum(high, unseen[:, 1])], axis=1)
        return replace(known, probabilities=np.where(dense, 1.0, found), unseen=bounds)

    def _joined(self, sent: Sequence[_Sent]) -> dict[tuple[int, ...], JoinTerms]:
        """The keys that all members know, for each combination of their groups."""
        vertices = [v for m in sent for v in m.vertices]
        order = sorted(range(len(vertices)), key=lambda n: vertices[n])
        found = {}
        for chosen in product(*(m.parts.items() for m in sent)):
            numbers = [n for own, _ in chosen for n in own]
            known = join_terms([k for _, k in chosen])
            if known.keys.size or not vertices:
                found[tuple(numbers[n] for n in order)] = known
        return found

    def _sent(self, sample: Sample) -> list[_Sent]:
        """What is known of each table of the class, in the order of the members.

        The smallest table is read first, by the share of it that is looked at; of the next ones only the keys that it
        has are wanted.
        """
        order = list(range(len(sample.members)))
        if sample.row_rates:
            order.sort(key=lambda n: -sample.row_rates[n])
        found: dict[int, _Sent] = {}
        among = np.array(sample.dense, np.int64) if asks_for_dense(sample) else None
        for number in order:
            found[number] = self._known(sample, number, among)
            keys = found[number].whole.keys
            among = keys if sample.rate < 1.0 and len(keys) <= MOST_WANTED else None
        return [found[number] for number in range(len(sample.members))]

    def _bounded(self, sample: Sample, terms: JoinTerms) -> JoinTerms:
        """What no unseen key can exceed, for the columns that count."""
        if not sample.rate or not np.isfinite(sample.largest_product):
            return terms
        most = sample.largest_product / sample.rate
        counts = [n for n, term in enumerate(self.terms) if all(self._counts(i) for i in term)]
        unseen = terms.unseen.copy()
        unseen[counts] = np.clip(unseen[counts], 0.0, most)
        return replace(terms, unseen=unseen)

    def _known(self, sample: Sample, number: int, among: Ints | None) -> _Sent:
        """What is known of one table of the class, with everything that hangs from it."""
        member = self.scans.member(sample, number, among)
        grouped = member.grouped
        unseen = self._unseen(sample, number)

        def known(found: Grouped) -> KnownKeys:
            certain = np.full(len(found.keys), sample.rate in (0.0, 1.0))
            certain |= np.isin(found.keys, np.array(sample.dense, np.int64))
            hashes = sample_family(self.plan.seed, sample.class_name).values(found.keys, 1, HASH_BITS)[0]
            return KnownKeys(
                found.keys,
                found.weights,
                certain,
                sample.rate or 1.0,
                unseen,
                hashes / (1 << HASH_BITS),
                np.full(len(self.terms), np.nan),
            )

        whole = known(grouped.whole())
        parts: dict[tuple[int, ...], KnownKeys] = {(): whole}
        if grouped.vertices:
            parts = {n: known(part) for n, part in grouped.of_groups().items()}
        return _Sent(whole, parts, grouped.vertices, member.rows)

    def _unseen(self, sample: Sample, number: int) -> Floats:
        """Bounds on the weight of a key that is not certain: known for counts where nothing else hangs on it."""
        bounds = np.tile([-np.inf, np.inf], (len(self.terms), 1))
        vertex, _ = sample.members[number]
        alone = all(e in sample.edges for e, _, _ in self.scans.edges(vertex))
        for column, term in enumerate(self.terms):
            synopsis = self.plan.synopses[term[vertex]]
            if self._counts(term[vertex]) and not synopsis.messages:
                most = sample.largest_other[number] if alone and sample.largest_other else np.inf
                bounds[column] = 0.0, most
        return bounds

    def _counts(self, synopsis: int) -> bool:
        return counts(self.plan, synopsis)


def _product_of(ranges: Sequence[Floats]) -> tuple[Floats, Floats]:
    """Between which products of weights lie, by what each of them lies between."""
    low, high = ranges[0].T
    for theirs in ranges[1:]:
        low, high = product_range(low, high, *theirs.T)
    return low, high


def _either(sampled: Counts, met: Counts, keys: Ints) -> Counts:
    """The tuples of sampled keys, and of some that were evaluated by themselves."""
    rest = ~np.isin(sampled.keys, keys)
    return Counts.counted(
        np.concatenate([sampled.keys[rest], met.keys]), np.concatenate([sampled.counts[rest], met.counts])
    )
