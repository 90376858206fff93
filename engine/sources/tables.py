"""Registered tables: files, DataFrames and Spark's own tables, and their schemas as the parser sees them.

What a catalog remembers of a table is enough to resolve names; Spark starts when the table itself is wanted.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ...errors import DataError
from ...parser.join_graph import TableSchema
from ...parser.lexing import identifiers
from ..catalog.catalog import Catalog
from ..catalog.folder import local_path
from ..catalog.manifest import KnownTable
from .listing import FileStates, state_of_files
from .paths import (
    absolute,
    check_file,
    format_of,
    is_remote,
    load,
    near_file,
    no_format,
    refuse_odd_path,
    stamp,
    without_scheme,
)
from .running import running_on, statement_on
from .schemas import schema_of
from .spark_tables import TableReader, is_cached, is_frame, refresh_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from ..spark.isolation import Place, Places
    from .source_state import Sources

Found = TypeVar("Found")

MOST_NAME = 255  # characters

# Whether Parquet reads ahead, which Spark does not count.
AHEAD = "parquet.hadoop.vectored.io.enabled"


class Frames(Protocol):
    """Where the tables of a plan come from."""

    def frame(self, name: str) -> DataFrame:
        """The DataFrame of a table."""
        ...


class Tables(Mapping[str, TableSchema]):
    """Tables by name, ignoring case: what was registered, what the catalog remembers, what Spark's own catalog knows.

    A mapping name -> `TableSchema` for the parser; `frame(name)` gives the DataFrame to the engine, in a Spark
    session of ours. There registered tables are temporary views too, for what Spark itself runs: the names of a
    statement, while it runs.
    """

    def __init__(
        self,
        spark: Callable[[], SparkSession],
        catalog: Catalog | None = None,
        *,
        spark_first: bool = False,
        reader: TableReader | None = None,
    ) -> None:
        self._start = spark
        # What looks tables up and asks their plans.
        self._reader = reader or TableReader()
        # Whether Spark's own tables hide those that the catalog remembers.
        self._spark_first = spark_first
        self._catalog = catalog or Catalog()
        self._frames: dict[str, tuple[str, DataFrame]] = {}
        self._known: dict[str, KnownTable] = {}
        self._origins: dict[str, tuple[str, str]] = {}
        # Of files and folders what lay there when they were read, and with which options that was.
        self._read_from: dict[str, tuple[FileStates | None, Mapping[str, Any]]] = {}
        self._places: Places | None = None
        # DataFrames that can never change, as they are of no files, with what they are read from.
        self._constant: dict[str, tuple[DataFrame, Sources]] = {}

    @property
    def _spark(self) -> SparkSession:
        return self._start()

    def register(
        self, name: str, source: str | Path | DataFrame | Sequence[str | Path], options: Mapping[str, Any]
    ) -> None:
        """Make `source` known as `name`, replacing what had that name.

        Parameters
        ----------
        name : str
            One identifier; it need not be a plain word.
        source : str, Path, DataFrame, or sequence of paths
            A file or folder in Parquet, ORC, CSV (header, types inferred) or JSON (one object a line), several
            files of one format, a DataFrame, or the name of a Spark table.
        options : mapping
            Options of Spark's reader, such as ``nullValue="NA"``; ``format`` overrides the file's ending,
            ``schema`` ("id INT, name STRING") replaces inference.

        Raises
        ------
        DataError
            If the file does not exist, is a pipe, has an unknown format, or cannot be read.
        """
        if not name.strip():
            raise DataError("a table needs a name", "SKIMQL_BAD_TABLE_NAME")
        if len(name) > MOST_NAME or not name.isprintable():
            raise DataError(
                f"a table's name has at most {MOST_NAME} characters, all of them printable",
                "SKIMQL_BAD_TABLE_NAME",
            )
        if isinstance(source, (list, tuple)):
            source = self._read_all(name, [str(path) for path in source], options)
        if not (isinstance(source, (str, Path)) or is_frame(source)):
            kind = f"{type(source).__module__}.{type(source).__qualname__}"
            raise DataError(
                f"table {name}: a {kind} is no file, folder or DataFrame of Spark",
                "SKIMQL_UNKNOWN_FORMAT",
                hint="spark.createDataFrame(...) of it, or its file",
            )
        if isinstance(source, (str, Path)):
            local_path(str(source))
            source = without_scheme(str(source))
            refuse_odd_path(name, source)
        path = (
            None if is_frame(source) or self._is_spark_table(str(source), options) else absolute(str(source))
        )
        files = None if path is None else state_of_files(path)
        frame = source if is_frame(source) else self.read(name, str(source), options)
        self._refuse_other_session(name, frame)
        if path is not None:
            self._origins[name.lower()] = ("file", path)
        else:
            self._origins[name.lower()] = ("frame", "") if is_frame(source) else ("catalog", str(source))
        self._frames[name.lower()] = (name, frame)
        kept = {k: v if isinstance(v, (bool, int, float, str)) else str(v) for k, v in options.items()}
        self._known[name.lower()] = KnownTable(schema_of(name, frame), path, kept, stamp(path))
        self._read_from[name.lower()] = files, options

    def _refuse_other_session(self, name: str, frame: DataFrame) -> None:
        """Refuse a DataFrame of a session that reads it by other settings than ours."""
        from .settings_followed import late_differences

        names = late_differences(frame, self._spark)
        if names:
            raise DataError(
                f"table {name}: the DataFrame is of another Spark session, and would not mean the same in this one:"
                f" {', '.join(names)} differ{'s' if len(names) == 1 else ''}",
                "SKIMQL_OTHER_SESSION",
                hint="skimql.Session(frame.sparkSession)",
            )

    def unregister(self, name: str) -> None:
        """Forget a registered table."""
        for known in (self._frames, self._known, self._origins, self._read_from):
            known.pop(name.lower(), None)
        self.forget_place()

    def forget_frames(self) -> None:
        """Forget the DataFrames, as their Spark session is gone; tables of files are read again when wanted."""
        for name in [n for n, known in self._known.items() if known.source is None]:
            self.unregister(name)
        self._frames.clear()
        self._constant.clear()
        self._places = None

    def origin(self, name: str) -> tuple[str, str]:
        """Where a table's tuples lie: ("file", path), ("catalog", Spark's name), or ("frame", "")."""
        return self._origins.get(name.lower(), ("catalog", name))

    def is_remembered(self, name: str, source: object, options: Mapping[str, Any]) -> bool:
        """Whether the catalog knows the name as just this path, unchanged since, so that Spark need not read it."""
        known = self._catalog.table(name)
        if (
            known is None
            or known.source is None
            or known.stamp is None
            or known.withheld
            or not isinstance(source, (str, Path))
        ):
            return False
        path = absolute(str(source))
        return known.source == path and dict(known.options) == dict(options) and known.stamp == stamp(path)

    def known(self, name: str) -> KnownTable:
        """What is known of a table that this mapping has."""
        found = self._known.get(name.lower()) or self._remembered(name)
        if found is None:
            return KnownTable(self[name], None, {})
        if self._named_in_spark(name) is not None:
            # One that is gone is as it was.
            with contextlib.suppress(KeyError):
                return KnownTable(self[name], None, found.options)
        return found

    def frame(self, name: str) -> DataFrame:
        """The DataFrame behind a name that this mapping has, in the session that `place` gives.

        Raises
        ------
        DataError
            If the catalog remembers a table that cannot be read any more; ``SKIMQL_OPTIONS_WITHHELD`` if that is
            because it does not keep all options.
        """
        frame = self._user_frame(name)  # first: what cannot be read needs no session
        return self.place().moved(frame)

    def as_given(self, name: str) -> DataFrame:
        """As `frame`, in the user's session: for what its schema and its plan tell, which need no session of ours."""
        return self._user_frame(name)

    def sources(self, name: str) -> Sources:
        """What a table is read from; looked at once in a statement."""
        from .source_state import sources_of

        running = running_on(self)
        if running is not None and name in running.sources:
            return running.sources[name]
        frame = self._user_frame(name)
        known, constant = self._constant.get(name.lower(), (None, None))
        found = constant if constant is not None and known is frame else sources_of(frame, self._reader.facts)
        if found.state.complete and not found.files and self.origin(name)[0] == "frame":
            self._constant[name.lower()] = frame, found
        if running is not None:
            running.sources[name] = found
        return found

    def once(self, key: Hashable, look: Callable[[], Found]) -> Found:
        """What `look` finds of tables; looked for once in a statement."""
        running = running_on(self)
        if running is None:
            return look()
        if key not in running.looked:
            running.looked[key] = look()
        found: Found = running.looked[key]
        return found

    def _named_in_spark(self, name: str) -> str | None:
        """The name in Spark that a registered table stands for, whatever that is now; None of others."""
        kind, source = self._origins.get(name.lower(), ("", ""))
        return source if kind == "catalog" else None

    def _user_frame(self, name: str) -> DataFrame:
        in_spark = self._named_in_spark(name)
        if in_spark is not None:
            return self._from_catalog(in_spark)
        if name.lower() not in self._frames:
            remembered = self._known.get(name.lower()) or self._remembered(name)
            if remembered is not None:
                refuse_withheld(remembered)
            if remembered is None or remembered.source is None:
                return self._spark_table(name, remembered)
            self.register(remembered.schema.name, remembered.source, remembered.options)
        return self._counted(name) or self._frames[name.lower()][1]

    @contextlib.contextmanager
    def statement(self, text: str) -> Iterator[None]:
        """Within one statement all is done in one Spark session, and every table is looked up once.

        Files and folders of this machine that have changed since they were read are read again.
        """
        with statement_on(self, text):
            for name in self.named_in(text):
                self._follow(name)
            yield

    def _follow(self, name: str) -> None:
        """Read a registered path again if its files are others now: Spark lists them once, and misses what is gone."""
        known = self._known.get(name)
        if name not in self._frames or known is None or known.source is None:
            return
        files, options = self._read_from[name]
        if state_of_files(known.source) != files:
            # Of what cannot be read now kept sketches may know.
            with contextlib.suppress(DataError):
                self.register(known.schema.name, known.source, options)

    @contextlib.contextmanager
    def measured(self, names: Iterable[str], *, now: bool) -> Iterator[None]:
        """Within a statement files are read so that Spark counts what it reads of them, as far as that is possible.

        Looking at the files of the tables `names` is no part of what is measured: it is done at once where `now`.
        """
        running = running_on(self)
        assert running is not None, "what is measured is a statement"
        running.counted = {}
        for name in names if now else ():
            with contextlib.suppress(DataError, KeyError):
                self._user_frame(name)
        yield

    def is_measured(self, name: str) -> bool:
        """Whether Spark counts the bytes that it reads of a table, in a statement that is `measured`."""
        from ..spark.isolation import is_classic

        running = running_on(self)
        if not is_classic(self._spark):
            return False
        frame = self._user_frame(name)
        known = {} if running is None else running.counted or {}
        if name.lower() in known or is_cached(frame) or self._spark.conf.get(AHEAD, "") == "false":
            return True
        return not any(format_of(file) in (None, "parquet") for file in frame.inputFiles())

    def _counted(self, name: str) -> DataFrame | None:
        """A registered Parquet file as `measured` reads it; None where that is not asked for.

        Spark does not count what Parquet reads ahead in other threads, as it does by default. A cached one stays.
        """
        running, known = running_on(self), self._known[name.lower()]
        if running is None or running.counted is None or known.source is None:
            return None
        from ..spark.isolation import is_classic

        if not is_classic(self._spark):
            return None
        if name.lower() not in running.counted:
            cached = is_cached(self._frames[name.lower()][1])
            if cached or (known.options.get("format") or format_of(known.source)) != "parquet":
                return None
            options = {**known.options, AHEAD: "false"}
            running.counted[name.lower()] = self.read(name, known.source, options)
        return running.counted[name.lower()]

    def place(self) -> Place:
        """Where the running statement works: a Spark session of ours that has the tables which its text names.

        Between statements it has none.
        """
        running = running_on(self)
        if running is not None and running.place is not None:
            return running.place
        from ..spark.isolation import Places

        if self._places is None:
            self._places = Places(self._start)
        place = self._places.current()
        if running is not None:
            running.place = place
            self.show(place, running.text)
        return place

    def forget_place(self) -> None:
        """The next statement works in a new Spark session, as what Spark has run has changed this one."""
        if self._places is not None:
            self._places.forget()

    def named_in(self, text: str) -> list[str]:
        """The tables that are ours, not Spark's, of which a statement has the names, in lower case."""
        ours = {*self._known, *(n for n, t in self._catalog.manifest.tables.items() if t.source is not None)}
        named = sorted(ours & identifiers(text)) if ours else []
        return [n for n in named if n in self._known or self._remembered(n) is not None]

    def _remembered(self, name: str) -> KnownTable | None:
        """What the catalog remembers of a table, unless Spark has one of that name that goes first."""
        remembered = self._catalog.table(name)
        if remembered is None or not self._spark_first:
            return remembered
        try:
            self._from_catalog(name)
        except KeyError:
            return remembered
        return None

    def registered(self) -> list[str]:
        """The tables that were registered in this session or read in it, as they were spelled."""
        return [known.schema.name for known in list(self._known.values())]

    def at_hand(self) -> dict[str, TableSchema]:
        """The tables that are known without asking Spark: registered ones, and those that the catalog remembers."""
        remembered = {t.schema.name: t.schema for t in list(self._catalog.manifest.tables.values())}
        return {**remembered, **{k.schema.name: k.schema for k in list(self._known.values())}}

    def lost(self, names: Iterable[str]) -> DataError | None:
        """Why one of these tables that the catalog remembers cannot be read; None if all can."""
        for name in names:
            try:
                self._user_frame(name)
            except DataError as fault:
                return fault
            except KeyError:
                continue
        return None

    def show(self, place: Place, text: str) -> None:
        """Make the tables that a statement names known to Spark, by views in a session of ours.

        The user's own views mean what they mean to the user: where a name of ours hides one of theirs, the views
        that may be made of it are moved as they are.
        """
        from ..spark.isolation import has_temp_view

        names = self.named_in(text)
        for name in names:
            # What cannot be read any more may be the name of something else here, such as a column.
            with contextlib.suppress(DataError, KeyError):
                place.show(self.declared_name(name), self._user_frame(name))
        user = self._spark
        if place.spark is not user and any(has_temp_view(user, name) for name in list(place.shown)):
            for name in identifiers(text) - set(names):
                if has_temp_view(user, name):
                    place.show(name, self._from_catalog(name))

    def declared_name(self, name: str) -> str:
        """The name as it was registered, whatever its case here."""
        return self.known(name).schema.name

    def refresh(self, name: str) -> None:
        """Make Spark forget what it has cached of a table that it knows itself: lists of files, data."""
        running = running_on(self)
        if running is not None:
            running.found.pop(name, None)
            running.sources.pop(name, None)
            running.looked.clear()
        refresh_table(self._spark, self._named_in_spark(name) or name)

    def __getitem__(self, name: str) -> TableSchema:
        registered = self._known.get(name.lower())
        in_spark = self._named_in_spark(name)
        if registered is not None and in_spark is not None:
            return schema_of(registered.schema.name, self._from_catalog(in_spark))
        remembered = registered or self._remembered(name)
        if remembered is not None:
            return remembered.schema
        return schema_of(name, self._from_catalog(name))

    def __iter__(self) -> Iterator[str]:
        yield from (t.schema.name for t in self._known.values())
        others = {n: t.schema.name for n, t in self._catalog.manifest.tables.items() if n not in self._known}
        yield from others.values()
        from ..spark.session import SPARK_FAULTS

        # Spark looks at every view to tell its type, and one whose tables are gone may be among them.
        with contextlib.suppress(*SPARK_FAULTS):
            for table in self._spark.catalog.listTables():
                if table.name.lower() not in self._known and table.name.lower() not in others:
                    yield table.name

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        try:
            self[str(name)]
        except KeyError:
            return False
        return True

    def _spark_table(self, name: str, remembered: KnownTable | None) -> DataFrame:
        try:
            return self._from_catalog(name)
        except KeyError as fault:
            if remembered is None:
                raise
            raise DataError(
                f"the catalog knows the columns of {name}, but not where its tuples are",
                "SKIMQL_TABLE_NOT_HERE",
                hint=f"register {name} again",
            ) from fault

    def _is_spark_table(self, source: str, options: Mapping[str, Any]) -> bool:
        return "/" not in source and not options.get("format") and format_of(source) is None

    def _from_catalog(self, name: str) -> DataFrame:
        running = running_on(self)
        if running is not None and name in running.found:
            return running.found[name]
        found = self._reader.table(self._spark, name)
        if running is not None:
            running.found[name] = found
        return found

    def _read_all(self, name: str, paths: Sequence[str], options: Mapping[str, Any]) -> DataFrame:
        """Several files or folders of one format as one DataFrame."""
        if not paths:
            raise DataError(f"table {name}: the list of files is empty", "SKIMQL_NO_SUCH_FILE")
        frames = [self.read(name, path, options) for path in paths]
        first = frames[0]
        for frame in frames[1:]:
            first = first.unionByName(frame)
        return first

    def read(self, name: str, path: str, given: Mapping[str, Any]) -> DataFrame:
        """The DataFrame of a file, folder or Spark table, as `register` reads it; `name` is for messages."""
        path = without_scheme(path)
        refuse_odd_path(name, path)
        options = dict(given)
        file_format = options.pop("format", None) or format_of(path)
        if not is_remote(path) and (file_format is not None or "/" in path):
            check_file(name, path)
        if file_format is None:
            with contextlib.suppress(KeyError):
                return self._from_catalog(path)
            if not is_remote(path) and not os.path.exists(path):
                raise DataError(
                    f"table {name}: there is no file or Spark table {path}",
                    "SKIMQL_NO_SUCH_FILE",
                    hint=near_file(path),
                )
            raise no_format(name, path)
        return load(self._spark, name, path, file_format, options)


def refuse_withheld(table: KnownTable) -> None:
    """Raise DataError ``SKIMQL_OPTIONS_WITHHELD`` for a table that was registered with what a catalog does not keep."""
    if not table.withheld:
        return
    names = ", ".join(table.withheld)
    options = "".join(f", {name}=..." for name in table.withheld if name != "path")
    raise DataError(
        f"table {table.schema.name} was registered with {names}, which the catalog does not keep",
        "SKIMQL_OPTIONS_WITHHELD",
        hint=f'register it again: session.table("{table.schema.name}", "{table.source or "..."}"{options})',
    )
