"""Views whose streams are joined on several keys, by sample x sketch: one join class is sampled, others are sketched.

The streams of the sampled class keep the combinations of their keys whose key of that class has a small hash, with all
that they weigh, inserted less deleted; streams beyond are hash sketches, which are asked for the keys that the kept
combinations carry. Each stream is summarised by itself, as nothing can be asked of one again.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from scipy.special import ndtri

from ...optimizer.fold import ResidualTree, class_attribute, residual_tree
from ...optimizer.messages import Residual
from ...optimizer.methods import SAMPLE_SKETCH
from ...optimizer.plan import BYTES_PER_COUNTER, Plan, PlannedTerm, Scan, Synopsis
from ...sketches.samples.sample_sketch_join import expected_variances
from ..results.materialized_sample_sketch import MaterializedSampleSketchJoin
from ..synopses import Built
from .predicted import half_width
from .sampled import sampled_weights

# Shares of the bytes without a pilot: of a stream that carries other keys, of others in the sample, of sketches.
CARRYING, INSIDE, BEYOND = 4, 2, 1
LEAST_BYTES = 256


@dataclass(frozen=True, slots=True)
class Split:
    """How a view's bytes are divided.

    Attributes
    ----------
    joined : int
        Number of the join class that is sampled.
    nbytes : tuple of int
        Bytes of each synopsis of a vertex, in the order of the vertices of the plan.
    """

    joined: int
    nbytes: tuple[int, ...]

    def text(self) -> str:
        """As the settings of a stored view have it."""
        return json.dumps([self.joined, list(self.nbytes)])

    @classmethod
    def of(cls, text: str) -> Split:
        """What `text` gave."""
        joined, nbytes = json.loads(text)
        return cls(int(joined), tuple(map(int, nbytes)))


def sampled_classes(residual: Residual) -> tuple[int, ...]:
    """The join classes of which a sample serves: every stream beyond has one key, of a stream in the sample.

    That in which most streams are is first.
    """
    if len(residual.classes) < 2:
        return ()
    found = []
    for joined in residual.classes:
        members = residual.members(joined)
        reached = {c for v in members for c in residual.classes_of(v)}
        beyond = [residual.classes_of(v) for v in residual.vertices if v not in members]
        if all(len(own) == 1 and own[0] in reached for own in beyond):
            found.append(joined)
    return tuple(sorted(found, key=lambda c: -len(residual.members(c))))


def even_split(plan: Plan, residual: Residual, joined: int, nbytes: int) -> Split:
    """The bytes of a plan divided by what its streams are, where nothing is known of their events."""
    members = residual.members(joined)
    shares = []
    for v in plan.vertices:
        carries = len(residual.classes_of(v)) > 1
        shares.append((CARRYING if carries else INSIDE) if v in members else BEYOND)
    return split_by(plan, joined, shares, nbytes)


def split_by(plan: Plan, joined: int, shares: Sequence[float], nbytes: int) -> Split:
    """So many bytes of all synopses together, those of the vertices in these shares but for the least."""
    each = [len({t.synopses[n] for t in plan.terms}) for n in range(len(plan.vertices))]
    least = min(LEAST_BYTES, nbytes // sum(each))
    whole = sum(n * s for n, s in zip(each, shares, strict=True))
    # Each has the least, and a share of what is left.
    left = (nbytes - least * sum(each)) / whole
    return Split(joined, tuple(least + int(left * s) for s in shares))


def with_sample_sketch(
    plan: Plan, residual: Residual, rows: int, buckets: int, split: Split | None = None
) -> Plan:
    """A plan with samples and hash sketches in the place of its convolution sketches, of as many bytes.

    As it is where they do not serve: streams on one key, a stream beyond one that is beyond the sample, distinct
    values.
    """
    classes = sampled_classes(residual)
    if not classes or plan.query.counts_distinct:
        return plan
    if split is None:
        nbytes = BYTES_PER_COUNTER * rows * buckets * sum(1 for s in plan.synopses if s.attributes)
        split = even_split(plan, residual, classes[0], nbytes)
    tree = residual_tree(plan.query.graph, residual)
    names = _beyond_names(tree, split.joined)
    numbers: dict[Synopsis, int] = {}

    def of_term(term: PlannedTerm) -> PlannedTerm:
        own = []
        for vertex, i, nbytes in zip(plan.vertices, term.synopses, split.nbytes, strict=True):
            found = _synopsis(plan.synopses[i], tree, vertex, split.joined, names, rows, nbytes)
            own.append(numbers.setdefault(found, len(numbers)))
        return PlannedTerm(term.coefficient, tuple(own))

    aggregates = tuple(
        replace(a, total=tuple(map(of_term, a.total)), presence=tuple(map(of_term, a.presence)))
        for a in plan.aggregates
    )
    synopses = tuple(numbers)
    scans = tuple(
        Scan(t, tuple(i for i, s in enumerate(synopses) if s.table == t))
        for t in dict.fromkeys(s.table for s in synopses)
    )
    return replace(plan, synopses=synopses, scans=scans, aggregates=aggregates)


def _synopsis(
    like: Synopsis,
    tree: ResidualTree,
    vertex: int,
    joined: int,
    names: Mapping[int, str],
    rows: int,
    nbytes: int,
) -> Synopsis:
    classes = classes_of(tree.residual, vertex, joined)
    attributes = tuple(
        class_attribute(tree.graph, tree.residual.tree.classes[c], vertex, names.get(vertex)) for c in classes
    )
    if vertex in names:
        buckets = max(2, nbytes // (BYTES_PER_COUNTER * rows))
        return replace(like, attributes=attributes, method="hash", rows=rows, buckets=buckets)
    # Of a sample rows are the words of an entry, and buckets the entries.
    words = 1 + len(attributes)
    buckets = max(2, nbytes // (BYTES_PER_COUNTER * words))
    return replace(
        like, attributes=attributes, method=SAMPLE_SKETCH, rows=words, buckets=buckets, sparse=True
    )


def classes_of(residual: Residual, vertex: int, joined: int) -> tuple[int, ...]:
    """The classes of a vertex, as its synopsis has them: the sampled one first."""
    own = residual.classes_of(vertex)
    return tuple(sorted(own, key=lambda c: (c != joined, c)))


def _beyond_names(tree: ResidualTree, joined: int) -> dict[int, str]:
    """The name of the hash family of every vertex beyond the sample: that of its edge towards it, so no other's."""
    reached, names = set(tree.residual.members(joined)), {}
    edges = [e for e in tree.edges if e.joined != joined]
    while edges:
        edge = next(e for e in edges if (e.left in reached) != (e.right in reached))
        edges.remove(edge)
        beyond = edge.right if edge.left in reached else edge.left
        names[beyond] = edge.left_attribute.class_name
        reached.add(beyond)
    return names


@dataclass(frozen=True)
class StreamSampleSketch(MaterializedSampleSketchJoin):
    """The samples and sketches of a view, ready to be asked.

    Attributes
    ----------
    by_vertex : tuple of tuple of int
        As `orders`, by the vertices of the plan: a stream that is joined with itself has one synopsis for two of them.
    """

    by_vertex: tuple[tuple[int, ...], ...]

    def half_width(self, terms: Sequence[PlannedTerm], confidence: float) -> float | None:
        """The half-width to be expected of a sum; 0 where it is exact, None of a sum of several joins."""
        if self.known(terms) is not None:
            return 0.0
        if len(terms) != 1:
            return None
        (term,) = terms
        own = self._synopses(term), self._edges(term), self._columns(term)
        sampling, noise, rows, buckets = expected_variances(*own)
        quantile = -float(ndtri((1.0 - confidence) / 2.0))
        collisions = half_width(noise * buckets, rows, buckets, confidence) if noise else 0.0
        return abs(self._factor(term)) * math.hypot(quantile * math.sqrt(sampling), collisions)

    def _orders(self, term: PlannedTerm) -> list[tuple[int, ...]]:
        return list(self.by_vertex)


def sample_sketch_of(plan: Plan, residual: Residual, built: Sequence[Built]) -> StreamSampleSketch:
    """The synopses of a plan of `with_sample_sketch`, ready to be asked."""
    tree = residual_tree(plan.query.graph, residual)
    sampled = [plan.synopses[i].method == SAMPLE_SKETCH for i in plan.terms[0].synopses]
    inside = [v for v, own in zip(plan.vertices, sampled, strict=True) if own]
    (joined,) = (c for c in residual.classes if set(residual.members(c)) == set(inside))
    orders = tuple(
        tuple(classes_of(residual, v, joined).index(tree.edges[e].joined) for e in tree.edges_at(v))
        for v in plan.vertices
    )
    return StreamSampleSketch(sampled_weights(plan, built), plan.edges, {}, orders)
