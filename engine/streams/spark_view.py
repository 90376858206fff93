"""A continuous view as a table of Spark: its rows are read from the states in the catalog whenever it is scanned."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader

from ...errors import UnknownName
from ...parser.fragment import quote_name
from ..catalog.catalog import Catalog
from ..catalog.folder import LocalFolder
from ..catalog.streams import StoredView
from ..spark.shipping import ship
from .describe import select
from .store import continuous

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

NAME = "skimql_view"


def rows_of(folder: str, name: str) -> pa.Table:
    """The rows that a view of the catalog in a folder has now.

    Raises
    ------
    UnknownName
        ``SKIMQL_UNKNOWN_STREAM`` if it has no such view any more.
    """
    catalog = Catalog(folder)
    view = continuous(catalog).views.get(name.lower())
    if view is None:
        raise UnknownName(f"there is no continuous view {name} any more", "SKIMQL_UNKNOWN_STREAM")
    return select(catalog, view).arrow()


class ViewSource(DataSource):
    """The source; options: `catalog`, a folder, and `view`."""

    @classmethod
    def name(cls) -> str:
        """Under which Spark knows it."""
        return NAME

    def schema(self) -> StructType:
        """The columns that the view has."""
        from pyspark.sql.pandas.types import from_arrow_schema

        return from_arrow_schema(rows_of(self.options["catalog"], self.options["view"]).schema)

    def reader(self, schema: StructType) -> ViewReader:
        """What Spark asks for rows."""
        return ViewReader(self.options["catalog"], self.options["view"], schema)


class ViewReader(DataSourceReader):
    """Reads the rows of a view in one task: those of one moment."""

    def __init__(self, folder: str, view: str, schema: StructType) -> None:
        self.folder, self.view, self.wanted = folder, view, schema

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """The rows now, in the types that they had when the table was made."""
        from pyspark.sql.pandas.types import to_arrow_schema

        yield from rows_of(self.folder, self.view).cast(to_arrow_schema(self.wanted)).to_batches()


def table_of(spark: SparkSession, catalog: Catalog, view: StoredView) -> DataFrame:
    """The view as a DataFrame, of which every action reads the state anew; Spark knows it by its name from then on."""
    assert isinstance(catalog.folder, LocalFolder), "streams need one"
    ship(spark)
    spark.dataSource.register(ViewSource)
    options = {"catalog": str(catalog.folder.path), "view": view.name}
    frame = spark.read.format(NAME).options(**options).load()
    frame.createOrReplaceTempView(quote_name(view.name))
    return frame


def show_named(spark: SparkSession, catalog: Catalog, text: str, shown: dict[str, SparkSession]) -> None:
    """Let Spark know the views that a statement may name; `shown` are those that it knows, with their files."""
    for view in named_in(text, continuous(catalog).views.values()):
        if view.known_as not in shown:
            table_of(spark, catalog, view)
            shown[view.known_as] = spark


def named_in(text: str, views: Iterable[StoredView]) -> list[StoredView]:
    """The views whose names stand in a text, as words or in backticks."""
    words = {w.lower() for w in re.findall(r"\w+", text)}
    return [v for v in views if v.name.lower() in words or quote_name(v.name).lower() in text.lower()]
