"""The events that a stream has read already: which files had them, read again for views that come later.

Spark keeps in the checkpoint which files its source has listed (``sources/0``), and up to which of these listings each
batch goes (``offsets``).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from ..catalog.streams import StoredStream
from ..sources.paths import is_remote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SOURCE, _COMPACT = Path("sources") / "0", ".compact"
FOLDERS = ("json", "csv", "parquet")


def files_read(checkpoint: Path, batch: int) -> tuple[str, ...] | None:
    """The local files whose events the batches up to `batch` have, in order; None where that is not known any more.

    It is not where a file is gone, or the checkpoint does not say.
    """
    try:
        last = _listing_of(checkpoint / "offsets" / str(batch))
        found = list(_entries(checkpoint / _SOURCE, last))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    paths = [unquote(urlsplit(path).path) for path in found]
    if not all(urlsplit(path).scheme in ("", "file") for path in found):
        return None
    return tuple(paths) if all(Path(p).is_file() for p in paths) else None


def files_of(checkpoint: Path, batch: int) -> tuple[str, ...]:
    """The local files of one batch that is planned; none where the checkpoint does not say."""
    try:
        last = _listing_of(checkpoint / "offsets" / str(batch))
        first = _listing_of(checkpoint / "offsets" / str(batch - 1)) + 1 if batch else 0
        found = [str(e["path"]) for n in range(first, last + 1) for e in _listed(checkpoint / _SOURCE, n)]
    except (OSError, ValueError, KeyError, TypeError):
        return ()
    return tuple(unquote(urlsplit(p).path) for p in found if urlsplit(p).scheme in ("", "file"))


def _listed(log: Path, number: int) -> Iterator[dict[str, Any]]:
    """What one listing of a source has, which may stand in the compact one of that number."""
    own, compact = log / str(number), log / f"{number}{_COMPACT}"
    _, *entries = (own if own.exists() else compact).read_text().splitlines()
    yield from (e for e in map(json.loads, entries) if e.get("batchId", number) == number)


def _listing_of(offsets: Path) -> int:
    """Up to which listing of its source a batch goes."""
    _, _, *sources = offsets.read_text().splitlines()
    (source,) = sources
    return int(json.loads(source)["logOffset"])


def _entries(log: Path, last: int) -> Iterator[str]:
    """The paths in the listings up to the last; every one is there, or is in the compact one after it."""
    wanted: list[tuple[int, Path]] = []
    compact = -1
    for file in log.iterdir():
        number = file.name.removesuffix(_COMPACT)
        if number.isdecimal() and int(number) <= last:
            wanted.append((int(number), file))
            if file.name.endswith(_COMPACT):
                compact = max(compact, int(number))
    own = [(n, f) for n, f in sorted(wanted) if n > compact or f.name == f"{compact}{_COMPACT}"]
    if [n for n, _ in own] != list(range(max(compact, 0), last + 1)):
        raise ValueError("listings are missing")
    for _, file in own:
        version, *entries = file.read_text().splitlines()
        if version != "v1":
            raise ValueError("the listing is of another version")
        for entry in map(json.loads, entries):
            if entry.get("action", "add") == "add":
                yield str(entry["path"])


def past_of(spark: SparkSession, stream: StoredStream, checkpoint: Path, batch: int) -> DataFrame | None:
    """The events of the batches up to `batch`, as each of them was given; None where they cannot be read again.

    Which of those that came twice were left out only Spark's own state of the stream knows.
    """
    if stream.format not in FOLDERS or is_remote(stream.source) or stream.dedup:
        return None
    paths = files_read(checkpoint, batch)
    if not paths:
        return None
    return _rows_of(spark, stream, paths)


def first_events(spark: SparkSession, stream: StoredStream, most_bytes: int) -> DataFrame | None:
    """The events of the oldest files that a stream has, of so many bytes together; None where there are none.

    Events that come twice are not left out.
    """
    if stream.format not in FOLDERS or is_remote(stream.source):
        return None
    folder = Path(stream.source)
    every = folder.rglob("*") if folder.is_dir() else iter(())
    hidden = (".", "_")
    files = [f for f in every if not any(p.startswith(hidden) for p in f.relative_to(folder).parts)]
    taken: list[str] = []
    for file in sorted((f for f in files if f.is_file()), key=lambda f: (f.stat().st_mtime_ns, str(f))):
        most_bytes -= file.stat().st_size
        if taken and most_bytes < 0:
            break
        taken.append(str(file))
    return _rows_of(spark, stream, taken) if taken else None


def _rows_of(spark: SparkSession, stream: StoredStream, paths: Sequence[str]) -> DataFrame:
    from .frames import whole_rows

    reader: Any = spark.read.format(stream.format).options(**stream.options)
    if Path(stream.source).is_dir():
        reader = reader.option("basePath", stream.source)
    reader = reader.option("__globPaths__", "false")
    return whole_rows(reader, stream, list(paths))
