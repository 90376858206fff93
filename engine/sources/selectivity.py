"""What filters keep, by a glance at the files of their tables: no Spark job.

A few thousand tuples are read from Parquet in the driver, from row groups spread over the files. Expressions are
evaluated on them in the driver too, where that is known to give what Spark gives; else by Spark's optimizer, as on any
local relation, which takes several times as long.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import sqlglot
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType
from sqlglot import exp
from sqlglot.errors import SqlglotError

from ...errors import SkimqlError
from ..spark.session import SPARK_FAULTS
from .files import local_files

PROBE = 16_384  # tuples
PLACES = 4  # row groups

Ints = npt.NDArray[np.int64]

# The values of an expression on all tuples of a table, as Spark has them. Raises SkimqlError for what it does not
# know, ValueError for a value that cannot be computed.
Evaluate = Callable[[str, pa.Table], pa.Array]

_NOTHING_TOLD = (
    pa.ArrowException,
    OSError,
    SqlglotError,
    ValueError,
    LookupError,
    StopIteration,
    TypeError,
    *SPARK_FAULTS,
)


@dataclass(frozen=True)
class Probe:
    """Some tuples of a table of Parquet files.

    Attributes
    ----------
    spark : callable
        Gives the Spark session that evaluates what the driver does not know.
    frame : DataFrame
    evaluate : callable or None
        Evaluates without Spark.
    files : sequence of str or None
        Where these are known already.
    """

    spark: Callable[[], SparkSession]
    frame: DataFrame
    evaluate: Evaluate | None = None
    files: Sequence[str] | None = None

    @cached_property
    def paths(self) -> Sequence[str]:
        """The files, none where one is not on this machine."""
        return (local_files(self.frame) or []) if self.files is None else self.files

    def share(self, condition: str) -> float:
        """The share of the tuples that a filter keeps, 1 where the files do not tell.

        Parameters
        ----------
        condition : str
            SQL over the columns.
        """
        found = self.told_share(condition)
        return 1.0 if found is None else found

    def told_share(self, condition: str) -> float | None:
        """As `share`, None where the files do not tell."""
        try:
            tuples, kept, _ = self._evaluated(condition, [])
        except _NOTHING_TOLD:
            return None
        return kept / max(tuples, 1)

    def groups(self, condition: str | None, expressions: Sequence[str]) -> int | None:
        """How many groups some tuples that a filter keeps are of; None where nothing tells.

        Parameters
        ----------
        condition : str or None
        expressions : sequence of str
            SQL over the columns.
        """
        counts = self._groups(condition, expressions)
        return len(counts) or None

    def least_group(self, condition: str | None, expressions: Sequence[str]) -> float | None:
        """The share of the least group among some tuples that a filter keeps; None where nothing tells.

        Parameters
        ----------
        condition : str or None
        expressions : sequence of str
            SQL over the columns.
        """
        counts = self._groups(condition, expressions)
        return min(counts.values()) / counts.total() if counts else None

    def _groups(self, condition: str | None, expressions: Sequence[str]) -> Counter[str]:
        """Tuples by their groups; none where nothing tells."""
        try:
            _, _, columns = self._evaluated(condition, expressions)
            return Counter(map(repr, zip(*columns, strict=True)))
        except _NOTHING_TOLD:
            return Counter()

    def values(self, condition: str | None, expression: str) -> list[float | None]:
        """The values of an expression on some tuples that a filter keeps, None for NULL; none where nothing tells.

        Parameters
        ----------
        condition : str or None
        expression : str
            SQL over the columns, of any numeric type.
        """
        try:
            _, _, (found,) = self._evaluated(condition, [f"CAST(({expression}) AS DOUBLE)"])
        except _NOTHING_TOLD:
            return []
        return found

    def passing(self, condition: str, column: str) -> Ints | None:
        """The integers that some tuples which a filter keeps have in a column, without NULL.

        None where files do not tell, or nothing but Spark tells what the filter keeps.

        Parameters
        ----------
        condition : str
            SQL over the columns.
        column : str
        """
        if self.evaluate is None:
            return None
        try:
            names = columns_named([condition]) | {column.lower()}
            known = [f.name for f in self.frame.schema.fields if f.name.lower() in names]
            kept = self._behind(condition, some_tuples(self.paths, known))
            found: Ints = kept[column].drop_null().to_numpy().astype(np.int64)
        except (SkimqlError, *_NOTHING_TOLD):
            return None
        return found

    def _behind(self, condition: str, seen: pa.Table) -> pa.Table:
        """The tuples that a filter keeps, told without Spark; raises as `evaluate`, which is there."""
        assert self.evaluate is not None, "the driver evaluates it"
        known = without_views(seen)
        return known.filter(self.evaluate(condition, known).cast(pa.bool_()).fill_null(False))

    def _evaluated(
        self, condition: str | None, expressions: Sequence[str]
    ) -> tuple[int, int, list[list[Any]]]:
        """How many tuples were looked at, how many of them a filter keeps, and some expressions' values on these."""
        schema = _used(self.frame.schema, [*expressions, *([] if condition is None else [condition])])
        seen = some_tuples(self.paths, schema.names)
        if self.evaluate is not None:
            try:
                kept = without_views(seen) if condition is None else self._behind(condition, seen)
                found = [self.evaluate(e, kept).to_pylist() for e in expressions]
                return seen.num_rows, kept.num_rows, found
            except (SkimqlError, ValueError, pa.ArrowException):
                pass
        frame = self.spark().createDataFrame(seen, schema)
        frame = frame if condition is None else frame.where(condition)
        columns = [f"({e}) AS x{n}" for n, e in enumerate(expressions)] or ["1L"]
        rows = frame.selectExpr(*columns).collect()
        return seen.num_rows, len(rows), [[row[n] for row in rows] for n in range(len(expressions))]


def without_views(seen: pa.Table) -> pa.Table:
    """The tuples with texts in the form that Arrow has all of its functions for."""
    plain = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}
    return seen.cast(pa.schema([f.with_type(plain.get(f.type, f.type)) for f in seen.schema]))


def _used(schema: StructType, expressions: Iterable[str]) -> StructType:
    """The columns that expressions name, the first one where they name none."""
    names = columns_named(expressions)
    return StructType([f for f in schema.fields if f.name.lower() in names] or schema.fields[:1])


def columns_named(expressions: Iterable[str]) -> set[str]:
    """The names in expressions that may be columns, in small letters."""
    parsed = [sqlglot.parse_one(e, dialect="spark") for e in expressions]
    return {part.name.lower() for p in parsed for column in p.find_all(exp.Column) for part in column.parts}


def some_tuples(paths: Sequence[str], columns: Sequence[str]) -> pa.Table:
    """`PROBE` tuples, the first ones of row groups at equal distances; LookupError without such a column or file."""
    groups = [(path, n) for path in paths for n in range(pq.read_metadata(path).num_row_groups)]
    if not groups:
        raise LookupError("no tuples")
    chosen = groups[:: max(1, len(groups) // PLACES)][:PLACES]
    batches = []
    for path, number in chosen:
        with pq.ParquetFile(path) as file:
            if not set(columns) <= set(file.schema_arrow.names):
                raise LookupError(path)
            read = file.iter_batches(PROBE // len(chosen), row_groups=[number], columns=list(columns))
            batches.append(next(read))
    return pa.Table.from_batches(batches)
