"""The metadata of a stored sketch as JSON, and back, in this format version or an older one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...errors import CorruptSketch, IncompatibleSketches
from ...optimizer.plan import Attribute, Weight
from ...parser.join_graph import Column
from ...sketches.hashing.xi import Family, make_family
from ..synopses import Tally
from . import checks
from .form import Groups, Head, Lineage, LineageFile, Measure, Part, SourceState, together
from .kinds.kind import Size
from .kinds.registry import KINDS
from .texts import from_text, has_texts

# Raised by one whenever a reader of the version before would misread a file; older ones stay readable.
FORMAT_VERSION = 3
# Of what needs nothing that came with the newest one: an older SkimQL reads it.
COMMON_VERSION = 2
KIND = "skimql sketch"
# What version 1 knew.
FIRST_METHODS = ("hash", "convolution", "total")
# Those of which every key is one, whatever it is.
FAMILIES = ("tabulation", "polynomial61", "xxhash64", "folded", "countmin")
_PARAMETERS = {"fine_bits": (8, 18)}
_MOST_BITS = {"countmin": 31}  # of one hash; the others have more than any sketch takes
MOST_SCALE = 1e18  # of the longest DECIMAL that is summed as an integer; products of many scales stay finite
MOST_ATTRIBUTES, MOST_MEASURES, MOST_GROUPS = 64, 64, 100_000
MOST_ROWS, MOST_BUCKETS = 1 << 16, 1 << 26


def to_json(head: Head) -> dict[str, Any]:
    """The metadata as JSON values."""
    return {
        "kind": KIND,
        "format_version": version_of(head),
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
            }
            for m in head.measures
        ],
        "parameters": dict(head.parameters),
        "group_by": None
        if head.groups is None
        else {"expressions": list(head.groups.expressions), "types": list(head.groups.types)},
        "groups": [
            {
                "values": list(values),
                "parts": [[p.tally.tuples, p.tally.mass, p.tally.negative, p.exact, p.nbytes] for p in parts],
            }
            for values, parts in zip(
                ((),) if head.groups is None else head.groups.values, head.parts(), strict=True
            )
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
                "state": None if e.state is None else _state_json(e.state),
                "times": e.times,
            }
            for e in head.lineage
        ],
        "created": head.created,
        "updated": head.updated,
        "group": head.group,
        "kept_by": head.made_by,
        "last_batch_id": head.last_batch_id,
        "cell": list(head.cell),
        "imported_from": head.imported_from,
        "settings": dict(head.settings),
    }


def version_of(head: Head) -> int:
    """The oldest format version that has all that a head says."""
    return FORMAT_VERSION if dict(head.parameters).keys() & head.kind.optional.keys() else COMMON_VERSION


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
        return _head(data if data["format_version"] > 1 else _second(data))
    except (KeyError, TypeError, ValueError, OverflowError) as fault:
        raise CorruptSketch(f"{where}: its metadata describe no sketch ({fault})") from fault


def refuse_newer(version: Any, where: str, known: int = FORMAT_VERSION) -> None:
    """Raise IncompatibleSketches if `version` is above the newest `known` one; ValueError if it is none."""
    if checks.integer(version, 1, 1 << 31, "format_version") > known:
        raise IncompatibleSketches(
            f"{where} has format version {version}; this SkimQL reads versions up to {known}",
            "SKIMQL_NEWER_FORMAT",
            hint="a newer SkimQL",
        )


def _second(data: Mapping[str, Any]) -> dict[str, Any]:
    """A head of version 1 as version 2 says it: what it does not tell is not known."""
    checks.one_of(data["method"], FIRST_METHODS, "method")
    measures = [checks.mapping(m, "a measure") for m in checks.items(data["measures"], "measures")]
    tallies = [checks.mapping(m["tally"], "tally") for m in measures]
    for tally in tallies:
        checks.integer(
            tally["negative"], 0, checks.integer(tally["tuples"], 0, checks.INT64, "tuples"), "negative"
        )
    parts = [
        [t["tuples"], t["mass"], t["negative"], m["exact"], m["nbytes"]]
        for m, t in zip(measures, tallies, strict=True)
    ]
    absent = {"cell": [], "imported_from": "", "settings": {}}
    now: dict[str, Any] = {"parameters": {}, "group_by": None, "groups": [{"values": [], "parts": parts}]}
    lineage = [
        {"state": None, "times": None, **checks.mapping(e, "what was read")}
        for e in checks.items(data["eaten"], "eaten")
    ]
    return {**absent, **data, **now, "eaten": lineage}


def _head(data: Mapping[str, Any]) -> Head:
    if data["kind"] != KIND:
        raise ValueError("it is of another kind")
    method = checks.one_of(data["method"], KINDS, "method")
    measures = tuple(_measure(m) for m in checks.items(data["measures"], "measures", MOST_MEASURES))
    groups, parts = _groups(data, len(measures))
    attributes = [_attribute(a) for a in checks.items(data["attributes"], "attributes", MOST_ATTRIBUTES)]
    head = Head(
        name=checks.text(data["name"], "name"),
        table=checks.text(data["table"], "table"),
        filter=checks.optional(data["filter"], lambda v: checks.text(v, "filter")),
        attributes=tuple(attribute for attribute, _, _ in attributes),
        key_types=tuple(types for _, types, _ in attributes),
        families=tuple(family for _, _, family in attributes),
        method=method,
        seed=checks.integer(data["seed"], 0, checks.INT64 - 1, "seed"),
        rows=checks.integer(data["rows"], 1, MOST_ROWS, "rows"),
        buckets=checks.integer(data["buckets"], 1, MOST_BUCKETS, "buckets"),
        limit_bytes=checks.integer(data["limit_bytes"], 0, checks.INT64 - 1, "limit_bytes"),
        measures=together(parts, measures),
        columns=tuple(_column(c) for c in checks.items(data["columns"], "columns")),
        ansi=checks.boolean(data["ansi"], "ansi"),
        time_zone=checks.text(data["time_zone"], "time_zone", 256),
        zoned=checks.boolean(data["zoned"], "zoned"),
        lineage=tuple(_lineage(e) for e in checks.items(data["eaten"], "eaten")),
        created=checks.text(data["created"], "created", 64),
        updated=checks.text(data["updated"], "updated", 64),
        group=checks.text(data["group"], "group"),
        made_by=checks.text(data["kept_by"], "kept_by", 64),
        last_batch_id=checks.optional(
            data["last_batch_id"], lambda v: checks.integer(v, 0, checks.INT64, "last_batch_id")
        ),
        program=checks.text(data["program"], "program", 256),
        cell=tuple(checks.integer(p, 0, 1 << 32, "cell") for p in checks.items(data["cell"], "cell")),
        imported_from=checks.text(data["imported_from"], "imported_from"),
        settings=checks.text_pairs(data["settings"], "settings"),
        parameters=_parameters(data["parameters"], method),
        groups=groups,
    )
    _check_together(head)
    return head


def _parameters(value: Any, method: str) -> tuple[tuple[str, int], ...]:
    """The further sizes of a kind: those that it has, perhaps optional ones, within their bounds."""
    kind, data = KINDS[method], checks.mapping(value, "parameters")
    known = {**kind.parameters, **{n: b for n, b in kind.optional.items() if n in data}}
    if set(data) != set(known):
        raise ValueError(f"method {method} has parameters {sorted(known)}")
    return tuple((n, checks.integer(data[n], *known[n], f"parameter {n}")) for n in sorted(known))


def _groups(data: Mapping[str, Any], measures: int) -> tuple[Groups | None, tuple[tuple[Part, ...], ...]]:
    """GROUP BY and its groups; without one the single group of all tuples."""
    listed = [checks.mapping(g, "a group") for g in checks.items(data["groups"], "groups", MOST_GROUPS)]
    parts = tuple(tuple(_part(p) for p in checks.row(g["parts"], measures, "parts")) for g in listed)
    if data["group_by"] is None:
        if len(listed) != 1 or listed[0]["values"] != []:
            raise ValueError("without GROUP BY there is one group, of no values")
        return None, parts
    by = checks.mapping(data["group_by"], "group_by")
    expressions, types = checks.texts(by["expressions"], "expressions"), checks.texts(by["types"], "types")
    if not 0 < len(expressions) == len(types) <= MOST_ATTRIBUTES or not all(map(has_texts, types)):
        raise ValueError("GROUP BY has not a type for each expression")
    values = tuple(
        tuple(
            checks.optional(v, lambda v: checks.text(v, "a value"))
            for v in checks.row(g["values"], len(types), "values")
        )
        for g in listed
    )
    for row in values:
        for value, kind in zip(row, types, strict=True):
            from_text(value, kind, "UTC")
    if len(set(values)) < len(values):
        raise ValueError("two groups have the same values")
    return Groups(expressions, types, values, parts), parts


def _part(value: Any) -> Part:
    tuples, mass, negative, exact, nbytes = checks.row(value, 5, "a part")
    tally = Tally(
        checks.integer(tuples, -checks.INT64, checks.INT64, "tuples"),
        checks.number(mass, 0, "mass"),
        checks.integer(negative, 0, checks.INT64, "negative"),
    )
    return Part(tally, checks.boolean(exact, "exact"), checks.integer(nbytes, 0, checks.INT64, "nbytes"))


def _check_together(head: Head) -> None:
    """Raise ValueError unless the parts of a head fit one another, and its hashes can be computed."""
    least, most = head.kind.attributes
    if not least <= len(head.attributes) <= most:
        raise ValueError(f"method {head.method} has not {len(head.attributes)} attributes")
    if not head.measures or len(set(head.weights)) < len(head.measures):
        raise ValueError("its measures are none, or two are the same")
    if head.weights[0] != Weight() and (head.kind.joint or not head.kind.weighted):
        raise ValueError(f"the first weight of method {head.method} is the number of tuples")
    if not head.kind.weighted and len(head.measures) > 1:
        raise ValueError(f"method {head.method} keeps no weights")
    if not head.kind.doubles and any(m.dtype != "int64" for m in head.measures):
        raise ValueError(f"method {head.method} keeps integers")
    if len(head.cell) not in (0, len(head.attributes)):
        raise ValueError("its cell has not one part for each attribute")
    for measure in head.measures[: head.synopses]:
        head.kind.spec(head.size(measure))
    if head.families:
        bits = Size(head.families, 1, max(head.buckets, 2)).slot_bits
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
    """A measure without its figures, which are those of its groups."""
    data = checks.mapping(value, "a measure")
    presence = checks.boolean(data["presence"], "presence")
    expression = checks.optional(data["weight"], lambda v: checks.text(v, "weight"))
    scale = checks.number(data["scale"], 1 / MOST_SCALE, "scale")
    if scale > MOST_SCALE or (presence and expression is None):
        raise ValueError("a scale is too large" if scale > MOST_SCALE else "presence is of nothing")
    dtype = checks.one_of(data["dtype"], ("int64", "float64"), "dtype")
    return Measure(Weight(expression, presence), dtype, scale, Tally(), True, 0)


def _column(value: Any) -> Column:
    name, kind = checks.row(value, 2, "a column")
    return Column(checks.text(name, "a column"), checks.text(kind, "a type"))


def _lineage(value: Any) -> Lineage:
    data = checks.mapping(value, "what was read")
    return Lineage(
        checks.text(data["source"], "source"),
        checks.boolean(data["is_table"], "is_table"),
        checks.optional(data["condition"], lambda v: checks.text(v, "condition")),
        tuple(_file(f) for f in checks.items(data["files"], "files")),
        checks.optional(data["snapshot"], lambda v: checks.text(v, "snapshot")),
        checks.text(data["at"], "at", 64),
        checks.optional(data["state"], _source_state),
        checks.optional(data["times"], lambda v: checks.text(v, "times")),
    )


def _source_state(value: Any) -> SourceState:
    data = checks.mapping(value, "state")
    return SourceState(
        checks.one_of(data["kind"], ("table", "other"), "kind of source"),
        checks.optional(data["plan"], lambda v: checks.text(v, "plan")),
        checks.optional(data["roots"], lambda v: checks.texts(v, "roots")),
        checks.boolean(data["complete"], "complete"),
    )


def _file(value: Any) -> LineageFile:
    path, size, modified = checks.row(value, 3, "a file")
    return LineageFile(
        checks.text(path, "a path"),
        checks.optional(size, lambda v: checks.integer(v, 0, checks.INT64, "a size")),
        checks.optional(modified, lambda v: checks.integer(v, -checks.INT64, checks.INT64, "a time")),
    )
