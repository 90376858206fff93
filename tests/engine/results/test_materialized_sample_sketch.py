"""Sums, averages and exact values over kept samples of one class and sketches beyond it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from skimql.engine.results.materialized_sample_sketch import MaterializedSampleSketchJoin, quotient
from skimql.engine.results.materialized_samples import SampledWeight
from skimql.optimizer.plan import PlannedEdge, PlannedTerm
from skimql.sketches.hashing.xi import make_family
from skimql.sketches.intervals.interval import Estimate, exact
from skimql.sketches.joins.hash_sketch import hash_spec
from skimql.sketches.joins.sparse import SparseFirstSketch
from skimql.sketches.samples.sample_sketch import SampleSketch, SampleSketchSpec

RNG = np.random.default_rng(6)
FAMILY = make_family("tabulation", 3)
LEFT, HUB, FAR = RNG.integers(0, 200, 1_000), RNG.integers(0, 200, (2, 800)), RNG.integers(0, 90, 700)
HUB[1] %= 90
PAID = RNG.integers(1, 9, 800)
EDGES = (PlannedEdge(0, 1, 0, 0, "k"), PlannedEdge(1, 2, 1, 0, "l"))
COUNT, SUM = (PlannedTerm(1.0, (0, 1, 3)),), (PlannedTerm(1.0, (0, 2, 3)),)


def joined(capacity, limit):
    left = SampleSketch(SampleSketchSpec(FAMILY.derive("k"), capacity))
    left.update([LEFT])
    hub = SampleSketch(SampleSketchSpec(FAMILY.derive("k"), 3 * capacity, 2, 0, ("count", "weight 1")))
    hub.update([*HUB], np.stack([np.ones_like(PAID), PAID]))
    far = SparseFirstSketch(hash_spec(FAMILY.derive("l"), 40), limit)
    far.update([FAR])
    weights = {
        0: SampledWeight(left, "count", 1.0, False),
        1: SampledWeight(hub, "count", 1.0, False),
        2: SampledWeight(hub, "weight 1", 10.0, False),
        3: SampledWeight(far, "count", 1.0, False),
    }
    return MaterializedSampleSketchJoin(weights, EDGES, {0: (0,), 1: (0, 1), 2: (0, 1), 3: (0,)})


def truths():
    left, far = np.bincount(LEFT, minlength=200), np.bincount(FAR, minlength=90)
    each = left[HUB[0]] * far[HUB[1]]
    return int(each.sum()), float(each @ PAID) / 10


def test_what_has_lost_nothing_is_exact_to_the_last_digit():
    own, (count, total) = joined(1_000, None), truths()
    assert own.known(COUNT) == count
    assert own.total(COUNT, 0.95) == exact(count)
    assert float(own.known(SUM)) == pytest.approx(total)
    assert own.total([*COUNT, *SUM], 0.95).exact
    assert float(own.ratio(SUM, COUNT, 0.95).value) == pytest.approx(total / count)
    assert own.nbytes < 60_000


def test_a_map_that_several_tables_join_by_one_key_is_read_for_each_of_them():
    left, far = (
        SparseFirstSketch(hash_spec(FAMILY.derive("k"), 40)),
        SampleSketch(SampleSketchSpec(FAMILY, 500)),
    )
    left.update([LEFT])
    far.update([HUB[0]])
    weights = {0: SampledWeight(left, "count", 1.0, False), 1: SampledWeight(far, "count", 1.0, False)}
    edges = (PlannedEdge(0, 1, 0, 0, "k"), PlannedEdge(0, 2, 1, 0, "k"))
    own = MaterializedSampleSketchJoin(weights, edges, {0: (0, 0), 1: (0,)})
    keys = np.bincount(HUB[0], minlength=200)
    assert own.known((PlannedTerm(1.0, (0, 1, 1)),)) == int(
        (np.bincount(LEFT, minlength=200) * keys**2).sum()
    )


@pytest.mark.parametrize("limit", [None, 0])
@pytest.mark.parametrize("capacity", [8, 1_000])
def test_intervals_cover_and_are_never_below_what_is_certain(capacity, limit):
    own, (count, total) = joined(capacity, limit), truths()
    if capacity == 1_000 and limit is None:
        return
    assert own.known(COUNT) is None
    found = (
        own.total(COUNT, 0.95),
        own.total(SUM, 0.95),
        own.ratio(SUM, COUNT, 0.95),
        own.total([*COUNT, *SUM], 0.95),
    )
    for estimate, truth in zip(found, (count, total, total / count, count + total), strict=True):
        # Half as wide again: one interval in twenty misses.
        slack = (estimate.high - estimate.low) / 2
        assert 0.0 <= estimate.low <= truth + slack <= estimate.high + 2 * slack
        assert not estimate.exact
        assert estimate.confidence == pytest.approx(0.95)
    assert (
        own.ratio([*SUM, *SUM], COUNT, 0.95).low
        <= 2 * total / count
        <= own.ratio([*SUM, *SUM], COUNT, 0.95).high
    )


def test_a_quotient_is_as_wide_as_both_its_parts_allow():
    one, other = (Estimate(v, v - 1, v + 1, 0.95, True, "measured") for v in (10.0, 5.0))
    found = quotient(one, other)
    assert (found.value, found.low, found.high) == (2.0, 9 / 6, 11 / 4)
    assert not found.certified
    nothing = quotient(one, Estimate(0.5, -1.0, 2.0, 0.95, True, "measured"))
    assert (nothing.low, nothing.high) == (-math.inf, math.inf)
    assert math.isnan(quotient(one, exact(0)).value)
    # Nothing was seen of the divisor: that is no knowledge that nothing is there.
    for below in (
        Estimate(0.0, -math.inf, math.inf, 0.95, False, "measured"),
        Estimate(0.0, 0.0, 0.0, 0.95, False, "measured"),
    ):
        unseen = quotient(one, below)
        assert (unseen.low, unseen.high, unseen.certified, unseen.exact) == (
            -math.inf,
            math.inf,
            False,
            False,
        )
