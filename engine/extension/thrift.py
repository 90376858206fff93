"""Spark's Thrift server in this process: who speaks JDBC or ODBC asks SkimQL, each connection in its own session."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import DataError, EnvironmentFault
from ..catalog.catalog import Catalog
from ..settings import Settings
from ..sources.paths import absolute, defaults_of, format_of
from ..sources.tables import Tables
from ..spark.isolation import quoted
from ..spark.scratch import scratch_folder
from ..spark.session import SPARK_FAULTS, first_line, start_spark
from .enable import disable, enable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SERVER = "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2"


@contextlib.contextmanager
def serving(
    host: str,
    port: int,
    conf: Mapping[str, str] | None = None,
    catalog: str | Path | Catalog | None = None,
    tables: Mapping[str, str] | None = None,
    settings: Settings | None = None,
) -> Iterator[int]:
    """Within, Spark's Thrift server listens; gives the port.

    Parameters
    ----------
    host : str
        Address to listen at.
    port : int
        0: one that is free.
    conf : mapping, optional
        Of the Spark that is started where none runs in this process.
    catalog : str, Path or Catalog, optional
        In which sketches are kept.
    tables : mapping, optional
        Files and folders by name; every connection sees them, as tables of Spark.
    settings : Settings, optional

    Raises
    ------
    EnvironmentFault
        ``SKIMQL_PORT`` where nothing can listen there, ``SKIMQL_NO_THRIFT`` where this Spark has no Thrift server, and
        those of `enable`.
    """
    free = _free(host, port)
    spark = start_spark(conf)
    session = enable(spark, catalog=catalog, settings=settings)
    try:
        readers = Tables(lambda: spark, session.catalog)
        for name, path in (tables or {}).items():
            _show(spark, readers, name, path)
        server = _started(spark, host, free)
        try:
            yield free
        finally:
            server.stop()
    finally:
        disable(spark)


def _free(host: str, port: int) -> int:
    """The port, or a free one in the place of 0."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        with socket.socket(family, socket.SOCK_STREAM) as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            tried.bind((host, port))
            return int(tried.getsockname()[1])
    except (OSError, OverflowError) as fault:
        why = getattr(fault, "strerror", None) or str(fault)
        raise EnvironmentFault(
            f"nothing can listen at {host}:{port}: {why}",
            "SKIMQL_PORT",
            hint="--port 0, which takes a free one",
        ) from fault


def _started(spark: SparkSession, host: str, port: int) -> Any:
    scratch = scratch_folder("skimql-thrift-")
    for name, value in {
        "hive.server2.thrift.bind.host": host,
        "hive.server2.thrift.port": str(port),
        "hive.exec.scratchdir": str(scratch / "scratch"),
        "hive.exec.local.scratchdir": str(scratch / "local"),
        "hive.downloaded.resources.dir": str(scratch / "resources"),
        "hive.server2.logging.operation.log.location": str(scratch / "log"),
    }.items():
        spark.conf.set(name, value)
    servers: Any = spark._jvm
    for part in SERVER.split("."):
        servers = getattr(servers, part)
    try:
        return servers.startWithContext(spark._jsparkSession.sqlContext())
    except TypeError as fault:
        raise EnvironmentFault(
            "this Spark has no Thrift server", "SKIMQL_NO_THRIFT", hint="pip install pyspark, which has one"
        ) from fault
    except SPARK_FAULTS as fault:
        raise EnvironmentFault(
            f"Spark's Thrift server did not start: {first_line(fault)}",
            "SKIMQL_NO_THRIFT",
            hint="skimql doctor",
        ) from fault


def _show(spark: SparkSession, readers: Tables, name: str, path: str) -> None:
    """Make a file or folder a table that every session of this Spark sees: temporary views are one session's alone."""
    readers.read(name, path, {})
    kind = format_of(path)
    if kind is None or not (os.path.exists(path) or "://" in path):
        raise DataError(
            f"table {name}: {path} is no file or folder, which alone every connection can see",
            "SKIMQL_NO_SUCH_FILE",
        )
    spark.sql(f"DROP TABLE IF EXISTS {quoted(name)}")
    options = {n: str(v).lower() for n, v in defaults_of(path, kind).items()}
    spark.catalog.createTable(quoted(name), absolute(path), kind, None, **options)
