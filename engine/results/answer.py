"""From sketches to answers: the estimate of each aggregate, its interval, and the small table they make."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ...optimizer.plan import Plan
from ...parser.expressions import is_estimate
from ...sketches.intervals.interval import Estimate
from .columns import Names, ResultColumn, columns_by_rows, ends, relative_error, typed, unique
from .conditions import item_cell
from .display import cell_text
from .estimator import Joined
from .expressions import Cell, Evaluator

if TYPE_CHECKING:
    import pandas as pd

    from ...optimizer.physical import Attempted
    from .display import Grid

# Of a query with many groups, so many estimates that miss the asked error are named in notes.
MOST_MISSES_NAMED = 5
MET, MISSED, UNKNOWN = "met", "missed", "unknown"
DOUBLE = pa.float64()


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
    types : tuple of pyarrow.DataType or None
        Of each column, as Spark types its exact value; None where the values say it. Empty: no type is known.
    aggregated : tuple of bool
        Which columns are estimated, or exact in place of an estimate. Empty: those that hold an `Estimate`.
    compared_types : tuple of pyarrow.DataType or None
        As `types`, of the exact values in `compared`.
    is_text : bool
        Whether the one cell is a text with a layout of its own (EXPLAIN).
    brief : tuple of str
        The columns that a table for people shows, where there are more than it has room for; empty: all.
    method : str
        By which method of the registry it came (``hash``, ``key_sample``, ``exact_run``, ...); empty where nothing was
        asked of tables.
    attempts : tuple of Attempted
        What was run for the answer, in order; empty for what is no query.
    target : str
        Whether the asked error is reached: ``met``, ``missed``, or ``unknown`` where an interval is not certified;
        empty where none was asked for.
    targets : tuple of str
        The same of each row by itself.
    beside : tuple of (str, pyarrow.DataType, value)
        Columns behind all others that have one value for all rows.
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
    types: tuple[pa.DataType | None, ...] = ()
    aggregated: tuple[bool, ...] = ()
    compared_types: tuple[pa.DataType | None, ...] = ()
    is_text: bool = False
    brief: tuple[str, ...] = ()
    method: str = ""
    attempts: tuple[Attempted, ...] = ()
    target: str = ""
    targets: tuple[str, ...] = ()
    beside: tuple[tuple[str, pa.DataType, Any], ...] = ()

    @property
    def estimate(self) -> Estimate:
        """The one cell of a one-cell approximate answer; ValueError where there are more."""
        cell = self._only_cell()
        if not isinstance(cell, Estimate):
            raise ValueError("an exact answer holds plain values, not estimates")
        return cell

    @property
    def value(self) -> Any:
        """Value of the one cell in its type, an estimate rounded to it; None for NULL, ValueError for more cells."""
        return typed(self._only_cell(), self.type_of(0))

    @property
    def low(self) -> Any:
        """Lower end of the interval of the one cell; None without a bound."""
        cell = self._only_cell()
        return ends(cell, self.value)[0] if isinstance(cell, Estimate) else cell

    @property
    def high(self) -> Any:
        """Upper end of the interval of the one cell; None without a bound."""
        cell = self._only_cell()
        return ends(cell, self.value)[1] if isinstance(cell, Estimate) else cell

    def _only_cell(self) -> Cell:
        if len(self.rows) != 1 or len(self.rows[0]) != 1:
            raise ValueError(
                f"the answer has {len(self.rows)} x {len(self.columns)} cells; read .rows, .arrow() or .to_pandas()"
            )
        return self.rows[0][0]

    def records(self) -> list[dict[str, Any]]:
        """One dict a row: each aggregate, its bounds (and exact value), then `confidence`, `certified`, `target`."""
        return columns_by_rows(self.result)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of `records`, of an answer without rows too; the user's names first, see `result`."""
        return tuple(c.name for c in self.result)

    @property
    def estimated(self) -> tuple[bool, ...]:
        """Which columns hold estimates, if perhaps not in every row."""
        if self.aggregated:
            return self.aggregated
        if not self.rows and self.plan is not None:
            return tuple(is_estimate(item.expression) for item in self.plan.query.items)
        if not self.rows:
            return (False,) * len(self.columns)
        return tuple(any(isinstance(c, Estimate) for c in column) for column in zip(*self.rows, strict=True))

    @cached_property
    def result(self) -> tuple[ResultColumn, ...]:
        """The columns of the result as every format shows them, their names all different.

        Raises
        ------
        DataError
            ``SKIMQL_OVERFLOW`` if an estimate does not fit the type of its column.
        """
        own, names = unique(self.columns)
        columns: list[ResultColumn] = []
        for i, name in enumerate(own):
            cells = [row[i] for row in self.rows]
            values = [typed(c, self.type_of(i)) for c in cells]
            columns.append(ResultColumn(name, self.type_of(i), values))
            if self.estimated[i] and self.bounds:
                pairs = [ends(c, v) for c, v in zip(cells, values, strict=True)]
                columns.append(_column(names, f"{name}_low", DOUBLE, [low for low, _ in pairs]))
                columns.append(_column(names, f"{name}_high", DOUBLE, [high for _, high in pairs]))
            if self.estimated[i] and self.compared is not None:
                truths = [None if row is None else row[i] for row in self.compared]
                errors = [relative_error(v, t) for v, t in zip(values, truths, strict=True)]
                columns.append(_column(names, f"{name}_exact", self._exact_type(i), truths))
                columns.append(_column(names, f"{name}_relative_error", DOUBLE, errors))
        if any(self.estimated) and self.bounds:
            told = [self._certainty(row) for row in self.rows]
            columns.append(_column(names, "confidence", DOUBLE, [c for c, _ in told]))
            columns.append(_column(names, "certified", pa.bool_(), [c for _, c in told]))
        if self.uncertain is not None and self.bounds:
            columns.append(_column(names, "uncertain", pa.bool_(), list(self.uncertain)))
        if self.target and any(self.estimated) and self.bounds:
            columns.append(_column(names, "target", pa.string(), list(self.targets)))
        for name, kind, value in self.beside if self.bounds else ():
            columns.append(_column(names, name, kind, [value] * len(self.rows)))
        return tuple(columns)

    def type_of(self, position: int) -> pa.DataType | None:
        """The Arrow type of a column; None where its values say what it is."""
        return self.types[position] if self.types else None

    def _exact_type(self, position: int) -> pa.DataType | None:
        return self.compared_types[position] if self.compared_types else self.type_of(position)

    def _certainty(self, row: Sequence[Cell]) -> tuple[float | None, bool | None]:
        """The least confidence of a row's values, and whether all are certified; None where all are left out."""
        estimates = [c for c in row if isinstance(c, Estimate)]
        if not estimates:
            return (1.0, True) if self.exact else (None, None)
        return min(e.confidence for e in estimates), all(e.certified for e in estimates)

    def omitting(self, target: float) -> Answer:
        """The answer with NULL in place of every estimate that is not known to meet the asked relative error."""
        return replace(
            self,
            rows=tuple(tuple(c if state_of(c, target) == MET else None for c in row) for row in self.rows),
        )

    def arrow(self) -> pa.Table:
        """The records as an Arrow table: values in the types that Spark gives them, bounds as DOUBLE."""
        return pa.table({c.name: c.array() for c in self.result})

    def to_pandas(self) -> pd.DataFrame:
        """The records as a pandas DataFrame."""
        frame: pd.DataFrame = self.arrow().to_pandas()
        return frame

    toPandas = to_pandas  # as a DataFrame of Spark calls it

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The records."""
        return iter(self.records())

    def __len__(self) -> int:
        """How many rows."""
        return len(self.rows)

    def plot(self, column: str | None = None, ax: Any = None) -> Any:
        """Values and intervals of every group as a matplotlib chart; see `plot.plot`."""
        from .plot import plot

        return plot(self, column, ax)

    def grid(self) -> Grid:
        """The answer as a table of text, as people read it; see `shown.grid`."""
        from .display import grid

        return grid(self)

    @property
    def df(self) -> Any:
        """The records as a Spark DataFrame of the active session."""
        from ..spark.arrow_frames import frame_of
        from ..spark.session import start_spark

        return frame_of(start_spark(), self.arrow())

    def __str__(self) -> str:
        from .display import as_text

        return as_text(self)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        from .display import as_html

        return as_html(self)


@dataclass(frozen=True, repr=False)
class Message(Answer):
    """What a statement says that gives no rows: ``SET``, for one. `str` is the sentence."""

    @classmethod
    def of(cls, text: str) -> Message:
        """The message of that text."""
        return cls((), (), exact=True, notes=(text,))

    def __str__(self) -> str:
        return "\n".join(self.notes)

    def _repr_html_(self) -> str:
        import html

        return "".join(f"<p>{html.escape(n)}</p>" for n in self.notes)


def _column(names: Names, name: str, kind: pa.DataType | None, values: Sequence[Any]) -> ResultColumn:
    """A column of ours, under the next free name."""
    return ResultColumn(names.free(name), kind, values)


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
    cells = tuple(item_cell(evaluator, item.expression) for item in plan.query.items)
    notes = tuple(dict.fromkeys(note for c in cells if isinstance(c, Estimate) for note in c.notes))
    return Answer(
        tuple(item.name for item in plan.query.items),
        (cells,),
        plan=plan,
        bytes_used=joined.nbytes,
        notes=notes,
        method=plan.method,
    )


def uncertified_answer(answer: Answer) -> Answer:
    """The answer with no estimate certified, and none exact; what makes it so stands in its notes."""

    def of(cell: Cell) -> Cell:
        if not isinstance(cell, Estimate):
            return cell
        return replace(cell, certified=False, basis="measured" if cell.exact else cell.basis)

    return replace(answer, rows=tuple(tuple(map(of, row)) for row in answer.rows))


def with_confidence(answer: Answer, confidence: float) -> Answer:
    """The answer with every interval at the confidence that was asked for: some were made at a higher one."""
    rows = tuple(
        tuple(
            replace(c, confidence=confidence)
            if isinstance(c, Estimate) and c.confidence > confidence and not c.exact
            else c
            for c in row
        )
        for row in answer.rows
    )
    return replace(answer, rows=rows)


def target_state(answer: Answer, target: float) -> str:
    """Whether every estimate meets the asked relative error: `MISSED` if one does not, else `UNKNOWN` if of one."""
    return _worst(targets_of(answer, target))


def targets_of(answer: Answer, target: float) -> tuple[str, ...]:
    """The same of every row."""
    return tuple(_worst([state_of(cell, target) for cell in row]) for row in answer.rows)


def _worst(states: Sequence[str]) -> str:
    return next((s for s in (MISSED, UNKNOWN) if s in states), MET)


def with_target(answer: Answer, target: float) -> Answer:
    """The answer with its `target`, and a note on each value that is not known to meet it."""
    short = [
        (name, row, cell, state)
        for row in answer.rows
        for name, cell in zip(answer.columns, row, strict=True)
        if (state := state_of(cell, target)) != MET
    ]
    notes = tuple(
        f"{name}{_group_text(answer, row)}: asked for {target:.3g} relative error, the interval allows {_reached(cell)}"
        if state == MISSED
        else f"{name}{_group_text(answer, row)}: not known to be within the asked {target:.3g} relative error, its"
        f" interval is not certified and allows {_reached(cell)}"
        for name, row, cell, state in short[:MOST_MISSES_NAMED]
    )
    if len(short) > MOST_MISSES_NAMED:
        notes += (f"{len(short) - MOST_MISSES_NAMED:,} more values miss the asked error",)
    targets = targets_of(answer, target)
    return replace(answer, notes=answer.notes + notes, target=_worst(targets), targets=targets)


def _group_text(answer: Answer, row: Sequence[Cell]) -> str:
    """Which group a row is, where the query has any."""
    if answer.plan is None or not answer.plan.query.groups:
        return ""
    plain = [
        f"{name} = {cell_text(cell)}"
        for name, cell in zip(answer.columns, row, strict=True)
        if not isinstance(cell, Estimate)
    ]
    return f" of group {', '.join(plain)}" if plain else f" of row {answer.rows.index(tuple(row)) + 1}"


def state_of(cell: Cell, target: float) -> str:
    """Whether a cell meets the asked relative error: `MET`, `MISSED`, or `UNKNOWN`.

    An interval that is not certified tells neither, however wide it is, but for one without ends; nor does a NULL.
    """
    if not isinstance(cell, Estimate):
        return MET
    if not cell.certified and (is_null(cell) or math.isfinite(half_width(cell))):
        return UNKNOWN
    return MISSED if misses(cell, target) else MET


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


def _reached(cell: Estimate) -> str:
    unknown = not cell.value or math.isnan(cell.value)
    return "no bound" if unknown else f"{float(half_width(cell) / abs(cell.value)):.3g}"
