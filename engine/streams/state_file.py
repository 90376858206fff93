"""The state of a stream as the bytes of one file.

Magic, length of the head, head as JSON, the sketches as `sketches.stored_form` writes them, SHA-256 of everything
before. Reading checks everything before it believes anything.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import CorruptSketch, IncompatibleSketches
from ...optimizer.methods import KEY_SAMPLE, LEVEL, PAIRS, SAMPLE_SKETCH
from ...optimizer.plan import Attribute, Message, Synopsis, Weight
from ...sketches.stored_form import from_bytes, to_bytes
from ..catalog import checks
from ..catalog.file import canonical
from ..synopses import Built, Tally
from .cells import Cell, Split
from .state import Clock, Parts, Sender, StreamState, Summary
from .windows import Windows

MAGIC = b"SkimQL stream 1\n"
# Of the head: 2 has cells of panes and groups, distinct values or samples; 3 has parts of domains.
VERSION = 3
MOST_BYTES = 1 << 40
_LENGTHS = ("length", "slide", "delay", "ahead")
_METHODS = ("hash", "convolution", "total", "agms", LEVEL, PAIRS, KEY_SAMPLE, SAMPLE_SKETCH)


def encode(state: StreamState) -> bytes:
    """The file of a state."""
    sketches = [to_bytes(s.built.sketch) for s in state.summaries.values()]
    cells = [to_bytes(b.sketch) for p in state.parts.values() for b in p.cells.values()]
    sizes = iter(map(len, cells))
    head = canonical(
        {
            # What has nothing newer is as those read it who know of nothing newer.
            "format_version": _version_of(state),
            **({"parts": [_parts_json(n, p, sizes) for n, p in state.parts.items()]} if state.parts else {}),
            **({"clocks": [_clock_json(w, c) for w, c in state.clocks.items()]} if state.clocks else {}),
            "id": state.id,
            "seed": state.seed,
            "batch": state.batch,
            "checkpoint": state.checkpoint,
            "updated": state.updated,
            # As it always was where nothing was read again.
            "messages": [
                [_message_json(m), s.checksum, s.total, s.at, *([s.since] if s.since else [])]
                for m, s in state.messages.items()
            ],
            "summaries": [
                {
                    "synopsis": synopsis_json(synopsis),
                    "tally": _tally_json(s.built.tally),
                    "scale": s.built.scale,
                    "since": s.since,
                    **({"dense": s.dense.tolist()} if len(s.dense) else {}),
                    "bytes": len(data),
                }
                for (synopsis, s), data in zip(state.summaries.items(), sketches, strict=True)
            ],
        }
    )
    body = b"".join([MAGIC, len(head).to_bytes(8, "little"), head, *sketches, *cells])
    return body + hashlib.sha256(body).digest()


def decode(data: bytes, where: str) -> StreamState:
    """The state in the bytes of a file.

    Raises
    ------
    CorruptSketch
        If they are no state, damaged or cut off; `where` names the file.
    IncompatibleSketches
        If a newer SkimQL wrote it.
    """
    start = len(MAGIC) + 8
    if not data.startswith(MAGIC) or len(data) < start + 32:
        raise CorruptSketch(f"{where} is no state of a stream")
    if hashlib.sha256(data[:-32]).digest() != data[-32:]:
        raise CorruptSketch(f"{where}, the state of a stream, is damaged or cut off: its SHA-256 is another")
    size = int.from_bytes(data[len(MAGIC) : start], "little")
    try:
        head = checks.mapping(checks.parse_json(data[start : start + size]), "the head")
        version = checks.integer(head["format_version"], 1, 1 << 31, "format_version")
        if version > VERSION:
            raise IncompatibleSketches(
                f"{where} has format version {version}; this SkimQL reads versions up to {VERSION}",
                "SKIMQL_NEWER_FORMAT",
                hint="a newer SkimQL",
            )
        return _state(head, data[start + size : -32])
    except (KeyError, ValueError, TypeError) as fault:
        raise CorruptSketch(f"{where} is no state of a stream ({fault})") from fault


def _state(head: Mapping[str, Any], body: bytes) -> StreamState:
    summaries, at = {}, 0
    for entry in checks.items(head["summaries"], "summaries"):
        entry = checks.mapping(entry, "a summary")
        size = checks.integer(entry["bytes"], 0, len(body) - at, "bytes")
        sketch: Any = from_bytes(body[at : at + size])
        at += size
        built = Built(sketch, _tally(entry["tally"]), checks.number(entry["scale"], 0.0, "scale"))
        summaries[synopsis_from(entry["synopsis"])] = Summary(
            built, checks.integer(entry["since"], 0, checks.INT64, "since"), _keys(entry.get("dense", []))
        )
    parts: dict[tuple[Synopsis, Split], Parts] = {}
    for entry in checks.items(head.get("parts", []), "parts"):
        entry = checks.mapping(entry, "parts")
        cells: dict[Cell, Built] = {}
        for value in checks.items(entry["cells"], "cells"):
            pane, group, tallied, scale, size = checks.row(value, 5, "a cell")
            size = checks.integer(size, 0, len(body) - at, "bytes")
            cell = checks.integer(pane, -checks.INT64, checks.INT64, "a pane"), checks.text(group, "a group")
            one: Any = from_bytes(body[at : at + size])
            cells[cell] = Built(one, _tally(tallied), checks.number(scale, 0.0, "scale"))
            at += size
        since = checks.integer(entry["since"], 0, checks.INT64, "since")
        parts[synopsis_from(entry["synopsis"]), _split(entry["split"])] = Parts(cells, since)
    if at != len(body):
        raise ValueError("bytes belong to no sketch")
    messages = {}
    for row in checks.items(head["messages"], "messages"):
        message, checksum, total, at_time, since = checks.row(
            row if len(row) == 5 else [*row, 0], 5, "a message"
        )
        messages[_message(message)] = Sender(
            checks.text(checksum, "a checksum", 64),
            checks.number(total, -1e308, "a total"),
            checks.text(at_time, "a time", 64),
            checks.integer(since, 0, checks.INT64, "since"),
        )
    return StreamState(
        checks.text(head["id"], "id", 32),
        checks.integer(head["seed"], 0, checks.INT64, "seed"),
        checks.optional(head["batch"], lambda v: checks.integer(v, 0, checks.INT64, "batch")),
        checks.text(head["checkpoint"], "checkpoint", 256),
        summaries,
        messages,
        checks.text(head["updated"], "updated", 64),
        parts,
        dict(_clock(c) for c in checks.items(head.get("clocks", []), "clocks")),
    )


def _version_of(state: StreamState) -> int:
    if any(s.cell for s in state.summaries):
        return VERSION
    return 2 if state.parts or any(map(_is_newer, state.summaries)) else 1


def _is_newer(synopsis: Synopsis) -> bool:
    return synopsis.distinct or synopsis.method in (KEY_SAMPLE, SAMPLE_SKETCH)


def _tally_json(tally: Tally) -> list[Any]:
    return [tally.tuples, tally.mass, tally.negative, tally.slack]


def _tally(data: Any) -> Tally:
    tuples, mass, negative, slack = checks.row(data, 4, "a tally")
    return Tally(
        checks.integer(tuples, 0, checks.INT64, "tuples"),
        checks.number(mass, 0.0, "mass"),
        checks.integer(negative, 0, checks.INT64, "negative"),
        checks.number(slack, 0.0, "slack"),
    )


def _parts_json(need: tuple[Synopsis, Split], parts: Parts, sizes: Iterator[int]) -> dict[str, Any]:
    synopsis, split = need
    return {
        "synopsis": synopsis_json(synopsis),
        "split": [_windows_json(split.windows), list(split.groups), split.most],
        "since": parts.since,
        "cells": [
            [pane, group, _tally_json(b.tally), b.scale, next(sizes)]
            for (pane, group), b in parts.cells.items()
        ],
    }


def _split(data: Any) -> Split:
    windows, groups, most = checks.row(data, 3, "a split")
    return Split(
        checks.optional(windows, _windows),
        checks.texts(groups, "groups"),
        checks.integer(most, 0, 1 << 31, "most"),
    )


def _windows_json(windows: Windows | None) -> list[Any] | None:
    return None if windows is None else [windows.time, *(getattr(windows, n) for n in _LENGTHS)]


def _windows(data: Any) -> Windows:
    time, *lengths = checks.row(data, 5, "windows")
    return Windows(
        checks.text(time, "time"), *(checks.integer(n, 0, checks.INT64, "a length") for n in lengths)
    )


def _clock_json(windows: Windows, clock: Clock) -> list[Any]:
    counts = clock.late, clock.dropped, clock.ahead, clock.untimed
    return [_windows_json(windows), clock.latest, clock.before, *counts]


def _clock(data: Any) -> tuple[Windows, Clock]:
    windows, latest, before, *counts = checks.row(data, 7, "a clock")

    def moment(value: Any) -> int:
        return checks.integer(value, -checks.INT64, checks.INT64, "a moment")

    known = (checks.optional(latest, moment), checks.optional(before, moment))
    return _windows(windows), Clock(*known, *(checks.integer(n, 0, checks.INT64, "a count") for n in counts))


def _keys(data: Any) -> NDArray[np.int64]:
    """Keys that may be dense, ascending."""
    found = [
        checks.integer(k, -checks.INT64 - 1, checks.INT64, "a key")
        for k in checks.items(data, "keys", 1 << 16)
    ]
    return np.unique(np.array(found, np.int64))


def synopsis_json(synopsis: Synopsis) -> dict[str, Any]:
    """What a synopsis is of, as JSON values."""
    if synopsis.group is not None:
        raise ValueError("a synopsis of a group has no stored form")
    return {
        "table": synopsis.table,
        "filter": synopsis.filter,
        "attributes": [_attribute_json(a) for a in synopsis.attributes],
        "weight": _weight_json(synopsis.weight),
        "method": synopsis.method,
        "rows": synopsis.rows,
        "buckets": synopsis.buckets,
        "sparse": synopsis.sparse,
        "messages": [_message_json(m) for m in synopsis.messages],
        **({"cell": list(synopsis.cell)} if synopsis.cell else {}),
    }


def synopsis_from(data: Any) -> Synopsis:
    """What `synopsis_json` gave; ValueError or KeyError where it is not that."""
    data = checks.mapping(data, "a synopsis")
    attributes = tuple(_attribute(a) for a in checks.items(data["attributes"], "attributes", 64))
    cell = checks.row(data["cell"], len(attributes), "a part") if "cell" in data else []
    return Synopsis(
        checks.text(data["table"], "table"),
        _optional_text(data["filter"], "filter"),
        attributes,
        _weight(data["weight"]),
        checks.one_of(data["method"], _METHODS, "method"),
        checks.integer(data["rows"], 1, 1 << 16, "rows"),
        checks.integer(data["buckets"], 2, 1 << 26, "buckets"),
        checks.boolean(data["sparse"], "sparse"),
        messages=tuple(_message(m) for m in checks.items(data["messages"], "messages", 256)),
        cell=tuple(checks.integer(part, 0, 1 << 16, "a part") for part in cell),
    )


def _attribute_json(attribute: Attribute) -> list[Any]:
    return [list(attribute.keys), list(attribute.key_types), attribute.class_name]


def _attribute(data: Any) -> Attribute:
    keys, types, name = checks.row(data, 3, "an attribute")
    return Attribute(checks.texts(keys, "keys"), checks.texts(types, "types"), checks.text(name, "class"))


def _weight_json(weight: Weight) -> list[Any]:
    return [weight.expression, weight.presence]


def _weight(data: Any) -> Weight:
    expression, presence = checks.row(data, 2, "a weight")
    return Weight(_optional_text(expression, "a weight"), checks.boolean(presence, "presence"))


def _message_json(message: Message) -> dict[str, Any]:
    return {
        "table": message.table,
        "filter": message.filter,
        "receiver": _attribute_json(message.receiver),
        "sender": _attribute_json(message.sender),
        "weight": _weight_json(message.weight),
        "messages": [_message_json(m) for m in message.messages],
    }


def _message(data: Any) -> Message:
    data = checks.mapping(data, "a message")
    return Message(
        checks.text(data["table"], "table"),
        _optional_text(data["filter"], "filter"),
        _attribute(data["receiver"]),
        _attribute(data["sender"]),
        _weight(data["weight"]),
        tuple(_message(m) for m in checks.items(data["messages"], "messages", 256)),
    )


def _optional_text(value: Any, what: str) -> str | None:
    return checks.optional(value, lambda v: checks.text(v, what))
