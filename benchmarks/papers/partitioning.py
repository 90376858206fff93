"""What partitioning the join domains gains, by number of parts and quality of the histograms.

SIGMOD 2002, Figures 6 and 7: a chain of three relations of two attributes each, the middle one joined on
both, 9000 words; domains of 1024 values, 10 regions, 10M tuples. Partitions and allocation come from
histograms of 25, 50 and 100 buckets; the gain is the ratio of standard errors, without to with, by the exact
variances of the AGMS sketch, so no trial adds noise. Data by where the skew of the relations lies:

- ``permuted``: the same regions in all relations, moved, with the shares of the tuples permuted in each;
- ``independent``: other regions in each relation;
- ``aligned``: the same regions with the same shares, moved: here nothing is to be gained;
- ``flights``: a real table in place of the papers' census extract: aircraft that left Newark joined with
  aircraft that left Kennedy airport.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.data.flights import flight_rows
from benchmarks.data.regions import perturbed, place_regions, populate, reranked
from skimql.optimizer.prediction.histograms import JoinStatistics, equi_depth
from skimql.optimizer.workload.partition import partition_query

Floats = NDArray[np.float64]

DATA = ("permuted", "independent", "aligned", "flights")
DOMAIN = 1024
SEEDS = 12


def run(
    data: Sequence[str] = DATA,
    buckets: Sequence[int] = (25, 50, 100),
    parts: Sequence[int] = (1, 2, 3, 4, 6, 9),
    seeds: int = SEEDS,
) -> list[dict[str, Any]]:
    """One record for every kind of data, number of buckets and greatest number of parts.

    `gain` is the geometric mean over the data sets (the flights are one), `least_gain` the smallest,
    `partitioned` how many were partitioned at all.
    """
    records = []
    for kind in data:
        chains = [flights_join()] if kind == "flights" else [chain(kind, seed) for seed in range(seeds)]
        for count in buckets:
            for most in parts:
                gains = [gain(tensors, count, most) for tensors in chains]
                records.append(
                    {
                        "study": "partitioning",
                        "data": kind,
                        "buckets": count,
                        "parts": most,
                        "gain": float(np.exp(np.mean(np.log(gains)))),
                        "least_gain": float(min(gains)),
                        "partitioned": sum(g != 1 for g in gains),
                        "data_sets": len(gains),
                    }
                )
    return records


def chain(kind: str, data_seed: int) -> list[Floats]:
    """Frequencies of R1 on a, R2 on (a, b), R3 on b; each outer relation has another attribute besides."""
    rng = np.random.default_rng(data_seed)
    middle = place_regions(rng, 2, domain=DOMAIN)
    tensors = []
    for axis in (0, None, 1):
        regions = middle if kind != "independent" or axis is None else place_regions(rng, 2, domain=DOMAIN)
        if axis is not None and kind != "independent":
            regions = perturbed(rng, regions)
            if kind == "permuted":
                regions = reranked(rng, regions)
        relation = populate(rng, regions)
        chosen = relation if axis is None else relation.projected([axis])
        tensors.append(chosen.frequencies(DOMAIN))
    return tensors


def flights_join() -> list[Floats]:
    """Flights of every aircraft from EWR and from JFK, in the order of tail numbers."""
    rows = flight_rows(("origin", "tailnum"))
    size = int(rows[:, 1].max()) + 1
    return [np.bincount(rows[rows[:, 0] == origin, 1], minlength=size).astype(float) for origin in (0, 1)]


def gain(tensors: Sequence[Floats], buckets: int, most: int) -> float:
    """Standard error without partitioning over that with it, at equal space; 1 where it is declined."""
    found = partition_query(join_statistics(tensors, buckets), most)
    if found is None:
        return 1.0
    labels = [
        domain.part_of(np.arange(length))
        for domain, length in zip(found.domains, [len(tensors[0]), len(tensors[-1])], strict=False)
    ]
    variances = []
    for cell in np.ndindex(*(domain.count for domain in found.domains)):
        chosen = [rows == part for rows, part in zip(labels, cell, strict=True)]
        variances.append(variance(restricted(tensors, chosen)))
    with_parts = sum(v / share for v, share in zip(variances, found.shares, strict=True))
    return float(np.sqrt(variance(tensors) / with_parts))


def join_statistics(tensors: Sequence[Floats], buckets: int) -> list[JoinStatistics]:
    """Histograms of every join column; a chain of two joins, or one join of two columns."""

    def histogram(frequencies: Floats) -> Any:
        return equi_depth(np.arange(len(frequencies)), frequencies, buckets)

    if len(tensors) == 2:
        return [JoinStatistics(0, 1, histogram(tensors[0]), histogram(tensors[1]))]
    f, middle, g = tensors
    return [
        JoinStatistics(0, 1, histogram(f), histogram(middle.sum(axis=1))),
        JoinStatistics(1, 2, histogram(middle.sum(axis=0)), histogram(g)),
    ]


def restricted(tensors: Sequence[Floats], chosen: Sequence[NDArray[np.bool_]]) -> list[Floats]:
    """The tensors on a cell of the domain."""
    if len(tensors) == 2:
        return [tensors[0][chosen[0]], tensors[1][chosen[0]]]
    f, middle, g = tensors
    return [f[chosen[0]], middle[np.ix_(*chosen)], g[chosen[1]]]


def variance(tensors: Sequence[Floats]) -> float:
    """Exact variance of the product of atomic sketches, by the message passing of the golden facts, 3a.

    For a chain of two joins in O(domain^2): the leaf's message is of rank one but for its diagonal.
    """
    if len(tensors) == 2:
        f, g = tensors
        return float((f @ f) * (g @ g) + (f @ g) ** 2 - 2 * np.sum((f * g) ** 2))
    f, middle, g = tensors
    along, across = f @ middle, middle @ g
    size = f @ across
    diagonal = (g @ g) * np.sum(middle**2, axis=1) + 2 * across**2 - 2 * middle**2 @ g**2
    quadratic = (g @ g) * (along @ along) + 2 * size**2 - 2 * np.sum((along * g) ** 2)
    return float(diagonal.sum() * (f @ f) + 2 * quadratic - 2 * diagonal @ f**2 - size**2)


def plot(records: Sequence[dict[str, Any]], path: Path) -> None:
    """Standard error against the number of parts: a panel for each data, a curve for each histogram."""
    from .plotting import grid

    kinds = list(dict.fromkeys(r["data"] for r in records))
    with grid(path, 1, len(kinds)) as axes:
        for ax, kind in zip(axes[0], kinds, strict=True):
            for buckets in sorted({r["buckets"] for r in records}):
                chosen = [r for r in records if r["data"] == kind and r["buckets"] == buckets]
                errors = [1 / r["gain"] for r in chosen]
                ax.plot([r["parts"] for r in chosen], errors, "o-", label=f"{buckets} buckets")
            ax.set(title=kind, xlabel="partitions", ylabel="standard error (1 without)", ylim=(0, 1.1))
            ax.legend()
