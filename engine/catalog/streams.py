"""What a catalog keeps of streams and continuous views: their definitions, and which file has a stream's state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...parser.join_graph import Column, TableSchema
from . import checks
from .secrets import split_options

MOST_NAME = 255
# The format of a stream that is a streaming DataFrame, which only its session has.
FRAME = "frame"
# What records of changes to a table look like.
DEBEZIUM, DELTA = "debezium", "delta"


@dataclass(frozen=True, slots=True)
class StoredState:
    """The file of a state: its name, SHA-256 and size, and the last batch that the state has (None: of none yet)."""

    file: str
    sha256: str
    size: int
    batch: int | None


@dataclass(frozen=True, slots=True)
class StoredStream:
    """A stream.

    Attributes
    ----------
    name : str
        As its maker spells it; look-ups ignore case.
    id : str
        Drawn when it was created, 32 hexadecimal digits: of its state and of its checkpoint.
    columns : tuple of Column
    format : str
        Of Spark's streaming reader: json, csv, parquet, kafka, rate; or `FRAME`.
    source : str
        A folder, an address, a topic, or empty.
    options : mapping of str to str
        Of that reader.
    times : str or None
        How often an event counts, as SQL, negative where it deletes; None where each counts once.
    signs : str
        The same in the words of the statement.
    ansi, time_zone, settings
        Those of the Spark session that it was created in: every batch is read under them.
    created : str
        UTC, ISO 8601.
    withheld : tuple of str
        Options that are too secret to be kept.
    state, before : StoredState or None
        The newest state and the one before it.
    fault : str
        Why it stopped; empty where it was not for a fault.
    changes : str
        `DEBEZIUM` or `DELTA` where its events are changes to the rows of a table; empty where they are rows.
    dedup, within
        The columns of an id that counts once within a time; empty where every event counts.
    """

    name: str
    id: str
    columns: tuple[Column, ...]
    format: str
    source: str
    options: Mapping[str, str]
    times: str | None
    signs: str
    ansi: bool
    time_zone: str
    settings: tuple[tuple[str, str], ...]
    created: str
    withheld: tuple[str, ...] = ()
    state: StoredState | None = None
    before: StoredState | None = None
    fault: str = ""
    changes: str = ""
    dedup: tuple[str, ...] = ()
    within: str = ""

    @property
    def schema(self) -> TableSchema:
        """The columns as the parser sees those of a table."""
        return TableSchema(self.name, self.columns)

    @property
    def ddl(self) -> str:
        """The columns as Spark's readers take them."""
        return ", ".join(f"`{c.name.replace('`', '``')}` {c.type}" for c in self.columns)


@dataclass(frozen=True, slots=True)
class StoredView:
    """A continuous view: its SELECT, and all that decides how it is answered.

    Attributes
    ----------
    name, select : str
        `select` is Spark's SELECT, our words left out.
    settings : mapping of str to str
        What WITH said.
    seed, rows, buckets : int
    sparse : bool
        As in `optimizer.choose`.
    confidence : float
    folds : tuple of (int, int, int)
        The exact messages: sender, receiver and join class of each, as in `optimizer.messages.Fold`.
    key_types : tuple of tuples of str
        The comparison types of every edge.
    classes : tuple of str
        The join class of every edge: that of the views before it on the same keys, so that they share sketches.
    streams : tuple of str
        Those that it reads.
    tables : tuple of TableSchema
        The static tables that it reads, as they were.
    created : str
    paused : bool
    """

    name: str
    select: str
    settings: Mapping[str, str]
    seed: int
    rows: int
    buckets: int
    sparse: bool
    confidence: float
    folds: tuple[tuple[int, int, int], ...]
    key_types: tuple[tuple[str, ...], ...]
    classes: tuple[str, ...]
    streams: tuple[str, ...]
    tables: tuple[TableSchema, ...]
    created: str
    paused: bool = False

    @property
    def known_as(self) -> str:
        """Tells it from a view that had its name before."""
        return f"{self.name} {self.created}"


@dataclass(frozen=True, slots=True)
class Continuous:
    """The streams and continuous views of a catalog, by lower-cased name."""

    streams: Mapping[str, StoredStream] = field(default_factory=dict)
    views: Mapping[str, StoredView] = field(default_factory=dict)

    @property
    def files(self) -> set[str]:
        """The files of all states."""
        return {s.file for stream in self.streams.values() for s in (stream.state, stream.before) if s}

    def readers(self, stream: str) -> tuple[StoredView, ...]:
        """The views that read a stream, in order of their names."""
        return tuple(
            v for _, v in sorted(self.views.items()) if stream.lower() in {s.lower() for s in v.streams}
        )


def to_json(found: Continuous) -> dict[str, Any]:
    """As JSON values; nothing secret is among them."""
    return {
        "streams": {name: _stream_json(s) for name, s in found.streams.items()},
        "views": {name: _view_json(v) for name, v in found.views.items()},
    }


def from_json(data: Mapping[str, Any]) -> Continuous:
    """What `to_json` wrote; ValueError or KeyError where it is not that."""
    streams = {n: _stream(s) for n, s in checks.mapping(data.get("streams", {}), "streams").items()}
    views = {n: _view(v) for n, v in checks.mapping(data.get("views", {}), "views").items()}
    spelled = [*((n, s.name) for n, s in streams.items()), *((n, v.name) for n, v in views.items())]
    for name, own in spelled:
        if own.lower() != name:
            raise ValueError(f"{own!r} stands under another name")
    for view in views.values():
        if not {s.lower() for s in view.streams} <= set(streams):
            raise ValueError(f"view {view.name} reads a stream that is not there")
    return Continuous(streams, views)


def _stream_json(stream: StoredStream) -> dict[str, Any]:
    options, withheld = split_options(stream.options)
    return {
        "name": stream.name,
        "id": stream.id,
        "columns": _columns_json(stream.columns),
        "format": stream.format,
        "source": stream.source,
        "options": options,
        "times": stream.times,
        "signs": stream.signs,
        "ansi": stream.ansi,
        "time_zone": stream.time_zone,
        "settings": dict(stream.settings),
        "created": stream.created,
        "withheld": sorted({*stream.withheld, *withheld}),
        "state": _state_json(stream.state),
        "before": _state_json(stream.before),
        "fault": stream.fault,
        **({"changes": stream.changes} if stream.changes else {}),
        **({"dedup": [list(stream.dedup), stream.within]} if stream.dedup else {}),
    }


def _stream(data: Any) -> StoredStream:
    data = checks.mapping(data, "a stream")
    return StoredStream(
        checks.text(data["name"], "name", MOST_NAME),
        _id(data["id"]),
        _columns(data["columns"]),
        checks.one_of(data["format"], ("json", "csv", "parquet", "kafka", "rate", FRAME), "format"),
        checks.text(data["source"], "source"),
        dict(checks.text_pairs(data["options"], "options")),
        checks.optional(data["times"], lambda v: checks.text(v, "times")),
        checks.text(data["signs"], "signs"),
        checks.boolean(data["ansi"], "ansi"),
        checks.text(data["time_zone"], "time_zone", 256),
        checks.text_pairs(data["settings"], "settings"),
        checks.text(data["created"], "created", 64),
        checks.texts(data["withheld"], "withheld"),
        checks.optional(data["state"], _state),
        checks.optional(data["before"], _state),
        checks.text(data["fault"], "fault"),
        checks.one_of(data.get("changes", ""), ("", DEBEZIUM, DELTA), "changes"),
        *_dedup(data.get("dedup", [[], ""])),
    )


def _dedup(value: Any) -> tuple[tuple[str, ...], str]:
    columns, within = checks.row(value, 2, "dedup")
    return checks.texts(columns, "dedup"), checks.text(within, "within", 64)


def _id(value: Any) -> str:
    if len(checks.text(value, "id", 32)) != 32 or not set(value) <= set("0123456789abcdef"):
        raise ValueError("the id of a stream is none")
    return str(value)


def _state_json(state: StoredState | None) -> list[Any] | None:
    return None if state is None else [state.file, state.sha256, state.size, state.batch]


def _state(value: Any) -> StoredState:
    file, sha256, size, batch = checks.row(value, 4, "a state")
    return StoredState(
        checks.text(file, "file", 100),
        checks.text(sha256, "sha256", 64),
        checks.integer(size, 0, 1 << 40, "size"),
        checks.optional(batch, lambda v: checks.integer(v, 0, checks.INT64, "batch")),
    )


def _view_json(view: StoredView) -> dict[str, Any]:
    return {
        "name": view.name,
        "select": view.select,
        "settings": dict(view.settings),
        "seed": view.seed,
        "rows": view.rows,
        "buckets": view.buckets,
        "sparse": view.sparse,
        "confidence": view.confidence,
        "folds": [list(f) for f in view.folds],
        "key_types": [list(t) for t in view.key_types],
        "classes": list(view.classes),
        "streams": list(view.streams),
        "tables": [[t.name, _columns_json(t.columns)] for t in view.tables],
        "created": view.created,
        "paused": view.paused,
    }


def _view(data: Any) -> StoredView:
    data = checks.mapping(data, "a view")
    folds = [checks.row(f, 3, "a fold") for f in checks.items(data["folds"], "folds")]
    tables = [checks.row(t, 2, "a table") for t in checks.items(data["tables"], "tables")]
    return StoredView(
        checks.text(data["name"], "name", MOST_NAME),
        checks.text(data["select"], "select"),
        dict(checks.text_pairs(data["settings"], "settings")),
        checks.integer(data["seed"], 0, checks.INT64, "seed"),
        checks.integer(data["rows"], 1, 1 << 16, "rows"),
        checks.integer(data["buckets"], 2, 1 << 26, "buckets"),
        checks.boolean(data["sparse"], "sparse"),
        _confidence(data["confidence"]),
        tuple((_number(a), _number(b), _number(c)) for a, b, c in folds),
        tuple(checks.texts(t, "key types") for t in checks.items(data["key_types"], "key types")),
        checks.texts(data["classes"], "classes"),
        checks.texts(data["streams"], "streams"),
        tuple(TableSchema(checks.text(n, "a table"), _columns(c)) for n, c in tables),
        checks.text(data["created"], "created", 64),
        checks.boolean(data["paused"], "paused"),
    )


def _number(value: Any) -> int:
    return checks.integer(value, 0, 1 << 16, "a vertex")


def _confidence(value: Any) -> float:
    found = checks.number(value, 0.0, "confidence")
    if not 0 < found < 1:
        raise ValueError("a confidence is between 0 and 1")
    return found


def _columns_json(columns: tuple[Column, ...]) -> list[list[str]]:
    return [[c.name, c.type] for c in columns]


def _columns(value: Any) -> tuple[Column, ...]:
    pairs = (checks.row(pair, 2, "a column") for pair in checks.items(value, "columns"))
    return tuple(Column(checks.text(n, "a column"), checks.text(t, "a type")) for n, t in pairs)
