"""The class of a first sample as its keys are made up: by what files tell, and by the keys of tuples looked at."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import numpy.typing as npt

from ..messages import JoinTree
from .figures import PerTuple
from .made_up_keys import Keys, Values, heaviest_of
from .reported import SampledClass
from .sampled_class import behind

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# A key of the tuples looked at is heavy if it is there so often, and so many standard deviations above the mean.
LEAST_COUNT, DEVIATIONS, MOST_HEAVY = 4, 5.0, 1024

# Matches among the tuples looked at that tell how many tuples join.
ENOUGH_MATCHES = 12.0

# In the order of the keys each tuple has a key no smaller than the one before, but where one looks further on.
MOST_FALLS = 8

# And in no order each second tuple has a larger key than the one before, but for so large a part.
SHUFFLED = 0.1

# Keys at random are there often in no larger part of the pairs of tuples of one key.
FEW_OFTEN = 0.1

# Of the share of a filter, the least that is taken to be kept of keys that are not heavy.
LEAST_LEFT = 0.01

# Of tuples of which so many come in the order of their keys neighbours are looked at, not any.
ORDERED = 0.9


@dataclass(frozen=True, slots=True, eq=False)
class SeenKeys:
    """The keys of one table in a class, among some of its tuples, whether its filter keeps them or not.

    Attributes
    ----------
    keys : ndarray of int64, shape (n,)
        Distinct, ascending, without NULL.
    counts : ndarray of int64, shape (n,)
    tuples : int
        How many have been looked at.
    ordered : bool
        Whether the table is in the order of its keys.
    shuffled : bool
        Whether it is in no order of them at all.
    together : bool
        Whether those of neighbours are there with all of their tuples.
    passing : ndarray of int64, shape (n,), or None
        How many of the tuples of each key the table's filter keeps; None where it has none, or nobody has looked.
    """

    keys: Ints
    counts: Ints
    tuples: int
    ordered: bool
    shuffled: bool = False
    together: bool = False
    passing: Ints | None = None

    @classmethod
    def of(cls, keys: Ints, tuples: int, first: Ints | None = None) -> SeenKeys:
        """Those of some tuples in their order, of which the ones without a key are left out.

        `first` is the first column of a key of several, where the keys are numbers of their own.
        """
        found, counts = np.unique(keys, return_counts=True)
        order = keys if first is None else first
        rises = float(np.mean(order[1:] >= order[:-1])) if keys.size > 1 else 0.0
        ordered = rises > ORDERED
        together = ordered and np.count_nonzero(order[1:] < order[:-1]) <= MOST_FALLS
        return cls(found, counts, tuples, ordered, abs(rises - 0.5) < SHUFFLED, bool(together))

    def behind_filter(self, keys: Ints) -> SeenKeys:
        """The same, with what a filter keeps: the keys of all tuples looked at that pass."""
        found, counts = np.unique(keys, return_counts=True)
        passing = np.zeros_like(self.counts)
        _, at, which = np.intersect1d(self.keys, found, assume_unique=True, return_indices=True)
        passing[at] = counts[which]
        return replace(self, passing=passing)

    @property
    def present(self) -> float:
        """The share of the tuples that have a key."""
        return float(self.counts.sum()) / max(self.tuples, 1)

    def distinct(self, tuples: float) -> float:
        """How many keys a table of so many tuples has; infinite where too few have been met to tell.

        In the order of the keys those of neighbours are there with all of their tuples. In no order it is told by how
        often one of them is met twice: of n tuples of K keys ``n^2 / 2K`` pairs are of one key, if tuples fall on the
        keys at random, not where keys are there often.
        """
        if self.together:
            return self.keys.size * tuples / max(self.tuples, 1)
        pairs = self.counts * (self.counts - 1) / 2.0
        often = float(pairs[self.counts >= LEAST_COUNT].sum())
        if not self.shuffled or pairs.sum() < ENOUGH_MATCHES or often > FEW_OFTEN * pairs.sum():
            return math.inf
        return float(self.counts.sum()) ** 2 / (2.0 * float(pairs.sum()))

    def square(self, each: float) -> float:
        """The mean square of the tuples of a key that has so many on average."""
        if self.together:
            counts = self.counts.astype(np.float64)
            return float(np.mean(counts**2) * (each / counts.mean()) ** 2)
        # A table that may have a key for each tuple is taken to have.
        return each if each <= 1.0 else each**2 + each

    def heavy(self, each: float) -> npt.NDArray[np.bool_]:
        """Which keys are there more often than keys of the mean number of tuples, `each` of them looked at, are."""
        least = max(LEAST_COUNT, each + DEVIATIONS * math.sqrt(each))
        found = self.counts >= least
        return np.zeros_like(found) if self.ordered or np.count_nonzero(found) > MOST_HEAVY else found


NOTHING_SEEN = SeenKeys(np.empty(0, np.int64), np.empty(0, np.int64), 0, ordered=False)


def by_files(
    tree: JoinTree,
    joined: int,
    tuples: Sequence[float],
    shares: Sequence[float],
    distinct: float,
    values: Mapping[tuple[int, str], Values],
    seen: Mapping[tuple[int, int], SeenKeys],
    together: float = 1.0,
    listed: Mapping[int, tuple[Ints, Ints]] | None = None,
) -> SampledClass:
    """The class where nothing is known but how many tuples each table has, and what its filter keeps of them.

    Parameters
    ----------
    tree : JoinTree
    joined : int
        The class.
    tuples, shares : sequence of float
        Of each vertex: of its table, and the part of them that its filter keeps.
    distinct : float
        Most keys of the class.
    values : mapping
        What has been looked at.
    seen : mapping
        By vertex and class the keys among the tuples looked at, as far as there are any.
    together : float
        How many times more of the join of the class's tables passes their filters than if these were independent.
    listed : mapping, optional
        By vertex the keys with the most of all its tuples, ascending, and how many these are: they are evaluated for
        certain.

    Notes
    -----
    As the size of a first sample is chosen: tuples fall on the keys at random, the keys of a table with fewer are
    among those of a table with more, filters are independent, and a tuple has one partner in each table beyond. The
    keys looked at say which are heavy, and by how many of them meet how many tuples join; in the order of the keys, how
    many tuples each has.
    """
    vertices, hangs = tree.classes[joined].vertices, behind(tree, joined)
    certain = [(listed or {}).get(v) for v in vertices]
    apart = [0.0 if own is None else float(own[1].sum()) for own in certain]
    looked = [seen.get((v, joined)) for v in vertices]
    others = [max(tuples[v] - a, 0.0) for v, a in zip(vertices, apart, strict=True)]
    # Those looked at may have fewer keys than the ones that are counted have tuples.
    keyed = [
        o if own is None else max(tuples[v] * own.present - a, 0.0)
        for v, o, a, own in zip(vertices, others, apart, looked, strict=True)
    ]
    told = [math.inf if own is None else own.distinct(o) for o, own in zip(others, looked, strict=True)]
    own = [max(min(t, d, distinct), 1.0) for t, d in zip(keyed, told, strict=True)]
    each = [t / k for t, k in zip(keyed, own, strict=True)]
    names, weights = _heavy(looked, [tuples[v] for v in vertices], each, certain)
    light = [max(t + a - w.sum(), 0.0) for t, a, w in zip(keyed, apart, weights, strict=True)]
    keys = min(own)
    each = [t / k for t, k in zip(light, own, strict=True)]
    more = _meeting(looked, names, [tuples[v] for v in vertices], each, keys)
    if more > 1.0:
        own = _fewer(own, list(map(math.isfinite, told)), more)
        each, keys = [t / k for t, k in zip(light, own, strict=True)], min(own)
    else:
        keys *= more
    means = np.concatenate([np.array(each)[:, np.newaxis], weights], axis=1)
    spread = [
        NOTHING_SEEN.square(e) if own is None else own.square(e) for own, e in zip(looked, each, strict=True)
    ]
    squares = np.concatenate([np.array(spread)[:, np.newaxis], weights**2], axis=1)
    # Filters that keep other keys leave fewer of them, those that keep the same ones more tuples of each.
    keys *= min(together, 1.0)
    more_of_each = max(together, 1.0) ** (1.0 / len(vertices))
    kept_of_all = np.array([shares[v] for v in vertices])
    passed = np.stack([_passing_parts(o, names, p) for o, p in zip(looked, kept_of_all, strict=True)])
    rest = [_rest(p, w, t, n) for p, w, t, n in zip(kept_of_all, weights, passed, light, strict=True)]
    usual = np.minimum(more_of_each * np.array([rest, kept_of_all]), 1.0)
    # What is kept of a key by its own tuples is left as it is.
    of_heavy = np.where(np.isnan(passed), usual[1][:, np.newaxis], passed)
    kept = np.concatenate([usual[0][:, np.newaxis], of_heavy], axis=1)
    squares = kept**2 * np.maximum(squares - means, 0.0) + kept * means
    messages = tuple(_beyond(tree, v, joined, tuples, shares, seen) for v in vertices)
    counts = np.concatenate([[keys], np.ones(names.size)])
    known = [own[0] for own in certain if own is not None]
    dense = np.append(False, np.isin(names, np.concatenate([names[:0], *known])))
    made = Keys(counts, kept * means, squares, messages, dense)
    filtered = tuple(tuples[v] * shares[v] for v in vertices)
    heaviest = tuple(heaviest_of(k, t, shares[v]) for k, t, v in zip(own, light, vertices, strict=True))
    return SampledClass(made, vertices, hangs, filtered, heaviest, values)


def _heavy(
    looked: Sequence[SeenKeys | None],
    tuples: Sequence[float],
    each: Sequence[float],
    certain: Sequence[tuple[Ints, Ints] | None],
) -> tuple[Ints, Floats]:
    """The keys that are heavy in a table, and what they are taken to weigh in each, as usual where they are not.

    Of those that are known for `certain` what they do weigh.
    """
    names = np.empty(0, np.int64)
    for listed in certain:
        if listed is not None:
            names = np.union1d(names, listed[0])
    for own, total, usual in zip(looked, tuples, each, strict=True):
        if own is not None:
            names = np.union1d(names, own.keys[own.heavy(usual * own.tuples / max(total, 1.0))])
    weights = np.tile(np.array(each)[:, np.newaxis], (1, names.size))
    for row, own, total in zip(weights, looked, tuples, strict=True):
        if own is None:
            continue
        part = own.tuples / max(total, 1.0)
        _, at, which = np.intersect1d(names, own.keys, assume_unique=True, return_indices=True)
        often = own.counts[which] >= LEAST_COUNT
        row[at[often]] = own.counts[which[often]] / part
    for row, listed in zip(weights, certain, strict=True):
        if listed is not None:
            row[np.searchsorted(names, listed[0])] = listed[1]
    return names, weights


def _passing_parts(own: SeenKeys | None, names: Ints, share: float) -> Floats:
    """What a filter keeps of the tuples of each heavy key, NaN where too few of these have been looked at."""
    found = np.full(names.size, math.nan)
    if own is not None and own.passing is not None:
        _, at, which = np.intersect1d(names, own.keys, assume_unique=True, return_indices=True)
        several = own.counts[which] >= LEAST_COUNT
        at, which = at[several], which[several]
        found[at] = (own.passing[which] + share) / (own.counts[which] + 1.0)
    return found


def _rest(share: float, weights: Floats, kept: Floats, light: float) -> float:
    """What a filter keeps of the tuples of keys that are not heavy, so that it keeps its share of all."""
    known = ~np.isnan(kept)
    if not known.any() or not light:
        return share
    left = share * (light + float(weights[known].sum())) - float(weights[known] @ kept[known])
    return min(max(left / light, LEAST_LEFT * share), 1.0)


def _meeting(
    looked: Sequence[SeenKeys | None],
    heavy: Ints,
    tuples: Sequence[float],
    each: Sequence[float],
    keys: float,
) -> float:
    """How many times more matches there are among the tuples looked at than so many keys of such tuples make.

    1 where these are too few to tell, or neighbours.
    """
    known = [own for own in looked if own is not None]
    # Tuples that are looked at twice, of a table that is joined with itself, meet themselves.
    twice = any(np.array_equal(a.keys, b.keys) for a, b in combinations(known, 2))
    if len(known) < len(looked) or sum(own.ordered for own in known) > 1 or twice:
        return 1.0
    expected, common = keys, known[0].keys[~np.isin(known[0].keys, heavy)]
    for own, total, usual in zip(known, tuples, each, strict=True):
        expected *= usual * own.tuples / max(total, 1.0)
        common = np.intersect1d(common, own.keys, assume_unique=True)
    found = np.ones(common.size)
    for own in known:
        found *= own.counts[np.searchsorted(own.keys, common)]
    matches = float(found.sum())
    if max(expected, matches) < ENOUGH_MATCHES:
        return 1.0
    return max(matches, 1.0) / max(expected, 1.0)


def _fewer(own: Sequence[float], told: Sequence[bool], more: float) -> list[float]:
    """Fewer keys than tables may have, with more tuples each, so that so many times more join.

    First of the tables of which nothing tells how many they have.
    """

    def shrunk(keys: Sequence[float], which: Sequence[bool], by: float) -> list[float]:
        return [max(k / by, 1.0) if w else k for k, w in zip(keys, which, strict=True)]

    def joining(keys: Sequence[float]) -> float:
        return min(keys) / math.prod(keys)

    found = list(own)
    if 0 < told.count(False) < len(told):
        found = shrunk(own, [not t for t in told], more ** (1.0 / told.count(False)))
    left = more * joining(own) / joining(found)
    return shrunk(found, [True] * len(own), left ** (1.0 / (len(own) - 1))) if left > 1.0 + 1e-9 else found


def _beyond(
    tree: JoinTree,
    vertex: int,
    above: int,
    tuples: Sequence[float],
    shares: Sequence[float],
    seen: Mapping[tuple[int, int], SeenKeys],
) -> PerTuple:
    """What a tuple receives from the tables beyond: one partner in each, but for the keys that are heavy there."""
    mean = square = largest = 1.0
    for joined in tree.classes_of(vertex):
        for other in tree.classes[joined].vertices:
            if joined == above or other == vertex:
                continue
            further = _beyond(tree, other, joined, tuples, shares, seen)
            own = seen.get((other, joined))
            keys = max(min(tuples[vertex], tuples[other]), 1.0)
            weights = np.empty(0)
            if own is not None:
                part = own.tuples / max(tuples[other], 1.0)
                weights = own.counts[own.heavy(part)] / part
            light = max(keys - weights.size, 0.0)
            mine = (float(weights.sum()) + light) / keys
            mine_square = (float(weights @ weights) + light) / keys
            kept, most = shares[other], float(weights.max(initial=1.0))
            of_all = kept**2 * max(mine_square - mine, 0.0) + kept * mine
            mean *= kept * mine * further.mean
            square *= of_all * further.square
            largest *= most * further.largest
    return PerTuple(mean, square, largest)
