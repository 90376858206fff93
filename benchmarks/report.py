"""Tables, JSON and plots of records."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from .trials import Record

RESULTS = Path(__file__).parent / "results"
KEPT_OUT = {"errors"}  # one number for each seed: for tests of paired seeds, not for files


def write_json(records: Sequence[Record], path: Path) -> None:
    """Write the records, without the error of every single seed."""
    kept = [{k: v for k, v in r.items() if k not in KEPT_OUT} for r in records]
    path.write_text(json.dumps(kept, indent=1) + "\n")


def header() -> str:
    """The heading above the lines of `line_of`."""
    return (
        f"{'study':10} {'method':28} {'words':>7} {'seeds':>5} {'median':>9} {'mean':>9} {'cover':>6} "
        f"{'width':>9} {'w/rmse':>6}  parameters"
    )


def line_of(r: Record) -> str:
    """One record as a line of a table; errors and widths relative to the truth."""
    shown = ", ".join(f"{k}={v}" for k, v in r["parameters"].items())
    return (
        f"{r['study']:10} {r['method']:28} {r['words']:7} {r['seeds']:5} {r['median_relative_error']:9.2%} "
        f"{r['mean_relative_error']:9.2%} {r['coverage']:6.1%} {r['mean_width']:9.2%} "
        f"{r['width_over_rmse']:6.2f}  {shown}"
    )


def plot(records: Sequence[Record], path: Path) -> None:
    """Mean relative error against bytes, log-log: a panel for each data set, a line for each method."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import NullFormatter

    panels = list(dict.fromkeys(_title(r) for r in records))
    columns = min(4, len(panels))
    lines = -(-len(panels) // columns)
    figure, axes = plt.subplots(lines, columns, figsize=(3.4 * columns, 2.9 * lines), squeeze=False)
    methods = list(dict.fromkeys(r["method"] for r in records))
    colours = {m: f"C{i}" for i, m in enumerate(methods)}
    for axis, title in zip(axes.flat, panels, strict=False):
        for method in methods:
            points = sorted(
                (8 * r["words"], max(r["mean_relative_error"], 1e-7))
                for r in records
                if r["method"] == method and _title(r) == title
            )
            if points:
                axis.plot(*zip(*points, strict=True), "o-", ms=3, lw=1, label=method, color=colours[method])
        axis.set(xscale="log", yscale="log", title=title)
        axis.title.set_fontsize(8)
        axis.tick_params(labelsize=7, which="both")
        axis.xaxis.set_minor_formatter(NullFormatter())
        axis.grid(alpha=0.3)
    for axis in list(axes.flat)[len(panels) :]:
        axis.set_visible(False)
    figure.supxlabel("bytes for each relation", fontsize=9)
    figure.supylabel("mean relative error", fontsize=9)
    handles, labels = [], []
    for axis in axes.flat:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            if label not in labels:
                handles.append(handle)
                labels.append(label)
    figure.legend(handles, labels, loc="upper center", ncols=min(6, len(labels)), fontsize=8)
    figure.tight_layout(rect=(0, 0, 1, 0.95 if lines > 1 else 0.88))
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _title(r: Record) -> str:
    return ", ".join(f"{k} {v}" for k, v in r["parameters"].items() if k != "rows")
