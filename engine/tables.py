"""Registered tables: files, DataFrames and Spark's own tables, and their schemas as the parser sees them.

What a catalog remembers of a table is enough to resolve names; Spark starts when the table itself is wanted.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard

from ..errors import DataError
from ..parser.join_graph import Column, TableSchema
from .catalog.catalog import Catalog
from .catalog.manifest import KnownTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FORMATS = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".orc": "orc",
    ".avro": "avro",
}
# What reads a format that Spark does not bring.
PACKAGES = {"avro": "org.apache.spark:spark-avro_2.13", "delta": "io.delta:delta-spark_2.13"}
GLOB = "*?[{\\"
MOST_NAME = 255
MOST_PATH = 200  # characters of a path in a message
# Files of a folder that are looked at for its format.
MOST_LOOKED_AT = 10_000
COMPRESSIONS = {".gz", ".bz2", ".zst", ".snappy", ".lz4", ".deflate"}


# Spark's tables by mapping and name, as the running query has found them; see `Tables.looked_up_once`.
_LOOKED_UP: ContextVar[dict[tuple[int, str], DataFrame] | None] = ContextVar("tables looked up", default=None)


class Frames(Protocol):
    """Where the tables of a plan come from."""

    def frame(self, name: str) -> DataFrame:
        """The DataFrame of a table."""
        ...


class Tables(Mapping[str, TableSchema]):
    """Tables by name, ignoring case: what was registered, what the catalog remembers, what Spark's own catalog knows.

    A mapping name -> `TableSchema` for the parser; `frame(name)` gives the DataFrame to the engine. Each
    registered table is also a temporary view, so that exact queries see the same names.
    """

    def __init__(self, spark: Callable[[], SparkSession], catalog: Catalog | None = None) -> None:
        self._start = spark
        self._catalog = catalog or Catalog()
        self._frames: dict[str, tuple[str, DataFrame]] = {}
        self._known: dict[str, KnownTable] = {}
        self._origins: dict[str, tuple[str, str]] = {}

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
        assert isinstance(source, (str, Path)) or _is_frame(source)
        if isinstance(source, (str, Path)):
            source = _plain_path(str(source))
        frame = source if _is_frame(source) else self.read(name, str(source), options)
        path = (
            None
            if _is_frame(source) or self._is_spark_table(str(source), options)
            else _absolute(str(source))
        )
        if path is not None:
            self._origins[name.lower()] = ("file", path)
        else:
            self._origins[name.lower()] = ("frame", "") if _is_frame(source) else ("catalog", str(source))
        frame.createOrReplaceTempView(_quoted(name))
        self._frames[name.lower()] = (name, frame)
        kept = {k: v if isinstance(v, (bool, int, float, str)) else str(v) for k, v in options.items()}
        self._known[name.lower()] = KnownTable(schema_of(name, frame), path, kept, _stamp(path))

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
            or not isinstance(source, (str, Path))
        ):
            return False
        path = _absolute(str(source))
        return known.source == path and dict(known.options) == dict(options) and known.stamp == _stamp(path)

    def known(self, name: str) -> KnownTable:
        """What is known of a table that this mapping has."""
        found = self._known.get(name.lower()) or self._catalog.table(name)
        return found or KnownTable(self[name], None, {})

    def frame(self, name: str) -> DataFrame:
        """The DataFrame behind a name that this mapping has.

        Raises
        ------
        DataError
            If the catalog remembers a table that cannot be read any more.
        """
        if name.lower() not in self._frames:
            remembered = self._catalog.table(name)
            if remembered is None or remembered.source is None:
                return self._spark_table(name, remembered)
            self.register(remembered.schema.name, remembered.source, remembered.options)
        return self._frames[name.lower()][1]

    @staticmethod
    @contextlib.contextmanager
    def looked_up_once() -> Iterator[None]:
        """Within one query every table of Spark's is looked up once."""
        token = _LOOKED_UP.set({})
        try:
            yield
        finally:
            _LOOKED_UP.reset(token)

    def refresh(self, name: str) -> None:
        """Make Spark forget what it has cached of a table that it knows itself: lists of files, data."""
        from .spark import SPARK_FAULTS

        (_LOOKED_UP.get() or {}).pop((id(self), name), None)
        with contextlib.suppress(*SPARK_FAULTS):
            self._spark.catalog.refreshTable(_quoted(name))

    def show_spark(self, text: str) -> None:
        """Make the tables that the catalog remembers known to Spark, those whose names occur in a statement."""
        low = text.lower()
        for name, remembered in self._catalog.manifest.tables.items():
            if remembered.source is not None and name not in self._frames and name in low:
                self.frame(name)

    def __getitem__(self, name: str) -> TableSchema:
        registered = self._known.get(name.lower())
        remembered = registered or self._catalog.table(name)
        if remembered is not None:
            return remembered.schema
        return schema_of(name, self._from_catalog(name))

    def __iter__(self) -> Iterator[str]:
        yield from (t.schema.name for t in self._known.values())
        others = {n: t.schema.name for n, t in self._catalog.manifest.tables.items() if n not in self._known}
        yield from others.values()
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
        return "/" not in source and not options.get("format") and _format_of(source) is None

    def _from_catalog(self, name: str) -> DataFrame:
        from .spark import SPARK_FAULTS

        seen = _LOOKED_UP.get()
        if seen is not None and (id(self), name) in seen:
            return seen[id(self), name]
        try:
            found = self._spark.table(name)
        except SPARK_FAULTS as fault:
            raise KeyError(name) from fault
        if seen is not None:
            seen[id(self), name] = found
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
        from .spark import SPARK_FAULTS, first_line

        path = _plain_path(path)
        _refuse_odd_path(name, path)
        options = dict(given)
        file_format = options.pop("format", None) or _format_of(path)
        if not _is_remote(path) and (file_format is not None or "/" in path):
            _check_file(name, path)
        if file_format is None:
            with contextlib.suppress(KeyError):
                return self._from_catalog(path)
            if not _is_remote(path) and not os.path.exists(path):
                raise DataError(
                    f"table {name}: there is no file or Spark table {path}", "SKIMQL_NO_SUCH_FILE"
                )
            raise _no_format(name, path)
        schema = options.pop("schema", None)
        defaults: dict[str, Any] = {}
        if file_format == "csv":
            # columnPruning off: which rows are malformed must not depend on the columns that a query asks for.
            defaults = {"header": True, "inferSchema": True, "columnPruning": False}
            if ".tsv" in Path(path).suffixes:
                defaults["sep"] = "\t"
        if any(c in path for c in GLOB) and _exists(path):
            # It is the file's own name, no pattern.
            defaults["__globPaths__"] = "false"
        try:
            reader = self._spark.read.format(file_format).options(**{**defaults, **options})
            reader = reader if schema is None else reader.schema(schema)
            return reader.load(path if _is_remote(path) else _for_spark(path))
        except SPARK_FAULTS as fault:
            said = first_line(fault)
            package = PACKAGES.get(file_format)
            hint = (
                f"Spark with spark.jars.packages = {package}:{self._spark.version}"
                if package == PACKAGES["avro"]
                else ""
            )
            if package == PACKAGES["delta"]:
                hint = (
                    f"Spark with spark.jars.packages = {package} of a version for Spark {self._spark.version}"
                )
            raise DataError(
                f"table {name}: cannot read {path}: {said}", "SKIMQL_UNREADABLE_FILE", hint=hint
            ) from fault


def schema_of(name: str, frame: DataFrame) -> TableSchema:
    """The schema of a DataFrame as the parser sees it."""
    return TableSchema(name, tuple(Column(f.name, f.dataType.simpleString()) for f in frame.schema.fields))


def _absolute(path: str) -> str:
    return path if _is_remote(path) else os.path.abspath(path)


def _stamp(path: str | None) -> tuple[int, int] | None:
    """Size and time of change of a local file or folder."""
    if path is None or _is_remote(path):
        return None
    try:
        state = os.stat(path)
    except OSError:
        return None
    return state.st_size, state.st_mtime_ns // 1_000_000


def _is_frame(source: object) -> TypeGuard[DataFrame]:
    # Spark Connect has a DataFrame class of its own; both have a schema and can be selected from.
    return hasattr(source, "selectExpr") and hasattr(source, "schema")


def _is_remote(path: str) -> bool:
    return "://" in path


def _format_of(path: str) -> str | None:
    suffixes = [s.lower() for s in Path(path).suffixes]
    if suffixes and suffixes[-1] in COMPRESSIONS:
        suffixes.pop()
    if suffixes and suffixes[-1] in FORMATS:
        return FORMATS[suffixes[-1]]
    if not _is_remote(path) and os.path.isdir(path):
        if os.path.isdir(os.path.join(path, "_delta_log")):
            return "delta"
        inside = {FORMATS[s] for f in _files_in(path) for s in Path(f).suffixes if s in FORMATS}
        return inside.pop() if len(inside) == 1 else None
    return None


def _files_in(folder: str) -> Iterator[str]:
    """Names of the files under a folder that Spark would read, some thousands at most."""
    names = (
        name
        for _, folders, files in os.walk(folder)
        for name in (files, folders.sort())[0]
        if not name.startswith((".", "_"))
    )
    return itertools.islice(names, MOST_LOOKED_AT)


def _plain_path(path: str) -> str:
    """A path without the scheme of this machine's files."""
    if not path.lower().startswith("file:"):
        return path
    rest = path[len("file:") :]
    return "/" + rest.lstrip("/") if rest.startswith("/") else rest


def _for_spark(path: str) -> str:
    """A path as Hadoop takes it: what stands before a colon would be a scheme."""
    return "file:" + os.path.abspath(path) if ":" in path else path


def _exists(path: str) -> bool:
    return not _is_remote(path) and os.path.lexists(path)


def _refuse_odd_path(name: str, path: str) -> None:
    """Refuse what no file system takes, before it is asked."""
    try:
        if "\x00" in path:
            raise ValueError("a path holds no NUL")
        path.encode()
        if not _is_remote(path):
            os.path.lexists(path)
        if ":" in os.path.basename(path) and _exists(path):
            raise DataError(
                f"table {name}: {path} has a colon in its name, which Spark's file system cannot read",
                "SKIMQL_UNREADABLE_FILE",
                hint="a link to it, or another name, without a colon",
            )
    except ValueError as fault:
        raise DataError(f"table {name}: {path[:80]!r} is no path: {fault}", "SKIMQL_NO_SUCH_FILE") from fault


def _no_format(name: str, path: str) -> DataError:
    hint = "a name that ends in .parquet, .orc, .csv or .json, or format='parquet'"
    if os.path.isdir(path):
        if not any(True for _ in _files_in(path)):
            return DataError(f"table {name}: the folder {path} is empty", "SKIMQL_NO_SUCH_FILE")
        message = f"table {name}: the files in {path} are of several formats, or of none that is known"
        return DataError(message, "SKIMQL_UNKNOWN_FORMAT", hint="format='parquet'")
    message = f"table {name}: cannot tell the format of {path} from its name"
    return DataError(message, "SKIMQL_UNKNOWN_FORMAT", hint=hint)


def _check_file(name: str, path: str) -> None:
    try:
        mode = os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError) as fault:
        if any(c in path for c in "*?[{"):
            return
        raise DataError(
            f"table {name}: there is no file {path[:MOST_PATH]}", "SKIMQL_NO_SUCH_FILE"
        ) from fault
    except OSError as fault:
        raise DataError(
            f"table {name}: {path[:MOST_PATH]}: {fault.strerror}", "SKIMQL_UNREADABLE_FILE"
        ) from fault
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise DataError(
            f"table {name}: {path} is a pipe or a device; Spark reads a source more than once",
            "SKIMQL_NOT_A_FILE",
            hint="write it to a file first",
        )


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
