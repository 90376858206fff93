"""Without a jar: what the catalog answers by itself, as a data source and as a table function that are Python alone.

Both run in Spark's Python workers, which have no Spark to scan with: a question that kept sketches do not answer is
refused. They work on Spark Connect too, where the workers see the catalog.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ...errors import EnvironmentFault, SkimqlError, UnsupportedQuery
from ...parser.statement import parse_statement
from ...parser.syntax import PassThrough
from ..catalog.catalog import Catalog
from ..session import Session
from ..spark.own import OwnSpark
from ..spark.shipping import ship
from .reading import refuse_change

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class NoSpark(OwnSpark):
    """That of a session which never has any, also where this process has one."""

    def needed(self) -> SparkSession:
        """None: see `SKIMQL_NOT_KEPT`."""
        raise UnsupportedQuery(
            "kept sketches do not answer this, and nothing is scanned here",
            "SKIMQL_NOT_KEPT",
            hint="CREATE SKETCH for what it asks; skimql.enable(spark), or skimql.Session(spark)",
        )

    def running(self) -> None:
        """None."""


class CatalogSession(Session):
    """A session whose answers come from the catalog."""

    def __init__(self, catalog: str) -> None:
        super().__init__(catalog=catalog)
        self._own = NoSpark(None, {})


def catalog_answer(catalog: str, text: str) -> pa.Table:
    """The answer to an approximate SELECT from the sketches of a catalog alone.

    Raises
    ------
    UnsupportedQuery
        ``SKIMQL_NOT_KEPT`` where they do not answer it; ``SKIMQL_NOT_AN_ANSWER`` for another statement, which is not
        run: Spark asks for its columns, and then for its rows.
    """
    session = CatalogSession(catalog)
    if not isinstance(parse_statement(text), PassThrough):
        refuse_change(text)
    answer = session.answer(text)
    return answer.arrow()


class Refused(Exception):
    """An error of ours in a Python worker: of its traceback Spark shows the text, in which the code is."""


def _answered(catalog: str, text: str) -> pa.Table:
    try:
        return catalog_answer(catalog, text)
    except SkimqlError as fault:
        raise Refused(f"[{fault.code}] {str(fault).removeprefix('error: ')}") from None


def register(spark: SparkSession, catalog: str | Path | Catalog) -> None:
    """Make ``spark.read.format("skimql")`` and ``skimql_answer('SELECT APPROXIMATE ...')`` known to a Spark session.

    Parameters
    ----------
    spark : SparkSession
        Of this process, or of Spark Connect.
    catalog : str, Path or Catalog
        Folder or URI in which sketches are kept, as the Python workers reach it.

    Raises
    ------
    EnvironmentFault
        ``SKIMQL_NO_CATALOG`` for a catalog in memory, which no other process sees.
    """
    from pyspark.sql.functions import udtf

    kept = catalog if isinstance(catalog, Catalog) else Catalog(catalog)
    if not kept.lasting:
        raise EnvironmentFault(
            "a catalog in memory is not seen by Spark's Python workers",
            "SKIMQL_NO_CATALOG",
            hint="skimql.register(spark, catalog='sketches')",
        )
    place = str(kept.where)
    if "://" not in place:
        place = str(Path(place).absolute())
    ship(spark)
    spark.dataSource.register(_source(place))
    spark.udtf.register("skimql_answer", udtf(_function(place)))  # type: ignore[arg-type]


def _source(place: str) -> Any:
    from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
    from pyspark.sql.types import StructType

    class Reader(DataSourceReader):
        def __init__(self, catalog: str, text: str) -> None:
            self.catalog = catalog
            self.text = text

        def partitions(self) -> list[InputPartition]:
            return [InputPartition(0)]

        def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
            yield from _answered(self.catalog, self.text).to_batches()

    class Source(DataSource):
        @classmethod
        def name(cls) -> str:
            return "skimql"

        def asked(self) -> tuple[str, str]:
            return self.options.get("catalog", place), self.options.get("query", "")

        def schema(self) -> StructType:
            found: StructType = schema_of(*self.asked())
            return found

        def reader(self, schema: StructType) -> Reader:
            return Reader(*self.asked())

    return Source


def _function(place: str) -> Any:
    from pyspark.sql.udtf import AnalyzeArgument, AnalyzeResult

    class SkimqlAnswer:
        @staticmethod
        def analyze(query: AnalyzeArgument) -> AnalyzeResult:
            return AnalyzeResult(schema_of(place, str(query.value)))

        def eval(self, query: str) -> Iterator[tuple[Any, ...]]:
            for row in _answered(place, query).to_pylist():
                yield tuple(row.values())

    return SkimqlAnswer


def schema_of(catalog: str, text: str) -> Any:
    """The columns of such an answer, as Spark has them; errors as they are told by a worker."""
    from pyspark.sql.pandas.types import from_arrow_type
    from pyspark.sql.types import StructType

    schema = StructType()
    for field in _answered(catalog, text).schema:
        schema.add(field.name, from_arrow_type(field.type, prefer_timestamp_ntz=True))
    return schema
