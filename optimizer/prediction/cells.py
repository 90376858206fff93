"""The keys of a join class as cells: a few weighted representatives from which every joint moment is a sum.

A cell stands for a number of keys that weigh the same in each table. A heavy key is a cell of its own; a key of
the tables' coordinated pilot samples stands for 1 / p keys; without pilots all light keys of a table have one
mean weight, the keys of the table with fewer among those of the table with more (containment). Where a heavy key
of one table is not listed in another, the other's figures say with which chance it occurs there and what it then
weighs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...sketches.joins.accumulate import distinct
from ...sketches.samples.known_keys import KnownKeys
from .histograms import overlap
from .relation import Attribute, Relation

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

NO_KEY = np.iinfo(np.int64).min

# Tuples that are added to those met, of which there may be none.
HALF = 0.5


@dataclass(frozen=True, slots=True, eq=False)
class KeyCells:
    """Cells of one join class.

    Parameters
    ----------
    weights : ndarray of float64, shape (tables, n)
        Weight of each of a cell's keys in every table.
    counts : ndarray of float64, shape (n,)
        How many keys a cell stands for; below 1 where a key's weights are uncertain.
    squares : ndarray of float64, shape (tables, n)
        Their squared weights; from a pilot over a part of the rows the unbiased estimate, which is not the square of
        the weight: a key seen once in a tenth of the rows is more likely one of ten light keys than a heavy one.
    keys : ndarray of int64, shape (n,)
        The key of a heavy cell; cells of one heavy key repeat it. Meaningless where not heavy.
    heavy : ndarray of bool, shape (n,)
    """

    weights: Floats
    squares: Floats
    counts: Floats
    keys: Ints
    heavy: Bools

    @property
    def products(self) -> Floats:
        """Product of the tables' weights in each cell, shape (n,)."""
        return np.asarray(self.weights.prod(axis=0))

    def total(self, values: Floats) -> float:
        """Sum of a value of each key over all keys."""
        return float(self.counts @ values)


def key_cells(members: Sequence[tuple[Relation, Attribute]]) -> KeyCells:
    """Cells of a class from what is known of its attribute in each member relation.

    Notes
    -----
    O(n 2^(tables - 1)) for n heavy keys. The cells agree with the tables' numbers of tuples: the rest's weights are
    scaled to what the heavy keys leave.
    """
    keys = distinct(np.concatenate([a.heavy.keys for _, a in members]))
    rest = _rest(members, keys)
    rest = _to_the_totals(members, rest)
    if not keys.size:
        return rest
    weights, counts, named = np.zeros((len(members), keys.size)), np.ones(keys.size), keys
    for table, (_, attribute) in enumerate(members):
        listed = attribute.heavy
        at = np.minimum(np.searchsorted(listed.keys, named), max(listed.keys.size - 1, 0))
        known = listed.keys[at] == named if listed.keys.size else np.zeros(named.size, bool)
        weights[table, known] = listed.weights[at[known]]
        if listed.largest_other == 0.0 or known.all():
            continue
        chance, size = _of_each(attribute, named[~known], *_unlisted(members, table, rest, keys))
        # An unlisted key is split in two cells: it occurs in this table, or it does not.
        there, absent = weights[:, ~known].copy(), counts.copy()
        there[table] = np.minimum(size, listed.largest_other)
        absent[~known] *= 1.0 - chance
        weights = np.concatenate([weights, there], axis=1)
        counts = np.concatenate([absent, counts[~known] * chance])
        named = np.concatenate([named, named[~known]])
        used = counts > 0.0
        weights, counts, named = weights[:, used], counts[used], named[used]
    return KeyCells(
        np.concatenate([weights, rest.weights], axis=1),
        np.concatenate([weights**2, rest.squares], axis=1),
        np.concatenate([counts, rest.counts]),
        np.concatenate([named, rest.keys]),
        np.concatenate([np.ones(counts.size, bool), rest.heavy]),
    )


def _unlisted(
    members: Sequence[tuple[Relation, Attribute]], table: int, rest: KeyCells, heavy: Ints
) -> tuple[float, float]:
    """Chance that a key which is heavy elsewhere occurs in this table without being listed, and its weight then."""
    relation, attribute = members[table]
    left = max(attribute.distinct - np.count_nonzero(attribute.heavy.weights), 0.0)
    tuples = max(relation.tuples - float(attribute.heavy.weights.sum()), 0.0)
    if not left or not tuples:
        return 0.0, 0.0
    mine = rest.weights[table] > 0
    elsewhere = np.delete(rest.weights, table, axis=0).any(axis=0)
    seen = float(rest.counts[elsewhere].sum())
    if np.count_nonzero(elsewhere) >= 5 and any(a.pilot is not None for _, a in members):
        chance = float(rest.counts[elsewhere & mine].sum()) / seen
    else:
        chance = min(1.0, left / max(max(a.distinct for _, a in members) - heavy.size, left))
    return chance, tuples / left


def _of_each(attribute: Attribute, keys: Ints, chance: float, size: float) -> tuple[Floats, Floats]:
    """Chance and weight of each of some keys that are heavy elsewhere, by those of any such key.

    Where a sample of the tuples tells how often they are here together, each is taken to weigh what is then expected of
    it: its weight has an exponential law of their mean, of which its own tuples in the sample are a Poisson number.
    """
    chances, sizes = np.full(keys.size, chance), np.full(keys.size, size)
    if attribute.rows is None or not keys.size or not chance:
        return chances, sizes
    share, met = attribute.rows.share, attribute.rows.counted(keys)
    mean = (float(met.sum()) + HALF) / (share * keys.size)
    weights = (1.0 + met) / (1.0 / mean + share)
    chances = np.where(met > 0, 1.0, np.minimum(chance, weights))
    return chances, weights / chances


def _rest(members: Sequence[tuple[Relation, Attribute]], heavy: Ints) -> KeyCells:
    """Cells of the keys that are heavy nowhere."""
    pilots = [(a.pilot, a.row_fraction) for _, a in members if a.pilot is not None]
    if len(pilots) == len(members):
        return _piloted(pilots, heavy)
    histograms = [a.histogram for _, a in members]
    if len(members) == 2 and not heavy.size and all(h is not None for h in histograms):
        left, right = (h for h in histograms if h is not None)
        cut = overlap(left, right)
        common = cut.distinct.min(axis=0)
        each = np.divide(cut.counts, cut.distinct, out=np.zeros_like(cut.counts), where=cut.distinct > 0)
        alone = [
            (np.where(np.arange(2)[:, np.newaxis] == t, each, 0.0), cut.distinct[t] - common) for t in (0, 1)
        ]
        weights = np.concatenate([each, alone[0][0], alone[1][0]], axis=1)
        counts = np.concatenate([common, alone[0][1], alone[1][1]])
        return _light(weights[:, counts > 0], counts[counts > 0])
    return _contained(members)


def _piloted(pilots: Sequence[tuple[KnownKeys, float]], heavy: Ints) -> KeyCells:
    probability = min(p.probability for p, _ in pilots)
    keys = distinct(np.concatenate([p.keys[p.ranks < probability] for p, _ in pilots]))
    keys = keys[~np.isin(keys, heavy)]
    weights, squares = np.zeros((len(pilots), keys.size)), np.zeros((len(pilots), keys.size))
    for table, (pilot, part) in enumerate(pilots):
        _, at, rows = np.intersect1d(keys, pilot.keys, assume_unique=True, return_indices=True)
        counted = pilot.weights[0, rows].astype(np.float64)
        weights[table, at] = counted / part
        # Each row was read with probability `part`: E[w (w - 1)] is part^2 times that of all rows.
        squares[table, at] = (counted**2 - (1.0 - part) * counted) / part**2
    return _light(weights, np.full(keys.size, 1.0 / probability), squares)


def _contained(members: Sequence[tuple[Relation, Attribute]]) -> KeyCells:
    """Light keys of one mean weight, their squares from F2; fewer keys are among more."""
    left = [max(a.distinct - np.count_nonzero(a.heavy.weights), 0.0) for _, a in members]
    each, squares = [], []
    for (relation, attribute), keys in zip(members, left, strict=True):
        heavy = attribute.heavy.weights.astype(np.float64)
        tuples = max(relation.tuples - float(heavy.sum()), 0.0)
        each.append(tuples / keys if keys else 0.0)
        spread = (attribute.self_join_size - float(heavy @ heavy)) / keys if keys else 0.0
        squares.append(max(spread, each[-1] ** 2))
    steps = sorted({*left} - {0.0})
    below = [0.0, *steps]
    there = np.array([[float(keys >= step) for step in steps] for keys in left]).reshape(
        len(members), len(steps)
    )
    return _light(
        there * np.array(each)[:, np.newaxis], np.diff(below), there * np.array(squares)[:, np.newaxis]
    )


def _to_the_totals(members: Sequence[tuple[Relation, Attribute]], rest: KeyCells) -> KeyCells:
    """Scale the light keys' weights so that with the heavy ones they make each table's tuples."""
    weights, squares = rest.weights.copy(), rest.squares.copy()
    for table, (relation, attribute) in enumerate(members):
        left = relation.tuples - float(attribute.heavy.weights.sum())
        found = rest.total(weights[table])
        if found > 0 and left > 0 and abs(left) < math.inf:
            weights[table] *= left / found
            squares[table] *= (left / found) ** 2
    return KeyCells(weights, squares, rest.counts, rest.keys, rest.heavy)


def _light(weights: Floats, counts: Floats, squares: Floats | None = None) -> KeyCells:
    return KeyCells(
        weights,
        weights**2 if squares is None else squares,
        np.asarray(counts, np.float64),
        np.full(counts.size, NO_KEY),
        np.zeros(counts.size, bool),
    )
