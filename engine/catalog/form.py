"""What a stored sketch says of itself, as plain values and as JSON.

A stored sketch is one virtual relation with its join attributes and one or several weights: the tuples, and for
SUM the values and where they are not NULL, each a sketch of the same hashes. Everything that decides whether two of
them may be combined stands in the metadata.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...errors import CorruptSketch, IncompatibleSketches
from ...optimizer.plan import Attribute, Weight
from ...parser.join_graph import Column
from ...sketches.hashing.xi import Family, make_family
from ...sketches.joins.convolution import ConvolutionSpec
from ..synopses import Tally
from . import checks

# Raised by one whenever a reader of the version before would misread a file; older ones stay readable.
FORMAT_VERSION = 1
KIND = "skimql sketch"
METHODS = ("hash", "convolution", "total")
# Those of which every key is one, whatever it is.
FAMILIES = ("tabulation", "polynomial61", "xxhash64", "folded", "countmin")
_PARAMETERS = {"fine_bits": (8, 18)}
_MOST_BITS = {"countmin": 31}  # of one hash; the others have more than any sketch takes
MOST_SCALE = 1e18  # of the longest DECIMAL that is summed as an integer; products of many scales stay finite
MOST_ATTRIBUTES, MOST_MEASURES = 64, 64
MOST_ROWS, MOST_BUCKETS = 1 << 16, 1 << 26


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
    imported_from : str
        The file that it was imported from by somebody who has not said that it is to be trusted; else empty.
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
    imported_from: str = ""
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
        **({"imported_from": head.imported_from} if head.imported_from else {}),
        **({"settings": dict(head.settings)} if head.settings else {}),
    }


def _state_json(state: SourceState) -> dict[str, Any]:
    return {
        "kind": state.kind,
        "plan": state.plan,
        "roots": None if state.roots is None else list(state.roots),
        "complete": state.complete,
    }


def from_json(data: Any, where: str) -> Head:
    """The head that `to_json` wrote, in this format version or an older one.

    Raises
    ------
    IncompatibleSketches
        ``SKIMQL_NEWER_FORMAT`` for a newer format version; the message names both.
    CorruptSketch
        If it is none; `where` names the file.
    """
    try:
        data = checks.mapping(data, "the head")
        refuse_newer(data["format_version"], where)
        return _head(data)
    except (KeyError, TypeError, ValueError) as fault:
        raise CorruptSketch(f"{where}: its metadata describe no sketch ({fault})") from fault


def refuse_newer(version: Any, where: str) -> None:
    """Raise IncompatibleSketches if `version` is one that this program does not know; ValueError if it is none."""
    if checks.integer(version, 1, 1 << 31, "format_version") > FORMAT_VERSION:
        raise IncompatibleSketches(
            f"{where} has format version {version}; this SkimQL reads versions up to {FORMAT_VERSION}",
            "SKIMQL_NEWER_FORMAT",
            hint="a newer SkimQL",
        )


def _head(data: Mapping[str, Any]) -> Head:
    if data["kind"] != KIND:
        raise ValueError("it is of another kind")
    attributes = [_attribute(a) for a in checks.items(data["attributes"], "attributes", MOST_ATTRIBUTES)]
    head = Head(
        name=checks.text(data["name"], "name"),
        table=checks.text(data["table"], "table"),
        filter=checks.optional(data["filter"], lambda v: checks.text(v, "filter")),
        attributes=tuple(attribute for attribute, _, _ in attributes),
        key_types=tuple(types for _, types, _ in attributes),
        families=tuple(family for _, _, family in attributes),
        method=checks.one_of(data["method"], METHODS, "method"),
        seed=checks.integer(data["seed"], 0, checks.INT64 - 1, "seed"),
        rows=checks.integer(data["rows"], 1, MOST_ROWS, "rows"),
        buckets=checks.integer(data["buckets"], 2, MOST_BUCKETS, "buckets"),
        limit_bytes=checks.integer(data["limit_bytes"], 0, checks.INT64 - 1, "limit_bytes"),
        measures=tuple(_measure(m) for m in checks.items(data["measures"], "measures", MOST_MEASURES)),
        columns=tuple(_column(c) for c in checks.items(data["columns"], "columns")),
        ansi=checks.boolean(data["ansi"], "ansi"),
        time_zone=checks.text(data["time_zone"], "time_zone", 256),
        zoned=checks.boolean(data["zoned"], "zoned"),
        eaten=tuple(_eaten(e) for e in checks.items(data["eaten"], "eaten")),
        created=checks.text(data["created"], "created", 64),
        updated=checks.text(data["updated"], "updated", 64),
        group=checks.text(data["group"], "group"),
        kept_by=checks.text(data["kept_by"], "kept_by", 64),
        last_batch_id=checks.optional(
            data["last_batch_id"], lambda v: checks.integer(v, 0, checks.INT64, "last_batch_id")
        ),
        program=checks.text(data["program"], "program", 256),
        cell=tuple(checks.integer(p, 0, 1 << 32, "cell") for p in checks.items(data.get("cell", []), "cell")),
        imported_from=checks.text(data.get("imported_from", ""), "imported_from"),
        settings=checks.text_pairs(data.get("settings", {}), "settings"),
    )
    _check_together(head)
    return head


def _check_together(head: Head) -> None:
    """Raise ValueError unless the parts of a head fit one another, and its hashes can be computed."""
    if {"hash": 1, "total": 0}.get(head.method, len(head.attributes)) != len(head.attributes):
        raise ValueError(f"method {head.method} has not {len(head.attributes)} attributes")
    if not head.measures or len(set(head.weights)) < len(head.measures):
        raise ValueError("its measures are none, or two are the same")
    if len(head.cell) not in (0, len(head.attributes)):
        raise ValueError("its cell has not one part for each attribute")
    if head.families:
        bits = ConvolutionSpec(head.families, 1, head.buckets).slot_bits
        if any(bits > _MOST_BITS.get(f.name, bits) for f in head.families):
            raise ValueError(f"its hash family has no {head.buckets:,} buckets")


def _attribute(value: Any) -> tuple[Attribute, tuple[str, ...], Family]:
    data = checks.mapping(value, "an attribute")
    keys, types = checks.texts(data["keys"], "keys"), checks.texts(data["types"], "types")
    compared = checks.texts(data["comparison_types"], "comparison_types")
    if not keys or len(keys) != len(types) or len(keys) != len(compared):
        raise ValueError("an attribute has not a type for each key")
    named = checks.mapping(data["family"], "family")
    parameters = checks.mapping(named["parameters"], "parameters")
    for name, parameter in parameters.items():
        checks.integer(parameter, *_PARAMETERS.get(name, (0, 0)), f"parameter {name[:20]!r}")
    family = make_family(
        checks.one_of(named["name"], FAMILIES, "hash family"),
        checks.integer(named["seed"], 0, checks.INT64 - 1, "seed"),
        **parameters,
    )
    return Attribute(keys, compared, checks.text(data["class"], "class")), types, family


def _measure(value: Any) -> Measure:
    data = checks.mapping(value, "a measure")
    tally = checks.mapping(data["tally"], "tally")
    tuples = checks.integer(tally["tuples"], 0, checks.INT64, "tuples")
    presence = checks.boolean(data["presence"], "presence")
    expression = checks.optional(data["weight"], lambda v: checks.text(v, "weight"))
    scale = checks.number(data["scale"], 1 / MOST_SCALE, "scale")
    if scale > MOST_SCALE or (presence and expression is None):
        raise ValueError("a scale is too large" if scale > MOST_SCALE else "presence is of nothing")
    return Measure(
        Weight(expression, presence),
        checks.one_of(data["dtype"], ("int64", "float64"), "dtype"),
        scale,
        Tally(
            tuples,
            checks.number(tally["mass"], 0, "mass"),
            checks.integer(tally["negative"], 0, tuples, "negative"),
        ),
        checks.boolean(data["exact"], "exact"),
        checks.integer(data["nbytes"], 0, checks.INT64, "nbytes"),
    )


def _column(value: Any) -> Column:
    name, kind = checks.row(value, 2, "a column")
    return Column(checks.text(name, "a column"), checks.text(kind, "a type"))


def _eaten(value: Any) -> Eaten:
    data = checks.mapping(value, "what was read")
    return Eaten(
        checks.text(data["source"], "source"),
        checks.boolean(data["is_table"], "is_table"),
        checks.optional(data["condition"], lambda v: checks.text(v, "condition")),
        tuple(_file(f) for f in checks.items(data["files"], "files")),
        checks.optional(data["snapshot"], lambda v: checks.text(v, "snapshot")),
        checks.text(data["at"], "at", 64),
        checks.optional(data.get("state"), _source_state),
    )


def _source_state(value: Any) -> SourceState:
    data = checks.mapping(value, "state")
    return SourceState(
        checks.one_of(data["kind"], ("table", "other"), "kind of source"),
        checks.optional(data["plan"], lambda v: checks.text(v, "plan")),
        checks.optional(data["roots"], lambda v: checks.texts(v, "roots")),
        checks.boolean(data["complete"], "complete"),
    )


def _file(value: Any) -> EatenFile:
    path, size, modified = checks.row(value, 3, "a file")
    return EatenFile(
        checks.text(path, "a path"),
        checks.optional(size, lambda v: checks.integer(v, 0, checks.INT64, "a size")),
        checks.optional(modified, lambda v: checks.integer(v, -checks.INT64, checks.INT64, "a time")),
    )
