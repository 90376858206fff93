"""Operators as text, JSON values and boxes of diagrams: what was predicted of each beside what it took."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from ...parser.diagram import Diagram
from ..operators import ESTIMATE, LOAD, PLANNING, RELATION, Figures, Operator, total
from ..physical import Attempted

UNKNOWN = "-"
PARTIAL = "CPU marked + lacks what else the JVM did for it: other jobs used it meanwhile"

# Heading, figure, how it is written; the first four are predicted too.
COLUMNS: tuple[tuple[str, str, Callable[[float], str]], ...] = (
    ("rows", "rows", lambda n: f"{n:,.0f}"),
    ("held", "bytes_held", lambda n: bytes_text(n)),
    ("CPU s", "cpu_seconds", lambda n: f"{n:.3f}" if n < 0.1 else f"{n:.2f}"),
    ("interval", "half_width", lambda w: width_text(w)),
    ("read", "bytes_read", lambda n: bytes_text(n)),
    ("wall s", "seconds", lambda n: f"{n:.3f}" if n < 0.1 else f"{n:.2f}"),
)
PREDICTED = 4

# What the cost model takes to cost nothing.
FREE = (ESTIMATE, LOAD, RELATION)


def operator_lines(own: Attempted) -> list[str]:
    """An aligned table: an operator a line, its inputs indented below it; ``predicted | actual`` in each column."""
    operators = own.operators
    rows = [*_rows(operators), *_rows([in_all(own)])]
    pairs = [max(len(cells[n][0]) for _, cells in rows) if n < PREDICTED else 0 for n in range(len(COLUMNS))]
    actuals = [max(len(cells[n][1]) for _, cells in rows) for n in range(len(COLUMNS))]
    corner = "predicted | actual"
    widths = [max(len(corner), *(len(name) for name, _ in rows))]
    lines = []
    heads = []
    for n, (head, _, _) in enumerate(COLUMNS):
        inner = pairs[n] + 3 + actuals[n] if n < PREDICTED else actuals[n]
        widths.append(max(inner, len(head)))
        heads.append(head.rjust(widths[-1]))
    lines.append("  ".join([corner.ljust(widths[0]), *heads]).rstrip())
    for name, cells in rows:
        told = [name.ljust(widths[0])]
        for n, (predicted, actual) in enumerate(cells):
            both = f"{predicted.rjust(pairs[n])} | {actual.rjust(actuals[n])}" if n < PREDICTED else actual
            told.append(both.rjust(widths[n + 1]))
        lines.append("  ".join(told).rstrip())
    if any(not own.whole_cpu for own in _all(operators)):
        lines.append(PARTIAL)
    return lines


def in_all(own: Attempted) -> Operator:
    """All operators of an attempt as one: what was predicted of the attempt, and what it took and gave."""
    predicted, spent = own.attempt.predicted, total(own.operators)
    roots = [o.predicted.bytes_held for o in own.operators if o.predicted.bytes_held is not None]
    figures = Figures(
        bytes_held=predicted.nbytes if math.isfinite(predicted.nbytes) else next(iter(roots), None),
        cpu_seconds=_predicted_cpu(own) if _known(predicted.seconds) is None else predicted.seconds,
        half_width=_known(predicted.half_width),
    )
    width = None if math.isnan(own.half_width) else own.half_width
    actual = replace(spent, bytes_held=own.nbytes, half_width=width)
    whole = all(o.whole_cpu for o in _all(own.operators))
    return Operator("in all", predicted=figures, actual=actual, runs=1, whole_cpu=whole)


def operator_dict(own: Operator) -> dict[str, Any]:
    """An operator as JSON values, unknown figures null."""
    return {
        "operator": own.kind,
        "of": own.of or None,
        "runs": own.runs,
        "predicted": _figures(own.predicted, COLUMNS[:PREDICTED]),
        "actual": None if own.actual is None else _figures(own.actual, COLUMNS),
        "cpu_is_whole": own.whole_cpu,
        "inputs": [operator_dict(i) for i in own.inputs],
    }


def draw_operators(operators: Sequence[Operator], name: str, drawn: Diagram) -> None:
    """Add boxes and arrows to a diagram; arrows lead from inputs to what reads them, and on to the box `name`."""
    for number, own in enumerate(operators):
        box = f"{name}_{number}"
        drawn.box(box, _named(own), *_pairs(own))
        drawn.line(box, name, arrow=True)
        draw_operators(own.inputs, box, drawn)


def bytes_text(nbytes: float) -> str:
    """``12 KB``, ``3.4 MB``."""
    if nbytes < 1024:
        return f"{nbytes:,.0f} B"
    if nbytes < 1 << 20:
        return f"{nbytes / 1024:,.0f} KB" if nbytes >= 10_240 else f"{nbytes / 1024:,.1f} KB"
    return f"{nbytes / (1 << 20):,.1f} MB"


def width_text(width: float) -> str:
    """``exact``, ``±2.0 %``."""
    return "exact" if not width else f"±{width:.2%}" if width < float("inf") else "unknown"


def _rows(operators: Sequence[Operator], depth: int = 0) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    for own in operators:
        yield "  " * depth + _named(own), _cells(own)
        yield from _rows(own.inputs, depth + 1)


def _predicted_cpu(own: Attempted) -> float | None:
    """CPU of all operators, where it is predicted of each but of planning and of what is computed from synopses."""
    planned = [o for o in own.operators if o.kind != PLANNING]
    known = [o.predicted.cpu_seconds for o in _all(planned) if o.kind not in FREE]
    return sum(c for c in known if c is not None) if known and None not in known else None


def _known(figure: float) -> float | None:
    return figure if math.isfinite(figure) else None


def _cells(own: Operator) -> list[tuple[str, str]]:
    cells = []
    for head, figure, text in COLUMNS:
        predicted = getattr(own.predicted, figure)
        actual = None if own.actual is None else getattr(own.actual, figure)
        mark = "+" if head == "CPU s" and actual is not None and not own.whole_cpu else ""
        cells.append(
            (
                UNKNOWN if predicted is None else text(predicted),
                UNKNOWN if actual is None else text(actual) + mark,
            )
        )
    return cells


def _pairs(own: Operator) -> list[str]:
    """The figures that are known, one a line."""
    told = []
    for n, ((head, _, _), (predicted, actual)) in enumerate(zip(COLUMNS, _cells(own), strict=True)):
        if (predicted, actual) != (UNKNOWN, UNKNOWN):
            told.append(f"{head}: {predicted} / {actual}" if n < PREDICTED else f"{head}: {actual}")
    return told


def _named(own: Operator) -> str:
    if own.actual is None:
        return f"{own.name} (not run)"
    return f"{own.name} x{own.runs}" if own.runs > 1 else own.name


def _figures(figures: Figures, columns: Sequence[tuple[str, str, Any]]) -> dict[str, float | None]:
    found = {}
    for _, figure, _ in columns:
        value = getattr(figures, figure)
        found[figure] = None if value is None or value == float("inf") else value
    return found


def _all(operators: Sequence[Operator]) -> list[Operator]:
    return [o for own in operators for o in (own, *_all(own.inputs))]
