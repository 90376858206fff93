"""A continuous view as an object: its answer, its rows as a table of Spark, and who is told of its batches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...parser.syntax import Part
from ..results.answer import Answer
from .describe import select
from .listeners import Listener
from .store import find_view

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from ..context import Context
    from .running import Runs


@dataclass(frozen=True)
class ContinuousView:
    """A continuous view of a session's catalog, by its name.

    Parameters
    ----------
    name : str
    context : Context
    runs : callable
        The streams that the session runs.
    spark : callable
        The user's own Spark session.
    """

    name: str
    context: Context
    runs: Callable[[], Runs]
    spark: Callable[[], SparkSession]

    def answer(self) -> Answer:
        """What it has now, as ``SELECT * FROM`` it; needs no Spark."""
        catalog = self.context.catalog
        return select(catalog, find_view(catalog, "", Part(self.name)), bounds=self.context.settings.bounds)

    def table(self) -> DataFrame:
        """Its rows as a DataFrame, of which every action reads the state anew; `spark.table` finds it by its name."""
        from .spark_view import table_of

        view = find_view(self.context.catalog, "", Part(self.name))
        spark = self.spark()
        frame = table_of(spark, self.context.catalog, view)
        self.runs().shown[view.known_as] = spark
        return frame

    def on_batch(self, listener: Listener) -> None:
        """Tell `listener` the answer after every batch of a stream of the view that this session runs.

        It is called in the thread of the stream, once the state is on disk, at most once a batch; the next one waits.
        What it raises is logged, and the stream goes on. ``WITH (sink = ...)`` is for what must not miss one.
        """
        find_view(self.context.catalog, "", Part(self.name))
        self.runs().listeners.setdefault(self.name.lower(), []).append(listener)
