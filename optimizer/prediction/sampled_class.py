"""The class of a sample as its keys are made up by the statistics of all tables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from ..messages import JoinTree
from .figures import Figures, PerTuple
from .made_up_keys import Keys, Values, heaviest_beyond, heaviest_of
from .relation import Attribute
from .reported import SampledClass


def by_statistics(
    figures: Figures, joined: int, dense: Sequence[int], values: Mapping[tuple[int, str], Values]
) -> SampledClass:
    """The class by the figures of the whole tree; `dense` are the keys that are counted whatever their hash."""
    tree, cells = figures.tree, figures.cells(joined)
    vertices = tree.classes[joined].vertices
    messages = tuple(_finite(figures, v, joined) for v in vertices)
    keys = Keys(
        cells.counts,
        cells.weights,
        cells.squares,
        messages,
        cells.heavy & np.isin(cells.keys, np.array(dense, np.int64)),
    )
    heaviest = tuple(
        heaviest_of_all(figures.attribute(v, joined), figures.relations[v].tuples) for v in vertices
    )
    tuples = tuple(figures.relations[v].tuples for v in vertices)
    return SampledClass(keys, vertices, behind(tree, joined), tuples, heaviest, values)


def behind(tree: JoinTree, joined: int) -> dict[int, int]:
    """For every vertex the place in a class of the table that it is, or that it hangs from."""
    found = {v: place for place, v in enumerate(tree.classes[joined].vertices)}
    waiting = list(found)
    while waiting:
        vertex = waiting.pop()
        for number in tree.classes_of(vertex):
            for other in tree.classes[number].vertices:
                if number != joined and other not in found:
                    found[other] = found[vertex]
                    waiting.append(other)
    return found


def _finite(figures: Figures, vertex: int, joined: int) -> PerTuple:
    """What a tuple receives; where nothing bounds it, what the heaviest keys that are known of make."""
    found = figures.received(vertex, joined)
    if math.isfinite(found.largest):
        return found
    largest, waiting = 1.0, [(vertex, joined)]
    while waiting:
        own, above = waiting.pop()
        for number in figures.tree.classes_of(own):
            if number != above:
                for other in figures.tree.classes[number].vertices:
                    if other != own:
                        largest *= heaviest_known(
                            figures.attribute(other, number), figures.relations[other].tuples
                        )
                        waiting.append((other, number))
    return PerTuple(found.mean, found.square, largest)


def heaviest_of_all(attribute: Attribute, tuples: float) -> float:
    """`heaviest_known`, or what a key that the pilot has not met may have, by those that it has."""
    known, pilot = heaviest_known(attribute, tuples), attribute.pilot
    if math.isfinite(attribute.heavy.largest_other) or pilot is None:
        return known
    met = pilot.weights[0] / attribute.row_fraction
    return max(known, heaviest_beyond(met, np.full(met.size, 1.0 / pilot.probability)))


def heaviest_known(attribute: Attribute, tuples: float) -> float:
    """The most tuples that a key of an attribute is taken to have: bounded, listed, met by a pilot, or by chance."""
    listed = float(np.abs(attribute.heavy.weights).max(initial=0.0))
    if math.isfinite(attribute.heavy.largest_other):
        return max(listed, attribute.heavy.largest_other)
    pilot = attribute.pilot
    if pilot is None or not pilot.keys.size:
        return max(listed, heaviest_of(attribute.distinct, tuples))
    met = float(pilot.weights[0].max()) / attribute.row_fraction
    # The heaviest of those that the pilot has not met has little more, if any key has more than one.
    return max(listed, met if met <= 1.0 or pilot.probability == 1.0 else met + 1.0)
