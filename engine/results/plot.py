"""A chart of an answer: values with their intervals, a bar for each group."""

from __future__ import annotations

import math
from typing import Any

from ...errors import EnvironmentFault, UnsupportedQuery
from .columns import unique
from .display import Shown, labels


def plot(answer: Shown, column: str | None = None, ax: Any = None) -> Any:
    """Draw one aggregate of an answer.

    Parameters
    ----------
    answer : Answer
    column : str, optional
        The aggregate by name; the first one without it.
    ax : matplotlib Axes, optional
        Where to draw; a new figure without it.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    EnvironmentFault
        ``SKIMQL_NO_MATPLOTLIB`` without matplotlib.
    UnsupportedQuery
        ``SKIMQL_NOTHING_TO_PLOT`` if the answer has no such aggregate, or none at all.
    """
    names, _ = unique(answer.columns)
    estimated = [i for i, e in enumerate(answer.estimated) if e]
    wanted = [i for i in estimated if column is None or names[i].lower() == column.lower()]
    if not wanted:
        known = ", ".join(names[i] for i in estimated)
        raise UnsupportedQuery(
            f"there is no aggregate {column}" if column else "there is no aggregate to plot",
            "SKIMQL_NOTHING_TO_PLOT",
            hint=known or "SELECT APPROXIMATE ...",
        )
    if ax is None:
        try:
            from matplotlib import pyplot
        except ImportError as fault:
            raise EnvironmentFault(
                "plots need matplotlib, which is not here",
                "SKIMQL_NO_MATPLOTLIB",
                hint="pip install 'skimql[plot]'",
            ) from fault
        _, ax = pyplot.subplots()
    position = wanted[0]
    plain = [i for i in range(len(names)) if i not in estimated]
    shown = {c.name: c.values for c in answer.result}
    values = [math.nan if v is None else float(v) for v in shown[names[position]]]
    places = list(range(len(values)))
    ax.bar(places, values, color="#9bc")
    ends = [_ends(answer, number, position, value) for number, value in enumerate(values)]
    sides = [list(side) for side in zip(*ends, strict=True)] or None
    ax.errorbar(places, values, yerr=sides, fmt="none", ecolor="#246")
    ax.set_xticks(places, [labels(names, row, plain) if plain else names[position] for row in answer.rows])
    ax.set_ylabel(names[position])
    return ax


def _ends(answer: Shown, number: int, position: int, value: float) -> tuple[float, float]:
    """How far the interval of a value reaches below and above it; 0 where it has no bound."""
    from .columns import ends

    low, high = ends(answer.rows[number][position], value)
    below = 0.0 if low is None or math.isnan(value) else max(0.0, value - low)
    above = 0.0 if high is None or math.isnan(value) else max(0.0, high - value)
    return below, above
