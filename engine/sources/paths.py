"""What a path names: whether Spark can read it, its format, its state, and its DataFrame."""

from __future__ import annotations

import csv
import difflib
import gzip
import io
import itertools
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import DataError

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
_PACKAGES = {
    "avro": "Spark with spark.jars.packages = org.apache.spark:spark-avro_2.13:{version}",
    "delta": "Spark with spark.jars.packages = io.delta:delta-spark_2.13 of a version for Spark {version}",
}
GLOB = "*?[{\\"
MOST_PATH = 200  # characters of a path in a message
# Files of a folder that are looked at for its format.
MOST_LOOKED_AT = 10_000
# Bytes of a CSV file that are looked at for line breaks within quotes.
LOOKED_AT_BYTES = 1 << 20
# By so much of its beginning it is told what separates the columns of a file.
LOOKED_AT_HEAD, LINES_OF_HEAD = 1 << 16, 20
# Names of a folder among which a near one is looked for.
MOST_LISTED = 2000
COMPRESSIONS = {".gz", ".bz2", ".zst", ".snappy", ".lz4", ".deflate"}


def load(spark: SparkSession, name: str, path: str, file_format: str, given: Mapping[str, Any]) -> DataFrame:
    """The DataFrame of a file or folder of a format; `name` is the table's, for messages.

    Raises
    ------
    DataError
        ``SKIMQL_UNREADABLE_FILE`` if Spark cannot read it.
    """
    from ..spark.session import SPARK_FAULTS, first_line

    options = dict(given)
    schema = options.pop("schema", None)
    defaults = defaults_of(path, file_format)
    if file_format == "csv":
        _refuse_split_rows(name, path, {**defaults, **options})
    if any(c in path for c in GLOB) and _exists(path):
        # It is the file's own name, no pattern.
        defaults["__globPaths__"] = "false"
    try:
        reader = spark.read.format(file_format).options(**{**defaults, **options})
        reader = reader if schema is None else reader.schema(schema)
        return reader.load(path if is_remote(path) else _for_spark(path))
    except SPARK_FAULTS as fault:
        said = first_line(fault)
        hint = _PACKAGES.get(file_format, "").format(version=spark.version)
        raise DataError(
            f"table {name}: cannot read {path}: {said}", "SKIMQL_UNREADABLE_FILE", hint=hint
        ) from fault


def defaults_of(path: str, file_format: str) -> dict[str, Any]:
    """With which options a file or folder is read where the user says nothing."""
    if file_format != "csv":
        return {}
    # columnPruning off: which rows are malformed must not depend on the columns that a query asks for.
    defaults: dict[str, Any] = {"header": True, "inferSchema": True, "columnPruning": False}
    separator = "\t" if ".tsv" in Path(path).suffixes else _separator(path)
    return defaults if separator == "," else {**defaults, "sep": separator}


def _separator(path: str) -> str:
    """What separates the columns of a CSV file: a comma, unless its head has none and another sign does it."""
    first = _first_file(path)
    if first is None or Path(first).suffix in COMPRESSIONS - {".gz"}:
        return ","
    try:
        with gzip.open(first) if first.endswith(".gz") else open(first, "rb") as file:
            lines = file.read(LOOKED_AT_HEAD).decode("utf-8", "replace").splitlines()[:LINES_OF_HEAD]
    except (OSError, EOFError):
        return ","  # Spark says what is wrong with it.
    for sign in (",", ";", "\t", "|"):
        try:
            widths = [len(row) for row in csv.reader(lines[:-1] or lines, delimiter=sign) if row]
        except csv.Error:
            continue
        if widths and widths[0] > 1 and (sign == "," or set(widths) == {widths[0]}):
            return sign
    return ","


def _refuse_split_rows(name: str, path: str, options: Mapping[str, Any]) -> None:
    """Refuse a CSV file with line breaks within quotes, which Spark would take for the ends of rows.

    The beginning of the first file is looked at, unless the user has said how lines are meant.
    """
    given = {key.lower(): str(value) for key, value in options.items()}
    quote, separator = given.get("quote", '"'), given.get("sep", given.get("delimiter", ","))
    first = _first_file(path)
    if "multiline" in given or first is None or len(quote) != 1 or len(separator) != 1:
        return
    try:
        with gzip.open(first) if first.endswith(".gz") else open(first, "rb") as file:
            looked_at = file.read(LOOKED_AT_BYTES).decode(given.get("encoding", "utf-8"), "replace")
    except (OSError, LookupError):
        return  # Spark says what is wrong with it.
    escape = given.get("escape", "\\")
    rows = csv.reader(
        io.StringIO(looked_at),
        delimiter=separator,
        quotechar=quote,
        escapechar=escape if len(escape) == 1 and escape != quote else None,
    )
    try:
        lines = 0
        for _ in rows:
            # What goes on to the end of what was looked at is a stray quote, or tells nothing.
            if rows.line_num > lines + 1 and rows.line_num < looked_at.count("\n"):
                raise DataError(
                    f"table {name}: line {lines + 1} of {first} has a line break within quotes, where Spark would"
                    " end a row",
                    "SKIMQL_UNREADABLE_FILE",
                    hint=f'session.table("{name}", "{path}", multiLine=True); multiLine=False reads it line by line',
                )
            lines = rows.line_num
    except csv.Error:
        return


def _first_file(path: str) -> str | None:
    """The file itself, or the first one in a folder; None of what is not on this machine."""
    if is_remote(path) or not os.path.exists(path):
        return None
    if not os.path.isdir(path):
        return path
    return next(
        (f"{folder}/{n}" for folder, _, names in os.walk(path) for n in sorted(names) if n[0] not in "._"),
        None,
    )


def absolute(path: str) -> str:
    """A local path as it is from anywhere; a URI as it stands."""
    return path if is_remote(path) else os.path.abspath(path)


def stamp(path: str | None) -> tuple[int, int] | None:
    """Size and time of change of a local file or folder."""
    if path is None or is_remote(path):
        return None
    try:
        state = os.stat(path)
    except OSError:
        return None
    return state.st_size, state.st_mtime_ns // 1_000_000


def is_remote(path: str) -> bool:
    """Whether a path is a URI."""
    return "://" in path


def is_readable(path: str) -> bool:
    """Whether a path names something to read: its ending tells a format, or it is a folder of one."""
    return ("." in path or "/" in path) and format_of(path) is not None


def format_of(path: str) -> str | None:
    """The format that the ending of a path, or the one of all files in a folder, tells; None where none does."""
    suffixes = [s.lower() for s in Path(path).suffixes]
    if suffixes and suffixes[-1] in COMPRESSIONS:
        suffixes.pop()
    if suffixes and suffixes[-1] in FORMATS:
        return FORMATS[suffixes[-1]]
    if not is_remote(path) and os.path.isdir(path):
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


def without_scheme(path: str) -> str:
    """A path without the scheme of this machine's files."""
    if not path.lower().startswith("file:"):
        return path
    rest = path[len("file:") :]
    return "/" + rest.lstrip("/") if rest.startswith("/") else rest


def _for_spark(path: str) -> str:
    """A local path as Hadoop takes it.

    What stands before a colon would be a scheme, and a relative path one from where the JVM was started.
    """
    return ("file:" if ":" in path else "") + os.path.abspath(path)


def _exists(path: str) -> bool:
    return not is_remote(path) and os.path.lexists(path)


def refuse_odd_path(name: str, path: str) -> None:
    """Refuse what no file system takes, before it is asked."""
    try:
        if "\x00" in path:
            raise ValueError("a path holds no NUL")
        path.encode()
        if not is_remote(path):
            os.path.lexists(path)
        if ":" in os.path.basename(path) and _exists(path):
            raise DataError(
                f"table {name}: {path} has a colon in its name, which Spark's file system cannot read",
                "SKIMQL_UNREADABLE_FILE",
                hint="a link to it, or another name, without a colon",
            )
    except ValueError as fault:
        raise DataError(f"table {name}: {path[:80]!r} is no path: {fault}", "SKIMQL_NO_SUCH_FILE") from fault


def no_format(name: str, path: str) -> DataError:
    """Why the format of what a path names cannot be told."""
    hint = "a name that ends in .parquet, .orc, .csv or .json, or format='parquet'"
    if os.path.isdir(path):
        if not any(True for _ in _files_in(path)):
            return DataError(f"table {name}: the folder {path} is empty", "SKIMQL_NO_SUCH_FILE")
        message = f"table {name}: the files in {path} are of several formats, or of none that is known"
        return DataError(message, "SKIMQL_UNKNOWN_FORMAT", hint="format='parquet'")
    message = f"table {name}: cannot tell the format of {path} from its name"
    return DataError(message, "SKIMQL_UNKNOWN_FORMAT", hint=hint)


def near_file(path: str) -> str:
    """A file with nearly that name where it was looked for; else the nearest folder that is there, or nothing."""
    folder, name = os.path.split(path)
    try:
        there = sorted(os.listdir(folder or "."))[:MOST_LISTED]
    except (OSError, ValueError):
        while folder and not os.path.isdir(folder):
            folder = os.path.dirname(folder)
        return f"a file in {folder}" if folder not in ("", "/") else ""
    near = difflib.get_close_matches(name, there, 1, 0.6)
    return os.path.join(folder, near[0]) if near else ""


def check_file(name: str, path: str) -> None:
    """Refuse a local path at which there is no file or folder, unless it is a pattern."""
    try:
        mode = os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError) as fault:
        if any(c in path for c in "*?[{"):
            return
        raise DataError(
            f"table {name}: there is no file {path[:MOST_PATH]}", "SKIMQL_NO_SUCH_FILE", hint=near_file(path)
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
