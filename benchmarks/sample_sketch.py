"""Sample x sketch as the library of sketches has it: the dense keys of a table beyond the sample counted exactly.

The product makes plain hash sketches of those tables, in as many bytes: the catalog has no other kind of them yet.
"""

from __future__ import annotations

from skimql.optimizer.candidates.candidate import Candidate
from skimql.optimizer.messages import Residual
from skimql.sketches.hashing.xi import make_family
from skimql.sketches.intervals.interval import Estimate
from skimql.sketches.joins.convolution import ConvolutionSpec
from skimql.sketches.joins.hash_sketch import hash_spec
from skimql.sketches.joins.sparse import SparseFirstSketch
from skimql.sketches.samples.sample_sketch import SampleSketch, SampleSketchSpec
from skimql.sketches.samples.sample_sketch_join import Synopsis, sample_sketch_join
from skimql.sketches.samples.two_level import TwoLevel, TwoLevelSpec

from .join_queries import JoinQuery


def run_sample_sketch(query: JoinQuery, candidate: Candidate, seed: int) -> tuple[Estimate, int]:
    """The estimate of a candidate, and the bytes of its synopses."""
    residual, relations, plan, rows = candidate.residual, query.relations, candidate.sample, candidate.rows
    assert plan is not None, "a sample is planned"
    base, position = make_family("tabulation", seed), residual.tree.position
    synopses: dict[int, Synopsis] = {}
    for v, dense, capacity in zip(plan.vertices, plan.dense_keys, plan.capacities, strict=True):
        classes = residual.classes_of(v)
        spec = SampleSketchSpec(base.derive("sample"), capacity, len(classes), classes.index(plan.joined))
        synopsis = SampleSketch(spec, dense)
        synopsis.update([relations[v].keys[position(v, j)] for j in classes], relations[v].weights)
        synopses[v] = synopsis
    for number, beyond in enumerate(plan.beyond):
        spec = hash_spec(base.derive(f"beyond {number}"), rows, beyond.buckets)
        own = relations[beyond.vertex].grouped(position(beyond.vertex, beyond.joined))
        sketch: SparseFirstSketch[ConvolutionSpec] | TwoLevel
        if beyond.dense_keys.size:
            sketch = TwoLevel(TwoLevelSpec(spec), beyond.dense_keys)
            sketch.update(*own)
        else:
            sketch = SparseFirstSketch(spec, beyond.nbytes)
            sketch.update([own[0]], own[1])
        synopses[beyond.vertex] = sketch
    order = sorted(synopses)
    ends = [
        (order.index(u), order.index(v), residual.classes_of(u).index(j), residual.classes_of(v).index(j))
        for u, v, j in _edges(residual)
    ]
    found = [synopses[v] for v in order]
    estimate = sample_sketch_join(found, ends, largest_product=plan.largest_product, low_bound=0.0)
    return estimate, sum(s.nbytes for s in found)


def _edges(residual: Residual) -> list[tuple[int, int, int]]:
    """Edges (vertex, vertex, class) of a residual tree; a class of several vertices is a star around the first."""
    edges = []
    for joined in residual.classes:
        first, *others = residual.members(joined)
        edges += [(first, v, joined) for v in others]
    return edges
