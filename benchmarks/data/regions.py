"""Synthetic relations of clustered tuples, as in the papers' experiments.

Rectangular regions of a discrete attribute space; tuples fall on regions, and within a region on its cells,
by Zipf's law. The generator of J. S. Vitter and M. Wang, "Approximate computation of multidimensional
aggregates of sparse data using wavelets", SIGMOD 1999, as Dobra et al. describe it (SIGMOD 2002, Section
5.1; EDBT 2004, Section 6.1), with their perturbation: a second relation's regions are those of the first,
moved to random places near.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Regions:
    """Rectangles in a space of `dimensions` attributes with values 0 .. domain - 1.

    `centers` and `sides` have shape (regions, dimensions); `shares` (regions,) says which part of the tuples
    falls on each.
    """

    domain: int
    centers: Ints
    sides: Ints
    shares: NDArray[np.float64]

    def starts(self) -> Ints:
        """Lower corners, moved so that every rectangle lies inside the domain."""
        return np.clip(self.centers - self.sides // 2, 0, self.domain - self.sides)


@dataclass(frozen=True, slots=True, eq=False)
class Relation:
    """Distinct tuples (n, dimensions) and how often each occurs (n,)."""

    cells: Ints
    counts: Ints
    _projections: dict[tuple[int, ...], Relation] = field(default_factory=dict, init=False, repr=False)

    def projected(self, attributes: Sequence[int]) -> Relation:
        """The relation on some of its attributes, frequencies added up; remembered, as trials ask again."""
        key = tuple(attributes)
        if key not in self._projections:
            self._projections[key] = collected(self.cells[:, list(key)], self.counts)
        return self._projections[key]

    def frequencies(self, domain: int) -> NDArray[np.float64]:
        """The frequency tensor, one axis per attribute."""
        dense = np.zeros((domain,) * self.cells.shape[1])
        np.add.at(dense, tuple(self.cells.T), self.counts)
        return dense


def zipf_shares(count: int, z: float) -> NDArray[np.float64]:
    """Probabilities proportional to rank^-z."""
    shares = np.arange(1, count + 1, dtype=np.float64) ** -z
    return shares / shares.sum()


def place_regions(
    rng: np.random.Generator,
    dimensions: int,
    regions: int = 10,
    domain: int = 1024,
    volume: tuple[int, int] = (1000, 2000),
    z_inter: float = 1.0,
) -> Regions:
    """Random rectangles of a volume in the given range, the first with the largest share of the tuples."""
    return Regions(
        domain,
        rng.integers(0, domain, (regions, dimensions)),
        random_sides(rng, dimensions, regions, domain, volume),
        zipf_shares(regions, z_inter),
    )


def random_sides(
    rng: np.random.Generator, dimensions: int, regions: int, domain: int, volume: tuple[int, int]
) -> Ints:
    """Sides whose product is near a random volume, up to twice as long as wide."""
    volumes = rng.integers(volume[0], volume[1] + 1, regions)
    tilt = np.exp2(rng.uniform(-0.5, 0.5, (regions, dimensions)))
    tilt /= tilt.prod(axis=1, keepdims=True) ** (1 / dimensions)
    sides = np.rint(volumes[:, None] ** (1 / dimensions) * tilt).astype(np.int64)
    return np.clip(sides, 1, domain)


def perturbed(rng: np.random.Generator, regions: Regions, perturbation: float = 1.0) -> Regions:
    """The same rectangles, each moved to a center drawn from the rectangle shrunk by `perturbation`."""
    reach = regions.sides * perturbation / 2
    moved = np.rint(regions.centers + rng.uniform(-reach, reach)).astype(np.int64)
    return replace(regions, centers=np.clip(moved, 0, regions.domain - 1))


def reranked(rng: np.random.Generator, regions: Regions) -> Regions:
    """The same rectangles with their shares of the tuples permuted."""
    return replace(regions, shares=rng.permutation(regions.shares))


def populate(
    rng: np.random.Generator,
    regions: Regions,
    tuples: int = 10_000_000,
    z_intra: tuple[float, float] = (0.0, 0.5),
) -> Relation:
    """Fill the rectangles; the skew within each is drawn from `z_intra`, the order of its cells is random."""
    cells, counts = [], []
    for start, sides, share in zip(regions.starts(), regions.sides, regions.shares, strict=True):
        grid = np.indices(tuple(sides)).reshape(len(sides), -1).T + start
        within = rng.permutation(zipf_shares(len(grid), rng.uniform(*z_intra)))
        cells.append(grid)
        counts.append(np.rint(tuples * share * within).astype(np.int64))
    return collected(np.concatenate(cells), np.concatenate(counts))


def collected(cells: Ints, counts: Ints) -> Relation:
    """Equal cells made one, empty ones dropped."""
    distinct, index = np.unique(cells, axis=0, return_inverse=True)
    total = np.bincount(index.ravel(), weights=counts, minlength=len(distinct)).astype(np.int64)
    return Relation(distinct[total > 0], total[total > 0])
