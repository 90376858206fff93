"""The kinds of synopses that a catalog keeps, by the name that USING has for them.

A new kind is a class in a module beside this one and an entry here: files, their checks, CREATE, APPEND and EXPORT
follow. Modules of sketches are imported by the kind that needs them: an answer from hash sketches loads no others.
"""

from __future__ import annotations

from .counters import Hash, Linear, Skimmed
from .distinct import Level, Pairs
from .kind import Kind
from .samples import KeySample, SampledTable, TwoLevel

KINDS: dict[str, Kind] = {
    kind.method: kind
    for kind in (
        Hash(),
        Linear("convolution", 0, 64),
        Linear("total", 0, 0),
        Linear("agms", 1, 64),
        Skimmed(),
        KeySample(),
        TwoLevel(),
        SampledTable(),
        Level(),
        Pairs(),
    )
}
