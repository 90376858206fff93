"""Finished synopses, joined: what answers the terms of a plan."""

from support.questions import query
from support.schemas import schema, table

from skimql.engine.results.estimator import SketchJoin
from skimql.engine.synopses import Built, Tally
from skimql.optimizer.choose import choose
from skimql.sketches.hashing.xi import derive_seed, make_family
from skimql.sketches.joins.convolution import ConvolutionSpec
from skimql.sketches.joins.sparse import SparseFirstSketch

TABLES = schema(*(table(t, k="bigint") for t in "ab"))
PLAN = choose(query("COUNT(*) FROM a JOIN b ON a.k = b.k", TABLES), 5, 11, 64)


def built(keys, limit=None):
    spec = ConvolutionSpec((make_family("tabulation", derive_seed(5, "k")),), 11, 64)
    sketch = SparseFirstSketch(spec, limit)
    sketch.update([keys])
    return Built(sketch, Tally(len(keys), float(len(keys)), 0), 1.0)


def test_maps_of_keys_know_the_join_and_counters_bound_it():
    total = PLAN.aggregates[0].total
    exact = SketchJoin(PLAN, [built([1, 1, 2]), built([1, 2, 3])])
    assert exact.known(total) == 3
    assert exact.total(total, 0.95).exact
    rough = SketchJoin(PLAN, [built([1, 1, 2], 0), built([1, 2, 3], 0)])
    assert rough.known(total) is None
    estimate = rough.total(total, 0.95)
    assert estimate.low <= 3 <= estimate.high
    assert rough.nbytes >= exact.nbytes
