"""What kept sketches have read: files with their sizes and times, and why nothing is read twice."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from ...errors import DataError, UnsupportedQuery
from ..catalog.form import Head, Lineage, LineageFile
from ..catalog.secrets import redacted
from ..sources.listing import file_now, path_or_uri, real_path
from .definition import both, now

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ..sources.tables import Tables


def table_lineage(tables: Tables, name: str, frame: DataFrame, condition: str | None = None) -> Lineage:
    """What is read of a registered table, or of one that Spark knows by name."""
    source = tables.known(name).source
    reading = lineage_of(source or name, True, condition, frame)
    if source is not None:
        return reading
    found = tables.sources(name)
    if condition is None:
        reading = replace(reading, files=tuple(map(file_now, found.files)))
    return replace(reading, state=found.state)


def table_lineages(tables: Tables, names: Iterable[str]) -> dict[str, Lineage]:
    """What is read of several tables; asked for before a scan, so that what changes meanwhile has changed since."""
    return {name: table_lineage(tables, name, tables.frame(name)) for name in dict.fromkeys(names)}


def lineage_of(source: str, is_table: bool, condition: str | None, frame: DataFrame) -> Lineage:
    """What a DataFrame reads, under a condition that may leave files out.

    Sizes and times of change are those of local files, and of remote ones where pyarrow can ask for them.
    """
    paths = _input_files(frame) if condition is None else _matching_files(frame, condition)
    found = (replace(f, path=redacted(f.path)) for f in map(file_now, paths))
    files = tuple(sorted(found, key=lambda f: f.path))
    return Lineage(redacted(source), is_table, condition, files, None if files else _plan_hash(frame), now())


def _input_files(frame: DataFrame) -> list[str]:
    from ..spark.session import SPARK_FAULTS

    try:
        return [path_or_uri(p) for p in frame.inputFiles()]
    except SPARK_FAULTS:
        return []


def _matching_files(frame: DataFrame, condition: str) -> list[str]:
    """The files that have a tuple which meets the condition; one cheap job, by Spark's own file metadata."""
    from ..spark.session import SPARK_FAULTS

    if not _input_files(frame):
        return []
    try:
        rows = frame.where(condition).select("_metadata.file_path").distinct().collect()
    except SPARK_FAULTS:
        return _input_files(frame)
    return [path_or_uri(r[0]) for r in rows]


def _plan_hash(frame: DataFrame) -> str | None:
    """What tells one DataFrame without files from another, in one Spark version."""
    from ..spark.session import SPARK_FAULTS

    try:
        return f"plan {frame.semanticHash()}"
    except SPARK_FAULTS:
        return None


def refuse_twice(head: Head, reading: Lineage, frame: DataFrame, sql: str, place: tuple[int, int]) -> None:
    """Refuse to append what a sketch already has, in whole or in part.

    Parameters
    ----------
    head : Head
    reading : Lineage
        What is about to be appended.
    frame : DataFrame
        What it is read from, without its condition.

    Raises
    ------
    UnsupportedQuery
        ``SKIMQL_ALREADY_APPENDED``; the message names a file or the source, and when it was read.
    DataError
        ``SKIMQL_SOURCE_CHANGED`` if a file that was read before has changed since, or is gone from the source: its
        tuples may stand in a new file now (a rewrite, a compaction).
    """
    _refuse_rewritten(head, reading, frame, sql, place)
    before = {real_path(f.path): (f, e) for e in head.lineage for f in e.files}
    seen = [f for f in reading.files if real_path(f.path) in before]
    for file in seen:
        old, earlier = before[real_path(file.path)]
        if (file.size, file.modified) != (old.size, old.modified):
            raise DataError(
                f"{file.path} has changed since sketch {head.name} read it at {earlier.at}",
                "SKIMQL_SOURCE_CHANGED",
                sql,
                place,
                f"REFRESH SKETCH {head.name}",
            )
    # What is counted another number of times, deleted say, is another change.
    for earlier in (e for e in head.lineage if e.times == reading.times):
        own = _states(earlier)
        again = [f.path for f in seen if _state(f) in own]
        same = not reading.files and _same_data(earlier, reading)
        if (again or same) and _overlap(earlier, reading, frame, again):
            what = again[0] if again else reading.source
            raise UnsupportedQuery(
                f"sketch {head.name} already has {what}, read at {earlier.at}",
                "SKIMQL_ALREADY_APPENDED",
                sql,
                place,
                "append what is new only, or REFRESH SKETCH " + head.name,
            )


def counted_otherwise(head: Head) -> tuple[str, ...]:
    """A note where what was appended last had been read before, and its tuples counted another number of times.

    None of what is taken out as a whole (``WEIGHT -1``).
    """
    *before, last = head.lineage
    if last.times == "-1":
        return ()
    paths = {real_path(f.path) for f in last.files}
    found = (
        (f.path, e) for e in before if e.times != last.times for f in e.files if real_path(f.path) in paths
    )
    return tuple(
        f"{path} was read before, at {earlier.at}:"
        f" its tuples are in the sketch as {_times(earlier)} and as {_times(last)}"
        for path, earlier in islice(found, 1)
    )


def _times(reading: Lineage) -> str:
    return "one each" if reading.times is None else f"{reading.times} each"


def refuse_same(head: Head, other: Head, sql: str, place: tuple[int, int]) -> None:
    """Refuse to merge sketches that have read the same: a file in the same state, or a source without files.

    Raises
    ------
    UnsupportedQuery
        ``SKIMQL_ALREADY_APPENDED``.
    """
    for mine in head.lineage:
        for theirs in (e for e in other.lineage if e.times == mine.times):
            common = _states(mine) & _states(theirs)
            same = not mine.files and not theirs.files and _same_data(mine, theirs)
            if common or same:
                what = min(common)[0] if common else theirs.source
                raise UnsupportedQuery(
                    f"sketches {head.name} and {other.name} both have {what}",
                    "SKIMQL_ALREADY_APPENDED",
                    sql,
                    place,
                    "sketches of different tuples only",
                )


def _state(file: LineageFile) -> tuple[str, int, int]:
    """A file and its state, whatever links it was read through; -1 for what is not known of it."""
    size, modified = (-1 if n is None else n for n in (file.size, file.modified))
    return real_path(file.path), size, modified


def _states(reading: Lineage) -> set[tuple[str, int, int]]:
    return set(map(_state, reading.files))


def _refuse_rewritten(
    head: Head, reading: Lineage, frame: DataFrame, sql: str, place: tuple[int, int]
) -> None:
    earlier = [
        e for e in head.lineage if (e.source, e.is_table) == (reading.source, reading.is_table) and e.files
    ]
    if not earlier:
        return
    present = set(_input_files(frame))
    gone = next((f.path for e in earlier for f in e.files if f.path not in present), None)
    if gone is not None:
        raise DataError(
            f"{gone}, which sketch {head.name} has read, is no file of {reading.source} any more",
            "SKIMQL_SOURCE_CHANGED",
            sql,
            place,
            f"REFRESH SKETCH {head.name}",
        )


def appended_elsewhere(head: Head, table: Lineage) -> tuple[Lineage, ...]:
    """The helpings that a rebuilt sketch takes besides its whole table: those whose files the table does not have."""
    own = {real_path(f.path) for f in table.files}
    return tuple(
        e
        for e in head.lineage[1:]
        if not (e.is_table and e.source == table.source)
        and not (e.files and {real_path(f.path) for f in e.files} <= own)
    )


def _same_data(earlier: Lineage, reading: Lineage) -> bool:
    """Whether two helpings without files are of one source in one version."""
    if earlier.snapshot is not None and reading.snapshot is not None:
        return earlier.snapshot == reading.snapshot
    return (earlier.source, earlier.is_table) == (reading.source, reading.is_table)


def _overlap(earlier: Lineage, reading: Lineage, frame: DataFrame, files: list[str]) -> bool:
    """Whether some tuple meets the conditions of both; Spark looks where the conditions differ."""
    from pyspark.sql import functions as F

    if earlier.condition is None or reading.condition in (None, earlier.condition):
        return True
    tuples = frame.where(both(earlier.condition, reading.condition) or "true")
    if files:
        path = F.regexp_replace(F.col("_metadata.file_path"), "^file:/+", "/")
        tuples = tuples.where(path.isin(files))
    return bool(tuples.limit(1).count())
