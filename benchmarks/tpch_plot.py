"""A plot of `benchmarks.tpch`: CPU seconds of a bare scan, SkimQL, and the exact runs of Spark and DuckDB."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

ENGINES = {
    "scan": "bare scan",
    "skimql": "SkimQL, within 5 %",
    "spark": "Spark, exact",
    "duckdb": "DuckDB, exact",
}
COLOURS = {"scan": "0.6", "skimql": "C0", "spark": "C1", "duckdb": "C2"}


def plot(lines: Sequence[dict[str, Any]], scale: str, path: Path) -> None:
    """Bars by query, one for each engine, from the lines of `tpch.summary`."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(7.5, 3.6))
    places = np.arange(len(lines))
    for number, (engine, label) in enumerate(ENGINES.items()):
        seconds = [line["cpu"][engine] for line in lines]
        axis.bar(places + 0.2 * (number - 1.5), seconds, 0.2, label=label, color=COLOURS[engine])
    names = [line["query"].replace("lineitem", "l").replace("orders", "o") for line in lines]
    axis.set_xticks(places, [n if "-" in n else f"TPC-H {n}" for n in names], rotation=20, fontsize=8)
    axis.set(yscale="log", ylabel=f"CPU s, scale factor {scale}")
    axis.grid(axis="y", alpha=0.3)
    axis.legend(fontsize=8, ncols=2)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    plt.close(figure)
