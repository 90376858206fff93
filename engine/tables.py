"""Registered tables: files, DataFrames and Spark's own tables, and their schemas as the parser sees them."""

from __future__ import annotations

import contextlib
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol, TypeGuard

from pyspark.sql import DataFrame, SparkSession

from ..errors import DataError
from ..parser.join_graph import Column, TableSchema
from .spark import SPARK_FAULTS, first_line

FORMATS = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
}
COMPRESSIONS = {".gz", ".bz2", ".zst", ".snappy", ".lz4", ".deflate"}


class Frames(Protocol):
    """Where the tables of a plan come from."""

    def frame(self, name: str) -> DataFrame:
        """The DataFrame of a table."""
        ...


class Tables(Mapping[str, TableSchema]):
    """Tables by name, ignoring case: what was registered first, then whatever Spark's catalog knows.

    A mapping name -> `TableSchema` for the parser; `frame(name)` gives the DataFrame to the engine. Each
    registered table is also a temporary view, so that exact queries see the same names.
    """

    def __init__(self, spark: Callable[[], SparkSession]) -> None:
        self._start = spark
        self._frames: dict[str, tuple[str, DataFrame]] = {}

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
        frame = source if _is_frame(source) else self._read(name, str(source), dict(options))
        frame.createOrReplaceTempView(_quoted(name))
        self._frames[name.lower()] = (name, frame)

    def frame(self, name: str) -> DataFrame:
        """The DataFrame behind a name that this mapping has."""
        known = self._frames.get(name.lower())
        return known[1] if known else self._spark.table(name)

    def __getitem__(self, name: str) -> TableSchema:
        known = self._frames.get(name.lower())
        if known is None:
            known = (name, self._from_catalog(name))
        shown, frame = known
        return TableSchema(
            shown, tuple(Column(f.name, f.dataType.simpleString()) for f in frame.schema.fields)
        )

    def __iter__(self) -> Iterator[str]:
        yield from (name for name, _ in self._frames.values())
        for table in self._spark.catalog.listTables():
            if table.name.lower() not in self._frames:
                yield table.name

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        try:
            self[str(name)]
        except KeyError:
            return False
        return True

    def _from_catalog(self, name: str) -> DataFrame:
        try:
            return self._spark.table(name)
        except SPARK_FAULTS as fault:
            raise KeyError(name) from fault

    def _read(self, name: str, path: str, options: dict[str, Any]) -> DataFrame:
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
