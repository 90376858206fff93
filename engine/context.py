"""What a statement runs with: tables, catalog, statistics, settings, and the Spark session where one is needed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .catalog.catalog import Catalog
from .settings import Settings
from .sources.environment import Environment
from .sources.tables import Tables
from .spark.jobs import ProgressListener

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from .sources.selectivity import Evaluate
    from .statistics.gather import KnownStatistics


@dataclass(frozen=True, slots=True)
class Context:
    """Of one session, for one statement. Nothing in it starts Spark before it is asked for.

    Attributes
    ----------
    tables : Tables
    catalog : Catalog
    settings : Settings
        The session's own: what a statement asks for goes over them.
    listener : ProgressListener or None
        Is told how far jobs are.
    home : callable
        Gives the user's Spark session, and starts one where none runs.
    running : callable
        Gives the user's Spark session if there is one already.
    known : callable
        Gives what the session knows of the relations of its queries.
    evaluate : callable or None
        Evaluates expressions on some tuples without Spark.
    """

    tables: Tables
    catalog: Catalog
    settings: Settings
    listener: ProgressListener | None
    home: Callable[[], SparkSession]
    running: Callable[[], SparkSession | None]
    known: Callable[[], KnownStatistics]
    evaluate: Evaluate | None = None

    @property
    def spark(self) -> SparkSession:
        """The Spark session of ours in which the statement works; the user's is left as it is."""
        return self.tables.place().spark

    @property
    def spark_runs(self) -> bool:
        """Whether there is a Spark session already."""
        return self.running() is not None

    @property
    def statistics(self) -> KnownStatistics:
        """What the session knows of the relations of its queries."""
        return self.known()

    @property
    def environment(self) -> Environment:
        """What the catalog remembers of tables and of Spark's settings."""
        return Environment(self.catalog, self.tables, self.home, self.running)
