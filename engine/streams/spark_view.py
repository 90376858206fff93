"""A continuous view as a table of Spark: its rows are read from the states in the catalog whenever it is scanned."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import pyarrow as pa

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

Shown = dict[str, "SparkSession"]
# The views that Spark sessions know as tables.
_shown: WeakKeyDictionary[SparkSession, set[str]] = WeakKeyDictionary()


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


def table_of(spark: SparkSession, catalog: Catalog, view: StoredView) -> DataFrame:
    """The view as a DataFrame, of which every action reads the state anew; Spark knows it by its name from then on.

    Its rows are read in one task, those of one moment, in the types that they have now.
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    assert isinstance(catalog.folder, LocalFolder), "streams need one"
    ship(spark)
    now = rows_of(str(catalog.folder.path), view.name).schema
    frame = spark.range(0, 1, 1, 1).mapInArrow(
        reading(str(catalog.folder.path), view.name, now), from_arrow_schema(now)
    )
    frame.createOrReplaceTempView(quote_name(view.name))
    _shown.setdefault(spark, set()).add(view.name.lower())
    return frame


def reading(
    folder: str, name: str, wanted: pa.Schema
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for `mapInArrow` that gives the rows of a view, whatever it is fed with."""

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            pass
        yield from rows_of(folder, name).cast(wanted).to_batches()

    return read


def show(spark: SparkSession, catalog: Catalog, views: Iterable[StoredView], shown: Shown) -> None:
    """Let Spark know views as tables, but for those whose names it has for something else."""
    for view in views:
        if view.known_as in shown:
            continue
        if is_ours(spark, view.name) or not spark.catalog.tableExists(quote_name(view.name)):
            table_of(spark, catalog, view)
            shown[view.known_as] = spark


def is_ours(spark: SparkSession, name: str) -> bool:
    """Whether a name is in this Spark session that of a view of some catalog, and of nothing else."""
    return name.lower() in _shown.get(spark, ())


def forget(spark: SparkSession, name: str) -> None:
    """Let Spark forget a view that it knows as a table."""
    spark.catalog.dropTempView(name)
    _shown.get(spark, set()).discard(name.lower())


def show_named(spark: SparkSession, catalog: Catalog, text: str, shown: Shown) -> None:
    """Let Spark know the views that a statement may name; `shown` are those that it knows, with their files."""
    for view in named_in(text, continuous(catalog).views.values()):
        if view.known_as not in shown:
            table_of(spark, catalog, view)
            shown[view.known_as] = spark


def named_in(text: str, views: Iterable[StoredView]) -> list[StoredView]:
    """The views whose names stand in a text, as words or in backticks."""
    words = {w.lower() for w in re.findall(r"\w+", text)}
    return [v for v in views if v.name.lower() in words or quote_name(v.name).lower() in text.lower()]
