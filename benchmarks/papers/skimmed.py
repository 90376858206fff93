"""The study of the skimmed-sketch paper in its own shape: error of the join size against space.

Figures 5A and 5B of S. Ganguly, M. Garofalakis, R. Rastogi, US 2006/0143170, "Processing data-stream join
aggregates using skimmed sketches": two streams of four million elements each, a Zipfian distribution and the
same shifted to the right, Zipf parameter 1.0 (A) and 1.5 (B), one curve for each shift and method, basic
sketching (AGMS) against skimmed sketches. Beside them: the hash sketch without skimming, skimming as the
paper has it (one look, threshold 2 n / buckets), and the two-level synopsis that knows the dense keys of
both streams.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from skimql.sketches.intervals.interval import Estimate, median_interval
from skimql.sketches.joins.hash_sketch import join_size_rows
from skimql.sketches.joins.skim import skim
from skimql.sketches.joins.skim_join import skimmed_join

from ..skimmed import EDGE, ROWS, Ints, agms_record, sketched
from ..trials import Record, record, zipf
from ..two_level import jointly

DOMAIN, TUPLES = 1 << 18, 4_000_000
FIGURES = {"5A": (1.0, (100, 200, 300)), "5B": (1.5, (30, 50, 100))}
WORDS = (1024, 4096, 16384, 65536)
METHODS = ("AGMS (exact variance)", "hash sketch", "skimmed, as published", "skimmed", "two-level, joint")


def run(
    seeds: int = 24, words: Sequence[int] = WORDS, figures: Sequence[str] = tuple(FIGURES)
) -> list[dict[str, Any]]:
    """Errors of all methods.

    Parameters
    ----------
    seeds : int
        Hash functions, the same for all methods of a point.
    words : sequence of int
        8-byte words of each stream's synopsis.
    figures : sequence of str
        "5A", "5B" or both.

    Returns
    -------
    list of dict
        ``study, method, words, parameters, seeds, median_relative_error, mean_relative_error, coverage,
        mean_width`` and, in the parameters, the figure, z and the shift.
    """
    records = []
    for figure in figures:
        z, shifts = FIGURES[figure]
        for shift in shifts:
            f, g = zipf(DOMAIN, z, TUPLES), zipf(DOMAIN, z, TUPLES, shift)
            for size in words:
                parameters = {"figure": figure, "z": z, "shift": shift}
                records += point(f, g, size, parameters, seeds)
    return records


def point(f: Ints, g: Ints, words: int, parameters: dict[str, Any], seeds: int) -> list[Record]:
    """Records of all methods on one pair of streams at one size."""
    truth = float(f.astype(float) @ g)
    keys = np.arange(f.size)
    tables = [(np.flatnonzero(w), w[w > 0]) for w in (f, g)]
    found: dict[str, list[Estimate]] = {method: [] for method in METHODS[1:]}
    for seed in range(seeds):
        sketches = sketched([f, g], seed, words)
        found["hash sketch"].append(median_interval(join_size_rows(*sketches)))
        pairs = zip(sketches, (f, g), strict=True)
        once = [skim(s, [keys], 2.0 * w.sum() / (words // ROWS), rounds=1) for s, w in pairs]
        found["skimmed, as published"].append(skimmed_join(once, EDGE))
        found["skimmed"].append(skimmed_join([skim(s, [keys]) for s in sketches], EDGE))
        found["two-level, joint"].append(jointly(tables, seed, 8 * words)[0])
    computed = agms_record(f, g, words, parameters, "papers/skimmed")
    measured = [record("papers/skimmed", m, words, parameters, e, truth) for m, e in found.items()]
    return [{k: v for k, v in r.items() if k != "errors"} for r in (computed, *measured)]


def plot(records: Sequence[dict[str, Any]], path: Path) -> None:
    """One panel for each figure and shift: mean relative error against words, both logarithmic."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    panels: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for r in records:
        panels.setdefault((r["parameters"]["figure"], r["parameters"]["shift"]), []).append(r)
    columns = 3
    figure = Figure(figsize=(4.2 * columns, 3.4 * -(-len(panels) // columns)), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(-(-len(panels) // columns), columns, squeeze=False).ravel()
    for axis, (name, shift) in zip(axes, panels, strict=False):
        chosen = [
            r for r in records if (r["parameters"]["figure"], r["parameters"]["shift"]) == (name, shift)
        ]
        for method in METHODS:
            line = sorted((r["words"], r["mean_relative_error"]) for r in chosen if r["method"] == method)
            axis.loglog(*zip(*line, strict=True), "o-", markersize=3, label=method)
        axis.set_title(f"figure {name}: z = {chosen[0]['parameters']['z']}, shift {shift}", fontsize=9)
        axis.set_xlabel("words")
        axis.set_ylabel("mean relative error")
        axis.grid(alpha=0.3)
    axes[0].legend(fontsize=7)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=80)
