"""Keys that may be dense: kept beside the hash sketches of streams, so that these are skimmed when they are joined.

Nothing can be asked of a stream again. Every batch tells the keys that stand most often in it; the sketch, with that
batch in it, says which of these and of those before weigh most, inserted less deleted. A key that is dense and not
among them stays in what is multiplied, and in the interval.

References
----------
.. [1] S. Ganguly, M. Garofalakis, R. Rastogi, US 2006/0143170, "Processing data-stream join aggregates using
   skimmed sketches".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...optimizer.plan import Plan, Synopsis, Weight
from ...sketches.joins.convolution import ConvolutionSketch
from ...sketches.joins.exact_map import ExactMap
from ...sketches.joins.heavy_keys import METHOD, HeavyKeys
from ...sketches.joins.skim import LEAST_BUCKETS, LEAST_ROWS, frequencies
from ...sketches.joins.sparse import SparseFirstSketch
from ...sketches.ranking import by_weight
from ..execution.partial_aggregate import MOST_HEAVY
from ..synopses import Built, Sketch

Ints = NDArray[np.int64]
NONE: Ints = np.empty(0, np.int64)
BYTES = 8 * MOST_HEAVY


def may_be_skimmed(synopsis: Synopsis) -> bool:
    """Whether a synopsis is a hash sketch of one attribute, with rows and buckets that skimming takes."""
    large = synopsis.rows >= LEAST_ROWS and synopsis.buckets >= LEAST_BUCKETS
    return synopsis.method == "hash" and len(synopsis.attributes) == 1 and large


def is_skimmed(plan: Plan) -> bool:
    """Whether a plan joins two hash sketches that are skimmed, whole; a view may say USING hash."""
    if len(plan.vertices) != 2 or plan.query.method == "hash" or plan.partitions:
        return False
    return all(may_be_skimmed(s) for s in plan.synopses if s.attributes)


def candidates(synopsis: Synopsis) -> Synopsis:
    """What tells the keys of a batch that may be dense in a hash sketch."""
    return replace(synopsis, method=METHOD, weight=Weight(), sparse=False)


def split(built: Mapping[Synopsis, Built]) -> tuple[dict[Synopsis, Built], dict[Synopsis, Ints]]:
    """What a batch gave: the synopses to keep, and for each that may be skimmed the keys of the batch."""
    kept = {s: b for s, b in built.items() if s.method != METHOD}
    keys: dict[Synopsis, Ints] = {}
    for synopsis in kept:
        told = built.get(candidates(synopsis)) if synopsis.method == "hash" else None
        sketch: Any = None if told is None else told.sketch
        if isinstance(sketch, HeavyKeys):
            keys[synopsis] = sketch.keys
    return kept, keys


def heaviest(sketch: Sketch, before: ExactMap | None, own: Ints | None, known: Ints = NONE) -> Ints:
    """The keys that weigh most in a sketch with a batch in it: of the batch's own, the known, and the map it was.

    None while it is exact, and where no view wants them (`own` is None).
    """
    if own is None or not isinstance(sketch, SparseFirstSketch) or sketch.exact is not None:
        return NONE
    keys = [own, known]
    dense = sketch.dense()
    if not isinstance(dense, ConvolutionSketch) or dense.spec.dtype != "int64":
        return NONE
    if before is not None and len(before):
        keys.append(before.columns[0][by_weight(before.weights, MOST_HEAVY)])
    every = np.unique(np.concatenate(keys))
    # Of few buckets few keys stand out.
    most = MOST_HEAVY if dense.spec.buckets >= LEAST_BUCKETS else max(8, dense.spec.buckets // 4)
    return np.sort(every[by_weight(frequencies(dense, [every]), most)])
