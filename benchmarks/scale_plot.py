"""A plot of the records of `benchmarks.scale`: CPU time of a tuple for every job."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

COLOURS = {"spark": "0.6", "arrow": "C1", "jvm": "C0", "duckdb": "C2", "driver": "C3", "sql": "C4"}


def plot(records: Sequence[dict[str, Any]], path: Path) -> None:
    """Bars by job, or lines against tuples where a job was run at several sizes."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    if len({r["rows"] for r in records}) > 1:
        figure, axis = plt.subplots(figsize=(6, 4))
        for job, route in dict.fromkeys((r["job"], r["route"]) for r in records):
            own = [r for r in records if (r["job"], r["route"]) == (job, route)]
            axis.plot(
                [r["rows"] / 1e6 for r in own], [r["cpu_s"] for r in own], "o-", label=f"{job}, {route}"
            )
        axis.set(xlabel="million tuples", ylabel="CPU s", xlim=(0, None), ylim=(0, None))
        axis.legend(fontsize=8)
    else:
        shown = [r for r in records if r["key"] == "bigint zipf"]
        figure, axis = plt.subplots(figsize=(7, 0.28 * len(shown) + 1))
        names = [f"{r['job']} ({r['route']})" for r in shown]
        costs = [1e9 * r["cpu_s"] / r["rows"] for r in shown]
        axis.barh(names, costs, color=[COLOURS[r["route"]] for r in shown])
        axis.invert_yaxis()
        axis.set(xlabel=f"CPU ns a tuple, {shown[0]['rows'] / 1e6:g}M tuples, BIGINT key, Zipf 0.8")
        axis.tick_params(labelsize=8)
    axis.grid(axis="x", alpha=0.3)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    plt.close(figure)
