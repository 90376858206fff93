"""The manifest of a catalog: which files are its sketches, what tables it knows, and under which settings.

It is written last, under a number of its own (``catalog-00000007.json``, never overwritten) and then as
``catalog.json``. A reader takes ``catalog.json``; where that is damaged, as a store without atomic writes may leave
it, the newest numbered one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ...errors import CorruptSketch
from ...parser.join_graph import Column, TableSchema
from .file import canonical, digest
from .folder import Folder
from .form import FORMAT_VERSION, Head, from_json, refuse_newer, to_json

MANIFEST = "catalog.json"
KIND = "skimql catalog"
_KEPT = 2  # numbered manifests: this one, and the one that a reader may have just read


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
    `stamp` is the size and time of change of a local path when it was read, None of others.
    """

    schema: TableSchema
    source: str | None
    options: Mapping[str, Any]
    stamp: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class StoredWorkload:
    """The plans of `CREATE SKETCHES`: which of its sketches answers which query, as `standing` writes it.

    `sketches` are the names of its sketches, in the order in which the plans number them.
    """

    name: str
    sketches: tuple[str, ...]
    plans: Any


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
    settings : tuple of (str, str)
        Its other settings that change what a text means, those off their defaults.
    """

    generation: int = 0
    sketches: Mapping[str, Entry] = field(default_factory=dict)
    tables: Mapping[str, KnownTable] = field(default_factory=dict)
    workloads: Mapping[str, StoredWorkload] = field(default_factory=dict)
    ansi: bool | None = None
    time_zone: str | None = None
    settings: tuple[tuple[str, str], ...] = ()

    def next(self, **changes: Any) -> Manifest:
        """The following state."""
        return replace(self, generation=self.generation + 1, **changes)


def numbered(generation: int) -> str:
    """The name under which a generation is written once."""
    return f"catalog-{generation:08d}.json"


def read_manifest(folder: Folder) -> Manifest:
    """The present state; an empty one if nothing was ever written.

    Raises
    ------
    CorruptSketch
        If neither ``catalog.json`` nor the newest numbered manifest is whole.
    IncompatibleSketches
        If a newer SkimQL wrote it.
    """
    try:
        return decode(folder.read(MANIFEST), f"{folder.where}/{MANIFEST}")
    except FileNotFoundError:
        found = _numbered_in(folder)
        if not found:
            return Manifest()
    except CorruptSketch:
        found = _numbered_in(folder)
        if not found:
            raise
    return decode(folder.read(found[-1]), f"{folder.where}/{found[-1]}")


def write_manifest(folder: Folder, manifest: Manifest) -> None:
    """Make `manifest` the present state, and forget manifests that nobody can be reading."""
    data = encode(manifest)
    folder.write(numbered(manifest.generation), data)
    folder.replace(MANIFEST, data)
    for name in _numbered_in(folder)[:-_KEPT]:
        folder.delete(name)


def encode(manifest: Manifest) -> bytes:
    """The file of a manifest; its own checksum is the last thing in it."""
    content = {
        "kind": KIND,
        "format_version": FORMAT_VERSION,
        "generation": manifest.generation,
        "ansi": manifest.ansi,
        "time_zone": manifest.time_zone,
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
            }
            for name, t in manifest.tables.items()
        },
        "workloads": {
            name: {"name": w.name, "sketches": list(w.sketches), "plans": w.plans}
            for name, w in manifest.workloads.items()
        },
    }
    return canonical({"catalog": content, "sha256": digest(canonical(content))}) + b"\n"


def decode(data: bytes, where: str) -> Manifest:
    """The manifest in the bytes of a file; raises as `read_manifest`."""
    try:
        whole = json.loads(data)
        content, checksum = whole["catalog"], whole["sha256"]
    except (ValueError, KeyError, TypeError) as fault:
        raise CorruptSketch(f"{where} is damaged: {fault}", hint="a copy of the folder") from fault
    if digest(canonical(content)) != checksum:
        raise CorruptSketch(
            f"{where} is damaged: its SHA-256 is not {str(checksum)[:16]}…", hint="a copy of the folder"
        )
    try:
        refuse_newer(content["format_version"], where)
        return _manifest(content, where)
    except (KeyError, TypeError, ValueError, AttributeError) as fault:
        raise CorruptSketch(f"{where} is no manifest of a catalog ({fault})") from fault


def entry(file: str, data: bytes, head: Head) -> Entry:
    """The entry of a sketch whose file was just written."""
    return Entry(file, digest(data), len(data), to_json(head), head)


def _manifest(content: Mapping[str, Any], where: str) -> Manifest:
    if content["kind"] != KIND:
        raise ValueError(f"kind {content['kind']!r}")
    return Manifest(
        int(content["generation"]),
        {name: _entry(e, where) for name, e in content["sketches"].items()},
        {name: _table(t) for name, t in content["tables"].items()},
        {
            name: StoredWorkload(w["name"], tuple(w["sketches"]), w["plans"])
            for name, w in content["workloads"].items()
        },
        content["ansi"],
        content["time_zone"],
        tuple(sorted((str(n), str(v)) for n, v in content.get("settings", {}).items())),
    )


def _entry(data: Mapping[str, Any], where: str) -> Entry:
    metadata, file = data["metadata"], data["file"]
    if "/" in file or "\\" in file or file.startswith("."):
        raise ValueError(f"{file!r} is no name of a file")
    newer = metadata["format_version"] > FORMAT_VERSION
    head = None if newer else from_json(metadata, f"{where}: {metadata['name']}")
    return Entry(file, data["sha256"], data["bytes"], metadata, head)


def _table(data: Mapping[str, Any]) -> KnownTable:
    columns = tuple(Column(str(n), str(t)) for n, t in data["columns"])
    stamp = None if data["stamp"] is None else (int(data["stamp"][0]), int(data["stamp"][1]))
    schema = TableSchema(data["name"], columns, data["view"])
    return KnownTable(schema, data["source"], data["options"], stamp)


def _numbered_in(folder: Folder) -> list[str]:
    return sorted(
        n
        for n in folder.names()
        if n.startswith("catalog-") and n.endswith(".json") and n[len("catalog-") : -len(".json")].isdigit()
    )
