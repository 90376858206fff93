"""What a pilot is asked and what it counts; plain values, whoever runs it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...parser.join_graph import JoinGraph
from ...sketches.samples.sampled_hash import HASH_BITS, sample_family
from ..messages import tree_of
from ..plan import Attribute

# Both samples aim at so many tuples of a table; a smaller one is counted whole.
PILOT_TUPLES = 1 << 17

# One hash for the keys of every class, so that what is known of a relation serves any query.
PILOT_FAMILY = sample_family(0, "pilot")

KEY_SAMPLE, ROW_SAMPLE = 0, 1

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class VirtualRelation:
    """A table behind a filter, with the attributes on which its tuples join; classes are left out of them."""

    table: str
    filter: str | None
    attributes: tuple[Attribute, ...]


@dataclass(frozen=True, slots=True)
class Rates:
    """Share of the keys and of the tuples that a pilot keeps, each in (0, 1]."""

    keys: float
    tuples: float

    @classmethod
    def for_tuples(cls, tuples: float, wanted: int = PILOT_TUPLES) -> Rates:
        """Those that keep about `wanted` of `tuples` tuples in each sample."""
        share = min(1.0, wanted / max(tuples, 1.0))
        return cls(max(1, round(share * (1 << HASH_BITS))) / (1 << HASH_BITS), share)


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """Keys, ascending, int64 (n,), and in how many of the tuples looked at each occurs, int64 (n,)."""

    keys: Ints
    counts: Ints

    @property
    def tuples(self) -> int:
        """Tuples of all the keys."""
        return int(self.counts.sum())


@dataclass(frozen=True, slots=True, eq=False)
class Pilot:
    """What the pilot saw of one relation.

    `key_samples` and `row_samples` have an entry for each attribute and, with several attributes, one more for
    their combinations; without attributes one, whose only key is 0. Where everything was looked at the row
    samples are the key samples.
    """

    rates: Rates
    key_samples: tuple[Counts, ...]
    row_samples: tuple[Counts, ...]


def relations_of(graph: JoinGraph) -> tuple[VirtualRelation, ...]:
    """The virtual relation of each vertex; attributes in the order of `JoinTree.classes_of`, without class names."""
    tree = tree_of(graph)
    found = []
    for number, vertex in enumerate(graph.vertices):
        attributes = []
        for joined in tree.classes_of(number):
            edges = [graph.edges[e] for e in tree.classes[joined].edges]
            edge = next(e for e in edges if number in (e.left, e.right))
            types = tuple(t or "" for t in edge.key_types)
            attributes.append(Attribute(edge.keys_of(number), types, ""))
        found.append(VirtualRelation(vertex.table.lower(), vertex.filter, tuple(attributes)))
    return tuple(found)
