"""Pictures of a query: its predicted error against bytes, and the intervals of its answer."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import Answer, EnvironmentFault, Estimate, SkimqlError
from .shell.rewrite import bare
from .streams import NOT_WRITTEN

if TYPE_CHECKING:
    from .. import Session

SIZES = ("4 KB", "16 KB", "64 KB", "256 KB", "1 MB", "4 MB", "16 MB")
_UNITS = {"KB": 1 << 10, "MB": 1 << 20}
ENDINGS = (".png", ".svg", ".pdf")


@dataclass(frozen=True, slots=True)
class Point:
    """What is predicted of a query at a size.

    Attributes
    ----------
    told : str
        The size in words.
    nbytes, half_width : float
        The latter relative to the value; NaN where nothing is predicted.
    method : str
        The method, or why there is none.
    chosen : bool
        Whether it is what the query as it stands would take.
    """

    told: str
    nbytes: float
    half_width: float
    method: str
    chosen: bool = False


def curve(session: Session, text: str) -> list[Point]:
    """The predicted error of a query at a few sizes, and of the query as it stands last; plans only, no job.

    Raises
    ------
    SkimqlError
        If the query as it stands cannot be planned, or there is no Spark to look at tables with.
    """
    chosen = session.plan(text)
    plain = bare(text)
    points = []
    for size in SIZES:
        number, unit = size.split()
        try:
            plan = session.plan(f"{plain} SIZE {size}")
        except EnvironmentFault:
            raise
        except SkimqlError as fault:
            points.append(Point(size, float(int(number) * _UNITS[unit]), math.nan, fault.code))
            continue
        points.append(Point(size, float(int(number) * _UNITS[unit]), _width(plan), plan.method))
    predicted = getattr(chosen.attempt, "predicted", None)
    nbytes = math.nan if predicted is None else predicted.nbytes
    # The exact run holds nothing.
    told = f"{nbytes / 1024:,.0f} KB" if nbytes > 0 else ""
    return [*points, Point(told, nbytes, _width(chosen), chosen.method, chosen=True)]


def _width(plan: Any) -> float:
    predicted = getattr(plan.attempt, "predicted", None)
    return math.nan if predicted is None else float(predicted.half_width)


def width_text(width: float) -> str:
    """``± 3.1 %``, ``exact``, ``unknown``."""
    return "unknown" if math.isnan(width) else "exact" if width == 0 else f"± {100 * width:.2g} %"


def chart(points: Sequence[Point], columns: int, *, unicode: bool = True) -> str:
    """Error against bytes for a terminal: a bar a size, as long as the logarithm of its error says."""
    known = [p.half_width for p in points if p.half_width > 0 and math.isfinite(p.half_width)]
    told = [(p.told, width_text(p.half_width), p.method) for p in points]
    first, second, third = (max(len(row[i]) for row in told) for i in range(3))
    room = max(columns - first - second - third - 10, 8)
    least = math.log(min(known) / 2) if known else 0.0
    scale = (math.log(max(known)) - least) if known else 1.0
    lines = []
    for point, (size, width, method) in zip(points, told, strict=True):
        share = (math.log(point.half_width) - least) / scale if point.half_width in known else 0.0
        bar = ("█" if unicode else "#") * max(round(share * room), 1 if share else 0)
        mark = ("▸" if unicode else ">") if point.chosen else " "
        lines.append(f"{mark} {size:>{first}}  {width:>{second}}  {method:<{third}}  {bar}".rstrip())
    return "\n".join(lines) + "\n"


MOST_GROUPS = 40


def intervals(answer: Answer, columns: int, *, unicode: bool = True) -> str:
    """The intervals of an answer's groups for a terminal, a line each, on one scale; nothing without estimates."""
    lines: list[str] = []
    for place in (i for i, is_estimated in enumerate(answer.estimated) if is_estimated):
        cells = [(row, row[place]) for row in answer.rows[:MOST_GROUPS]]
        own = [(row, c) for row, c in cells if isinstance(c, Estimate) and _is_bounded(c)]
        if not own or all(c.exact for _, c in own):
            continue
        groups = [
            ", ".join(str(v) for v, e in zip(row, answer.estimated, strict=True) if not e) for row, _ in own
        ]
        wide = min(max(map(len, groups), default=0), max(columns // 3, 8))
        room = max(columns - wide - 16, 10)
        top = max(max(float(c.high), 0.0) for _, c in own)
        least = min(min(float(c.low), 0.0) for _, c in own)
        scale = (room - 1) / ((top - least) or 1.0)
        lines.append(f"{answer.columns[place]}, from {least:,.4g} to {top:,.4g}")
        for name, (_, c) in zip(groups, own, strict=True):
            a, at, b = (round((float(v) - least) * scale) for v in (c.low, c.value, c.high))
            signs = "├─●┤" if unicode else "[-o]"
            drawn = [" "] * a + [signs[1]] * (b - a + 1)
            drawn[a], drawn[b], drawn[at] = signs[0], signs[3], signs[2]
            lines.append(f"  {name[:wide]:<{wide}}  {''.join(drawn):<{room}}  {float(c.value):,.4g}")
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _is_bounded(cell: Estimate) -> bool:
    return all(math.isfinite(float(v)) for v in (cell.low, cell.value, cell.high))


def draw(points: Sequence[Point], answer: Answer | None, path: str) -> None:
    """Write a figure: error against bytes with the chosen point, and beside it the intervals of the answer.

    Raises
    ------
    SkimqlError
        ``SKIMQL_BAD_SETTING`` for a file of another kind, ``SKIMQL_NO_MATPLOTLIB``, ``SKIMQL_NOT_WRITTEN``.
    """
    file = Path(os.path.expanduser(path))
    if file.suffix.lower() not in ENDINGS:
        raise SkimqlError(
            f"{path} is no picture: its name ends in none of {', '.join(ENDINGS)}",
            "SKIMQL_BAD_SETTING",
            hint=f"{file.stem or 'plot'}.svg",
        )
    try:
        from matplotlib.figure import Figure
    except ImportError as fault:
        raise EnvironmentFault(
            "plots need matplotlib, which is not here",
            "SKIMQL_NO_MATPLOTLIB",
            hint="pip install 'skimql[plot]'",
        ) from fault
    estimated = answer is not None and any(answer.estimated) and len(answer.rows) > 0
    figure = Figure(figsize=(11 if estimated else 6, 4), layout="constrained")
    axes = figure.subplots(1, 2 if estimated else 1, squeeze=False)[0]
    _draw_curve(points, axes[0])
    if estimated and answer is not None:
        answer.plot(ax=axes[1])
        axes[1].tick_params(axis="x", rotation=90 if len(answer.rows) > 8 else 0)
    try:
        figure.savefig(file)
    except OSError as fault:
        raise EnvironmentFault(f"cannot write {path}: {fault.strerror}", NOT_WRITTEN) from fault


def _draw_curve(points: Sequence[Point], ax: Any) -> None:
    known = [p for p in points if p.half_width > 0 and math.isfinite(p.half_width) and p.nbytes > 0]
    sizes = [p for p in known if not p.chosen]
    ax.plot(
        [p.nbytes for p in sizes], [100 * p.half_width for p in sizes], "o-", color="#2a6", label="by SIZE"
    )
    for point in known:
        if point.chosen:
            ax.plot([point.nbytes], [100 * point.half_width], "*", ms=14, color="#c40", label="this query")
        else:
            ax.annotate(
                point.method.replace("_", " "),
                (point.nbytes, 100 * point.half_width),
                xytext=(4, 4),
                textcoords="offset points",
                fontsize=7,
            )
    exact = [
        f"{p.method.replace('_', ' ')}{' of ' + p.told if p.told else ''}"
        for p in points
        if p.half_width == 0
    ]
    if exact:
        ax.set_title(f"exact: {exact[0]}", fontsize=9)
    if known:
        ax.set_xscale("log", base=2)
        ax.set_yscale("log")
        ax.margins(0.2)
        ax.set_xticks([p.nbytes for p in sizes], [p.told for p in sizes])
        for which in (ax.yaxis.set_major_formatter, ax.yaxis.set_minor_formatter):
            which("{x:g}")
        ax.legend()
    ax.set_xlabel("bytes")
    ax.set_ylabel("predicted half-width, % of the value")
