"""Key samples beside hash sketches of the same streams, which tell of the keys that are not kept.

A sample is bad where few keys carry the join. Keys that stand out of the sketch of some stream are taken apart: they
are known in all streams, exactly where they are kept, else as the sketches weigh them. What is left of a sketch without
those and without the kept keys is of all other keys: where its self-join size is more than the kept keys let expect,
heavy keys are among the others still. Two streams are then joined by what is left of their sketches; of more streams
nothing but the self-join sizes bounds what is missing. Deletions are in samples and sketches alike.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from ...optimizer.plan import Plan, PlannedTerm
from ...sketches.intervals.interval import (
    Estimate,
    averaged,
    clip,
    collapse_notes,
    median_interval,
    ratio_interval,
    uncertified,
)
from ...sketches.joins.convolution import ConvolutionSketch, join_rows
from ...sketches.ranking import by_weight
from ...sketches.samples.key_sample import KeySample
from ..results.materialized_samples import SampledWeight
from ..synopses import Built
from .dense_apart import DenseApart, dense_in, squares_in, weighed, without
from .predicted import half_width
from .sampled import StreamSamples, sampled_weights

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
# Standard deviations by which the self-join size of the other keys may be more than the kept keys let expect.
SIGMAS = 3.0
# Keys of a stream that keeps all of them that are apart, whether they stand out or not.
MOST_OF_ALL = 64
HEAVIER = "keys that are not kept weigh more than those that are: the interval has room for what they may add"


@dataclass(frozen=True, slots=True, eq=False)
class Stream:
    """What is known of the weights of a stream.

    Attributes
    ----------
    sample : KeySample
    column : str
        Of the weights in it.
    beside : ConvolutionSketch
    dense : ndarray of float64
        Of the keys apart.
    errors : ndarray of float64
        Standard errors of these; 0 where they are kept.
    sampled : ndarray of float64
        Of the other keys in the sample.
    left : ConvolutionSketch
        Of all that are neither.
    """

    sample: KeySample
    column: str
    beside: ConvolutionSketch
    dense: Floats
    errors: Floats
    sampled: Floats
    left: ConvolutionSketch

    @property
    def like(self) -> Floats:
        """What the keys apart weigh, as their errors may be taken for weights."""
        return np.hypot(self.dense, self.errors)

    @property
    def _noise(self) -> float:
        rows, buckets = self.left.counters.shape
        return SIGMAS * math.sqrt(math.pi / (rows * buckets))

    @property
    def most_squares(self) -> float:
        """The self-join size of the other keys at most, as far as the sketch tells."""
        return squares_in(self.left) * (1.0 + self._noise)

    @property
    def excess(self) -> float:
        """By how much that may be more than the kept keys let expect; 0 where it may be as much."""
        p = self.sample.probability
        squares = np.square(self.sampled)
        expected = (1.0 - p) / p * float(squares.sum())
        spread = math.sqrt((1.0 - p) / p**2 * float(squares @ squares))
        least = squares_in(self.left) * (1.0 - self._noise)
        return max(self.most_squares - expected, 0.0) if least > expected + SIGMAS * spread else 0.0

    def known(self, keys: Ints) -> Ints:
        """The weights of keys that are kept, or have none."""
        row = self.sample.spec.columns.index(self.column)
        weights: Ints = np.zeros(len(keys), np.int64)
        _, here, there = np.intersect1d(keys, self.sample.keys, assume_unique=True, return_indices=True)
        weights[here] = self.sample.weights[row][there]
        return weights


@dataclass(frozen=True)
class CheckedSamples(StreamSamples):
    """The key samples of a view with the sketches beside them, ready to be asked.

    Attributes
    ----------
    streams : mapping of int to Stream
        By the numbers of a plan's synopses.
    samples : StreamSamples
        The samples alone.
    """

    streams: Mapping[int, Stream]
    samples: StreamSamples

    @property
    def nbytes(self) -> int:
        """In-memory bytes of all synopses."""
        return super().nbytes + sum(s.beside.nbytes for s in self.streams.values())

    def known(self, terms: Sequence[PlannedTerm]) -> int | float | Fraction | None:
        """See `Joined.known`: by the samples alone."""
        return self.samples.known(terms)

    def total(self, terms: Sequence[PlannedTerm], confidence: float, *, bounded: bool = False) -> Estimate:
        """See `Joined.total`."""
        found = super().total(terms, confidence, bounded=bounded)
        if self.known(terms) is not None:
            return found
        factors = [self._factor(t) for t in terms]
        found = _measured(found, _quantile(confidence) * self._error(terms, factors), confidence)
        if len(terms[0].synopses) == 2:
            rows = self._fewer(self._rows(terms), confidence)
            sketched = uncertified(median_interval(rows, confidence, "theorem"), *self._doubts(terms))
            return sketched if self._prefers(sketched, found, terms) else found
        room = sum(self._room(t) for t in terms)
        found = uncertified(_measured(found, room, confidence), HEAVIER) if room else found
        return found if self._signed(terms) else clip(found, 0.0)

    def ratio(self, top: Sequence[PlannedTerm], bottom: Sequence[PlannedTerm], confidence: float) -> Estimate:
        """See `Joined.ratio`."""
        found = super().ratio(top, bottom, confidence)
        if self.known(top) is not None and self.known(bottom) is not None:
            return found
        both, divisor = [*top, *bottom], self._value(bottom)
        if divisor and math.isfinite(found.value):
            factors = [self._factor(t) / divisor for t in top]
            factors += [-found.value * self._factor(t) / divisor for t in bottom]
            found = _measured(found, _quantile(confidence) * self._error(both, factors), confidence)
        if len(both[0].synopses) == 2:
            above, below = (self._fewer(self._rows(t), confidence) for t in (top, bottom))
            sketched = uncertified(ratio_interval(above, below, confidence, "measured"), *self._doubts(both))
            return sketched if self._prefers(sketched, found, both) else found
        if any(self._room(t) for t in both):
            low, high = _range(self.total(top, confidence), self.total(bottom, confidence))
            return uncertified(replace(found, low=min(low, found.low), high=max(high, found.high)), HEAVIER)
        return found

    def half_width(self, terms: Sequence[PlannedTerm], confidence: float) -> float | None:
        """The half-width to be expected of a sum, from what the interval is made of; 0 where it is exact."""
        sampled = super().half_width(terms, confidence)
        if sampled is None or self.known(terms) is not None:
            return sampled
        (term,) = terms
        sampled += _quantile(confidence) * self._error(terms, [self._factor(term)])
        if len(term.synopses) != 2:
            return sampled + self._room(term)
        own = self._streams(term)
        rows, buckets = own[0].left.counters.shape
        products = math.prod(squares_in(s) for s in self._left(term))
        sketched = abs(self._factor(term)) * half_width(products, rows, buckets, confidence)
        return min(sampled, sketched) if sampled and not any(s.excess for s in own) else sketched

    def _signed(self, terms: Sequence[PlannedTerm]) -> bool:
        """Whether what a key adds may be below 0."""
        return any(self._factor(t) < 0 or self.weights[i].signed for t in terms for i in t.synopses)

    def _prefers(self, sketched: Estimate, sampled: Estimate, terms: Sequence[PlannedTerm]) -> bool:
        """Whether the sketches tell more than the samples, or something else."""
        if any(s.excess for t in terms for s in self._streams(t)):
            return True
        if sketched.high - sketched.low < sampled.high - sampled.low:
            return True
        return sketched.low > sampled.high or sketched.high < sampled.low

    def _room(self, term: PlannedTerm) -> float:
        """What heavy keys that are not known may add: by Cauchy and Schwarz, of each stream with the others' rest."""
        own = self._streams(term)
        whole = math.prod(math.sqrt(s.most_squares) for s in own)
        parts = (math.sqrt(s.excess / s.most_squares) for s in own if s.excess)
        return abs(self._factor(term)) * whole * sum(parts)

    def _error(self, terms: Sequence[PlannedTerm], factors: Sequence[float]) -> float:
        """The standard error of a sum with factors, as far as the weights of the keys apart are those of sketches."""
        slopes: dict[int, Floats] = {}
        for term, factor in zip(terms, factors, strict=True):
            for place, i in enumerate(term.synopses):
                others = [self.streams[j].like for n, j in enumerate(term.synopses) if n != place]
                slope = factor * np.prod(others, axis=0)
                slopes[i] = slopes.get(i, 0.0) + slope
        return math.sqrt(sum(float(np.square(s * self.streams[i].errors).sum()) for i, s in slopes.items()))

    def _value(self, terms: Sequence[PlannedTerm]) -> float:
        return sum(self._factor(t) * self._joined([t]).total() for t in terms)

    def _rows(self, terms: Sequence[PlannedTerm]) -> Floats:
        """Of a sum over two streams: what the kept keys add, and what each row of the sketches says of the others."""
        total: Any = 0.0
        for term in terms:
            keys = self._common_keys(term)
            left, right = (s.known(keys).astype(np.float64) for s in self._streams(term))
            others = join_rows(self._left(term), ((0, 1, 0, 0),))
            total = total + self._factor(term) * (others + float(left @ right))
        return np.asarray(total)

    def _left(self, term: PlannedTerm) -> list[ConvolutionSketch]:
        """The sketches without the keys that are kept of all streams."""
        keys = self._common_keys(term)
        return [without(s.beside, keys, s.known(keys)) for s in self._streams(term)]

    def _common_keys(self, term: PlannedTerm) -> Ints:
        samples = [s.sample for s in self._streams(term)]
        least = min(s.probability for s in samples)
        return np.unique(np.concatenate([s.keys[s.ranks(s.keys) < least] for s in samples]))

    def _streams(self, term: PlannedTerm) -> list[Stream]:
        return [self.streams[i] for i in term.synopses]

    def _fewer(self, rows: Floats, confidence: float) -> Floats:
        return averaged(rows, min(s.beside.spec.buckets for s in self.streams.values()), confidence)

    def _doubts(self, terms: Sequence[PlannedTerm]) -> tuple[str, ...]:
        return collapse_notes([s.counters for t in terms for s in self._left(t)])


def checked_join(
    plan: Plan, built: Sequence[Built], beside: Sequence[Built], candidates: Ints
) -> StreamSamples:
    """The key samples of a plan, each with the sketch beside it; `candidates` may be dense in some stream."""
    weights = sampled_weights(plan, built)
    if all(w.sample.probability == 1.0 for w in weights.values()):
        return StreamSamples(weights)
    sketches = {i: _dense(b) for i, b in enumerate(beside)}
    found = [dense_in(s, candidates) for s in sketches.values()]
    found += [_few(w) for w in weights.values() if w.sample.probability == 1.0]
    keys = np.unique(np.concatenate([np.empty(0, np.int64), *found]))
    streams = {i: _stream(w, sketches[i], keys) for i, w in weights.items()}
    apart: dict[int, DenseApart] = {}
    for w in weights.values():
        own = {v.column: streams[i].dense for i, v in weights.items() if v.sample is w.sample}
        rows = [own[c] for c in w.sample.spec.columns]
        apart.setdefault(id(w.sample), DenseApart(w.sample, keys, np.stack(rows)))
    known = {i: replace(w, sample=apart[id(w.sample)]) for i, w in weights.items()}
    return CheckedSamples(known, streams, StreamSamples(weights))


def _few(weight: SampledWeight) -> Ints:
    """The heaviest keys of a stream that keeps all of its keys: no others join."""
    sample: KeySample = weight.sample
    row = sample.weights[sample.spec.columns.index(weight.column)]
    return sample.keys[by_weight(row, MOST_OF_ALL)]


def _stream(weight: SampledWeight, sketch: ConvolutionSketch, keys: Ints) -> Stream:
    sample: KeySample = weight.sample
    row = sample.weights[sample.spec.columns.index(weight.column)]
    left = without(sketch, sample.keys, row)
    kept = sample.ranks(keys) < sample.probability
    estimates, error, left = weighed(left, keys[~kept])
    estimates = estimates if weight.signed else np.maximum(estimates, 0.0)
    dense = np.zeros(len(keys))
    dense[~kept] = estimates
    _, here, there = np.intersect1d(keys, sample.keys, assume_unique=True, return_indices=True)
    dense[here] = row[there]
    other = row[~np.isin(sample.keys, keys, assume_unique=True)].astype(np.float64)
    return Stream(sample, weight.column, sketch, dense, np.where(kept, 0.0, error), other, left)


def _dense(built: Built) -> ConvolutionSketch:
    dense = built.linear.dense()
    assert isinstance(dense, ConvolutionSketch), "a hash sketch"
    return dense


def _quantile(confidence: float) -> float:
    return -float(ndtri((1.0 - confidence) / 2.0))


def _range(top: Estimate, bottom: Estimate) -> tuple[float, float]:
    """Between which ends the ratio of two sums lies that lie between theirs."""
    if bottom.low <= 0.0 <= bottom.high:
        return -math.inf, math.inf
    ends = [a / b for a in (top.low, top.high) for b in (bottom.low, bottom.high)]
    return min(ends), max(ends)


def _measured(estimate: Estimate, by: float, confidence: float) -> Estimate:
    """An estimate with more room, which is none of exact weights then."""
    if not by:
        return estimate
    low, high = estimate.low - by, estimate.high + by
    return replace(estimate, low=low, high=high, confidence=confidence, certified=False, basis="measured")
