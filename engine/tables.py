"""Registered tables: files, DataFrames and Spark's own tables, and their schemas as the parser sees them.

What a catalog remembers of a table is enough to resolve names; Spark starts when the table itself is wanted.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Iterator, Mapping
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
}
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

    def register(self, name: str, source: str | Path | DataFrame, options: Mapping[str, Any]) -> None:
        """Make `source` known as `name`, replacing what had that name.

        Parameters
        ----------
        name : str
            One identifier; it need not be a plain word.
        source : str, Path or DataFrame
            A file or folder in Parquet, CSV (header, types inferred) or JSON (one object a line), a DataFrame,
            or the name of a Spark table.
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

    def read(self, name: str, path: str, given: Mapping[str, Any]) -> DataFrame:
        """The DataFrame of a file, folder or Spark table, as `register` reads it; `name` is for messages."""
        from .spark import SPARK_FAULTS, first_line

        options = dict(given)
        file_format = options.pop("format", None) or _format_of(path)
        if not _is_remote(path) and (file_format is not None or "/" in path):
            _check_file(name, path)
        if file_format is None:
            with contextlib.suppress(KeyError):
                return self._from_catalog(path)
            if not _is_remote(path) and not Path(path).exists():
                raise DataError(
                    f"table {name}: there is no file or Spark table {path}", "SKIMQL_NO_SUCH_FILE"
                )
            raise DataError(
                f"table {name}: cannot tell the format of {path} from its name",
                "SKIMQL_UNKNOWN_FORMAT",
                hint="a name that ends in .parquet, .csv or .json, or format='parquet'",
            )
        schema = options.pop("schema", None)
        defaults: dict[str, Any] = {}
        if file_format == "csv":
            # columnPruning off: which rows are malformed must not depend on the columns that a query asks for.
            defaults = {"header": True, "inferSchema": True, "columnPruning": False}
            if ".tsv" in Path(path).suffixes:
                defaults["sep"] = "\t"
        try:
            reader = self._spark.read.format(file_format).options(**{**defaults, **options})
            return (reader if schema is None else reader.schema(schema)).load(path)
        except SPARK_FAULTS as fault:
            said = first_line(fault)
            raise DataError(f"table {name}: cannot read {path}: {said}", "SKIMQL_UNREADABLE_FILE") from fault


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
    folder = Path(path)
    if not _is_remote(path) and folder.is_dir():
        inside = {FORMATS[s] for f in folder.rglob("*.*") for s in f.suffixes if s in FORMATS}
        return inside.pop() if len(inside) == 1 else None
    return None


def _check_file(name: str, path: str) -> None:
    try:
        mode = Path(path).stat().st_mode
    except FileNotFoundError as fault:
        if any(c in path for c in "*?[{"):
            return
        raise DataError(f"table {name}: there is no file {path}", "SKIMQL_NO_SUCH_FILE") from fault
    except OSError as fault:
        raise DataError(f"table {name}: {path}: {fault.strerror}", "SKIMQL_UNREADABLE_FILE") from fault
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise DataError(
            f"table {name}: {path} is a pipe or a device; Spark reads a source more than once",
            "SKIMQL_NOT_A_FILE",
            hint="write it to a file first",
        )


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
