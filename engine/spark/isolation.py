"""Spark sessions of our own: nothing that SkimQL declares, sets or runs is seen in the user's session.

A clone has all of the user's: settings, temporary views, functions, variables, the current catalog and database. What
the user changes later makes a new clone for the next statement. DataFrames are moved in by their analysed plans, since
a DataFrame keeps the settings of the session that made it. Spark Connect has no clones here: there the user's session
is the one that is worked in.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from pyspark.sql import DataFrame, SparkSession

from .java_faults import Py4JError

# A batch of ours holds numbers alone, and few columns. With a bound on its bytes Spark measures the whole batch
# after each tuple, a third of what sending one costs; without, and with more tuples, memory stays within megabytes.
BATCHES = {
    "spark.sql.execution.arrow.maxBytesPerBatch": str((1 << 31) - 1),  # at this value Spark does not measure
    "spark.sql.execution.arrow.maxRecordsPerBatch": "40000",
}

# Set in sessions of ours: what Spark refuses there is not read as a statement of ours by the extension.
OWN = "spark.skimql.own"

# Where each session keeps its settings, which no session moves: with the session as Java has it.
_CONFS: WeakKeyDictionary[SparkSession, tuple[Any, Any]] = WeakKeyDictionary()


class OwnSession(SparkSession):
    """A clone of a user's session, `home`.

    Made without `SparkSession.__init__`, which would make it the session of `RDD.toDF`.
    """

    home: SparkSession

    @classmethod
    def of(cls, home: SparkSession) -> OwnSession:
        """A new clone, with the settings of our jobs."""
        own = cls.__new__(cls)
        for name in ("_sc", "_jsc", "_jvm", "_profiler_collector"):
            setattr(own, name, getattr(home, name))
        own._jsparkSession = home._jsparkSession.cloneSession()
        own.home = home
        _follow(home, own)
        for name, value in {**BATCHES, OWN: "true"}.items():
            own.conf.set(name, value)
        return own

    def createDataFrame(self, *args: Any, **options: Any) -> DataFrame:
        """As Spark's, which would make this session the active one of the thread."""
        with _same_active_session(self.home):
            return moved(self.home.createDataFrame(*args, **options), self)


@dataclass(slots=True)
class Place:
    """A session to work in.

    Attributes
    ----------
    spark : SparkSession
    state : object
        Of the user's session when this was made from it; None where that cannot be told.
    shown : dict
        The views that were made in it: by lower-cased name, the DataFrame that each is of.
    frames : dict
        DataFrames that were moved in, with their originals, by the identity of these.
    """

    spark: SparkSession
    state: _State | None
    shown: dict[str, DataFrame] = field(default_factory=dict)
    frames: dict[int, tuple[DataFrame, DataFrame]] = field(default_factory=dict)

    def moved(self, frame: DataFrame) -> DataFrame:
        """The DataFrame in this session."""
        known = self.frames.get(id(frame))
        if known is None:
            known = self.frames[id(frame)] = (frame, moved(frame, self.spark))
        return known[1]

    def show(self, name: str, frame: DataFrame) -> None:
        """Make a DataFrame a view of this session, whatever had that name."""
        if self.shown.get(name.lower()) is not frame:
            self.moved(frame).createOrReplaceTempView(quoted(name))
            self.shown[name.lower()] = frame


@dataclass
class Places:
    """The places in which a session's statements work: one, until the user's session changes."""

    home: Callable[[], SparkSession]
    _place: Place | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def current(self) -> Place:
        """A place that is as the user's session is now."""
        home = self.home()
        if not is_classic(home):
            return self._connect(home)
        with self._lock:
            place = self._place
            if place is not None and place.state is not None and place.state.holds(home):
                # Spark's lists of a table's files are those of each session.
                _session_catalog(place.spark).invalidateAllCachedTables()
                place.frames.clear()
                return place
            state = _State.of(home)
            self._place = Place(OwnSession.of(home), state)
            return self._place

    def forget(self) -> None:
        """The next statement works in a new place."""
        with self._lock:
            self._place = None

    def _connect(self, home: SparkSession) -> Place:
        # Views are made anew for each statement: another session may have used their names.
        return Place(home, None)


@dataclass(frozen=True, slots=True)
class _State:
    """What a clone takes over from a session, at one time."""

    session: Any
    settings: Any
    views: Any
    functions: tuple[Any, ...]
    others: tuple[str, ...]

    @classmethod
    def of(cls, home: SparkSession) -> _State | None:
        try:
            return cls(
                home._jsparkSession,
                _settings(home),
                _session_catalog(home).tempViews().clone(),
                tuple(r.functionBuilders().clone() for r in _registries(home)),
                _others(home),
            )
        except (Py4JError, TypeError, AttributeError):
            return None

    def holds(self, home: SparkSession) -> bool:
        """Whether the session is still as it was; if in doubt, it is not."""
        try:
            return bool(
                self.session is home._jsparkSession
                and self.settings.equals(_settings(home))
                and self.views.equals(_session_catalog(home).tempViews())
                and all(
                    before.equals(r.functionBuilders())
                    for before, r in zip(self.functions, _registries(home), strict=True)
                )
                and self.others == _others(home)
            )
        except (Py4JError, TypeError, AttributeError):
            return False


def is_classic(spark: SparkSession) -> bool:
    """Whether a session has a JVM of this process behind it; one of Spark Connect has not."""
    return isinstance(spark, SparkSession) and hasattr(spark, "_jsparkSession")


def beside(home: SparkSession, java: Any) -> SparkSession:
    """Another session of the same Spark, as Python has it; the active one of the thread stays so."""
    session = SparkSession.__new__(SparkSession)
    for name in ("_sc", "_jsc", "_jvm", "_profiler_collector"):
        setattr(session, name, getattr(home, name))
    session._jsparkSession = java
    return session


def placed(spark: SparkSession, place: Sequence[str]) -> SparkSession | None:
    """A clone of a session with another current catalog and database; None where they are the session's own."""
    manager = _state_of(spark).catalogManager()
    if [manager.currentCatalog().name(), *manager.currentNamespace()] == list(place):
        return None
    clone = beside(spark, spark._jsparkSession.cloneSession())
    clone.catalog.setCurrentCatalog(place[0])
    clone.catalog.setCurrentDatabase(".".join(map(quoted, place[1:])))
    return clone


def temp_views(spark: SparkSession) -> frozenset[str]:
    """The names of a session's temporary views, in lower case."""
    names = str(_session_catalog(spark).tempViews().keys().mkString("\0"))
    return frozenset(names.split("\0")) if names else frozenset()


def variables(spark: SparkSession) -> frozenset[str]:
    """The names of a session's variables, in lower case; none where this Spark does not tell them."""
    try:
        names = str(_state_of(spark).catalogManager().tempVariableManager().variables().keys().mkString("\0"))
    except (Py4JError, TypeError, AttributeError):
        return frozenset()
    return frozenset(names.lower().split("\0")) if names else frozenset()


def moved(frame: DataFrame, spark: SparkSession) -> DataFrame:
    """The same DataFrame in another session; its meaning stays, as its plan is analysed."""
    if not is_classic(spark) or frame.sparkSession is spark:
        return frame
    datasets = getattr(spark._jvm, "org.apache.spark.sql.classic.Dataset")
    # A command's rows, where it is one: analysed anew it would run again.
    plan = frame._jdf.queryExecution().commandExecuted()
    return DataFrame(datasets.ofRows(spark._jsparkSession, plan), spark)


def user_frame(frame: DataFrame) -> DataFrame:
    """A DataFrame of ours as one of the user's session."""
    spark = frame.sparkSession
    return moved(frame, spark.home) if isinstance(spark, OwnSession) else frame


def has_temp_view(spark: SparkSession, name: str) -> bool:
    """Whether a session has a temporary view of that name, in lower case."""
    return is_classic(spark) and bool(_session_catalog(spark).tempViews().contains(name))


def forget_file_lists(spark: SparkSession) -> None:
    """Make a session look anew at what files its tables have: another one may have written some."""
    if is_classic(spark):
        with contextlib.suppress(Py4JError):
            _session_catalog(spark).invalidateAllCachedTables()


def explicit_settings(spark: SparkSession) -> dict[str, str]:
    """The settings of a session that somebody has set, by name."""
    if not is_classic(spark):
        return {str(k): str(v) for k, v in spark.conf.getAll.items()}
    # One call: each entry of a Java map costs one of its own.
    return settings_in(_settings(spark).mkString("\0"))


def settings_in(told: str) -> dict[str, str]:
    """Settings by name, as Scala writes a map of them."""
    return dict(pair.split(" -> ", 1) for pair in told.split("\0") if " -> " in pair)


def default_setting(spark: SparkSession, name: str) -> str | None:
    """What Spark takes for a setting that nobody has set; None where it cannot be told."""
    if not is_classic(spark):
        return None
    try:
        settings = getattr(getattr(spark._jvm, "org.apache.spark.sql.internal.SQLConf$"), "MODULE$")
        return str(settings.getConfigEntry(name).defaultValueString())
    except (Py4JError, TypeError, AttributeError):
        return None


def quoted(name: str) -> str:
    """A name as one identifier."""
    return "`" + name.replace("`", "``") + "`"


def _follow(home: SparkSession, own: OwnSession) -> None:
    """What `cloneSession` leaves out: the current catalog, and session variables."""
    with contextlib.suppress(Py4JError, TypeError, AttributeError):
        mine, theirs = (_state_of(s).catalogManager() for s in (own, home))
        if _others(own)[:1] != _others(home)[:1]:
            mine.setCurrentCatalog(theirs.currentCatalog().name())
            mine.setCurrentNamespace(theirs.currentNamespace())
        mine.tempVariableManager().variables().addAll(theirs.tempVariableManager().variables())


def _others(spark: SparkSession) -> tuple[str, ...]:
    manager = _state_of(spark).catalogManager()
    place = f"{manager.currentCatalog().name()} {'.'.join(manager.currentNamespace())}"
    try:
        return place, str(manager.tempVariableManager().variables().toString())
    except (Py4JError, TypeError, AttributeError):
        return (place,)


def _state_of(spark: SparkSession) -> Any:
    return spark._jsparkSession.sessionState()


def _session_catalog(spark: SparkSession) -> Any:
    return _state_of(spark).catalog()


def _settings(spark: SparkSession) -> Any:
    java, conf = _CONFS.get(spark, (None, None))
    if java is not spark._jsparkSession:
        conf = _state_of(spark).conf()
        _CONFS[spark] = spark._jsparkSession, conf
    return conf.getAllConfs()


def _registries(spark: SparkSession) -> tuple[Any, ...]:
    state = _state_of(spark)
    return state.functionRegistry(), state.tableFunctionRegistry()


@contextlib.contextmanager
def _same_active_session(spark: SparkSession) -> Any:
    """Whatever session was active in this thread is so afterwards."""
    java = SparkSession._get_j_spark_session_class(spark._jvm)
    active, before = SparkSession._activeSession, java.getActiveSession()
    try:
        yield
    finally:
        SparkSession._activeSession = active
        if before.isDefined():
            java.setActiveSession(before.get())
        else:
            java.clearActiveSession()
