"""Views whose streams are joined on one key by samples of it: each stream keeps the keys of small hash, by itself.

A key sample is linear, as a hash sketch is: what is deleted is taken from the weight of its key. Its error hangs on how
unequal the keys' shares of the join are, and not on how many streams are joined.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import ndtri

from ...optimizer.fold import class_attribute
from ...optimizer.messages import Residual
from ...optimizer.methods import KEY_SAMPLE, SAMPLE_SKETCH
from ...optimizer.plan import Plan, PlannedTerm, Scan, Synopsis, Weight
from ...sketches.samples.key_sample import KeySample, KeySampleSpec
from ...sketches.samples.sample_regression import regress
from ...sketches.samples.sample_sketch import SampleSketch
from ...sketches.samples.threshold_sample import net_entries
from ..results.materialized_samples import MaterializedSampleJoin, SampledWeight
from ..synopses import Built
from .beside import keys_in


def with_key_samples(plan: Plan, residual: Residual, rows: int, buckets: int) -> Plan:
    """A plan with key samples in the place of its hash sketches, of as many bytes.

    As it is where they do not serve: one stream alone, streams that are joined on several keys, distinct values.
    """
    if len(residual.classes) != 1 or plan.query.counts_distinct:
        return plan
    graph, joined = plan.query.graph, residual.tree.classes[residual.classes[0]]
    keys = keys_in(rows, buckets)
    numbers: dict[Synopsis, int] = {}

    def sampled(terms: Sequence[PlannedTerm]) -> tuple[PlannedTerm, ...]:
        found = []
        for term in terms:
            own = []
            for vertex, i in zip(plan.vertices, term.synopses, strict=True):
                attributes = (class_attribute(graph, joined, vertex),)
                sample = replace(plan.synopses[i], attributes=attributes, method=KEY_SAMPLE)
                sample = replace(sample, rows=rows, buckets=keys, sparse=True)
                own.append(numbers.setdefault(sample, len(numbers)))
            found.append(PlannedTerm(term.coefficient, tuple(own)))
        return tuple(found)

    aggregates = tuple(
        replace(a, total=sampled(a.total), presence=sampled(a.presence)) for a in plan.aggregates
    )
    synopses = tuple(numbers)
    return replace(
        plan,
        synopses=synopses,
        scans=tuple(
            Scan(t, tuple(i for i, s in enumerate(synopses) if s.table == t))
            for t in dict.fromkeys(s.table for s in synopses)
        ),
        edges=tuple(
            replace(e, left_position=0, right_position=0, class_name=joined.name) for e in plan.edges
        ),
        aggregates=aggregates,
    )


class StreamSamples(MaterializedSampleJoin):
    """The key samples of a view, ready to be asked."""

    def half_width(self, terms: Sequence[PlannedTerm], confidence: float) -> float | None:
        """The half-width to be expected of a sum, from the variance among the sampled keys; 0 where it is exact."""
        if self.known(terms) is not None:
            return 0.0
        if len(terms) != 1:
            return None
        joined = self._joined(terms)
        variance = joined.variance()
        own = self._of(terms[0])
        fitted = regress([w.sample.known([w.column]) for w in own], joined)
        if fitted is not None:
            p = fitted[0].probability
            variance = fitted[0].squares * (1.0 - p) / p**2
        return abs(self._factor(terms[0])) * -float(ndtri((1.0 - confidence) / 2.0)) * math.sqrt(variance)


def sampled_weights(plan: Plan, built: Sequence[Built]) -> dict[int, SampledWeight]:
    """The synopses of a plan; samples of one virtual relation as one sample with a column for each weight."""
    relations: dict[Synopsis, list[int]] = {}
    weights: dict[int, SampledWeight] = {}
    for i, synopsis in enumerate(plan.synopses):
        if synopsis.method not in (KEY_SAMPLE, SAMPLE_SKETCH):
            weights[i] = SampledWeight(built[i].linear, "", built[i].scale, bool(built[i].tally.negative))
            continue
        relation = replace(synopsis, weight=Weight(), messages=tuple(m.relation for m in synopsis.messages))
        relations.setdefault(relation, []).append(i)
    for own in relations.values():
        sample = _together([built[i] for i in own])
        for i, column in zip(own, sample.spec.columns, strict=True):
            weights[i] = SampledWeight(sample, column, built[i].scale, bool(built[i].tally.negative))
    return weights


def _together(built: Sequence[Built]) -> KeySample | SampleSketch:
    """Samples of one virtual relation by one hash: what is below the lowest threshold, with every weight."""
    kept: list[Any] = [b.sketch for b in built]
    samples: list[KeySample | SampleSketch] = kept
    threshold = min(s.threshold for s in samples)
    first = samples[0].spec
    parts = []
    for row, sample in enumerate(samples):
        entries = np.atleast_2d(sample.keys)
        weights = np.zeros((len(samples), entries.shape[1]), np.int64)
        weights[row] = sample.weights[0]
        below = first.family.values(entries[0], 1, first.hash_bits)[0] < np.uint64(threshold)
        parts.append((entries[:, below], weights[:, below]))
    keys, weights = net_entries(
        np.concatenate([k for k, _ in parts], axis=1), np.concatenate([w for _, w in parts], axis=1)
    )
    columns = tuple(f"weight {n}" for n in range(len(samples)))
    spec = replace(first, capacity=max(first.capacity, keys.shape[1]), columns=columns)
    state = {
        "weights": weights,
        "last_hash": np.array([threshold - 1], np.uint64),
        "totals": np.array([s.totals[0] for s in samples]),
        "unseen": np.concatenate([s.unseen for s in samples]),
    }
    if isinstance(spec, KeySampleSpec):
        return KeySample.from_state(spec, {**state, "keys": keys[0]})
    crowded = np.array([any(s.crowded for s in samples if isinstance(s, SampleSketch))], np.uint8)
    own: dict[str, Any] = {"keys": keys, "dense_keys": np.empty(0, np.int64), "crowded": crowded}
    return SampleSketch.from_state(spec, {**state, **own})
