"""Joins over several key classes from samples of one class and sketches of the tables beyond it.

In row r of the sketches the estimate is the sum over the sampled keys of the product, over the tables of the sampled
class, of what each has of the key: an exact weight, or the sum over its entries of weight times the point estimates
(sign times counter) that the sketches beyond give for the entry's other keys; divided by the keys' probability. Sample
and sketches hash independently, so a row is unbiased; the answer is the centre of the rows.

Its error has two sources that are independent: which keys were drawn, and the sketches' collisions. The first has the
gamma interval of `sample_join`, the second the order statistics of the rows; their distances add up in quadrature.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ..hashing.xi import Family
from ..intervals.gamma import PoissonSum, difference_interval
from ..intervals.interval import (
    Estimate,
    averaged,
    clip,
    collapse_notes,
    median_interval,
    note_useless,
    uncertified,
)
from ..intervals.rounding import shown, unit_of
from ..joins.convolution import ConvolutionSketch
from ..joins.hash_sketch import frequency_rows
from ..joins.join_tree import Edges
from ..joins.sparse_first import SparseFirst
from .key_sample import KeySample
from .known_keys import Floats, Ints, JoinTerms, KnownKeys, join_terms
from .sample_join import (
    LINEARISED,
    UNBOUNDED,
    check_hashing,
    complete_ratio,
    estimate_ratio,
    estimate_terms,
    is_complete,
)
from .sample_sketch import SampleSketch
from .two_level import TwoLevel

CROWDED = "a key has more entries than a sample holds, and is left out: it should be counted as a dense key"
Sampled = SampleSketch | KeySample | TwoLevel
Sketched = ConvolutionSketch | SparseFirst[Any, Any] | TwoLevel
Synopsis = SampleSketch | KeySample | TwoLevel | ConvolutionSketch | SparseFirst[Any, Any]
Place = tuple[int, int]  # a table and one of its attributes


def sample_sketch_join(
    synopses: Sequence[Synopsis],
    edges: Edges,
    columns: Sequence[str] | None = None,
    confidence: float = 0.95,
    largest_product: float = math.inf,
    low_bound: float = -math.inf,
    high_bound: float = math.inf,
) -> Estimate:
    """Size or weighted total of an acyclic join over several key classes.

    Parameters
    ----------
    synopses : sequence of synopses
        One for each table. Of the sampled class: `SampleSketch`, or for a table of one attribute a `KeySample` or a
        `TwoLevel` with one. All other tables, and tables of the sampled class that are not sampled: hash sketches of
        one attribute, exact first or beside dense keys as may be, each with a family of its own.
    edges : sequence of (u, v, i, j)
        Attribute i of table u equals attribute j of table v. Attributes that equal one another are one class; tables
        and classes make a tree. An attribute without an edge is summed over.
    columns : sequence of str, optional
        The weight column of each sampled table; not looked at for sketches. Default: ``count``.
    confidence : float
        In (0, 1).
    largest_product : float
        Largest absolute contribution of a sampled key that is not certain in all tables; without it the answer is not
        certified, unless nothing is unseen.
    low_bound, high_bound : float
        Bounds that hold for certain: 0 for a COUNT.

    Raises
    ------
    ValueError
        If the tables and edges do not make such a tree, or their hash functions do not go together; it says why.
    """
    shape = _Shape(synopses, edges)
    terms = shape.terms(columns, largest_product)
    if not shape.counters:
        plain = [table.known([c]) for table, c in shape.sampled(columns)]
        estimate = estimate_terms(plain, terms, confidence)
    else:
        estimate = _noisy_total(terms, shape, confidence, never_negative=low_bound >= 0.0)
    return clip(uncertified(estimate, *shape.doubts), low_bound, high_bound)


def sample_sketch_average(
    numerators: Sequence[Synopsis],
    denominators: Sequence[Synopsis],
    edges: Edges,
    numerator_columns: Sequence[str] | None = None,
    denominator_columns: Sequence[str] | None = None,
    confidence: float = 0.95,
) -> Estimate:
    """AVG over the join: the ratio of two totals on the same sampled keys and hashes, whose errors cancel.

    Parameters
    ----------
    numerators, denominators : sequence of synopses
        As for `sample_sketch_join`; they differ in the sketch of the averaged column, where that is in a sketch.
    numerator_columns, denominator_columns : sequence of str, optional
        They differ in the averaged column, where that is in a sample.
    edges, confidence
        As for `sample_sketch_join`.

    Returns
    -------
    Estimate
        Never certified unless exact: the interval is linearised.

    Raises
    ------
    ValueError
        If nothing that is sampled joins.
    """
    shape, other = _Shape([*numerators], edges), _Shape([*denominators], edges)
    top, bottom = shape.terms(numerator_columns, math.inf), other.terms(denominator_columns, math.inf)
    known = not shape.counters and not other.counters
    rows = max(len(top.terms), len(bottom.terms))
    count, total = centre(_row_totals(bottom)), centre(_row_totals(top))
    if count == 0.0:
        raise ValueError("no sampled key joins, so there is no average to estimate; take a larger sample")
    if known and is_complete(top) and is_complete(bottom):
        return shown(complete_ratio(replace(top, terms=np.concatenate([top.terms, bottom.terms]))))
    if known:
        # Nothing but the sample errs.
        both = [np.concatenate([getattr(top, name), getattr(bottom, name)]) for name in ("terms", "unseen")]
        found = estimate_ratio(replace(top, terms=both[0], unseen=both[1]), confidence)
        return uncertified(found, *shape.doubts)
    average = total / count
    residuals = np.broadcast_to(top.terms, (rows, top.keys.size)) - average * bottom.terms
    rest = replace(top, terms=residuals, unseen=np.tile([[-math.inf, math.inf]], (rows, 1)))
    around = _noisy_total(rest, shape, confidence, never_negative=False)
    ends = sorted(average + (end - around.value) / count for end in (around.low, around.high))
    notes = (LINEARISED, *shape.doubts)
    return note_useless(Estimate(average, ends[0], ends[1], confidence, False, "measured", notes))


def expected_variances(
    synopses: Sequence[Synopsis], edges: Edges, columns: Sequence[str] | None = None
) -> tuple[float, float, int, int]:
    """What the interval of `sample_sketch_join` is to be expected of, from self-join sizes instead of the rows' spread.

    Parameters
    ----------
    synopses, edges, columns
        As for `sample_sketch_join`; every sketch is of a table beyond the sampled ones.

    Returns
    -------
    sampling : float
        Variance of the drawing of keys.
    noise : float
        Variance of a row, given the sample, by the collisions in the sketches; 0 where all are exact.
    rows, buckets : int
        Of the estimate.
    """
    shape = _Shape(synopses, edges)
    terms = shape.terms(columns, math.inf)
    free = terms.probabilities < 1.0
    scaled, left_out = terms.terms[:, free] / terms.probabilities[free], 1.0 - terms.probabilities[free]
    if not shape.counters:
        return float((scaled[0] ** 2) @ left_out), 0.0, 1, shape.buckets
    sampling = max(float(_squares(scaled) @ left_out), 0.0)
    return sampling, shape.noise(columns), len(scaled), shape.buckets


def _noisy_total(terms: JoinTerms, shape: _Shape, confidence: float, *, never_negative: bool) -> Estimate:
    """The centre of the rows, between ends that allow for the sample and for the sketches."""
    rows = _row_totals(terms)
    around = median_interval(averaged(rows, shape.buckets, confidence), confidence, "measured")
    value = centre(rows)
    free = terms.probabilities < 1.0
    drawn, p = terms.terms[:, free], terms.probabilities[free]
    lowest, highest = float(terms.unseen[:, 0].min()), float(terms.unseen[:, 1].max())
    if never_negative:
        lowest = 0.0
    bounded = math.isfinite(lowest) and math.isfinite(highest)
    scaled = drawn.mean(axis=0) / p
    if not bounded:
        highest = min(highest, float(scaled.max(initial=0.0)))
        lowest = max(lowest, float(scaled.min(initial=0.0)))
    positive, negative = _parts(drawn / p, 1.0 - p, (max(highest, 0.0), max(-lowest, 0.0)), never_negative)
    low, high = difference_interval(positive, negative, confidence)
    middle = positive.value - negative.value
    below = math.hypot(max(value - around.low, 0.0), middle - low)
    above = math.hypot(max(around.high - value, 0.0), high - middle)
    notes = () if bounded else (UNBOUNDED,)
    estimate = Estimate(
        value, value - below, value + above, confidence, bounded and around.certified, "measured"
    )
    estimate = uncertified(estimate, *notes, *(n for n in around.notes if not around.certified))
    return note_useless(uncertified(estimate, *collapse_notes(shape.counters)))


def centre(rows: Floats) -> float:
    """The median of the means of all pairs of rows (Hodges and Lehmann 1963).

    As little moved by a few rows with heavy collisions as a median is, up to 29 % of them. For rows that are close to
    normal, as sums over many sampled entries are, it has two thirds of the median's variance.
    """
    one, other = np.triu_indices(len(rows))
    means = np.sort((rows[one] + rows[other]) / 2.0)
    return float((means[(means.size - 1) // 2] + means[means.size // 2]) / 2.0)


def _row_totals(terms: JoinTerms) -> Floats:
    return np.asarray(np.sum(terms.terms / terms.probabilities, axis=1))


def _parts(
    scaled: Floats, left_out: Floats, unseen: tuple[float, float], never_negative: bool
) -> tuple[PoissonSum, PoissonSum]:
    """The totals of positive and negative contributions, their variance that of the drawing of keys alone.

    The square of a contribution is estimated by the products of different rows, whose noise is independent: the square
    of a mean over the rows would count the sketches' noise a second time.
    """
    # Squares of sums of doubles may leave a DOUBLE where these do not.
    unit = unit_of(scaled)
    squares, means = _squares(scaled / unit), scaled.mean(axis=0)
    up = np.ones(means.size, bool) if never_negative else means > 0.0
    found = []
    for mine, sign, largest in ((up, 1.0, unseen[0]), (~up, -1.0, unseen[1])):
        total = max(sign * float(means[mine].sum()), 0.0)
        variance = max(float(np.sum(squares[mine] * left_out[mine])), 0.0)
        found.append(PoissonSum(total, unit * math.sqrt(variance), largest))
    return found[0], found[1]


def _squares(scaled: Floats) -> Floats:
    """Estimates of the squares of contributions, without the noise of the sketches, from rows that are independent.

    Of one row alone with the noise.
    """
    rows, sums = len(scaled), scaled.sum(axis=0)
    if rows == 1:
        return np.asarray(sums * sums)
    return np.asarray((sums * sums - np.sum(scaled * scaled, axis=0)) / (rows * (rows - 1)))


def _aligned(known: KnownKeys, keys: Ints) -> Floats:
    """The weights that a table has of keys, 0 where it has none."""
    if not known.keys.size:
        return np.zeros((len(known.weights), keys.size))
    at = np.minimum(np.searchsorted(known.keys, keys), known.keys.size - 1)
    return np.where(known.keys[at] == keys, known.weights[:, at].astype(np.float64), 0.0)


class _Shape:
    """Which tables are sampled, and which attribute of which sampled table each sketch is asked for."""

    def __init__(self, synopses: Sequence[Synopsis], edges: Edges) -> None:
        self.synopses = synopses
        self.classes = _classes([attributes_of(s) for s in synopses], edges)
        self._inside = [v for v, s in enumerate(synopses) if is_sampled(s)]
        if not self._inside:
            raise ValueError("none of the tables is sampled")
        check_hashing([_as_sampled(synopses[v]) for v in self._inside])
        first = self._class_of(self._inside[0], _sampled_attribute(synopses[self._inside[0]]))
        for v in self._inside:
            if self._class_of(v, _sampled_attribute(synopses[v])) != first:
                raise ValueError(
                    f"table {v} is sampled by a key that is not of the class of table {self._inside[0]}"
                )
        self._beyond = self._places(first)
        self._check_families()

    @property
    def buckets(self) -> int:
        """Buckets of the smallest sketch."""
        return min((c.shape[1] for c in self.counters), default=1)

    @property
    def counters(self) -> list[npt.NDArray[np.generic]]:
        """Counters of the sketches that are not exact."""
        found = [_counting(self.synopses[v]) for v, _ in self._beyond]
        return [c.counters for c in found if c is not None]

    @property
    def doubts(self) -> tuple[str, ...]:
        """What makes a sample less than it claims to be."""
        found = [self.synopses[v] for v in self._inside]
        return (CROWDED,) if any(isinstance(s, SampleSketch) and s.crowded for s in found) else ()

    def sampled(self, columns: Sequence[str] | None) -> list[tuple[Sampled, str]]:
        """The sampled tables, and the weight column of each."""
        if columns is not None and len(columns) != len(self.synopses):
            raise ValueError(f"{len(self.synopses)} tables need as many weight columns, got {columns}")
        return [
            (_as_sampled(self.synopses[v]), "count" if columns is None else columns[v]) for v in self._inside
        ]

    def terms(self, columns: Sequence[str] | None, largest_product: float) -> JoinTerms:
        """Contributions of the sampled keys, a column for each row of the sketches; one where all are exact."""
        known = []
        for v, (table, column) in zip(self._inside, self.sampled(columns), strict=True):
            if isinstance(table, SampleSketch):
                known.append(table.known([column], self._factors(v, table)))
            else:
                known.append(table.known([column]))
        width = max(len(k.weights) for k in known)
        wide = [
            replace(
                k,
                weights=np.broadcast_to(k.weights.astype(np.float64), (width, k.keys.size)),
                unseen=np.broadcast_to(k.unseen, (width, 2)),
                totals=np.broadcast_to(k.totals, (width,)),
            )
            for k in known
        ]
        terms = join_terms(wide, largest_product)
        for t, place in self._beyond:
            if place[0] < 0:
                products = terms.terms * self._points(self.synopses[t], terms.keys)
                terms = replace(terms, terms=products)
        if any(place[0] < 0 for _, place in self._beyond) and np.any(terms.unseen):
            # What a key may add is bounded by the samples alone, not with what such a sketch says of it.
            largest = largest_product / min(k.probability for k in known)
            terms = replace(terms, unseen=np.tile([[-largest, largest]], (len(terms.terms), 1)))
        if len(terms.terms) > 1 and bool(np.all(terms.terms == terms.terms[:1])):
            return replace(terms, terms=terms.terms[:1], unseen=terms.unseen[:1])
        return terms

    def noise(self, columns: Sequence[str] | None) -> float:
        """Variance of a row of the estimate, given the sample, by the self-join sizes of the sketches."""
        sampled = dict(zip(self._inside, self.sampled(columns), strict=True))
        p = min(table.known([column]).probability for table, column in sampled.values())
        total = 0.0
        for t, (v, attribute) in self._beyond:
            counting = _counting(self.synopses[t])
            if counting is None:
                continue
            if v < 0:
                raise ValueError("nothing is expected of sketches of the sampled class")
            table, column = sampled[v]
            assert isinstance(table, SampleSketch), "it has the keys that the sketch is asked for"
            keys = table.keys
            asking = np.atleast_2d(table.weight(column).astype(np.float64)) / p
            others = [self._factors(v, table, but=t)]
            for u, (own, c) in sampled.items():
                if u != v:
                    known = (
                        own.known([c], self._factors(u, own))
                        if isinstance(own, SampleSketch)
                        else own.known([c])
                    )
                    others.append(_aligned(known, keys[table.spec.sampled]))
            for other in others:
                asking = asking if other is None else asking * other
            order = np.argsort(keys[attribute], kind="stable")
            ordered = keys[attribute][order]
            starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])[: ordered.size])
            if not starts.size:
                continue
            asked = np.add.reduceat(asking[:, order], starts, axis=1)
            size = np.median(np.square(counting.counters.astype(np.float64)).sum(axis=1))
            total += float(np.square(asked).sum(axis=1).mean() * size) / counting.counters.shape[1]
        return total

    def _factors(self, v: int, table: SampleSketch, but: int | None = None) -> Floats | None:
        """What each entry's weight is multiplied by: what the sketches beyond, but for one, say of its keys."""
        keys = table.keys
        factors: Floats | None = None
        for t, (asking, attribute) in self._beyond:
            if asking == v and t != but:
                found = self._points(self.synopses[t], keys[attribute])
                factors = found if factors is None else factors * found
        return factors

    def _points(self, sketch: Synopsis, keys: Ints) -> Floats:
        found = point_rows(sketch, keys)
        rows = min(len(c) for c in self.counters) if self.counters else 1
        return found if len(found) == 1 else found[:rows]

    def _class_of(self, table: int, attribute: int) -> int:
        for number, places in enumerate(self.classes):
            if (table, attribute) in places:
                return number
        return -1

    def _places(self, sampled: int) -> list[tuple[int, Place]]:
        """For every sketch the sampled table and attribute that it is asked for; (-1, 0) for the sampled class."""
        found = []
        for v, synopsis in enumerate(self.synopses):
            if is_sampled(synopsis):
                continue
            if attributes_of(synopsis) != 1:
                raise ValueError(f"table {v} leads on to more classes, so it has to be sampled")
            own = self._class_of(v, 0)
            if own == sampled:
                found.append((v, (-1, 0)))
                continue
            asking = [(u, i) for u, i in self.classes[own] if u in self._inside] if own >= 0 else []
            if len(asking) != 1:
                raise ValueError(
                    f"table {v} is not joined to a sampled table, so nothing can be asked of its sketch"
                )
            found.append((v, asking[0]))
        return found

    def _check_families(self) -> None:
        seen: list[Family] = [_as_sampled(self.synopses[self._inside[0]]).hashing[0]]
        for v, _ in self._beyond:
            counting = _counting(self.synopses[v])
            if counting is None:
                continue
            (family,) = counting.spec.families
            if family in seen:
                raise ValueError(
                    f"sample and sketches of one question hash independently; table {v} repeats {family}"
                )
            seen.append(family)


def point_rows(sketch: Synopsis, keys: Ints) -> Floats:
    """Estimated weight of each key in each row of a sketch; shape (1, n) where a map knows it exactly."""
    if isinstance(sketch, SparseFirst):
        if sketch.exact is None:
            return point_rows(sketch.dense(), keys)
        return _looked_up(sketch.exact.keys[:, 0], sketch.exact.weights, keys)[np.newaxis]
    if isinstance(sketch, TwoLevel):
        rows = frequency_rows(sketch.sketch, keys)
        dense = np.isin(keys, sketch.dense_keys)
        rows[:, dense] = _looked_up(sketch.dense_keys, sketch.dense_weights[0], keys[dense])
        return rows
    if isinstance(sketch, ConvolutionSketch):
        return frequency_rows(sketch, keys)
    raise ValueError(f"{type(sketch).__name__} gives no point estimates")


def is_sampled(synopsis: Synopsis) -> bool:
    """Whether a synopsis is a sample, rather than a sketch that is asked for keys."""
    return isinstance(synopsis, (SampleSketch, KeySample)) or (
        isinstance(synopsis, TwoLevel) and isinstance(synopsis.rest, KeySample)
    )


def attributes_of(synopsis: Synopsis) -> int:
    """How many join keys a synopsis is of."""
    if isinstance(synopsis, SampleSketch):
        return synopsis.spec.attributes
    if isinstance(synopsis, (ConvolutionSketch, SparseFirst)):
        return len(synopsis.spec.families)
    return 1


def _as_sampled(synopsis: Synopsis) -> Sampled:
    assert isinstance(synopsis, (SampleSketch, KeySample, TwoLevel)), "chosen so"
    return synopsis


def _sampled_attribute(synopsis: Synopsis) -> int:
    return synopsis.spec.sampled if isinstance(synopsis, SampleSketch) else 0


def _counting(synopsis: Synopsis) -> ConvolutionSketch | None:
    """The counters of a sketch; None while it is exact."""
    if isinstance(synopsis, SparseFirst):
        if synopsis.exact is not None:
            return None
        synopsis = synopsis.dense()
    if isinstance(synopsis, TwoLevel):
        return synopsis.sketch
    assert isinstance(synopsis, ConvolutionSketch), f"{type(synopsis).__name__} has no buckets"
    return synopsis


def _looked_up(keys: Ints, weights: npt.NDArray[np.generic], wanted: Ints) -> Floats:
    """Weights of the wanted keys in a map of ascending keys, 0 where absent."""
    if not keys.size:
        return np.zeros(wanted.size)
    at = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
    return np.where(keys[at] == wanted, weights[at].astype(np.float64), 0.0)


def _classes(attributes: Sequence[int], edges: Edges) -> list[set[Place]]:
    """Attributes that equal one another, as sets; ValueError unless tables and classes make a tree."""
    groups: list[set[Place]] = []
    for u, v, i, j in edges:
        for table, attribute in ((u, i), (v, j)):
            if not 0 <= table < len(attributes) or not 0 <= attribute < attributes[table]:
                raise ValueError(f"an edge names attribute {attribute} of table {table}, which there is not")
        joined = {(u, i), (v, j)}
        for group in [g for g in groups if g & joined]:
            joined |= group
            groups.remove(group)
        groups.append(joined)
    part = list(range(len(attributes)))
    for group in groups:
        parts = {part[table] for table, _ in group}
        if len(parts) < len(group):
            raise ValueError("tables and classes make no tree: two ways lead from one table to another")
        least = min(parts)
        part = [least if p in parts else p for p in part]
    if len(set(part)) != 1:
        raise ValueError("tables and edges make no tree: some tables are not joined to the others")
    return groups
