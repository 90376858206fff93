"""Which values of two relations join, where their values and their keys are known, each by itself: by figures alone."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .values import Floats, Values

SIMULATED = 1024  # values of each side whose partners are drawn


MOST_DRAWN = 256  # tuples of a value beyond which its partners are told by mean and variance


OFTEN = math.log(2.0)  # expected number from which a sample holds something more often than not


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """One relation of two that join: the values that are counted, and its tuples by join key.

    Parameters
    ----------
    values : Values
        Of the counted attribute, with their tuples; those without partners over *other* classes are left out.
    keys : ndarray of float64, shape (n,)
        Tuples of each join key, in cells that both sides share.
    pairs : float, optional
        Known number of distinct (value, key).
    most_tuples : float
        The most that the relation may have.
    """

    values: Values
    keys: Floats
    pairs: float | None = None
    most_tuples: float = math.inf


@dataclass(frozen=True, slots=True, eq=False)
class Shares:
    """A figure of each value, over its mean, by descending figure; and what part of all values it stands for."""

    figures: Floats
    parts: Floats

    @classmethod
    def of(cls, figures: Floats, weights: Floats) -> Shares:
        """From figures and how many values each stands for."""
        order = np.argsort(-figures, kind="stable")
        mean = float(figures @ weights)
        total = float(weights.sum())
        if mean <= 0.0:
            return cls(np.zeros(1), np.ones(1))
        return cls(figures[order] * (total / mean), weights[order] / total)

    @property
    def variance(self) -> float:
        """Squared coefficient of variation."""
        return float(self.parts @ (self.figures - 1.0) ** 2)

    def typical(self, size: float) -> tuple[float, float]:
        """Variance and mean of what a sample of so many values usually holds: without the largest, if rarer."""
        rare = np.cumsum(self.parts) * size <= OFTEN
        left = float(self.parts[~rare].sum())
        if left <= 0.0:
            return 0.0, 0.0
        mean = float(self.parts[~rare] @ self.figures[~rare])
        square = float(self.parts[~rare] @ self.figures[~rare] ** 2)
        return max(square / left - (mean / left) ** 2, 0.0), mean


@dataclass(frozen=True, slots=True, eq=False)
class JoinedFigures:
    """What decides about pairs counted from samples of both sides.

    Parameters
    ----------
    share : float
        Share of all (a, c) that join.
    rows, columns : Shares
        The share of c that join an a, over the a; and the other way round.
    partners : tuple of Values
        Of each side the values, with their distinct join keys as weights.
    values : tuple of Values
        Of each side, with their tuples.
    most_tuples : tuple of float
        The most that each side may have.
    """

    share: float
    rows: Shares
    columns: Shares
    partners: tuple[Values, Values]
    values: tuple[Values, Values]
    most_tuples: tuple[float, float] = (math.inf, math.inf)

    @property
    def cell(self) -> float:
        """Squared variation of a single pair that neither its row nor its column explains."""
        spread = self.rows.variance + self.columns.variance
        return max((1.0 - self.share) / self.share - spread, 0.0)


def joined_figures(one: Side, other: Side, counts: Floats) -> JoinedFigures:
    """Join two sides of which the values and the keys are known, each by itself: in a table they are independent.

    Parameters
    ----------
    one, other : Side
    counts : ndarray of float64, shape (n,)
        How many keys each cell stands for.

    Notes
    -----
    The keys of some values of each side are drawn, by a generator of its own seed; whether they join a value of the
    other side is then a matter of how many tuples that has.
    """
    sides = [(side, effective(side, counts)) for side in (one, other)]
    shares = []
    for (own, mine), (theirs, yours) in (sides, sides[::-1]):
        met, weights = _met(mine, own.keys, theirs.keys, counts)
        missed = np.power(1.0 - met[:, np.newaxis], yours.weights[np.newaxis, :])
        joining = 1.0 - missed @ yours.counts / max(yours.distinct, 1e-300)
        mean = float(weights @ joining / weights.sum()) if weights.size else 0.0
        shares.append((mean, Shares.of(joining, weights)))
    partners = [Values(distinct_keys(d.weights, side.keys, counts), d.counts) for side, d in sides]
    (share, rows), (_, columns) = shares
    most = one.most_tuples, other.most_tuples
    return JoinedFigures(share, rows, columns, (partners[0], partners[1]), (one.values, other.values), most)


def effective(side: Side, counts: Floats) -> Values:
    """The values with as many independent draws of a key as make the known number of distinct pairs."""
    if side.pairs is None or side.values.tuples <= 0.0:
        return side.values
    weights = side.values.weights
    for _ in range(8):
        found = float(side.values.counts @ distinct_keys(weights, side.keys, counts))
        if not found or abs(found - side.pairs) <= 0.02 * side.pairs:
            break
        weights = np.maximum(weights * side.pairs / found, 1.0)
    return Values(weights, side.values.counts)


def distinct_keys(draws: Floats, keys: Floats, counts: Floats) -> Floats:
    """Expected distinct keys among so many independent draws, shape of `draws`."""
    total = float(counts @ keys)
    if total <= 0.0 or not draws.size:
        return np.zeros(draws.size)
    grid = np.geomspace(max(min(float(draws.min()), 1.0), 1e-3), max(float(draws.max()), 2.0), 48)
    missed = np.exp(np.outer(grid, np.log1p(-np.minimum(keys / total, 1.0 - 1e-12))))
    found = (1.0 - missed) @ counts
    at = np.log(np.maximum(draws, grid[0]))
    return np.asarray(np.exp(np.interp(at, np.log(grid), np.log(np.maximum(found, 1e-300)))))


def _met(values: Values, keys: Floats, others: Floats, counts: Floats) -> tuple[Floats, Floats]:
    """For drawn values the share of the other side's tuples whose key they have, and what each value stands for."""
    rng = np.random.default_rng(0)
    total, theirs = float(counts @ keys), float(counts @ others)
    if total <= 0.0 or theirs <= 0.0 or not values.counts.size:
        return np.empty(0), np.empty(0)
    each = others / theirs
    repeats = np.clip(np.rint(SIMULATED * values.counts / values.distinct), 2, None).astype(np.int64)
    repeats = np.where(values.weights > MOST_DRAWN, np.minimum(repeats, 8), repeats)
    at = np.repeat(np.arange(repeats.size), repeats)
    weights = (values.counts / repeats)[at]
    size = np.floor(values.weights[at] + rng.random(at.size))
    few = size <= MOST_DRAWN
    met = np.zeros(at.size)
    owners = np.repeat(np.flatnonzero(few), size[few].astype(np.int64))
    cells = np.searchsorted(np.cumsum(counts * keys), rng.random(owners.size) * total).clip(0, keys.size - 1)
    which = np.floor(rng.random(owners.size) * np.maximum(counts[cells], 1.0)).astype(np.int64)
    order = np.lexsort((which, cells, owners))
    owners, cells, which = owners[order], cells[order], which[order]
    fresh = np.ones(owners.size, bool)
    fresh[1:] = (np.diff(owners) != 0) | (np.diff(cells) != 0) | (np.diff(which) != 0)
    met += np.bincount(owners[fresh], each[cells[fresh]], at.size)
    many = np.unique(at[~few])
    for stratum in many:
        has = -np.expm1(values.weights[stratum] * np.log1p(-np.minimum(keys / total, 1.0 - 1e-12)))
        mean, spread = float(counts @ (has * each)), float(counts @ (has * (1.0 - has) * each**2))
        own = ~few & (at == stratum)
        met[own] = rng.normal(mean, math.sqrt(spread), int(own.sum()))
    return np.clip(met, 0.0, 1.0), weights
