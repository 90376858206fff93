"""What a catalog remembers beside sketches: tables, and the settings of Spark under which they were seen.

With it names are resolved and kept sketches found before Spark runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...parser.join_graph import TableSchema
from ..catalog.catalog import Catalog
from ..catalog.form import Head
from ..catalog.manifest import KnownTable
from .settings_followed import ANSI, TIME_ZONE, meaning_of
from .tables import Tables, refuse_withheld

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What the running Spark session decides: ANSI mode, time zone, and other settings as `meaning_of` tells them."""

    ansi: bool
    time_zone: str
    settings: tuple[tuple[str, str], ...] = ()

    def fit(self, head: Head) -> bool:
        """Whether a kept sketch was made under such settings, as far as they matter to it."""
        return (
            head.ansi == self.ansi
            and (not head.zoned or head.time_zone == self.time_zone)
            and head.settings == self.settings
        )


@dataclass(frozen=True, slots=True)
class Environment:
    """The memory of a session.

    Parameters
    ----------
    catalog : Catalog
    tables : Tables
    spark : function
        Gives the Spark session, and starts it where none runs.
    running : function
        Gives the Spark session if there is one already.
    told : mapping, optional
        What somebody has set in it, ANSI mode and the time zone whoever did, where the JVM has told it unasked.
    """

    catalog: Catalog
    tables: Tables
    spark: Callable[[], SparkSession]
    running: Callable[[], SparkSession | None]
    told: Mapping[str, str] | None = None

    def circumstances(self) -> Circumstances:
        """What matters of the running Spark session's settings; before Spark runs, what the catalog remembers."""
        state = self.catalog.manifest
        if self.running() is None and state.ansi is not None and state.time_zone is not None:
            return Circumstances(state.ansi, state.time_zone, state.settings)
        return self.tables.once("circumstances", self._now)

    def _now(self) -> Circumstances:
        from ..spark.isolation import explicit_settings

        spark = self.spark()
        told = explicit_settings(spark) if self.told is None else self.told
        ansi, zone = (told.get(name) or str(spark.conf.get(name)) for name in (ANSI, TIME_ZONE))
        return Circumstances(ansi.lower() == "true", zone, meaning_of(spark, told))

    def own_functions(self) -> frozenset[str]:
        """The names of the functions that the user has made in Spark, in lower case."""
        rows = self.spark().sql("SHOW USER FUNCTIONS").collect()
        return frozenset(str(row[0]).rpartition(".")[2].lower() for row in rows)

    def remember(self, table: str) -> None:
        """Keep in the catalog what a table is, and under which settings it was seen."""
        seen = self.circumstances()
        self.catalog.remember({table: self.tables.known(table)}, seen.ansi, seen.time_zone, seen.settings)

    def remember_imported(self, head: Head) -> None:
        """Keep the schema that an imported sketch knows of its table, where nothing else is known of it."""
        if self.catalog.table(head.table) is not None:
            return
        state = self.catalog.manifest
        self.catalog.remember(
            {head.table: KnownTable(TableSchema(head.table, head.columns), None, {})},
            head.ansi if state.ansi is None else None,
            head.time_zone if state.time_zone is None else None,
            head.settings if state.ansi is None else None,
        )

    def reread(self, table: str) -> DataFrame:
        """The DataFrame of a table, its files and schema looked at anew."""
        known = self.tables.known(table)
        refuse_withheld(known)
        if known.source is not None:
            self.tables.register(known.schema.name, known.source, known.options)
        else:
            self.tables.refresh(table)
        return self.tables.frame(table)

    def forget_sketches_of(self, table: str) -> None:
        """Forget the sketches of a table whose name stands for another now."""
        heads = [h for h in self.catalog.heads() if h.table.lower() == table.lower()]
        if heads:
            self.catalog.put(forget=[h.group or h.name for h in heads])
