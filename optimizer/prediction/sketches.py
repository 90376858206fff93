"""Predicted variance of sketches: hash, skimmed, convolution, AGMS, and a hash sketch beside dense keys.

The variance of one row of a hash sketch is known exactly from the moments; that of the *median* of the rows is not,
since a few heavy keys make the rows heavy-tailed, which the median forgives. So the heaviest keys' collisions
are simulated and all others taken as normal noise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from ...sketches.ranking import by_weight, rounded
from ..messages import Residual
from .cells import KeyCells
from .distinct import TUPLES_RESERVE, surely
from .figures import Figures

Floats = npt.NDArray[np.float64]

MEDIAN_LOSS = math.pi / 2  # variance of the median of normal rows over that of their mean
SIMULATED_KEYS = 256
SIMULATED_MEDIANS = 64
SKIM_ROUNDS = 3
# Share of a row's variance that the median of a convolution sketch's rows sees, measured for two joins and more
# (robust scale over standard deviation, golden facts 3g: 0.35 to 0.93).
CONVOLUTION_TAIL = 0.5


def hash_variance(cells: KeyCells, rows: int, buckets: int) -> float:
    """Variance of the median of the rows of a hash sketch of two tables.

    Parameters
    ----------
    cells : KeyCells
        Of two tables; only the keys that go into the sketches.
    rows, buckets : int

    Notes
    -----
    Deterministic: the simulation has a fixed seed. O(rows * 64 * 256 log) time, some 20 ms.
    """
    f, g = cells.weights
    return _median_variance(f, g, cells.counts, rows, buckets)


def _median_variance(f: Floats, g: Floats, counts: Floats, rows: int, buckets: int) -> float:
    errors = row_errors((f, f**2), (g, g**2), counts, rows, buckets)
    return float(np.mean(np.median(errors, axis=1) ** 2))


def row_errors(
    left: tuple[Floats, Floats], right: tuple[Floats, Floats], counts: Floats, rows: int, buckets: int
) -> Floats:
    """Errors of the rows of some hash sketches of two tables, shape (sketches, rows).

    Parameters
    ----------
    left, right : pair of ndarray of float64, shape (n,)
        What a key of each cell weighs in a table: the mean, and the mean of its square.
    counts : ndarray of float64, shape (n,)
        How many keys a cell stands for.
    rows, buckets : int
    """
    (f, f_square), (g, g_square) = left, right
    f2, g2, join = float(counts @ f_square), float(counts @ g_square), float(counts @ (f * g))
    if not f2 or not g2:
        return np.zeros((1, rows))
    weight = np.maximum(f_square / f2, g_square / g2)
    order = by_weight(rounded(weight))
    copies = np.maximum(np.rint(counts[order]), 1.0)
    enough = int(np.searchsorted(np.cumsum(copies), SIMULATED_KEYS)) + 1
    chosen = order[:enough]
    picked = np.repeat(chosen, copies[:enough].astype(np.int64))[:SIMULATED_KEYS]
    # What weighs nothing on the average has its own sign.
    hf, hg = (np.where(w[picked] == 0.0, np.sqrt(s[picked]), w[picked]) for w, s in (left, right))
    # A cell of less than one key is a key that may be absent; it is simulated with its mean weights.
    small = np.minimum(counts[picked], 1.0)
    hf, hg = hf * np.sqrt(small), hg * np.sqrt(small)
    rest_f = max(f2 - float(hf @ hf), 0.0)
    rest_g = max(g2 - float(hg @ hg), 0.0)
    rest_join = max(join - float(hf @ hg), 0.0)
    rng = np.random.default_rng(20040401)
    trials = rows * SIMULATED_MEDIANS
    slots = rng.integers(0, buckets, (trials, picked.size)) + np.arange(trials)[:, np.newaxis] * buckets
    signs = rng.choice((-1.0, 1.0), (trials, picked.size))
    places, inverse = np.unique(slots.ravel(), return_inverse=True)
    mine = np.bincount(inverse, (signs * hf).ravel(), places.size)
    theirs = np.bincount(inverse, (signs * hg).ravel(), places.size)
    owner = places // buckets
    heavy = np.bincount(owner, mine * theirs, trials) - float(hf @ hg)
    spread = (
        np.bincount(owner, mine**2, trials) * rest_g
        + np.bincount(owner, theirs**2, trials) * rest_f
        + rest_f * rest_g
        + rest_join**2
    ) / buckets
    errors = heavy + rng.standard_normal(trials) * np.sqrt(spread)
    return errors.reshape(SIMULATED_MEDIANS, rows)


def skimmed_variance(cells: KeyCells, rows: int, buckets: int, candidates: float) -> float:
    """Variance of a skimmed join of two tables.

    Parameters
    ----------
    cells : KeyCells
    rows, buckets : int
    candidates : float
        Keys that are tested for being dense; the threshold is the largest noise among as many.

    Notes
    -----
    What lies above the threshold is taken out up to the error of its estimate. The sub-joins take their own medians,
    so their variances add up.
    """
    left, right = (_residual(w, cells.counts, rows, buckets, candidates) for w in cells.weights)
    f, g = (np.where(part.dense, 0.0, w) for part, w in zip((left, right), cells.weights, strict=True))
    sparse = _median_variance(f, g, cells.counts, rows, buckets)
    cross = 0.0
    for mine, other, w in ((left, right, cells.weights[0]), (right, left, cells.weights[1])):
        dense = float(cells.counts[mine.dense] @ w[mine.dense] ** 2)
        cross += dense * other.self_join_size / buckets
    return sparse + cross * MEDIAN_LOSS / rows


def skimmed_errors(
    left: tuple[Floats, Floats], right: tuple[Floats, Floats], cells: KeyCells, rows: int, buckets: int
) -> Floats:
    """As `row_errors`, of skimmed sketches: of each row the errors of all its sub-joins together.

    The interval is of the rows' totals. Keys that are known to be heavy are candidates, no others.
    """
    parts, light = [], []
    for mean, square in (left, right):
        part = _residual(
            np.sqrt(square), cells.counts, rows, buckets, max(int(cells.heavy.sum()), 2), cells.heavy
        )
        parts.append(part)
        light.append((np.where(part.dense, 0.0, mean), np.where(part.dense, 0.0, square)))
    errors = row_errors(light[0], light[1], cells.counts, rows, buckets)
    cross = sum(
        float(cells.counts[mine.dense] @ square[mine.dense]) * other.self_join_size / buckets
        for mine, other, (_, square) in zip(parts, parts[::-1], (left, right), strict=True)
    )
    noise = np.random.default_rng(SIMULATED_KEYS).standard_normal((SIMULATED_MEDIANS, rows))
    return errors + noise * math.sqrt(cross)


class _Part:
    """What skimming leaves of a table: which cells it takes out, and F2 of the rest."""

    def __init__(self, dense: npt.NDArray[np.bool_], self_join_size: float) -> None:
        self.dense, self.self_join_size = dense, self_join_size


def _residual(
    w: Floats,
    counts: Floats,
    rows: int,
    buckets: int,
    candidates: float,
    among: npt.NDArray[np.bool_] | None = None,
) -> _Part:
    dense, may = np.zeros(w.size, bool), np.ones(w.size, bool) if among is None else among
    f2 = float(counts @ w**2)
    for _ in range(SKIM_ROUNDS):
        noise = math.sqrt(f2 / buckets * MEDIAN_LOSS / rows)
        dense = dense | (may & (w > noise * math.sqrt(2.0 * math.log(max(candidates, 2.0)))))
        f2 = float(counts[~dense] @ w[~dense] ** 2) + float(counts[dense].sum()) * noise**2
    return _Part(dense, f2)


def exact_maps(
    figures: Figures,
    vertices: Sequence[int],
    attributes: Sequence[int],
    counters: int,
    groups: Mapping[int, int] | None = None,
) -> bool:
    """Whether all sketches of so many counters stay the exact maps that they start as; those of a group each.

    A table that stands between others has an attribute for each edge, of one class too.
    """
    most = max(len(c.vertices) for c in figures.tree.classes) - 2
    for vertex, classes in zip(vertices, attributes, strict=True):
        relation, number = figures.relations[vertex], classes + most
        tuples = relation.tuples / (groups or {}).get(vertex, 1)
        known = relation.joint_distinct if classes > 1 else relation.attributes[0].distinct
        keys = TUPLES_RESERVE * tuples
        if known is not None:
            keys = surely(min(known, tuples), keys)
        if (1 + number) * keys > counters:
            return False
    return True


def tree_variance(figures: Figures, residual: Residual) -> float:
    """Variance of one atomic sketch of every vertex of a residual tree; over s1, or buckets, that of a row.

    Notes
    -----
    The product of the self-join sizes plus ``(2^joins - 1)`` times the squared answer: exact up to the keys' own
    squares for several tables on one key, and the leading terms for other trees (`moments.lemma_3_2_bounds`). A
    folded message multiplies the receiver's self-join size by its mean square.
    """
    joins = len(residual.vertices) - 1
    sizes = 1.0
    for vertex in residual.vertices:
        relation, classes = figures.relations[vertex], figures.tree.classes_of(vertex)
        sizes *= relation.attributes[0].self_join_size if len(classes) == 1 else relation.joint_self_join_size
    for fold in residual.folds:
        sizes *= figures.mean_square(fold)
    same = 0.0
    if len(figures.tree.classes) == 1:
        parts = figures.contributions(0)
        same = 2.0**joins * parts.cells.total(parts.squares)
    return max(sizes + (2.0**joins - 1.0) * figures.total**2 - same, 0.0)


def convolution_variance(of_a_row: float, vertices: int, rows: int, buckets: int) -> float:
    """Variance of the median of the rows of convolution sketches of so many vertices, by that of an atomic sketch."""
    tail = CONVOLUTION_TAIL if vertices > 2 else 1.0
    return of_a_row * tail * MEDIAN_LOSS / (rows * buckets)


def agms_variance(of_a_row: float, rows: int, columns: int) -> float:
    """Variance of the median of `rows` averages of `columns` atomic sketches."""
    return of_a_row * MEDIAN_LOSS / (rows * columns)
