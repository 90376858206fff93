"""What a stored sketch says of itself, as plain values and as JSON.

A stored sketch is one virtual relation with its join attributes and one or several weights: the tuples, and for
SUM the values and where they are not NULL, each a sketch of the same hashes. Everything that decides whether two of
them may be combined stands in the metadata.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ...errors import CorruptSketch, IncompatibleSketches
from ...optimizer.plan import Attribute, Weight
from ...parser.join_graph import Column
from ...sketches.convolution import ConvolutionSpec
from ...sketches.xi import Family, make_family
from ..partial import Tally

# Raised by one whenever a reader of the version before would misread a file; older ones stay readable.
FORMAT_VERSION = 1
KIND = "skimql sketch"


@dataclass(frozen=True, slots=True)
class EatenFile:
    """A file whose tuples a sketch has: its path or URI, bytes, and time of change in milliseconds (None unknown)."""

    path: str
    size: int | None
    modified: int | None


@dataclass(frozen=True, slots=True)
class SourceState:
    """What a table of Spark's, a view or a DataFrame was when it was read, beside its files.

    Attributes
    ----------
    kind : str
        "table" for a plain table of Spark's catalog, else "other".
    plan : str or None
        What tells its plan from another: that of a view that was replaced, say; None of a plain table.
    roots : tuple of str or None
        The local folders of which the files were all that it had; None where that cannot be said.
    complete : bool
        Whether its files, plan and versions tell every change of it.
    """

    kind: str
    plan: str | None
    roots: tuple[str, ...] | None
    complete: bool


@dataclass(frozen=True, slots=True)
class Eaten:
    """One helping: the table or path it came from, the condition on it, and what was there.

    `snapshot` is the version of the table, where its source tells one; `state` is that of what Spark knows by name,
    None of files and of what an earlier SkimQL has read.
    """

    source: str
    is_table: bool
    condition: str | None
    files: tuple[EatenFile, ...]
    snapshot: str | None
    at: str
    state: SourceState | None = None


@dataclass(frozen=True, slots=True)
class Measure:
    """One sketch of the set: its weight, the type of its counters, the factor in its weights, and its tally.

    `exact` says whether it still is an exact map; `nbytes` are the in-memory bytes of its arrays.
    """

    weight: Weight
    dtype: str
    scale: float
    tally: Tally
    exact: bool
    nbytes: int


@dataclass(frozen=True, slots=True)
class Head:
    """All of a stored sketch but its counters.

    Attributes
    ----------
    name : str
        As its maker spells it; look-ups ignore case.
    table, filter : str, str or None
        The virtual relation, in the words of `Vertex`.
    attributes : tuple of Attribute
        Key expressions, comparison types and join class of each.
    key_types : tuple of (tuple of str)
        For each attribute the types of its key expressions themselves, before the comparison.
    families : tuple of Family
        One for each attribute.
    method : str
        "hash", "convolution" or "total".
    seed, rows, buckets : int
    limit_bytes : int
        Size up to which an exact map is kept; 0 keeps none.
    measures : tuple of Measure
    columns : tuple of Column
        The schema of the table when it was read.
    ansi : bool
        ``spark.sql.ansi.enabled`` at that time.
    time_zone : str
        The session's time zone at that time.
    zoned : bool
        Whether the time zone could change what the sketch has.
    eaten : tuple of Eaten
    created, updated : str
        UTC, ISO 8601.
    group : str
        The workload that it was planned with, or the empty text.
    kept_by : str
        "statement", or "cache" where `skimql.cache` kept it.
    last_batch_id : int or None
        The last batch of a stream that it has.
    program : str
        What wrote it.
    settings : tuple of (str, str)
        Other settings of Spark at that time that change what a text means, those off their defaults.
    cell : tuple of int
        The parts of its attributes' domains that its tuples lie in, as in `Synopsis`: only together with the other
        cells of its workload does it stand for the virtual relation.
    """

    name: str
    table: str
    filter: str | None
    attributes: tuple[Attribute, ...]
    key_types: tuple[tuple[str, ...], ...]
    families: tuple[Family, ...]
    method: str
    seed: int
    rows: int
    buckets: int
    limit_bytes: int
    measures: tuple[Measure, ...]
    columns: tuple[Column, ...]
    ansi: bool
    time_zone: str
    zoned: bool
    eaten: tuple[Eaten, ...]
    created: str
    updated: str
    group: str = ""
    kept_by: str = "statement"
    last_batch_id: int | None = None
    program: str = ""
    cell: tuple[int, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()

    @property
    def weights(self) -> tuple[Weight, ...]:
        """What its tuples weigh, one for each measure."""
        return tuple(m.weight for m in self.measures)

    @property
    def tuples(self) -> int:
        """Tuples that it has, those with a NULL key left out."""
        return self.measures[0].tally.tuples

    @property
    def nbytes(self) -> int:
        """In-memory bytes of its arrays."""
        return sum(m.nbytes for m in self.measures)

    @property
    def exact(self) -> bool:
        """Whether all of it are still exact maps."""
        return all(m.exact for m in self.measures)

    @property
    def empty(self) -> bool:
        """Whether it is known to have no tuples."""
        return self.exact and self.tuples == 0

    def spec(self, measure: Measure) -> ConvolutionSpec:
        """The spec of one of its sketches."""
        return ConvolutionSpec(self.families, self.rows, self.buckets, measure.dtype)


def to_json(head: Head) -> dict[str, Any]:
    """The metadata as JSON values."""
    return {
        "kind": KIND,
        "format_version": FORMAT_VERSION,
        "program": head.program,
        "name": head.name,
        "table": head.table,
        "filter": head.filter,
        "attributes": [
            {
                "keys": list(a.keys),
                "types": list(own),
                "comparison_types": list(a.key_types),
                "class": a.class_name,
                "family": {"name": f.name, "seed": f.seed, "parameters": f.parameters},
            }
            for a, own, f in zip(head.attributes, head.key_types, head.families, strict=True)
        ],
        "method": head.method,
        "seed": head.seed,
        "rows": head.rows,
        "buckets": head.buckets,
        "limit_bytes": head.limit_bytes,
        "measures": [
            {
                "weight": m.weight.expression,
                "presence": m.weight.presence,
                "dtype": m.dtype,
                "scale": m.scale,
                "exact": m.exact,
                "nbytes": m.nbytes,
                "tally": {
                    "tuples": m.tally.tuples,
                    "mass": m.tally.mass,
                    "negative": m.tally.negative,
                },
            }
            for m in head.measures
        ],
        "columns": [[c.name, c.type] for c in head.columns],
        "ansi": head.ansi,
        "time_zone": head.time_zone,
        "zoned": head.zoned,
        "eaten": [
            {
                "source": e.source,
                "is_table": e.is_table,
                "condition": e.condition,
                "files": [[f.path, f.size, f.modified] for f in e.files],
                "snapshot": e.snapshot,
                "at": e.at,
                **({} if e.state is None else {"state": _state_json(e.state)}),
            }
            for e in head.eaten
        ],
        "created": head.created,
        "updated": head.updated,
        "group": head.group,
        "kept_by": head.kept_by,
        "last_batch_id": head.last_batch_id,
        **({"cell": list(head.cell)} if head.cell else {}),
        **({"settings": dict(head.settings)} if head.settings else {}),
    }


def _state_json(state: SourceState) -> dict[str, Any]:
    return {
        "kind": state.kind,
        "plan": state.plan,
        "roots": None if state.roots is None else list(state.roots),
        "complete": state.complete,
    }


def from_json(data: Mapping[str, Any], where: str) -> Head:
    """The head that `to_json` wrote, in this format version or an older one.

    Raises
    ------
    IncompatibleSketches
        ``SKIMQL_NEWER_FORMAT`` for a newer format version; the message names both.
    CorruptSketch
        If it is none; `where` names the file.
    """
    try:
        refuse_newer(data["format_version"], where)
        return _head(data)
    except (KeyError, TypeError, ValueError, AttributeError) as fault:
        raise CorruptSketch(f"{where}: its metadata describe no sketch ({fault})") from fault


def refuse_newer(version: int, where: str) -> None:
    """Raise IncompatibleSketches if `version` is one that this program does not know."""
    if version > FORMAT_VERSION:
        raise IncompatibleSketches(
            f"{where} has format version {version}; this SkimQL reads versions up to {FORMAT_VERSION}",
            "SKIMQL_NEWER_FORMAT",
            hint="a newer SkimQL",
        )


def _head(data: Mapping[str, Any]) -> Head:
    if data["kind"] != KIND:
        raise ValueError(f"kind {data['kind']!r}")
    attributes = data["attributes"]
    return Head(
        name=_text(data["name"]),
        table=_text(data["table"]),
        filter=None if data["filter"] is None else _text(data["filter"]),
        attributes=tuple(
            Attribute(_texts(a["keys"]), _texts(a["comparison_types"]), _text(a["class"])) for a in attributes
        ),
        key_types=tuple(_texts(a["types"]) for a in attributes),
        families=tuple(
            make_family(a["family"]["name"], a["family"]["seed"], **a["family"]["parameters"])
            for a in attributes
        ),
        method=_text(data["method"]),
        seed=int(data["seed"]),
        rows=int(data["rows"]),
        buckets=int(data["buckets"]),
        limit_bytes=int(data["limit_bytes"]),
        measures=tuple(_measure(m) for m in data["measures"]),
        columns=tuple(Column(_text(n), _text(t)) for n, t in data["columns"]),
        ansi=bool(data["ansi"]),
        time_zone=_text(data["time_zone"]),
        zoned=bool(data["zoned"]),
        eaten=tuple(_eaten(e) for e in data["eaten"]),
        created=_text(data["created"]),
        updated=_text(data["updated"]),
        group=_text(data["group"]),
        kept_by=_text(data["kept_by"]),
        last_batch_id=data["last_batch_id"],
        program=_text(data["program"]),
        cell=tuple(int(part) for part in data.get("cell", ())),
        settings=tuple(sorted((_text(n), _text(v)) for n, v in data.get("settings", {}).items())),
    )


def _measure(data: Mapping[str, Any]) -> Measure:
    tally = data["tally"]
    return Measure(
        Weight(data["weight"], bool(data["presence"])),
        _text(data["dtype"]),
        float(data["scale"]),
        Tally(int(tally["tuples"]), float(tally["mass"]), int(tally["negative"])),
        bool(data["exact"]),
        int(data["nbytes"]),
    )


def _eaten(data: Mapping[str, Any]) -> Eaten:
    files = tuple(EatenFile(_text(p), size, modified) for p, size, modified in data["files"])
    return Eaten(
        _text(data["source"]),
        bool(data["is_table"]),
        data["condition"],
        files,
        data["snapshot"],
        data["at"],
        None if data.get("state") is None else _source_state(data["state"]),
    )


def _source_state(data: Mapping[str, Any]) -> SourceState:
    return SourceState(
        _text(data["kind"]),
        None if data["plan"] is None else _text(data["plan"]),
        None if data["roots"] is None else _texts(data["roots"]),
        data["complete"] is True,
    )


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def _texts(values: Iterable[Any]) -> tuple[str, ...]:
    return tuple(_text(v) for v in values)
