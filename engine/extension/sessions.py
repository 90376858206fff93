"""A session of ours for every session of Spark's that asks: its tables, settings, catalog and database are Spark's."""

from __future__ import annotations

import copy
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..catalog.catalog import Catalog
from ..session import Session
from ..settings import Settings
from ..sources.environment import Environment
from ..sources.tables import Tables
from ..spark.isolation import beside, explicit_settings, placed, settings_in
from .jar_tables import JarTables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PREFIX = "skimql."
# Of sessions that nobody uses any more Spark does not tell.
MOST_SESSIONS = 64


class AttachedSession(Session):
    """A session that answers for one of Spark's: a name that Spark knows is Spark's, whatever the catalog remembers."""

    # Spark's settings when the statement came, where the jar has told them.
    told: Mapping[str, str] | None = None

    @property
    def environment(self) -> Environment:
        """What the catalog remembers of tables and of Spark's settings."""
        return replace(super().environment, told=self.told)

    @property
    def tables(self) -> Tables:
        """Spark's tables, and those that the catalog alone knows."""
        if self._tables is None:
            self._tables = Tables(lambda: self.spark, self.catalog, spark_first=True, reader=JarTables())
        return self._tables


class Sessions:
    """The sessions of one handler, by the identity that Spark gives its own.

    Parameters
    ----------
    home : SparkSession
        The one that was enabled.
    catalog : Catalog
        Of all of them; one in memory is that of `home` alone.
    settings : Settings
        What they assume where neither the statement nor ``SET skimql.<name>`` says anything.
    """

    def __init__(self, home: SparkSession, catalog: Catalog, settings: Settings) -> None:
        self.home = home
        self.catalog = catalog
        self.settings = settings
        self._known: OrderedDict[str, AttachedSession] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, identity: str, java: Any) -> AttachedSession:
        """The session that answers for one of Spark's."""
        with self._lock:
            session = self._known.get(identity)
            if session is None:
                home = self.home if self.home._jsparkSession.equals(java) else beside(self.home, java)
                # In memory each has sketches of its own: a view of the same name is another table in another session.
                own = home is not self.home and not self.catalog.lasting
                session = self._known[identity] = self._made(home, Catalog() if own else self.catalog)
                # Made here, since copies share them.
                assert session.tables is not None
                assert session.statistics is not None
            self._known.move_to_end(identity)
            while len(self._known) > MOST_SESSIONS:
                self._known.popitem(last=False)
            return session

    def _made(self, home: SparkSession, catalog: Catalog) -> AttachedSession:
        return AttachedSession(home, self.settings, catalog=catalog)

    def asked(
        self, identity: str, java: Any, place: Sequence[str], bounds: bool, told: str | None = None
    ) -> AttachedSession:
        """The session for one statement, with the settings that Spark's session has now.

        Parameters
        ----------
        identity : str
        java : JavaObject
            Spark's session.
        place : sequence of str
            Catalog and database in which names are to be looked up, where those are not the session's: of a view.
        bounds : bool
            Whether there is room for more than the columns that were asked for.
        told : str, optional
            The settings of Spark's session, as Scala writes a map of them; they are asked for where they are not told.

        Raises
        ------
        BadSetting
            If ``skimql.<name>`` is set to what it cannot be.
        """
        known = self.of(identity, java)
        home = placed(known.spark, place) if place else None
        session = copy.copy(known) if home is None else self._made(home, known.catalog)
        session.told = None if told is None else settings_in(told)
        explicit = explicit_settings(known.spark) if session.told is None else session.told
        settings = self.settings.with_text(_ours(explicit))
        session.settings = settings if bounds else _without_bounds(settings)
        return session

    def close(self) -> None:
        """Forget all of them."""
        with self._lock:
            self._known.clear()


def _ours(settings: Mapping[str, str]) -> dict[str, str]:
    return {n.removeprefix(PREFIX).lower(): _unquoted(v) for n, v in settings.items() if n.startswith(PREFIX)}


def _unquoted(value: str) -> str:
    """A value without the quotes that Spark's SET leaves around it."""
    quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
    return value[1:-1] if quoted else value


def _without_bounds(settings: Settings) -> Settings:
    return settings.with_text({"bounds": "none"})
