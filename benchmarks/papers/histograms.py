"""Sketches against equi-depth histograms at equal bytes.

SIGMOD 2002, Figures 2 to 5: a self-join over a large sparse domain (1,024,000 values, 10,000 regions of
volume 1 to 5, z_inter 0.2), and joins of two relations on one, two and three correlated attributes (domains
of 1024 values, 10 regions, z_inter 1.0, z_intra 0 to 0.5, perturbation 1); flights in place of the census.

Histograms are one-dimensional, two words a bucket (boundary and count): values are uniform in a bucket and
attributes independent. Joins on several attributes are one composite key to the sketch, which therefore
does not see correlation as a difficulty.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.data.flights import flight_rows
from benchmarks.data.regions import Relation, collected, perturbed, place_regions, populate
from skimql.optimizer.prediction.histograms import Histogram, equi_depth, overlap
from skimql.sketches.hashing.xi import make_family
from skimql.sketches.joins.convolution import ConvolutionSketch
from skimql.sketches.joins.hash_sketch import hash_spec, join_size_rows

Pair = tuple[Relation, Relation]

WORDS = (500, 1000, 2000, 4000, 8000)
ROWS = 11
FLIGHTS = ("carrier", "dest", "hour")


def run(
    words: Sequence[int] = WORDS, data_seeds: int = 5, sketch_seeds: int = 20, flights: bool = True
) -> list[dict[str, Any]]:
    """One record for every query and space; errors are mean absolute relative errors over all seeds.

    `bytes` are those of one relation's synopsis. Sketches are hash sketches of 11 rows, plain (not skimmed).
    """
    queries: list[tuple[str, Any, list[Pair]]] = [
        ("sparse", "self-join", [sparse_self_join(seed) for seed in range(data_seeds)])
    ]
    pairs = [correlated_pair(seed) for seed in range(data_seeds)]
    queries += [("regions", k, [_on(pair, k) for pair in pairs]) for k in (1, 2, 3)]
    if flights:
        halves = flights_pair()
        queries += [("flights", k, [_on(halves, k)]) for k in (1, 2, 3)]
    return [
        {
            "study": "histograms",
            "data": data,
            "attributes": attributes,
            "bytes": 8 * size,
            "sketch_error": float(np.mean([sketch_errors(pair, size, sketch_seeds) for pair in many])),
            "histogram_error": float(np.mean([histogram_error(pair, size) for pair in many])),
        }
        for data, attributes, many in queries
        for size in words
    ]


def sparse_self_join(data_seed: int) -> Pair:
    """A relation of one attribute, joined with itself."""
    rng = np.random.default_rng(data_seed)
    regions = place_regions(rng, 1, regions=10_000, domain=1_024_000, volume=(1, 5), z_inter=0.2)
    relation = populate(rng, regions)
    return relation, relation


def correlated_pair(data_seed: int) -> Pair:
    """Two relations of three attributes over the same regions, moved."""
    rng = np.random.default_rng(data_seed)
    regions = place_regions(rng, 3)
    return populate(rng, regions), populate(rng, perturbed(rng, regions))


def flights_pair() -> Pair:
    """Flights of the first and of the second half of the year, on carrier, destination and hour."""
    rows = flight_rows(("month", *FLIGHTS))
    early = rows[:, 0] <= 6
    halves = [rows[early, 1:], rows[~early, 1:]]
    first, second = (collected(half, np.ones(len(half), dtype=np.int64)) for half in halves)
    return first, second


def _on(pair: Pair, attributes: int) -> Pair:
    """The pair on its first attributes."""
    return pair[0].projected(range(attributes)), pair[1].projected(range(attributes))


def _keys(relation: Relation) -> NDArray[np.int64]:
    """One key for all attributes."""
    keys = np.zeros(len(relation.cells), dtype=np.int64)
    for column in relation.cells.T:
        keys = keys * 1024 + column if relation.cells.shape[1] > 1 else column
    return keys


def true_size(pair: Pair) -> float:
    """The exact join size."""
    common, left, right = np.intersect1d(_keys(pair[0]), _keys(pair[1]), return_indices=True)
    assert len(common), "the relations do not join"
    return float(pair[0].counts[left].astype(float) @ pair[1].counts[right])


def sketch_errors(pair: Pair, words: int, seeds: int) -> float:
    """Mean absolute relative error of hash sketches of so many words."""
    truth, errors = true_size(pair), []
    for seed in range(seeds):
        spec = hash_spec(make_family("tabulation", seed), ROWS, words // ROWS)
        sketches = [ConvolutionSketch(spec) for _ in pair]
        for sketch, relation in zip(sketches, pair, strict=True):
            sketch.update([_keys(relation)], relation.counts)
        errors.append(abs(float(np.median(join_size_rows(*sketches))) / truth - 1))
    return float(np.mean(errors))


def histogram_error(pair: Pair, words: int) -> float:
    """Absolute relative error of histograms of so many words for all attributes of a relation."""
    attributes = pair[0].cells.shape[1]
    buckets = words // (2 * attributes)
    size = 1.0
    for axis in range(attributes):
        left, right = (_histogram(relation.projected([axis]), buckets) for relation in pair)
        if pair[0] is pair[1]:
            size *= left.self_join_size
        else:
            size *= overlap(left, right).products.sum()
        if axis:
            size /= left.tuples * right.tuples
    return abs(size / true_size(pair) - 1)


def _histogram(column: Relation, buckets: int) -> Histogram:
    """Boundaries and counts only: a bucket reaches back to the one before, and is uniform.

    Buckets left over (there are fewer values than buckets) are given to the widest gaps as empty ones, so
    that a histogram with space enough is exact.
    """
    exact = equi_depth(column.cells[:, 0], column.counts, buckets)
    gaps = exact.lows[1:] - exact.highs[:-1] - 1
    widest = np.argsort(-gaps, kind="stable")[: buckets - len(exact.lows)]
    reach = np.concatenate((exact.lows[:1], exact.highs[:-1] + 1))
    reach[widest + 1] = exact.lows[widest + 1]
    return Histogram(reach, exact.highs, exact.counts, (exact.highs - reach + 1).astype(float))


def plot(records: Sequence[dict[str, Any]], path: Path) -> None:
    """One panel for each query, relative error against bytes; errors below 0.01 % are drawn there."""
    from .plotting import grid

    panels = list(dict.fromkeys((r["data"], r["attributes"]) for r in records))
    columns = min(4, len(panels))
    with grid(path, -(-len(panels) // columns), columns) as axes:
        for ax in [ax for row in axes for ax in row][len(panels) :]:
            ax.set_axis_off()
        for index, panel in enumerate(panels):
            ax = axes[index // columns][index % columns]
            chosen = [r for r in records if (r["data"], r["attributes"]) == panel]
            size = [r["bytes"] / 1024 for r in chosen]
            ax.plot(size, [max(r["histogram_error"], 1e-4) for r in chosen], "s--", label="histogram")
            ax.plot(size, [max(r["sketch_error"], 1e-4) for r in chosen], "o-", label="sketch")
            ax.set(
                title=f"{panel[0]}, {panel[1]} attribute(s)"
                if panel[1] != "self-join"
                else "sparse self-join",
                xlabel="space (KB)",
                ylabel="relative error",
                yscale="log",
            )
            ax.legend()
