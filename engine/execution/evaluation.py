"""What keys of a sampled class add to each term of a plan, and with what probability each of them is known.

The keys of a sample, those that tuples drawn one by one tell to be heavy, and tuples drawn for their values: see
`sketches.samples.dual_frame`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np
import numpy.typing as npt

from ...optimizer.candidates.first_sample import MOST_WANTED
from ...optimizer.plan import Plan, Sample
from ...sketches.joins.accumulate import distinct
from ...sketches.samples.dual_frame import DualFrame
from ...sketches.samples.known_keys import (
    JoinTerms,
    KnownKeys,
    join_terms,
    product_range,
    products,
    with_certain,
)
from ...sketches.samples.sampled_hash import HASH_BITS, sample_family
from .sample_rows import Counts, Grouped
from .sample_tree import SampleTree, asks_for_dense
from .sent_keys import Sent

# With more keys than this that the drawn tuples meet often enough, it takes more hits.
MOST_HEAVY = 4096

# More tuples drawn for their values are not taken: the sample is then as if none had been drawn.
MOST_VALUED = 1 << 19

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


def counts(plan: Plan, synopsis: int) -> bool:
    """Whether a synopsis counts tuples."""
    weight = plan.synopses[synopsis].weight
    return weight.expression is None or weight.presence


@dataclass(frozen=True)
class Evaluation:
    """Evaluates the terms of a plan on the keys that its scans send.

    `large` has the draw of a term's values, and the term that has the large ones alone, see `with_large`.
    """

    plan: Plan
    terms: tuple[tuple[int, ...], ...]
    scans: SampleTree
    large: Mapping[int, tuple[int, int]] = field(default_factory=dict)

    def contributions(self, sample: Sample) -> dict[tuple[int, ...], JoinTerms]:
        """What every known key adds to each term, by the numbers of its groups where vertices are grouped."""
        counted = self._counted(sample)
        listed = distinct(np.concatenate([np.array(sample.dense, np.int64), *(k for k, _ in counted)]))
        sample = replace(sample, dense=tuple(listed.tolist()))
        sent = self._sent(sample)
        found = {n: self._bounded(sample, k) for n, k in self._joined(sent).items()}
        if not sample.is_guarded:
            return found
        frame, heavy = self._frame(sample, sent)
        draws = [n for n, m in enumerate(sent) if 0 < m.rows.drawn.keys.shape[1] <= MOST_VALUED]
        again = distinct(np.concatenate([heavy, self._unread(sample, sent, draws)]))
        tuples, met = [m.rows.tuples for m in sent], None
        if len(again):
            dense = replace(sample, dense=tuple(again.tolist()), rate=0.0, row_rates=(), value_draws=())
            met = self._sent(dense)
            nothing = join_terms([m.nothing for m in sent])
            certain = {n: _among(k, heavy) for n, k in self._joined(met).items()}
            found = {
                n: with_certain(found.get(n, self._bounded(sample, nothing)), certain.get(n, nothing), heavy)
                for n in sorted({*found, *certain})
            }
            tuples = [_either(a, b.rows.tuples, again) for a, b in zip(tuples, met, strict=True)]
        # Of a table that was drawn as a whole no key that is not evaluated has more tuples than were met.
        evaluated = np.union1d(heavy, np.array(sample.dense, np.int64))
        caps = [
            min(
                float(h.counts[~np.isin(h.keys, evaluated)].max(initial=0)) if rate == 1.0 else math.inf, most
            )
            for h, rate, (_, most) in zip((m.rows.hits for m in sent), sample.row_rates, counted, strict=True)
        ]
        drawn = {
            n: (number, large)
            for n, (number, large) in self.large.items()
            if len(sent[sample.value_draws[number].member].rows.drawn.draws) <= MOST_VALUED
        }
        unseen = self._unseen_sums(sample, frame, caps, drawn)
        found = {n: self._weighed(sample, k, frame, tuples, unseen, drawn) for n, k in found.items()}
        for number in draws:
            for n, units in self._drawn(sample, sent, met, again, number, frame, tuples, drawn).items():
                found[n] = _beside(found[n], units) if n in found else replace(units, unseen=unseen)
        return found

    def _counted(self, sample: Sample) -> list[tuple[Ints, float]]:
        """For each member the keys that its files show in more tuples than planned, and the most of any other."""
        nothing = np.empty(0, np.int64), math.inf
        if not sample.is_guarded or not sample.counted:
            return [nothing] * len(sample.members)
        return [
            self.scans.heavy_keys(vertex, position, most) if math.isfinite(most) else nothing
            for (vertex, position), most in zip(sample.members, sample.counted, strict=True)
        ]

    def _unread(self, sample: Sample, sent: Sequence[Sent], draws: Sequence[int]) -> Ints:
        """The keys of tuples drawn for their values that another table was not asked for."""
        found = []
        for number in draws:
            keys = distinct(sent[number].rows.drawn.keys[0])
            below = max(1, round(sample.rate * (1 << HASH_BITS))) / (1 << HASH_BITS)
            hashed = self._ranks(sample, keys) < below
            hashed |= np.isin(keys, np.array(sample.dense, np.int64))
            others = [m.also for n, m in enumerate(sent) if n != number]
            found += [keys[~hashed & ~np.isin(keys, also)] for also in others]
        return distinct(np.concatenate(found)) if found else np.empty(0, np.int64)

    def _ranks(self, sample: Sample, keys: Ints) -> Floats:
        hashes = sample_family(self.plan.seed, sample.class_name).values(keys, 1, HASH_BITS)[0]
        ranks: Floats = hashes / (1 << HASH_BITS)
        return ranks

    def _drawn(
        self,
        sample: Sample,
        sent: Sequence[Sent],
        met: Sequence[Sent] | None,
        again: Ints,
        number: int,
        frame: DualFrame,
        tuples: Sequence[Counts],
        drawn: Mapping[int, tuple[int, int]],
    ) -> dict[tuple[int, ...], JoinTerms]:
        """What tuples of a table add that were drawn for their values, but at keys that are evaluated for others."""
        rows = sent[number].rows.drawn
        keys = rows.keys[0]
        sides = [
            m.of(keys, None if met is None else met[n], again) if n != number else replace(m, parts=m.drawn)
            for n, m in enumerate(sent)
        ]
        units = np.array([d.unit for d in sample.value_draws])
        chances = np.minimum(rows.sizes, units[rows.draws]) / units[rows.draws]
        alone = ~self._found_beside(sample, frame, number, keys, tuples)
        own = np.zeros((len(self.terms), len(keys)), np.bool_)
        for n, (draw, _) in drawn.items():
            own[n] = alone & (rows.draws == draw)
        found = {}
        for group, known in self._joined(sides).items():
            terms = np.where(own[:, known.keys], known.terms, 0.0)
            there = terms.any(axis=0)
            which = known.keys[there]
            found[group] = replace(
                known, keys=keys[which], terms=terms[:, there], probabilities=chances[which]
            )
        return found

    def _found_beside(
        self, sample: Sample, frame: DualFrame, number: int, keys: Ints, tuples: Sequence[Counts]
    ) -> Bools:
        by_table = np.array([t.of(keys) for t in tuples], np.int64).reshape(len(tuples), -1)
        dense = np.isin(keys, np.array(sample.dense, np.int64))
        return dense | frame.found_beside(by_table, number)

    def _unseen_sums(
        self, sample: Sample, frame: DualFrame, caps: Sequence[float], drawn: Mapping[int, tuple[int, int]]
    ) -> Floats:
        """The least and the most that what is not evaluated adds to each term, by its probability."""
        most = frame.largest_product(caps)
        weights = [self.scans.tuple_weights(v, sample.edges) for v, _ in sample.members]
        low, high = _product_of(weights)
        low, high = products(np.minimum(low, 0.0), most), products(np.maximum(high, 0.0), most)
        for number in dict.fromkeys(n for n, _ in drawn.values()):
            draw = sample.value_draws[number]
            vertex, _ = sample.members[draw.member]
            beside = [*weights[: draw.member], *weights[draw.member + 1 :]]
            each = _product_of([self.scans.weights_beside(vertex, sample.edges), *beside])
            of_one = np.maximum(np.abs(each[0]), np.abs(each[1]))
            # Of a key the smaller values, of a tuple that was not drawn its own: less than the unit.
            value = max(draw.least * most, draw.unit * frame.largest_beside(draw.member, caps))
            summed = [n in drawn and drawn[n][0] == number for n in range(len(self.terms))]
            bound = np.where(summed, products(of_one, value), np.inf)
            low, high = np.maximum(low, -bound), np.minimum(high, bound)
        # What is known of values is of themselves, contributions are of the integers that were made of them.
        scales = np.array(self.scans.term_scales, np.float64)
        return np.stack([low * scales, high * scales], axis=1)

    def _frame(self, sample: Sample, sent: Sequence[Sent]) -> tuple[DualFrame, Ints]:
        """How keys are found, and those that the drawn tuples meet often enough."""
        draws = tuple(self.scans.draw(sample, n) for n in range(len(sample.members)))
        each = [sent[d].rows.hits for d in dict.fromkeys(draws)]
        hits = Counts.counted(*(np.concatenate([getattr(h, a) for h in each]) for a in ("keys", "counts")))
        dense = np.array(sample.dense, np.int64)
        others = ~np.isin(hits.keys, dense)
        keys, counts = hits.keys[others], hits.counts[others]
        needed = sample.hits
        if np.count_nonzero(counts >= needed) > MOST_HEAVY:
            needed = int(np.partition(counts, -MOST_HEAVY - 1)[-MOST_HEAVY - 1]) + 1
        frame = DualFrame(sample.rate, sample.row_rates, needed, float(hits.counts.sum()), draws)
        return frame, keys[counts >= needed]

    def _weighed(
        self,
        sample: Sample,
        known: JoinTerms,
        frame: DualFrame,
        tuples: Sequence[Counts],
        unseen: Floats,
        drawn: Mapping[int, tuple[int, int]],
    ) -> JoinTerms:
        """What keys add, with the probability of each by its tuples, and what unseen ones can add."""
        by_table = np.array([t.of(known.keys) for t in tuples], np.int64).reshape(len(tuples), -1)
        found, terms = frame.probabilities(by_table), known.terms.copy()
        for n, (draw, large) in drawn.items():
            # The large values of these are estimated tuple by tuple.
            number = sample.value_draws[draw].member
            alone = ~self._found_beside(sample, frame, number, known.keys, tuples)
            terms[n] -= np.where(alone, terms[large], 0.0)
        # Some are known for certain without.
        dense = np.isin(known.keys, np.array(sample.dense, np.int64))
        low, high = known.unseen.T
        bounds = np.stack([np.maximum(low, unseen[:, 0]), np.minimum(high, unseen[:, 1])], axis=1)
        return replace(known, terms=terms, probabilities=np.where(dense, 1.0, found), unseen=bounds)

    def _joined(self, sent: Sequence[Sent]) -> dict[tuple[int, ...], JoinTerms]:
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

    def _sent(self, sample: Sample) -> list[Sent]:
        """What is known of each table of the class, in the order of the members.

        Tables of which tuples are drawn for their values are read first, so that the others are asked for the keys of
        these too; then the smallest, by the share of it that is looked at. Of the next ones only the keys that it has
        are wanted.
        """
        order = list(range(len(sample.members)))
        valued = {d.member for d in sample.value_draws} if sample.is_guarded else set()
        if sample.row_rates:
            order.sort(key=lambda n: (n not in valued, -sample.row_rates[n]))
        found: dict[int, Sent] = {}
        among = np.array(sample.dense, np.int64) if asks_for_dense(sample) else None
        also = np.empty(0, np.int64)
        for number in order:
            found[number] = self._known(sample, number, among, also)
            keys = found[number].whole.keys
            among = keys if sample.rate < 1.0 and len(keys) <= MOST_WANTED else None
            if number in valued:
                rows = found[number].rows
                # What is met often enough is evaluated in any case.
                met = rows.hits.keys[rows.hits.counts >= sample.hits]
                more = np.setdiff1d(distinct(rows.drawn.keys[0]), met, assume_unique=True)
                also = distinct(np.concatenate([also, more if len(more) <= MOST_VALUED else more[:0]]))
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

    def _known(self, sample: Sample, number: int, among: Ints | None, also: Ints) -> Sent:
        """What is known of one table of the class, with everything that hangs from it."""
        member = self.scans.member(sample, number, among, also if len(also) else None)
        grouped = member.grouped
        unseen = self._unseen(sample, number)

        def known(found: Grouped) -> KnownKeys:
            certain = np.full(len(found.keys), sample.rate in (0.0, 1.0))
            certain |= np.isin(found.keys, np.array(sample.dense, np.int64))
            return KnownKeys(
                found.keys,
                found.weights,
                certain,
                sample.rate or 1.0,
                unseen,
                self._ranks(sample, found.keys),
                np.full(len(self.terms), np.nan),
            )

        whole = known(grouped.whole())
        parts: dict[tuple[int, ...], KnownKeys] = {(): whole}
        if grouped.vertices:
            parts = {n: known(part) for n, part in grouped.of_groups().items()}
        drawn = {n: known(part) for n, part in member.drawn.of_groups().items()}
        return Sent(whole, parts, grouped.vertices, member.rows, drawn, also)

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


def _among(known: JoinTerms, keys: Ints) -> JoinTerms:
    chosen = np.isin(known.keys, keys)
    return replace(
        known,
        keys=known.keys[chosen],
        terms=known.terms[:, chosen],
        probabilities=known.probabilities[chosen],
    )


def _beside(keys: JoinTerms, drawn: JoinTerms) -> JoinTerms:
    """What keys add, and tuples that were drawn by themselves."""
    return replace(
        keys,
        keys=np.concatenate([keys.keys, drawn.keys]),
        terms=np.concatenate([keys.terms, drawn.terms], axis=1),
        probabilities=np.concatenate([keys.probabilities, drawn.probabilities]),
    )


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
