"""Runs the planner's samples and sketches on relations in memory: scans are look-ups, everything else is ours.

What is held is counted as it is held: the bytes of the arrays of sketches, samples and messages together.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from skimql.optimizer.candidates.enumerate import Candidate
from skimql.optimizer.messages import Fold, JoinTree, Residual
from skimql.optimizer.prediction.samples import SamplePlan
from skimql.sketches.hashing.xi import Family, make_family
from skimql.sketches.intervals.interval import Estimate, exact, median_interval
from skimql.sketches.joins.convolution import ConvolutionSketch, ConvolutionSpec, join_rows
from skimql.sketches.joins.hash_sketch import hash_spec, join_size_rows
from skimql.sketches.joins.skim import skim
from skimql.sketches.joins.skim_join import skimmed_join
from skimql.sketches.joins.sparse import SparseFirstSketch
from skimql.sketches.samples.key_sample import KeySampleSpec
from skimql.sketches.samples.sample_join import estimate_join, estimate_messages
from skimql.sketches.samples.sample_sketch import SampleSketch, SampleSketchSpec
from skimql.sketches.samples.sample_sketch_join import Synopsis, sample_sketch_join
from skimql.sketches.samples.two_level import TwoLevel, TwoLevelSpec

from .join_queries import JoinQuery, Tuples, weights_at

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def folded(tree: JoinTree, relations: Sequence[Tuples], folds: Sequence[Fold]) -> tuple[list[Tuples], int]:
    """Relations with exact messages multiplied into the receivers' weights, and the bytes of the messages.

    A receiver's tuples that a message does not know weigh nothing and are gone.
    """
    left, held = list(relations), 0
    for fold in folds:
        keys, weights = left[fold.sender].grouped(tree.position(fold.sender, fold.joined))
        held += keys.nbytes + weights.nbytes
        own = left[fold.receiver]
        joined = weights_at(
            keys, weights.astype(np.float64), own.keys[tree.position(fold.receiver, fold.joined)]
        )
        product = own.weights * joined.astype(np.int64)
        used = product != 0
        left[fold.receiver] = Tuples(own.keys[:, used], product[used], own.scanned)
    return left, held


def exact_total(relation: Tuples) -> Estimate:
    """The answer where everything was folded into one relation."""
    return exact(int(relation.weights.sum()))


def run_samples(relations: Sequence[Tuples], plan: SamplePlan, seed: int) -> tuple[Estimate, int]:
    """Samples of each table of a one-class tree by itself, dense keys counted beside them."""
    family = make_family("tabulation", seed)
    synopses = []
    for own, dense, capacity, largest in zip(
        relations, plan.dense_keys, plan.capacities, plan.largest_other, strict=True
    ):
        synopsis = TwoLevel(TwoLevelSpec(KeySampleSpec(family, capacity)), dense)
        synopsis.update(*own.grouped(0))
        if np.isfinite(largest):
            synopsis.sample.bound_unseen("count", 0, largest)
        synopses.append(synopsis)
    estimate = estimate_join(synopses, largest_product=plan.largest_product)
    return estimate, sum(s.nbytes for s in synopses)


def run_messages(
    residual: Residual, relations: Sequence[Tuples], plan: SamplePlan, seed: int, budget_bytes: int
) -> tuple[Estimate, int]:
    """Sampled messages: one relation sampled, the others read in scan order for the wanted keys only.

    Where a scan finds more than the planned bytes hold, the sample is taken anew with half of its capacity, as an
    engine would that counts before it collects.
    """
    capacity = plan.capacities[0]
    while True:
        run = _MessageRun(residual, relations, plan, seed, capacity)
        estimate = run.estimate()
        if run.peak <= budget_bytes or capacity == 1:
            return estimate, run.peak
        capacity = max(1, min(capacity // 2 + 1, int(capacity * budget_bytes / run.peak * 0.95)))


class _MessageRun:
    """One pass through the steps of a plan, counting the bytes held at any time."""

    def __init__(
        self, residual: Residual, relations: Sequence[Tuples], plan: SamplePlan, seed: int, capacity: int
    ) -> None:
        self.residual, self.relations, self.plan = residual, relations, plan
        self.seed, self.capacity = seed, capacity
        self.held = self.peak = 0

    def estimate(self) -> Estimate:
        plan, tree = self.plan, self.residual.tree
        first, joined = plan.steps[0].vertex, plan.joined
        spec = KeySampleSpec(make_family("tabulation", self.seed), self.capacity)
        sample = TwoLevel(TwoLevelSpec(spec), plan.dense_keys[0])
        sample.update(*self.relations[first].grouped(tree.position(first, joined)))
        known = sample.known(["count"])
        self._hold(sample.nbytes + 8 * known.keys.size)  # and the products
        products = known.weights[0].astype(np.float64)
        if self._others(first, joined):
            products = self._message(first, joined, known.keys)
        members = {step.vertex for step in plan.steps if step.joined == joined} - {first}
        for vertex in [s.vertex for s in plan.steps if s.joined == joined and s.vertex in members]:
            wanted = products != 0
            products[wanted] *= self._message(vertex, joined, known.keys[wanted])
        return estimate_messages(sample, products, largest_product=plan.largest_product)

    def _others(self, vertex: int, joined: int) -> list[int]:
        return [j for j in self.residual.classes_of(vertex) if j != joined]

    def _message(self, vertex: int, joined: int, wanted: Ints) -> Floats:
        """Total weight of each wanted key in a vertex, its own other classes joined in."""
        own, position = self.relations[vertex], self.residual.tree.position
        keys = own.keys[position(vertex, joined)]
        at = np.minimum(np.searchsorted(wanted, keys), max(wanted.size - 1, 0))
        found = wanted[at] == keys if wanted.size else np.zeros(keys.size, bool)
        weights, at = own.weights[found].astype(np.float64), at[found]
        others = self._others(vertex, joined)
        held = 0
        if others:
            held = 8 * (2 + len(others)) * weights.size  # the tuples: key, other keys, weight
            self._hold(held)
            for j in others:
                column = own.keys[position(vertex, j)][found]
                weights = weights * self._class(vertex, j, column, weights != 0)
        self._hold(-held)
        return np.bincount(at, weights, wanted.size)

    def _class(self, vertex: int, joined: int, column: Ints, used: npt.NDArray[np.bool_]) -> Floats:
        """What the tuples receive from the other members of a class, members in the plan's order."""
        wanted = np.unique(column[used])
        held = 16 * wanted.size
        self._hold(held)
        product = np.ones(wanted.size)
        for step in self.plan.steps:
            if step.joined == joined and step.vertex != vertex:
                alive = product != 0
                product[alive] *= self._message(step.vertex, joined, wanted[alive])
        self._hold(-held)
        return weights_at(wanted, product, column)

    def _hold(self, nbytes: int) -> None:
        self.held += nbytes
        self.peak = max(self.peak, self.held)


def run_hash(relations: Sequence[Tuples], seed: int, rows: int, buckets: int) -> Estimate:
    """Hash sketches of two tables."""
    left, right = _hash_sketches(relations, seed, rows, buckets)
    return median_interval(join_size_rows(left, right))


def run_skimmed(relations: Sequence[Tuples], seed: int, rows: int, buckets: int) -> Estimate:
    """Skimmed sketches of two tables; every key between a table's least and greatest is a candidate."""
    parts = []
    for own, sketch in zip(relations, _hash_sketches(relations, seed, rows, buckets), strict=True):
        parts.append(skim(sketch, [domain_of(own)]))
    return skimmed_join(parts, [(0, 1, 0, 0)])


def domain_of(own: Tuples) -> Ints:
    """The candidates for dense keys: the whole range of a small integer domain, else the keys themselves."""
    keys = own.keys[0]
    if not keys.size:
        return keys
    low, high = int(keys.min()), int(keys.max())
    return np.arange(low, high + 1) if high - low < 1 << 20 else keys


def _hash_sketches(
    relations: Sequence[Tuples], seed: int, rows: int, buckets: int
) -> list[ConvolutionSketch]:
    spec = hash_spec(make_family("tabulation", seed), rows, buckets)
    sketches = [ConvolutionSketch(spec) for _ in relations]
    for sketch, own in zip(sketches, relations, strict=True):
        sketch.update([own.keys[0]], own.weights)
    return sketches


def run_convolution(
    tree: JoinTree,
    vertices: Sequence[int],
    edges: Sequence[tuple[int, int, int]],
    relations: Sequence[Tuples],
    seed: int,
    rows: int,
    buckets: int,
) -> Estimate:
    """Convolution sketches with a replica attribute for each edge.

    `vertices` are the tree's numbers of the relations; `edges` are (relation, relation, class).
    """
    base = make_family("tabulation", seed)
    families: list[list[Family]] = [[] for _ in relations]
    columns: list[list[Ints]] = [[] for _ in relations]
    ends = []
    for number, (u, v, joined) in enumerate(edges):
        ends.append((u, v, len(families[u]), len(families[v])))
        for vertex in (u, v):
            families[vertex].append(base.derive(f"edge {number}"))
            columns[vertex].append(relations[vertex].keys[tree.position(vertices[vertex], joined)])
    sketches = []
    for own, mine, keys in zip(relations, families, columns, strict=True):
        sketch = ConvolutionSketch(ConvolutionSpec(tuple(mine), rows, buckets))
        sketch.update(keys, own.weights)
        sketches.append(sketch)
    return median_interval(join_rows(sketches, ends))


def run_sample_sketch(
    residual: Residual, relations: Sequence[Tuples], plan: SamplePlan, seed: int, rows: int
) -> tuple[Estimate, int]:
    """Sample x sketch, every table summarised by itself."""
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
        for u, v, j in residual_edges(residual)
    ]
    found = [synopses[v] for v in order]
    estimate = sample_sketch_join(found, ends, largest_product=plan.largest_product, low_bound=0.0)
    return estimate, sum(s.nbytes for s in found)


def residual_edges(residual: Residual) -> list[tuple[int, int, int]]:
    """Edges (vertex, vertex, class) of a residual tree; a class of several vertices is a star around the first."""
    edges = []
    for joined in residual.classes:
        first, *others = residual.members(joined)
        edges += [(first, v, joined) for v in others]
    return edges


def run(query: JoinQuery, candidate: Candidate, seed: int, budget_bytes: int) -> tuple[Estimate, int]:
    """Execute a candidate: the estimate, and the most bytes held at any time."""
    residual, tree = candidate.residual, query.tree
    relations, held = folded(tree, query.relations, residual.folds)
    if candidate.method == "exact":
        return exact_total(relations[residual.vertices[0]]), held
    if candidate.method == "sampled_messages":
        assert candidate.sample is not None
        left = budget_bytes - held
        estimate, nbytes = run_messages(residual, relations, candidate.sample, seed, left)
        return estimate, held + nbytes
    if candidate.method in ("key_sample", "two_level"):
        assert candidate.sample is not None
        return run_samples(relations, candidate.sample, seed)
    if candidate.method == "sample_sketch":
        assert candidate.sample is not None
        return run_sample_sketch(residual, relations, candidate.sample, seed, candidate.rows)
    rows, buckets = candidate.rows, candidate.buckets
    nbytes = held + 8 * rows * buckets * len(residual.vertices)
    if candidate.method == "hash" and not residual.folds:
        return run_hash(relations, seed, rows, buckets), nbytes
    if candidate.method == "skimmed":
        return run_skimmed(relations, seed, rows, buckets), nbytes
    if candidate.method == "agms":
        raise ValueError("the benchmark does not run AGMS sketches")
    edges = [
        (residual.vertices.index(u), residual.vertices.index(v), j) for u, v, j in residual_edges(residual)
    ]
    kept = [relations[v] for v in residual.vertices]
    return run_convolution(tree, residual.vertices, edges, kept, seed, rows, buckets), nbytes
