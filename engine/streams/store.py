"""Streams, views and states in a catalog: looked up, read, and replaced in one step."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass, replace

from ...errors import CorruptSketch, StreamError, UnknownName
from ...parser.syntax import Part
from ..catalog.catalog import Catalog
from ..catalog.streams import Continuous, StoredState, StoredStream, StoredView
from ..materialized.names import place_of
from .state import StreamState
from .state_file import decode, encode

_READS = 5


@dataclass(frozen=True, slots=True)
class Loaded:
    """A state, and the file that it was read from (None: of none).

    `lost` says why the newest file was not taken, where it was not; the state is then the one before.
    """

    state: StreamState
    file: StoredState | None
    lost: str = ""


def continuous(catalog: Catalog) -> Continuous:
    """The streams and views of a catalog."""
    return catalog.manifest.continuous


def find_stream(catalog: Catalog, sql: str, name: Part) -> StoredStream:
    """The stream that a statement names; UnknownName with the near names otherwise."""
    found = continuous(catalog).streams.get(name.text.lower())
    if found is None:
        raise _unknown("stream", [s.name for s in continuous(catalog).streams.values()], sql, name)
    return found


def find_view(catalog: Catalog, sql: str, name: Part) -> StoredView:
    """The view that a statement names; UnknownName with the near names otherwise."""
    found = continuous(catalog).views.get(name.text.lower())
    if found is None:
        known = continuous(catalog)
        names = [*(v.name for v in known.views.values()), *(s.name for s in known.sets.values())]
        raise _unknown("continuous view", names, sql, name)
    return found


def find_views(catalog: Catalog, sql: str, name: Part) -> tuple[StoredView, ...]:
    """The view that a statement names, or those of the set that it names; UnknownName otherwise."""
    found = continuous(catalog)
    if name.text.lower() in found.sets:
        return found.members(name.text)
    return (find_view(catalog, sql, name),)


def refuse_asked(catalog: Catalog, fault: UnknownName) -> None:
    """Refuse a query of a stream as if it was a table, which is what a name that no table has may stand for.

    Raises
    ------
    StreamError
        ``SKIMQL_STREAM_ASKED``.
    """
    start, end = fault.span or (0, 0)
    stream = continuous(catalog).streams.get(fault.sql[start:end].strip("`").lower())
    if stream is not None and fault.code == "SKIMQL_UNKNOWN_TABLE":
        raise StreamError(
            f"{stream.name} is a stream: its events are in no table, and views of it are what is asked",
            "SKIMQL_STREAM_ASKED",
            fault.sql,
            fault.span,
            f"CREATE CONTINUOUS VIEW q AS {fault.sql.strip().rstrip(';')}",
        ) from fault


def load(catalog: Catalog, stream: StoredStream, seed: int) -> Loaded:
    """The state of a stream: the newest that is whole, of the last two.

    `seed` is that of its sketches if it has none yet.

    Raises
    ------
    CorruptSketch
        If neither is whole.
    """
    if stream.state is None:
        return Loaded(StreamState(stream.id, seed), None)
    try:
        return Loaded(_read(catalog, stream, stream.state), stream.state)
    except CorruptSketch as fault:
        if stream.before is None:
            if stream.state.batch != 0:
                raise
            return Loaded(StreamState(stream.id, seed), None, fault.message)
        return Loaded(_read(catalog, stream, stream.before), stream.before, fault.message)


def load_before(catalog: Catalog, stream: StoredStream) -> StreamState | None:
    """The state before the newest one; None where there is none, or it is not whole."""
    if stream.before is None:
        return None
    try:
        return _read(catalog, stream, stream.before)
    except CorruptSketch:
        return None


def load_other(catalog: Catalog, name: str, seed: int) -> StreamState:
    """The state of a stream that others run: read again where they have replaced it meanwhile; raises as `load`."""
    for left in reversed(range(_READS)):
        found = continuous(catalog)
        try:
            return load(catalog, found.streams[name.lower()], seed).state
        except CorruptSketch:
            if not left or continuous(catalog) is found:
                raise
    raise AssertionError("the last read returns or raises")


def save(catalog: Catalog, stream: StoredStream, good: StoredState | None, state: StreamState) -> None:
    """Make a state the newest one of its stream.

    Parameters
    ----------
    catalog : Catalog
    stream : StoredStream
        As it was when the state before was read.
    good : StoredState or None
        The file of the state before.
    state : StreamState

    Raises
    ------
    StreamError
        ``SKIMQL_STATE_CHANGED`` if somebody else has changed the stream or its state since; nothing is overwritten.
    DataError
        ``SKIMQL_CATALOG_NOT_WRITTEN`` if the store refuses.
    """

    def change(now: Continuous, keep: Callable[[bytes], StoredState]) -> Continuous:
        found = now.streams.get(stream.name.lower())
        if found is None or found.id != stream.id or found.state != stream.state:
            raise StreamError(
                f"stream {stream.name} was changed by another process meanwhile; nothing was overwritten",
                "SKIMQL_STATE_CHANGED",
                hint="SHOW STREAMS, then RESUME",
            )
        written = replace(keep(encode(state)), batch=state.batch)
        changed = replace(found, state=written, before=good, fault="")
        return replace(now, streams={**now.streams, stream.name.lower(): changed})

    catalog.change_streams(change)


def forget_senders(catalog: Catalog, stream: StoredStream, tables: frozenset[str]) -> None:
    """Let tables, in small letters, be others than they were: the next batch is joined with what they have then."""
    loaded = load(catalog, stream, 0)
    state = loaded.state.without_senders(tables)
    if state is not loaded.state:
        save(catalog, stream, loaded.file, state)


def tell_fault(catalog: Catalog, stream: StoredStream, fault: str) -> None:
    """Keep why a stream stopped; nothing where it is another by now."""

    def change(now: Continuous, _: object) -> Continuous:
        found = now.streams.get(stream.name.lower())
        if found is None or found.id != stream.id:
            return now
        return replace(now, streams={**now.streams, stream.name.lower(): replace(found, fault=fault)})

    catalog.change_streams(change)


def _read(catalog: Catalog, stream: StoredStream, file: StoredState) -> StreamState:
    state = decode(catalog.read_state(file), f"{catalog.where}/{file.file}")
    if state.id != stream.id or state.batch != file.batch:
        raise CorruptSketch(f"{catalog.where}/{file.file} is not the state of stream {stream.name}")
    return state


def _unknown(kind: str, known: list[str], sql: str, name: Part) -> UnknownName:
    near = difflib.get_close_matches(name.text, known, 3) or sorted(known)[:10]
    making = "CREATE STREAM ..." if kind == "stream" else "CREATE CONTINUOUS VIEW ..."
    return UnknownName(
        f"there is no {kind} {name.text}",
        "SKIMQL_UNKNOWN_STREAM",
        sql,
        place_of(name),
        ", ".join(near) or making,
    )
