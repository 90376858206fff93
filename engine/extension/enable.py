"""Switching the extension on and off: the jar into the JVM, the handler to it, the parser into the session."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import EnvironmentFault
from ..catalog.catalog import Catalog
from ..session import Session
from ..settings import Settings
from ..sources.tables import Tables
from ..spark.isolation import is_classic, quoted
from ..spark.java_faults import Py4JError, Py4JJavaError
from ..spark.shipping import is_local
from . import jar
from .handler import Handler
from .sessions import Sessions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

EXTENSIONS = "skimql.spark.SkimqlExtensions"

# One of each in a process, as there is one JVM: what is handed to the JVM stays there.
_HANDLER = Handler()
_LOCK = threading.RLock()
# The callback server over which the JVM reaches the handler that it has.
_CONNECTED: dict[str, Any] = {}


def enable(
    spark: SparkSession,
    catalog: str | Path | Catalog | None = None,
    tables: Mapping[str, str | Path | DataFrame] | None = None,
    settings: Settings | None = None,
    **overrides: Any,
) -> Session:
    """Make ``spark.sql``, and whatever else speaks SQL to this Spark, know SkimQL's statements.

    Parameters
    ----------
    spark : SparkSession
        One of this process; those that are made of it later, by ``newSession``, know them too.
    catalog : str, Path or Catalog, optional
        Folder or URI in which sketches are kept; without it they live as long as the extension is on.
    tables : mapping, optional
        Files, folders or DataFrames by name; they become temporary views of the Spark session.
    settings : Settings, optional
        What is assumed where neither a statement nor ``SET skimql.<name> = value`` says anything.
    **overrides
        Single settings by name.

    Returns
    -------
    Session
        That answers for this Spark session: the same catalog, the same names.

    Raises
    ------
    EnvironmentFault
        ``SKIMQL_NO_JAR`` where the package was built without a Java compiler, ``SKIMQL_OTHER_JAR`` where Spark has
        loaded one of another version, ``SKIMQL_NOT_CLASSIC`` for a session of Spark Connect.
    """
    if not is_classic(spark):
        raise EnvironmentFault(
            "a client of Spark Connect has no parser of its own: the extension belongs to its server",
            "SKIMQL_NOT_CLASSIC",
            hint="skimql.Session(spark), or spark.read.format('skimql')",
        )
    with _LOCK:
        classes = _classes(spark)
        made = Sessions(
            spark, catalog if isinstance(catalog, Catalog) else Catalog(catalog), _with(settings, overrides)
        )
        _show(spark, made, tables or {})
        _connect(spark, classes)
        if _HANDLER.sessions is not None:
            _HANDLER.sessions.close()
        _HANDLER.sessions = made
        classes.extensions.attach(spark._jsparkSession)
        return made.of(spark._jsparkSession.sessionUUID(), spark._jsparkSession)


def disable(spark: SparkSession) -> None:
    """Make a Spark session read SQL as if SkimQL had never been there. Switching off twice is no fault."""
    with _LOCK:
        if not is_classic(spark) or _HANDLER.sessions is None:
            return
        classes = _classes(spark)
        classes.extensions.detach(spark._jsparkSession)
        classes.link.close()
        _HANDLER.sessions.close()
        _HANDLER.sessions = None


@dataclass(frozen=True, slots=True)
class _Classes:
    """The two classes of the jar that are called, in the JVM of a Spark session."""

    extensions: Any
    link: Any


def _classes(spark: SparkSession) -> _Classes:
    """The jar's classes, loaded where Spark has not done so itself.

    Raises
    ------
    EnvironmentFault
        As `enable`.
    """
    jvm: Any = spark._jvm
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    if not _is_loaded(jvm, loader):
        path = jar.find()
        if path is None:
            raise EnvironmentFault(
                "the Spark SQL extension is not there: SkimQL was installed where there was no Java compiler",
                "SKIMQL_NO_JAR",
                hint=jar.JDK_HINT,
            )
        try:
            loader.addURL(jvm.java.net.URL(path.as_uri()))
        except (Py4JError, TypeError) as fault:
            raise EnvironmentFault(
                "this JVM takes no jar while it runs",
                "SKIMQL_NO_JAR",
                hint=f"spark.jars = {path} when Spark is started",
            ) from fault
        if not is_local(str(spark.conf.get("spark.master", ""))):
            # The functions of sketches run on the executors.
            spark.sql(f"ADD JAR '{path}'")
    found = _Classes(jvm.skimql.spark.SkimqlExtensions, jvm.skimql.spark.Link)
    theirs = str(found.link.version())
    if theirs != jar.version():
        raise EnvironmentFault(
            f"Spark has loaded SkimQL's jar of another version ({theirs}, this package's is {jar.version()})",
            "SKIMQL_OTHER_JAR",
            hint="spark.jars = the path that `skimql jar` prints, and a new Spark session",
        )
    return found


def _is_loaded(jvm: Any, loader: Any) -> bool:
    try:
        jvm.java.lang.Class.forName(EXTENSIONS, True, loader)
    except Py4JJavaError:
        return False
    return True


def _connect(spark: SparkSession, classes: _Classes) -> None:
    """Give the JVM the handler; one that it has already stays, as each takes memory on both sides."""
    from py4j.java_gateway import pre_server_shutdown
    from pyspark.java_gateway import ensure_callback_server_started

    gateway: Any = spark._sc._gateway
    server = gateway.__dict__.get("_callback_server")
    if server is not None and server.is_shutdown:
        gateway._callback_server = None
    ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
    known = _CONNECTED.get("server") is gateway._callback_server
    if not (known and classes.link.open(None)):
        classes.link.open(_HANDLER)
        _CONNECTED["server"] = gateway._callback_server
        pre_server_shutdown.connect(_let_go, sender=gateway._callback_server)


def _let_go(sender: Any, **_: Any) -> None:
    """Before a callback server is shut down: py4j would wait for the threads that read from its idle connections."""
    from py4j.java_gateway import pre_server_shutdown

    pre_server_shutdown.disconnect(_let_go, sender=sender)
    for connection in list(sender.connections):
        idle = connection.socket
        if idle is not None:
            with contextlib.suppress(OSError):
                idle.shutdown(socket.SHUT_RDWR)


def _with(settings: Settings | None, overrides: Mapping[str, Any]) -> Settings:
    return replace(settings or Settings(), **overrides)


def _show(spark: SparkSession, made: Sessions, tables: Mapping[str, str | Path | DataFrame]) -> None:
    """Make tables temporary views of the session, which Spark's statements and ours see alike."""
    readers = Tables(lambda: spark, made.catalog)
    for name, source in tables.items():
        frame = readers.read(name, str(source), {}) if isinstance(source, (str, Path)) else source
        frame.createOrReplaceTempView(quoted(name))
