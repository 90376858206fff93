"""A sketch as bytes, and back: for files, queues and columns of people who use the sketches by themselves.

Magic, length of the head, head as JSON (kind, spec, names and shapes of the arrays; perhaps what the numbers mean),
the arrays as little-endian bytes one after the other, SHA-256 of everything before. The bytes are the same on every
machine, and those of the SQL functions ``skim_sketch`` and ``skim_merge``. Reading checks everything before it
believes anything: the checksum, every name, type and size; nothing is evaluated or unpickled.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .distinct.level import LevelSketch, LevelSpec
from .distinct.pair_sample import PairSample, PairSampleSpec
from .distinct.sparse_level import SparseLevelSketch
from .distinct.sparse_pairs import SparsePairSample
from .hashing.family import Family
from .hashing.xi import make_family
from .joins.agms import AgmsSketch, AgmsSpec
from .joins.convolution import ConvolutionSketch, ConvolutionSpec
from .joins.sparse import SparseFirstSketch
from .reference.fm import FMSketch, FMSpec
from .samples.key_sample import KeySample, KeySampleSpec
from .samples.sample_sketch import SampleSketch, SampleSketchSpec

MAGIC = b"SkimQL sketch 1\n"
MOST_HEAD_BYTES = 1 << 16
MOST_BYTES = 1 << 30
MOST_NUMBER = 1 << 40
DTYPES = ("int64", "uint64", "float64", "uint8")

Arrays = Mapping[str, NDArray[np.generic]]
Stored = (
    ConvolutionSketch
    | AgmsSketch
    | FMSketch
    | LevelSketch
    | KeySample
    | SampleSketch
    | PairSample
    | SparseFirstSketch[Any]
    | SparseLevelSketch
    | SparsePairSample
)

# Kind: the spec, the sketch, and the sketch that is exact first, if there is one.
KINDS: dict[str, tuple[type[Any], type[Any], type[Any] | None]] = {
    "convolution": (ConvolutionSpec, ConvolutionSketch, SparseFirstSketch),
    "agms": (AgmsSpec, AgmsSketch, SparseFirstSketch),
    "fm": (FMSpec, FMSketch, None),
    "level": (LevelSpec, LevelSketch, SparseLevelSketch),
    "key sample": (KeySampleSpec, KeySample, None),
    "sample sketch": (SampleSketchSpec, SampleSketch, None),
    "pair sample": (PairSampleSpec, PairSample, SparsePairSample),
}


@dataclass(frozen=True, slots=True)
class Meaning:
    """What the numbers of a sketch stand for, where SQL has made it.

    Attributes
    ----------
    keys : tuple of str
        Spark's type of each key: "bigint" for integers of any width, which are themselves; others are fingerprinted.
    scale : int
        The factor that made weights integers: 100 for DECIMAL(p, 2).
    weights : str
        "counts" or "sums".
    """

    keys: tuple[str, ...]
    scale: int = 1
    weights: str = "counts"


def to_bytes(sketch: Stored, meaning: Meaning | None = None) -> bytes:
    """The bytes of a sketch, and of what its numbers mean where that is told.

    Raises
    ------
    TypeError
        If it is of a kind that has no form as bytes.
    """
    kind, limit = _kind_of(sketch)
    arrays = {name: np.ascontiguousarray(a) for name, a in sketch.state().items()}
    head = {
        "kind": kind,
        "limit_bytes": limit,
        "tuples": getattr(sketch, "tuples", None),
        "spec": {f.name: _to_json(getattr(sketch.spec, f.name)) for f in fields(sketch.spec)},
        "arrays": [[name, a.dtype.name, list(a.shape)] for name, a in arrays.items()],
    }
    if meaning is not None:
        head["meaning"] = asdict(meaning)
    text = json.dumps(head, sort_keys=True, separators=(",", ":")).encode()
    parts = [MAGIC, len(text).to_bytes(4, "little"), text]
    parts += [a.astype(a.dtype.newbyteorder("<"), copy=False).tobytes() for a in arrays.values()]
    body = b"".join(parts)
    return body + hashlib.sha256(body).digest()


def from_bytes(data: bytes, most_bytes: int = MOST_BYTES) -> Stored:
    """The sketch whose `to_bytes` these are.

    Parameters
    ----------
    data : bytes
    most_bytes : int
        A larger sketch is refused before any memory is taken for it.

    Raises
    ------
    ValueError
        If they are no sketch, damaged, or larger; the message says what is wrong.
    """
    return _read(data, most_bytes)[0]


def meaning_of(data: bytes) -> Meaning | None:
    """What the numbers of a sketch stand for; None where its bytes do not tell. ValueError as `from_bytes`."""
    return _read(data, MOST_BYTES)[1]


def _read(data: bytes, most_bytes: int) -> tuple[Stored, Meaning | None]:
    view = memoryview(data)
    if bytes(view[: len(MAGIC)]) != MAGIC:
        raise ValueError("these bytes are no sketch of SkimQL, or of another version")
    if len(view) < len(MAGIC) + 36 or hashlib.sha256(view[:-32]).digest() != bytes(view[-32:]):
        raise ValueError("the bytes of the sketch are damaged or cut off: their SHA-256 is another")
    start = len(MAGIC) + 4
    size = int.from_bytes(view[len(MAGIC) : start], "little")
    if size > min(MOST_HEAD_BYTES, len(view) - start - 32):
        raise ValueError(f"a head of {size:,} bytes is none of a sketch")
    try:
        read = _head(bytes(view[start : start + size]))
        return _restored(read, view[start + size : -32], most_bytes), _meaning(read[0])
    except (KeyError, TypeError, AttributeError, IndexError, OverflowError, RecursionError) as fault:
        raise ValueError(f"the head describes no sketch ({type(fault).__name__}: {fault})") from fault


def _meaning(head: Mapping[str, Any]) -> Meaning | None:
    told = head.get("meaning")
    if told is None:
        return None
    found = Meaning(tuple(told["keys"]), told["scale"], told["weights"])
    right = found.weights in ("counts", "sums") and type(found.scale) is int and 0 < found.scale < 1 << 63
    if (
        not right
        or set(told) != {f.name for f in fields(Meaning)}
        or not all(isinstance(k, str) for k in found.keys)
    ):
        raise ValueError(f"{told!r} says not what the numbers of a sketch mean")
    return found


@lru_cache(maxsize=64)
def _head(text: bytes) -> tuple[dict[str, Any], Any]:
    """A head, which many small sketches have in common, and the spec in it; nothing of it is changed."""
    head: dict[str, Any] = json.loads(text)
    spec_type, _, _ = KINDS[head["kind"]]
    spec = spec_type(**{f.name: _from_json(head["spec"][f.name]) for f in fields(spec_type)})
    if set(head["spec"]) != {f.name for f in fields(spec_type)}:
        raise ValueError(f"the head has sizes that a {head['kind']} does not")
    return head, spec


def _restored(read: tuple[dict[str, Any], Any], body: memoryview, most_bytes: int) -> Stored:
    head, spec = read
    _, plain, sparse = KINDS[head["kind"]]
    limit = head["limit_bytes"]
    if limit is not None and (not _is_number(limit) or sparse is None):
        raise ValueError(f"a {head['kind']} keeps no exact map of {limit!r} bytes")
    if _bytes_of(spec) > most_bytes:
        raise ValueError(f"a sketch of {_bytes_of(spec):,} bytes is larger than the {most_bytes:,} allowed")
    state: dict[str, NDArray[np.generic]] = {}
    at = 0
    for name, dtype, shape in head["arrays"]:
        if (
            dtype not in DTYPES
            or not all(_is_number(n) for n in shape)
            or not isinstance(name, str)
            or name in state
        ):
            raise ValueError(f"{name!r} of {dtype!r} {shape!r} is no array of a sketch")
        size = math.prod(shape) * np.dtype(dtype).itemsize
        if at + size > len(body):
            raise ValueError(f"array {name} of {size:,} bytes is larger than what is there")
        state[name] = (
            np.frombuffer(body[at : at + size], np.dtype(dtype).newbyteorder("<"))
            .astype(dtype)
            .reshape(shape)
        )
        at += size
    if at != len(body):
        raise ValueError(f"{len(body) - at:,} bytes belong to no array")
    found: Stored
    if limit is None:
        found = plain.from_state(spec, state)
    else:
        assert sparse is not None, "checked before"
        found = sparse.from_state(spec, state, limit)
    tuples = head["tuples"]
    if isinstance(found, (ConvolutionSketch, AgmsSketch, FMSketch, SparseFirstSketch)):
        if tuples is not None and not _is_number(tuples):
            raise ValueError(f"{tuples!r} is no number of tuples")
        found.tuples = tuples
    return found


def _kind_of(sketch: object) -> tuple[str, int | None]:
    """The name of its kind, and the bytes up to which it is exact; None for one that never is."""
    for kind, (spec, plain, sparse) in KINDS.items():
        if sparse is not None and type(sketch) is sparse and isinstance(getattr(sketch, "spec", None), spec):
            return kind, int(sketch.limit_bytes)  # type: ignore[attr-defined]
        if type(sketch) is plain:
            return kind, None
    raise TypeError(f"{type(sketch).__name__} has no form as bytes; {', '.join(KINDS)} have")


def _bytes_of(spec: Any) -> int:
    """Bytes of the largest state of a spec."""
    if isinstance(spec, LevelSpec):
        return 8 * spec.words
    if isinstance(spec, PairSampleSpec):
        return spec.most_bytes
    if isinstance(spec, (KeySampleSpec, SampleSketchSpec)):
        return spec.entry_bytes
    return 8 * int(math.prod(spec.shape))


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_NUMBER


def _to_json(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_to_json(v) for v in value]
    if isinstance(value, (int, str)):
        return value
    origin = None if value.origin is None else [value.origin[0], list(value.origin[1])]
    return {"name": value.name, "seed": value.seed, "parameters": value.parameters, "origin": origin}


def _from_json(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_from_json(v) for v in value)
    if isinstance(value, str) or _is_number(value):
        return value
    if isinstance(value, dict) and set(value) == {"name", "seed", "parameters", "origin"}:
        return _family_of(value)
    raise ValueError(f"{value!r} is no part of a spec")


def _family_of(value: Mapping[str, Any]) -> Family:
    """The hash family; what it says it was derived from is believed if that makes the same."""
    name, seed, parameters = value["name"], value["seed"], value["parameters"]
    if type(seed) is not int or not all(_is_number(p) for p in parameters.values()):
        raise ValueError(f"{value!r} is no hash family")
    family = make_family(name, seed, **parameters)
    if value["origin"] is None:
        return family
    first, labels = value["origin"]
    if type(first) is not int or not 0 < len(labels) <= 16 or not all(isinstance(x, str) for x in labels):
        raise ValueError(f"{value['origin']!r} is no origin of a hash family")
    derived = make_family(name, first, **parameters)
    for label in labels:
        derived = derived.derive(label)
    return derived if derived == family else family
