"""The Spark session that a `Session` runs on: given, the running one, or a local one, started when first needed."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ...errors import EnvironmentFault, SkimqlError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class OwnSpark:
    """Starts and stops Spark for one session; from several threads.

    Parameters
    ----------
    given : SparkSession or None
        The one to run on; none of ours, so that it is never stopped.
    conf : mapping of str to str
        Settings of the one that is started.
    """

    def __init__(self, given: SparkSession | None, conf: Mapping[str, str]) -> None:
        self._spark = given
        self._conf = dict(conf)
        self._started = False
        self._closed = False
        self._lock = threading.RLock()
        self._is_starting = False
        self._given_up = threading.Event()

    def __repr__(self) -> str:
        return "closed" if self._closed else "Spark not started" if self._spark is None else "on Spark"

    @property
    def state(self) -> str:
        """``none``, ``starting`` or ``ready``, as is known without asking; costs nothing, from any thread."""
        if self._spark is not None:
            return "ready"
        return "starting" if self._is_starting else "none"

    def needed(self) -> SparkSession:
        """The Spark session, started on first use.

        Raises
        ------
        EnvironmentFault
            ``SKIMQL_SPARK_STOPPED`` if it was stopped, or this is closed.
        """
        if self._closed:
            raise EnvironmentFault("this session is closed", "SKIMQL_SPARK_STOPPED", hint="skimql.Session()")
        spark = self._spark or self._start()
        if not self._alive():
            raise _stopped()
        return spark

    def running(self) -> SparkSession | None:
        """The Spark session if there is one already."""
        if self._spark is None and "pyspark" in sys.modules:
            from .session import active_spark

            return active_spark()
        return self._spark if self._alive() else None

    @contextmanager
    def awake(self) -> Iterator[None]:
        """A fault within is that Spark was stopped, where it was."""
        try:
            yield
        except SkimqlError:
            raise
        except Exception as fault:
            from .session import is_stopped

            if self._spark is not None and is_stopped(self._spark):
                raise _stopped() from fault
            raise

    def close(self, before: Callable[[], None]) -> None:
        """Stop it where it was started here, `before` called first; closing twice is no fault."""
        if self._closed:
            return
        self._closed = True
        self._given_up.set()
        before()
        with self._lock:
            spark, self._spark = self._spark, None
        if spark is not None and self._started:
            # Of a session that was stopped already nothing is left to stop.
            spark.stop()

    def stop(self, before: Callable[[], None], behind: Callable[[], None]) -> None:
        """End it where it was started here, or is being started in another thread; it starts anew when needed.

        `before` and `behind` are called around that, if there is something to end. Also for a Spark whose JVM has died.
        """
        given_up, self._given_up = self._given_up, threading.Event()
        given_up.set()
        with self._lock:
            spark, self._spark = self._spark, None
            if spark is None or not self._started:
                self._spark = spark
                return
            before()
            from .session import end_spark

            end_spark(spark)
            behind()

    def _start(self) -> SparkSession:
        """Spark, started by one thread while others wait."""
        given_up = self._given_up
        with self._lock:
            if given_up.is_set():
                raise EnvironmentFault("Spark's start was given up", "SKIMQL_SPARK_STOPPED", hint="ask again")
            if self._spark is None:
                self._is_starting = True
                try:
                    from .session import running_spark, start_spark

                    self._started = running_spark() is None
                    self._spark = start_spark(self._conf, given_up)
                finally:
                    self._is_starting = False
            return self._spark

    def _alive(self) -> bool:
        """Whether there is a Spark session that nobody has stopped in this process; no call to the JVM."""
        if self._spark is None:
            return False
        from .session import is_gone

        return not is_gone(self._spark)


def _stopped() -> EnvironmentFault:
    return EnvironmentFault(
        "the Spark session that this session runs on was stopped",
        "SKIMQL_SPARK_STOPPED",
        hint="a new skimql.Session(), its tables registered again; sketches in a catalog folder are still there",
    )
