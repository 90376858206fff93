"""From sketches to answers: the estimate of each aggregate, its interval, and the small table they make."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ..optimizer.plan import Plan
from ..parser.expressions import has_aggregate
from ..parser.join_graph import Query
from ..sketches.interval import Estimate, exact
from .evaluate import Cell, Evaluator
from .joined import Joined
from .python_values import arrow_column

if TYPE_CHECKING:
    import pandas as pd

# Of a query with many groups, so many estimates that miss the asked error are named in notes.
MOST_MISSES_NAMED = 5


@dataclass(frozen=True)
class Answer:
    """What a query gave: rows of cells, each an `Estimate` or, in an exact answer, a plain value.

    Attributes
    ----------
    columns : tuple of str
        The asked names, one per aggregate.
    rows : tuple of tuples
        One row, unless the query groups.
    exact : bool
        True where Spark computed the answer.
    plan : Plan or None
        What was built; None for an exact answer.
    bytes_used : int
        In-memory bytes of all sketches that the answer read.
    seconds : mapping of str to float
        Wall time of ``build`` (scans), ``answer`` (from sketches to numbers), ``exact`` (Spark's run).
    notes : tuple of str
        What a reader should know before using the numbers.
    bounds : bool
        Whether tables carry the interval beside each value.
    compared : tuple of rows or None
        Beside each row the exact values, where the query was asked with a comparison; None where the exact result
        has no such group.
    uncertain : tuple of bool or None
        For each row of a query with HAVING, LIMIT or OFFSET, whether it is uncertain that it belongs to the answer.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    exact: bool = False
    plan: Plan | None = None
    bytes_used: int = 0
    seconds: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    bounds: bool = True
    compared: tuple[tuple[Any, ...] | None, ...] | None = None
    uncertain: tuple[bool, ...] | None = None

    @property
    def estimate(self) -> Estimate:
        """The one cell of a one-cell approximate answer; ValueError where there are more."""
        cell = self._only_cell()
        if not isinstance(cell, Estimate):
            raise ValueError("an exact answer holds plain values, not estimates")
        return cell

    @property
    def value(self) -> Any:
        """Value of the one cell (an estimate's value; None for NULL); ValueError where there are more."""
        cell = self._only_cell()
        return _plain(cell.value) if isinstance(cell, Estimate) else cell

    @property
    def low(self) -> Any:
        """Lower end of the interval of the one cell."""
        cell = self._only_cell()
        return _plain(cell.low) if isinstance(cell, Estimate) else cell

    @property
    def high(self) -> Any:
        """Upper end of the interval of the one cell."""
        cell = self._only_cell()
        return _plain(cell.high) if isinstance(cell, Estimate) else cell

    def _only_cell(self) -> Cell:
        if len(self.rows) != 1 or len(self.rows[0]) != 1:
            raise ValueError(
                f"the answer has {len(self.rows)} x {len(self.columns)} cells; read .rows, .arrow() or .to_pandas()"
            )
        return self.rows[0][0]

    def records(self) -> list[dict[str, Any]]:
        """One dict a row: each aggregate, its bounds (and exact value), then `confidence` and `certified`."""
        estimated = self.estimated
        return [self._record(number, row, estimated) for number, row in enumerate(self.rows)]

    @property
    def estimated(self) -> tuple[bool, ...]:
        """Which columns hold estimates, if perhaps not in every row."""
        if not self.rows and self.plan is not None:
            return tuple(has_aggregate(item.expression) for item in self.plan.query.items)
        return tuple(any(isinstance(c, Estimate) for c in column) for column in zip(*self.rows, strict=True))

    def _record(self, number: int, row: Sequence[Cell], estimated: Sequence[bool]) -> dict[str, Any]:
        record: dict[str, Any] = {}
        exact_row = self.compared[number] if self.compared is not None else None
        for i, (name, cell) in enumerate(zip(self.columns, row, strict=True)):
            if not estimated[i]:
                record[name] = cell
                continue
            known = cell if isinstance(cell, Estimate) else exact(math.nan)
            record[name] = _plain(known.value)
            if self.bounds:
                record[f"{name}_low"] = _plain(known.low)
                record[f"{name}_high"] = _plain(known.high)
            if self.compared is not None:
                truth = exact_row[i] if exact_row is not None else None
                record[f"{name}_exact"] = truth
                record[f"{name}_relative_error"] = relative_error(known.value, truth)
        estimates = [c for c in row if isinstance(c, Estimate)]
        if any(estimated) and self.bounds:
            record["confidence"] = min((e.confidence for e in estimates), default=None)
            record["certified"] = all(e.certified for e in estimates) if estimates else None
        if self.uncertain is not None and self.bounds:
            record["uncertain"] = self.uncertain[number]
        return record

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of `records`, of an answer without rows too."""
        row = self.rows[0] if self.rows else (None,) * len(self.columns)
        blank = replace(
            self,
            rows=(row,),
            compared=None if self.compared is None else (None,),
            uncertain=None if self.uncertain is None else (False,),
        )
        return tuple(blank._record(0, row, self.estimated))

    def omitting(self, target: float) -> Answer:
        """The answer with NULL in place of every estimate that misses the asked relative error."""
        return replace(
            self, rows=tuple(tuple(None if misses(c, target) else c for c in row) for row in self.rows)
        )

    def arrow(self) -> pa.Table:
        """The records as an Arrow table; estimates and bounds are DOUBLE."""
        if not self.rows:
            return pa.table({name: pa.nulls(0) for name in self.names})
        records = self.records()
        return pa.table({name: arrow_column([r[name] for r in records]) for name in records[0]})

    def to_pandas(self) -> pd.DataFrame:
        """The records as a pandas DataFrame."""
        frame: pd.DataFrame = self.arrow().to_pandas()
        return frame

    @property
    def df(self) -> Any:
        """The records as a Spark DataFrame of the active session."""
        from .spark import start_spark

        return start_spark().createDataFrame(self.arrow())

    def __str__(self) -> str:
        lines = []
        for number, row in enumerate(self.rows):
            cells = [f"{name} = {format_cell(cell)}" for name, cell in zip(self.columns, row, strict=True)]
            if len(self.rows) == 1 and self.uncertain is None:
                lines += cells
            else:
                lines.append(", ".join(cells) + (" (uncertain)" if self._unsure(number) else ""))
        return "\n".join([*lines, *(f"note: {n}" for n in self.notes)])

    def __repr__(self) -> str:
        return str(self)

    def _unsure(self, number: int) -> bool:
        return self.uncertain is not None and self.uncertain[number]

    def _repr_html_(self) -> str:
        import html

        columns = self.columns if self.uncertain is None else (*self.columns, "uncertain")
        head = "".join(f"<th>{html.escape(c)}</th>" for c in columns)
        body = ""
        for number, row in enumerate(self.rows):
            body += "<tr>" + "".join(f"<td>{html.escape(format_cell(c))}{_range_svg(c)}</td>" for c in row)
            if self.uncertain is not None:
                body += f"<td>{'yes' if self._unsure(number) else 'no'}</td>"
            body += "</tr>"
        notes = "".join(f"<p><small>{html.escape(n)}</small></p>" for n in self.notes)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{notes}"


def answer_plan(plan: Plan, joined: Joined, confidence: float) -> Answer:
    """Evaluate every item of the query from finished synopses.

    Parameters
    ----------
    plan : Plan
    joined : Joined
        The synopses of the plan.
    confidence : float
        Wanted confidence of each interval, in (0, 1).
    """
    evaluator = Evaluator(plan, joined, confidence)
    cells = tuple(evaluator.cell(item.expression) for item in plan.query.items)
    notes = tuple(dict.fromkeys(note for c in cells if isinstance(c, Estimate) for note in c.notes))
    return Answer(
        tuple(item.name for item in plan.query.items),
        (cells,),
        plan=plan,
        bytes_used=joined.nbytes,
        notes=notes,
    )


def uncertified_answer(answer: Answer) -> Answer:
    """The answer with no estimate certified; what makes it so stands in its notes."""
    rows = tuple(
        tuple(replace(c, certified=False) if isinstance(c, Estimate) else c for c in row)
        for row in answer.rows
    )
    return replace(answer, rows=rows)


def nothing_joins(query: Query) -> Answer:
    """The exact answer of a query whose conditions exclude one another: counts are 0, sums and averages NULL."""
    known = tuple(exact(0 if a.function.startswith("count") else math.nan) for a in query.aggregates)
    evaluator = Evaluator(Plan(query, 0, (), (), (), (), ()), None, 1.0, known=known)
    cells = tuple(evaluator.cell(item.expression) for item in query.items)
    return Answer(tuple(item.name for item in query.items), (cells,), notes=(query.empty,))


def with_target(answer: Answer, target: float) -> tuple[bool, Answer]:
    """Whether every interval meets the asked relative error, and the answer with a note where one does not."""
    missed = [
        (name + _group_text(answer, row), cell)
        for row in answer.rows
        for name, cell in zip(answer.columns, row, strict=True)
        if misses(cell, target)
    ]
    if not missed:
        return True, answer
    notes = tuple(
        f"{name}: asked for {target:.3g} relative error, the interval allows {_reached(cell)}"
        for name, cell in missed[:MOST_MISSES_NAMED]
    )
    if len(missed) > MOST_MISSES_NAMED:
        notes += (f"{len(missed) - MOST_MISSES_NAMED:,} more values miss the asked error",)
    return False, replace(answer, notes=answer.notes + notes)


def _group_text(answer: Answer, row: Sequence[Cell]) -> str:
    """Which group a row is, where the query has any."""
    if answer.plan is None or not answer.plan.query.groups:
        return ""
    plain = [
        f"{name} = {'NULL' if cell is None else cell}"
        for name, cell in zip(answer.columns, row, strict=True)
        if not isinstance(cell, Estimate)
    ]
    return f" of group {', '.join(plain)}" if plain else f" of row {answer.rows.index(tuple(row)) + 1}"


def misses(cell: Cell, target: float) -> bool:
    """Whether a cell is an estimate whose interval is wider than the asked relative error.

    A NULL that is known to be one is no miss; one that stands for too little to tell has an interval without ends.
    """
    if not isinstance(cell, Estimate) or is_null(cell):
        return False
    return not half_width(cell) <= target * abs(cell.value)


def is_null(estimate: Estimate) -> bool:
    """Whether SQL's NULL is the value, and not only what is shown where there is too little to tell."""
    return math.isnan(estimate.value) and math.isnan(estimate.low)


def half_width(estimate: Estimate) -> float:
    """The larger distance from the value to an end of its interval."""
    return max(estimate.high - estimate.value, estimate.value - estimate.low)


def relative_error(value: float, truth: Any) -> float | None:
    """|value - truth| / |truth|, or None where either is NULL or the truth is 0 and missed."""
    if truth is None or not isinstance(value, (int, float)) or math.isnan(value):
        return None
    if float(truth) == 0.0:
        return 0.0 if value == 0 else None
    return abs(value - float(truth)) / abs(float(truth))


def format_cell(cell: Cell) -> str:
    """A cell as people read it: an estimate rounded to the digits that its interval supports."""
    if not isinstance(cell, Estimate):
        return "NULL" if cell is None else f"{cell:,}" if isinstance(cell, (int, float)) else str(cell)
    if math.isnan(cell.value):
        return "NULL"
    width = half_width(cell)
    if width == 0:
        return f"{cell.value:,.0f}" if cell.value == round(cell.value) else f"{cell.value:,.6g}"
    if math.isinf(width):
        return f"{cell.value:,.4g} (no bound)"
    places = 1 - math.floor(math.log10(width))
    shown = max(places, 0)
    return f"{round(cell.value, places):,.{shown}f} ± {_round_up(width, places):,.{shown}f}"


def _round_up(width: float, places: int) -> float:
    step = 10.0**-places
    return math.ceil(width / step - 1e-9) * step


def _reached(cell: Estimate) -> str:
    return (
        "no bound"
        if not cell.value or math.isnan(cell.value)
        else f"{half_width(cell) / abs(cell.value):.3g}"
    )


def _plain(value: float) -> float | None:
    """DOUBLE as SQL has it: an unknown or unbounded number is NULL."""
    return None if math.isnan(value) or math.isinf(value) else float(value)


def _range_svg(cell: Cell) -> str:
    """A small bar from 0 to the upper end, the interval dark in it."""
    if not isinstance(cell, Estimate) or math.isnan(cell.value) or math.isinf(half_width(cell)):
        return ""
    left, right = min(0.0, cell.low), max(0.0, cell.high)
    if right <= left:
        return ""
    a = 120 * (cell.low - left) / (right - left)
    b = 120 * (cell.high - left) / (right - left)
    at = 120 * (cell.value - left) / (right - left)
    return (
        '<br><svg width="120" height="8"><rect width="120" height="2" y="3" fill="#ddd"/>'
        f'<rect x="{a:.1f}" y="2" width="{max(b - a, 1):.1f}" height="4" fill="#68a"/>'
        f'<rect x="{at:.1f}" width="1" height="8" fill="#000"/></svg>'
    )
