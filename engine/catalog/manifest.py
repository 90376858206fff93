"""The manifest of a catalog: which files are its sketches, what tables it knows, and under which settings.

It is written last, under a number of its own (``catalog-00000007.json``, never overwritten) and then as
``catalog.json``; see `changes`. A reader takes ``catalog.json``; where that is damaged, as a store without atomic
writes may leave it, the newest numbered one.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ...errors import CorruptSketch, DataError, SkimqlError
from ...parser.join_graph import Column, TableSchema
from . import checks, streams
from .file import canonical, digest
from .folder import Folder
from .form import Head
from .metadata import FORMAT_VERSION, from_json, refuse_newer, to_json
from .planned import check_plans
from .secrets import has_secret, split_options
from .streams import Continuous

MANIFEST = "catalog.json"
KIND = "skimql catalog"
# Of the manifest itself; its sketches say theirs, so that a newer one is refused by itself.
VERSION = 2
# What a version knew that has no streams: it is written where there are none.
WITHOUT_STREAMS = 1
MOST_BYTES = 1 << 28
_DATA_FILE = re.compile(r"[0-9a-f]{32}\.parquet")
_STATE_FILE = re.compile(r"[0-9a-f]{32}\.state")
_NUMBERED = re.compile(r"catalog-\d{8,18}\.json")
_GARBAGE = re.compile(
    rf"{_DATA_FILE.pattern}|{_STATE_FILE.pattern}|[0-9a-f]{{32}}\.partial|{_NUMBERED.pattern}"
)


@dataclass(frozen=True, slots=True)
class Entry:
    """A sketch of the catalog: its head, its file, and the SHA-256 and size of that file.

    `metadata` is the head as it stands in the manifest; `head` is None where a newer SkimQL wrote it.
    """

    file: str
    sha256: str
    size: int
    metadata: Mapping[str, Any]
    head: Head | None

    @property
    def name(self) -> str:
        """As its maker spells it."""
        return str(self.metadata.get("name"))


@dataclass(frozen=True, slots=True)
class KnownTable:
    """A registered table: its schema, and where it comes from.

    `source` is a path or URI, or None where only Spark or a DataFrame knows; `options` are those of Spark's reader;
    `stamp` is the size and time of change of a local path when it was read, None of others; `withheld` are the names
    of options that are too secret to be kept: the table can be read again only by who gives them again.
    """

    schema: TableSchema
    source: str | None
    options: Mapping[str, Any]
    stamp: tuple[int, int] | None = None
    withheld: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StoredWorkload:
    """The plans of `CREATE SKETCHES`: which of its sketches answers which query, as `standing` writes it.

    `sketches` are the names of its sketches, in the order in which the plans number them; `made_of` is the checksum of
    their files, None where an older SkimQL wrote it.
    """

    name: str
    sketches: tuple[str, ...]
    plans: Any
    made_of: str | None = None


@dataclass(frozen=True, slots=True)
class Manifest:
    """A state of the catalog.

    Attributes
    ----------
    generation : int
        Grows by 1 with every change.
    sketches, tables, workloads : mapping
        By lower-cased name.
    ansi, time_zone : bool, str or None
        Of the last Spark session that wrote here; None before the first.
    garbage : tuple of str or None
        Files that the next change deletes: what the state before named and this one does not. None where an older
        SkimQL wrote it.
    id : str
        Drawn when the catalog was begun; empty where an older SkimQL began it.
    digest : str
        Its own checksum, as it was read; empty where it was not.
    settings : tuple of (str, str)
        Its other settings that change what a text means, those off their defaults.
    continuous : Continuous
        Its streams and continuous views.
    """

    generation: int = 0
    sketches: Mapping[str, Entry] = field(default_factory=dict)
    tables: Mapping[str, KnownTable] = field(default_factory=dict)
    workloads: Mapping[str, StoredWorkload] = field(default_factory=dict)
    ansi: bool | None = None
    time_zone: str | None = None
    garbage: tuple[str, ...] | None = ()
    id: str = ""
    digest: str = field(default="", compare=False)
    settings: tuple[tuple[str, str], ...] = ()
    continuous: Continuous = field(default_factory=Continuous)

    @property
    def files(self) -> set[str]:
        """The files that it names: of sketches and of states."""
        return {e.file for e in self.sketches.values()} | self.continuous.files

    def next(self, **changes: Any) -> Manifest:
        """The following state."""
        return replace(self, generation=self.generation + 1, digest="", **changes)


def numbered(generation: int) -> str:
    """The name under which a generation is written once."""
    return f"catalog-{generation:08d}.json"


def read_manifest(folder: Folder) -> Manifest:
    """The present state; an empty one if nothing was ever written.

    Raises
    ------
    CorruptSketch
        If neither ``catalog.json`` nor the newest numbered manifest is whole.
    DataError
        ``SKIMQL_CATALOG_LOST`` if there are sketches and no manifest.
    IncompatibleSketches
        If a newer SkimQL wrote it.
    """
    try:
        return _decoded(folder, MANIFEST)
    except FileNotFoundError:
        found = numbered_in(folder)
        if not found:
            _refuse_lost(folder)
            return Manifest()
    except CorruptSketch:
        found = numbered_in(folder)
        if not found:
            raise
    return _decoded(folder, found[-1])


def _decoded(folder: Folder, name: str) -> Manifest:
    return decode(folder.read(name, MOST_BYTES), f"{folder.where}/{name}")


def _refuse_lost(folder: Folder) -> None:
    sketches = [n for n in folder.names() if _DATA_FILE.fullmatch(n)]
    if not sketches:
        return
    try:
        _decoded(folder, MANIFEST)  # begun while this reader looked
    except (OSError, SkimqlError) as fault:
        raise DataError(
            f"{folder.where} has no {MANIFEST} any more, and {len(sketches):,} files that look like sketches;"
            " nothing has changed",
            "SKIMQL_CATALOG_LOST",
            hint=f"put {MANIFEST} back, or keep them in another catalog:"
            f" IMPORT SKETCH name FROM '{folder.where}/{sketches[0]}'",
        ) from fault


def encode(manifest: Manifest) -> bytes:
    """The file of a manifest; its own checksum is the last thing in it."""
    content = {
        "kind": KIND,
        "format_version": VERSION if manifest.continuous.streams else WITHOUT_STREAMS,
        "generation": manifest.generation,
        "ansi": manifest.ansi,
        "time_zone": manifest.time_zone,
        "garbage": list(manifest.garbage or ()),
        **({"id": manifest.id} if manifest.id else {}),
        **({"settings": dict(manifest.settings)} if manifest.settings else {}),
        "sketches": {
            name: {
                "file": e.file,
                "sha256": e.sha256,
                "metadata_sha256": digest(canonical(e.metadata)),
                "bytes": e.size,
                "metadata": e.metadata,
            }
            for name, e in manifest.sketches.items()
        },
        "tables": {
            name: {
                "name": t.schema.name,
                "columns": [[c.name, c.type] for c in t.schema.columns],
                "view": t.schema.view,
                "source": t.source,
                "options": dict(t.options),
                "stamp": t.stamp,
                **({"withheld": list(t.withheld)} if t.withheld else {}),
            }
            for name, t in ((n, without_secrets(t)) for n, t in manifest.tables.items())
        },
        "workloads": {
            name: {
                "name": w.name,
                "sketches": list(w.sketches),
                "plans": w.plans,
                **({"made_of": w.made_of} if w.made_of else {}),
            }
            for name, w in manifest.workloads.items()
        },
        **(streams.to_json(manifest.continuous) if manifest.continuous.streams else {}),
    }
    return canonical({"catalog": content, "sha256": digest(canonical(content))}) + b"\n"


def decode(data: bytes, where: str) -> Manifest:
    """The manifest in the bytes of a file; raises as `read_manifest`."""
    try:
        whole = checks.mapping(checks.parse_json(data), "a manifest")
        content, checksum = whole["catalog"], checks.text(whole["sha256"], "its SHA-256", 64)
        found = digest(canonical(content))
    except (ValueError, KeyError, RecursionError) as fault:
        raise CorruptSketch(f"{where} is damaged: {fault}", hint="a copy of the folder") from fault
    if found != checksum:
        raise CorruptSketch(
            f"{where} is damaged: its SHA-256 is not {checksum[:16]}…", hint="a copy of the folder"
        )
    try:
        refuse_newer(content["format_version"], where, VERSION)
        return replace(_manifest(content, where), digest=found)
    except (KeyError, ValueError, TypeError) as fault:
        raise CorruptSketch(f"{where} is no manifest of a catalog ({fault})") from fault


def entry(file: str, data: bytes, head: Head) -> Entry:
    """The entry of a sketch whose file was just written."""
    return Entry(file, digest(data), len(data), to_json(head), head)


def _manifest(content: Mapping[str, Any], where: str) -> Manifest:
    if content["kind"] != KIND:
        raise ValueError("it is of another kind")
    sketches = {n: _entry(e, where) for n, e in checks.mapping(content["sketches"], "sketches").items()}
    continuous = streams.from_json(content)
    if not all(map(_STATE_FILE.fullmatch, continuous.files)):
        raise ValueError("a state lies in what is no file of ours")
    named = {e.file for e in sketches.values()} | continuous.files
    return Manifest(
        checks.integer(content["generation"], 0, 10**18 - 1, "generation"),
        _by_name(sketches, "sketches"),
        _by_name({n: _table(t) for n, t in checks.mapping(content["tables"], "tables").items()}, "tables"),
        _by_name(
            {n: _workload(w) for n, w in checks.mapping(content["workloads"], "workloads").items()},
            "workloads",
        ),
        checks.optional(content["ansi"], lambda v: checks.boolean(v, "ansi")),
        checks.optional(content["time_zone"], lambda v: checks.text(v, "time_zone", 256)),
        _garbage(content["garbage"], named) if "garbage" in content else None,
        checks.text(content.get("id", ""), "id", 64),
        settings=checks.text_pairs(content.get("settings", {}), "settings"),
        continuous=continuous,
    )


def _by_name(found: Mapping[str, Any], what: str) -> Mapping[str, Any]:
    for name, value in found.items():
        own = value.schema.name if isinstance(value, KnownTable) else value.name
        if name != own.lower():
            raise ValueError(f"{what} has {own!r} under another name")
    return found


def _garbage(value: Any, named: Collection[str]) -> tuple[str, ...]:
    """Names that may be deleted: of a form that only SkimQL gives, and none that a sketch or a state lies in."""
    garbage = checks.texts(value, "garbage")
    if not all(map(_GARBAGE.fullmatch, garbage)) or set(named) & set(garbage):
        raise ValueError("garbage has what is none")
    return garbage


def without_secrets(table: KnownTable) -> KnownTable:
    """A table as a catalog keeps it: without passwords and the like, but with their names."""
    options, withheld = split_options(table.options)
    hidden = table.source is not None and has_secret(table.source)
    names = {*table.withheld, *withheld, *(["path"] if hidden else [])}
    source = None if hidden else table.source
    return replace(table, source=source, options=options, withheld=tuple(sorted(names)))


def _entry(data: Any, where: str) -> Entry:
    data = checks.mapping(data, "a sketch")
    metadata, file = checks.mapping(data["metadata"], "metadata"), checks.text(data["file"], "file", 100)
    if not _DATA_FILE.fullmatch(file):
        raise ValueError(f"{file!r} is no name of a file of ours")
    version = checks.integer(metadata["format_version"], 1, 1 << 31, "format_version")
    name = checks.text(metadata["name"], "name")
    head = None if version > FORMAT_VERSION else from_json(metadata, f"{where}: {name}")
    size = checks.integer(data["bytes"], 0, 1 << 32, "bytes")
    return Entry(file, checks.text(data["sha256"], "sha256", 64), size, metadata, head)


def _table(data: Any) -> KnownTable:
    data = checks.mapping(data, "a table")
    pairs = (checks.row(pair, 2, "a column") for pair in checks.items(data["columns"], "columns"))
    columns = tuple(Column(checks.text(n, "a column"), checks.text(t, "a type")) for n, t in pairs)
    schema = TableSchema(
        checks.text(data["name"], "a table"),
        columns,
        checks.optional(data["view"], lambda v: checks.text(v, "view")),
    )
    options = checks.mapping(data["options"], "options")
    if not all(isinstance(v, (bool, int, float, str)) or v is None for v in options.values()):
        raise ValueError("an option is no plain value")
    return KnownTable(
        schema,
        checks.optional(data["source"], lambda v: checks.text(v, "source")),
        options,
        checks.optional(data["stamp"], _stamp),
        checks.texts(data.get("withheld", []), "withheld"),
    )


def _stamp(value: Any) -> tuple[int, int]:
    size, changed = checks.row(value, 2, "stamp")
    most = checks.INT64
    return checks.integer(size, 0, most, "a size"), checks.integer(changed, -most, most, "a time")


def _workload(data: Any) -> StoredWorkload:
    data = checks.mapping(data, "a workload")
    sketches = checks.texts(data["sketches"], "the sketches of a workload")
    made_of = checks.optional(data.get("made_of"), lambda v: checks.text(v, "made_of", 64))
    return StoredWorkload(
        checks.text(data["name"], "a workload"), sketches, check_plans(data["plans"], len(sketches)), made_of
    )


def numbered_in(folder: Folder) -> list[str]:
    """The numbered manifests of a folder, oldest first."""
    return sorted((n for n in folder.names() if _NUMBERED.fullmatch(n)), key=lambda n: int(n[8:-5]))
