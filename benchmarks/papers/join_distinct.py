"""The Join-Distinct study of the paper, in its own shape: error against the number of sketches.

Figure 7 of S. Ganguly, M. Garofalakis, A. Kumar, R. Rastogi, "Join-Distinct Aggregate Estimation over Update
Streams", PODS 2005: n = 1,000, q = 0.01, 0.02, 0.04, averages over runs with different seeds, 40 inner
sketches for JDEstimator. Beside the paper's two estimators, as they are: maximum likelihood from the
LinearJD bitmaps, and samples of both sides, at their own sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from skimql.sketches.distinct.level import LevelSketch, LevelSpec
from skimql.sketches.hashing.xi import make_family
from skimql.sketches.reference.jd_sketch import JDSketch, JDSpec, jd_size
from skimql.sketches.reference.linear_jd import (
    LinearJDSketch,
    LinearJDSpec,
    linear_jd_composed_likely_size,
    linear_jd_likely_size,
    linear_jd_size,
)

from ..graphs import Graph, Keys, random_graph
from ..join_distinct import SIZE_BUCKETS, capacity, sampled_estimates

NODES = 1000
DENSITIES = (0.01, 0.02, 0.04)
SKETCHES = (25, 50, 100, 150)
SAMPLES = (16, 32, 64, 128)
INNER = 40
LEVELS = 16
INNER_LEVELS = 13
EPSILON = 0.25
Errors = dict[str, list[float]]


def run(
    seeds: int = 24, densities: Sequence[float] = DENSITIES, sketches: Sequence[int] = SKETCHES
) -> list[dict[str, Any]]:
    """Errors of all estimators.

    Parameters
    ----------
    seeds : int
        Graphs and hash functions, one of each for a seed.
    densities : sequence of float
        Edge probabilities q.
    sketches : sequence of int
        Numbers of FM sketches and of outer JD sketches.

    Returns
    -------
    list of dict
        ``study, method, words, parameters, seeds, median_relative_error, mean_relative_error, coverage,
        mean_width``; the last two are None where a method gives no interval. ``failures`` counts runs in
        which no level lay in the paper's window; they have no error.
    """
    records = []
    for q in densities:
        graphs = [random_graph(NODES, q, seed) for seed in range(seeds)]
        for copies in sketches:
            for method, words, errors in paper_errors(graphs, copies):
                records.append(summary(method, words, {"q": q, "sketches": copies}, errors, seeds))
        records += [sampled(graphs, q, size) for size in SAMPLES]
    return records


def paper_errors(graphs: Sequence[Graph], copies: int) -> Iterator[tuple[str, int, list[float]]]:
    """Method, words and relative errors, without the runs that failed."""
    jd: list[float] = []
    linear: Errors = {"LinearJD": [], "LinearJD, likelihood": [], "LinearJD, likelihood by levels": []}
    words = jd_words = 0
    for seed, graph in enumerate(graphs):
        r, s = linear_sketches(graph, copies, seed)
        words = r.nbytes // 8
        sizes = distinct_values(graph.r[0], seed), distinct_values(graph.s[0], seed)
        attempts: dict[str, Callable[[], float]] = {
            "LinearJD": lambda r=r, s=s: linear_jd_size(r, s, EPSILON),
            "LinearJD, likelihood": lambda r=r, s=s, n=sizes: linear_jd_composed_likely_size(r, s, *n),
            "LinearJD, likelihood by levels": lambda r=r, s=s, n=sizes: linear_jd_likely_size(r, s, *n),
        }
        for method, attempt in attempts.items():
            linear[method] += error_of(attempt, graph.pairs)
        left, right = jd_sketches(graph, copies, seed)
        jd_words = left.nbytes // 8
        jd += error_of(lambda left=left, right=right: jd_size(left, right, EPSILON), graph.pairs)
    yield "JDEstimator", jd_words, jd
    for method, errors in linear.items():
        yield method, words, errors


def distinct_values(column: Keys, seed: int) -> float:
    """|A| or |C|, from a level sketch."""
    level = LevelSketch(LevelSpec(make_family(seed=seed).derive("size"), SIZE_BUCKETS))
    level.update(column)
    return level.estimate().value


def linear_sketches(graph: Graph, copies: int, seed: int) -> tuple[LinearJDSketch, LinearJDSketch]:
    """Both sides of the query on a graph."""
    family = make_family(seed=seed)
    sides = []
    for label, columns in (("a", graph.r), ("c", graph.s)):
        side = LinearJDSketch(LinearJDSpec(family.derive(label), copies, LEVELS))
        side.update(*columns)
        sides.append(side)
    return sides[0], sides[1]


def jd_sketches(graph: Graph, copies: int, seed: int) -> tuple[JDSketch, JDSketch]:
    """Both sides; 40 * copies inner functions take the family without tables."""
    family = make_family("xxhash64", seed=seed)
    sides = []
    for label, columns in (("a", graph.r), ("c", graph.s)):
        spec = JDSpec(family.derive(label), family.derive("b"), copies, INNER, INNER_LEVELS, INNER_LEVELS)
        side = JDSketch(spec)
        side.update(*columns)
        sides.append(side)
    return sides[0], sides[1]


def error_of(attempt: Callable[[], float], truth: int) -> list[float]:
    """The absolute relative error, or nothing if the paper's procedure reports failure."""
    try:
        return [abs(attempt() / truth - 1)]
    except ValueError:
        return []


def sampled(graphs: Sequence[Graph], q: float, size: int) -> dict[str, Any]:
    """The record of the two-sided sample."""
    errors, widths, covered, words = [], [], 0, 0
    for seed, graph in enumerate(graphs):
        (found, _, _), words = sampled_estimates(graph, size, capacity(q, size), seed)
        errors.append(abs(found.value / graph.pairs - 1))
        widths.append(found.half_width / graph.pairs)
        covered += found.low <= graph.pairs <= found.high
    record = summary("two-sided sample", words, {"q": q, "sketches": size}, errors, len(graphs))
    return record | {"coverage": covered / len(graphs), "mean_width": float(np.mean(widths))}


def summary(
    method: str, words: int, parameters: dict[str, Any], errors: Sequence[float], seeds: int
) -> dict[str, Any]:
    """One record; without an interval."""
    known = list(errors) or [float("nan")]
    return {
        "study": "papers/join_distinct",
        "method": method,
        "words": words,
        "parameters": parameters,
        "seeds": seeds,
        "median_relative_error": float(np.median(known)),
        "mean_relative_error": float(np.mean(known)),
        "coverage": None,
        "mean_width": None,
        "failures": seeds - len(errors),
    }


def plot(records: Sequence[dict[str, Any]], path: Path) -> None:
    """Mean relative error against the number of sketches (for samples, of values), a panel for each q."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    densities = list(dict.fromkeys(r["parameters"]["q"] for r in records))
    methods = list(dict.fromkeys(r["method"] for r in records))
    figure = Figure(figsize=(4.2 * len(densities), 3.6), layout="constrained")
    FigureCanvasAgg(figure)
    for axis, q in zip(figure.subplots(1, len(densities), squeeze=False)[0], densities, strict=True):
        for method in methods:
            points = [
                (r["parameters"]["sketches"], r["mean_relative_error"])
                for r in records
                if r["method"] == method and r["parameters"]["q"] == q
            ]
            axis.plot(*zip(*points, strict=True), "o-", ms=3, lw=1, label=method)
        axis.set(title=f"n = {NODES}, q = {q}", xlabel="sketches, or sampled values", yscale="log")
        axis.grid(alpha=0.3)
    figure.axes[0].set_ylabel("mean relative error")
    figure.axes[-1].legend(fontsize=7)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
