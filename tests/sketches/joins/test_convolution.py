"""Convolution sketches: the definition, linearity, overflow, and the expectation over every hash function."""

import hashlib
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import streams, theory
from support.enumeration import Enumerated

from skimql.sketches.hashing.xi import make_family
from skimql.sketches.intervals.interval import median_interval
from skimql.sketches.joins.convolution import ConvolutionSketch, ConvolutionSpec, join_rows

A, B, C = (make_family("tabulation", 1).derive(label) for label in "abc")
KEYS = st.integers(-(2**63), 2**63 - 1)
WEIGHTS = st.integers(-(2**40), 2**40)
SIZES = [(3, 8), (2, 7)]  # a power of two and not


def tuples(attributes, **limits):
    return st.lists(st.tuples(*[KEYS] * attributes, WEIGHTS), max_size=12, **limits)


def filled(spec, rows):
    """A sketch of the rows (key, ..., weight)."""
    sketch = ConvolutionSketch(spec)
    columns = [np.array([r[i] for r in rows], dtype=np.int64) for i in range(len(spec.families))]
    sketch.update(columns, np.array([r[-1] for r in rows], dtype=np.int64))
    return sketch


def specs():
    for (rows, buckets), families in itertools.product(SIZES, [(), (A,), (A, B), (A, B, C)]):
        yield ConvolutionSpec(families, rows, buckets)


def spec_id(spec):
    return f"{len(spec.families)}x{spec.buckets}"


@pytest.mark.parametrize("spec", list(specs()), ids=spec_id)
@settings(max_examples=15, deadline=None)
@given(st.data())
def test_counters_are_what_the_definition_says(spec, data):
    rows = data.draw(tuples(len(spec.families)))
    expected = np.zeros(spec.shape, dtype=object)
    single = [ConvolutionSpec((f,), spec.rows, spec.buckets) for f in spec.families]
    for *keys, weight in rows:
        for r in range(spec.shape[0]):
            slots = [int(s.slots([np.array([k])])[r, 0]) for s, k in zip(single, keys, strict=True)]
            bucket = sum(s >> 1 for s in slots) % spec.shape[1]
            expected[r, bucket] += weight * (-1) ** sum(s & 1 for s in slots)
    assert filled(spec, rows).counters.tolist() == expected.tolist()


def test_impossible_specs_are_refused():
    for bad in ({"rows": 0}, {"buckets": 1}, {"dtype": "int32"}, {"families": (A, A)}):
        with pytest.raises(ValueError):
            ConvolutionSpec(**{"families": (A,), **bad})


def test_without_attributes_a_sketch_is_a_total():
    sketch = ConvolutionSketch(ConvolutionSpec((), 11, 4096))
    sketch.update([], [2**61, 5, -7])
    assert sketch.counters.tolist() == [[2**61 - 2]]
    assert join_rows([sketch], []).tolist() == [float(2**61 - 2)]


@pytest.mark.parametrize("buckets", [4, 5])
@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_fourier_estimates_equal_sums_over_buckets(buckets, data_seed):
    """Every tree below against its definition: buckets on the two ends of an edge are equal."""
    rng, m = np.random.default_rng(data_seed), buckets

    def sketch(*families):
        spec = ConvolutionSpec(families, 1, m)
        return ConvolutionSketch.from_state(spec, {"counters": rng.integers(-9, 9, (1, m))})

    a, b, ab, bc, c, abc = sketch(A), sketch(B), sketch(A, B), sketch(B, C), sketch(C), sketch(A, B, C)
    f = {
        name: s.counters[0]
        for name, s in zip(["a", "b", "ab", "bc", "c", "abc"], (a, b, ab, bc, c, abc), strict=True)
    }
    r = range(m)
    chain2 = sum(f["a"][x] * f["ab"][(x + y) % m] * f["b"][y] for x in r for y in r)
    assert join_rows([a, ab, b], [(0, 1, 0, 0), (1, 2, 1, 0)])[0] == pytest.approx(chain2)
    assert join_rows([b, a, ab], [(2, 0, 1, 0), (1, 2, 0, 0)])[0] == pytest.approx(chain2)
    chain3 = sum(
        f["a"][x] * f["ab"][(x + y) % m] * f["bc"][(y + z) % m] * f["c"][z] for x in r for y in r for z in r
    )
    assert join_rows([a, ab, bc, c], [(0, 1, 0, 0), (1, 2, 1, 0), (2, 3, 1, 0)])[0] == pytest.approx(chain3)
    star = sum(f["a"][x] * f["b"][y] * f["c"][z] * f["abc"][(x + y + z) % m] for x in r for y in r for z in r)
    edges = [(0, 3, 0, 0), (1, 3, 0, 1), (2, 3, 0, 2)]
    assert join_rows([a, b, c, abc], edges)[0] == pytest.approx(star)
    assert join_rows([a, a], [(0, 1, 0, 0)])[0] == f["a"] @ f["a"]


# Every hash function: the mean over all rows is the expectation, and must be the join itself. Sees any lost
# sign, wrong colouring, bucket sums that do not cancel. Planted bugs, all red: no sign product, one colour
# only, a bucket sum without the modulus.
@pytest.mark.parametrize("buckets", [2, 3])
def test_a_chain_of_two_joins_is_unbiased_over_all_functions(buckets):
    keys = 3 if buckets == 2 else 2
    a, b = (Enumerated(i, 2, keys, buckets) for i in range(2))
    f, g, h = enumerated_data(keys)
    left, middle, right = (enumerated(fs, buckets, x) for fs, x in (((a,), f), ((a, b), g), ((b,), h)))
    rows = join_rows([left, middle, right], [(0, 1, 0, 0), (1, 2, 1, 0)])
    assert rows.mean() == pytest.approx(np.einsum("a,ab,b", f, g, h))


def test_a_star_of_three_joins_is_unbiased_over_all_functions():
    a, b, c = (Enumerated(i, 3, 2, 2) for i in range(3))
    f, g, h = (np.array(x) for x in ([3, 5], [-2, 7], [1, 4]))
    centre = np.arange(8).reshape(2, 2, 2) - 3
    sketches = [enumerated(fs, 2, x) for fs, x in (((a,), f), ((b,), g), ((c,), h), ((a, b, c), centre))]
    rows = join_rows(sketches, [(0, 3, 0, 0), (1, 3, 0, 1), (2, 3, 0, 2)])
    assert rows.mean() == pytest.approx(np.einsum("a,b,c,abc", f, g, h, centre))


@pytest.mark.parametrize("buckets", [2, 3])
def test_mean_and_variance_of_one_join_over_all_functions(buckets):
    """Var = (sum over different keys of f_k^2 g_l^2 + f_k g_k f_l g_l) / buckets, exactly."""
    a = Enumerated(0, 1, 3, buckets)
    f, g = np.array([3, 5, -2]), np.array([4, 1, 6])
    rows = join_rows([enumerated((a,), buckets, f), enumerated((a,), buckets, g)], [(0, 1, 0, 0)])
    cross = (f @ f) * (g @ g) + (f @ g) ** 2 - 2 * (f**2) @ (g**2)
    assert rows.mean() == pytest.approx(f @ g)
    assert rows.var() == pytest.approx(cross / buckets)


def enumerated_data(keys):
    f, h = np.arange(1, keys + 1) * 2 - 3, np.arange(keys) + 2
    return f, np.arange(keys * keys).reshape(keys, keys) - 2, h


def enumerated(families, buckets, frequencies):
    spec = ConvolutionSpec(families, families[0].rows, buckets)
    sketch = ConvolutionSketch(spec)
    sketch.update([i.ravel() for i in np.indices(frequencies.shape)], frequencies.ravel())
    return sketch


def test_ill_formed_queries_are_refused_with_both_ends_named():
    a, b, ab, small = (
        ConvolutionSketch(ConvolutionSpec(f, 2, m)) for f, m in (((A,), 8), ((B,), 8), ((A, B), 8), ((A,), 4))
    )
    with pytest.raises(ValueError) as caught:
        join_rows([a, b], [(0, 1, 0, 0)])
    assert str(A) in str(caught.value)
    assert str(B) in str(caught.value)
    refused = {
        "one edge fewer": ([a, a], []),
        "different sizes": ([a, small], [(0, 1, 0, 0)]),
        "share": ([a, ab, ab, a], [(0, 1, 0, 0), (1, 2, 1, 1), (2, 3, 0, 0)]),
        "are joined": ([a, ab], [(0, 1, 0, 0)]),
        "names vertex 5": ([a, a], [(0, 5, 0, 0)]),
        "names attribute 1": ([a, a], [(0, 1, 1, 0)]),
    }
    for text, (sketches, edges) in refused.items():
        with pytest.raises(ValueError, match=text):
            join_rows(sketches, edges)


def test_a_disconnected_cycle_is_no_tree():
    leaf, ring = (ConvolutionSketch(ConvolutionSpec(families, 1, 4)) for families in ((C,), (A, B)))
    with pytest.raises(ValueError, match="not connected"):
        join_rows([ring, ring, leaf, leaf], [(0, 1, 0, 0), (0, 1, 1, 1), (2, 3, 0, 0)])


def test_the_bytes_of_a_sketch_never_change():
    """Stored sketches depend on it: hash functions, buckets, signs and layout of a known relation."""
    digests = []
    for spec in (ConvolutionSpec((A,)), ConvolutionSpec((A, B), 5, 1000)):
        sketch = ConvolutionSketch(spec)
        keys = np.arange(1000, dtype=np.int64) ** 3 - 500
        sketch.update([keys, keys[::-1]][: len(spec.families)], np.arange(1000) - 300)
        digests.append(hashlib.sha256(sketch.counters.astype("<i8").tobytes()).hexdigest()[:16])
    assert digests == GOLDEN


GOLDEN = ["c7cd13c2146a123a", "ea0ddb8d3025bbde"]


def test_buckets_that_add_up_by_exclusive_or_are_multiplied_by_walsh_and_hadamard():
    """A chain of three vertices against the definition: the sum over buckets whose exclusive or is 0."""
    a, b = (make_family("folded", 4, fine_bits=8).derive(label) for label in "ab")
    rng = np.random.default_rng(3)
    ends = [filled(ConvolutionSpec((f,), 3, 8), rng.integers(-9, 9, (20, 2)).tolist()) for f in (a, b)]
    middle = filled(ConvolutionSpec((a, b), 3, 8), rng.integers(-9, 9, (20, 3)).tolist())
    expected = [
        sum(
            int(ends[0].counters[r, x] * middle.counters[r, x ^ y] * ends[1].counters[r, y])
            for x, y in itertools.product(range(8), range(8))
        )
        for r in range(3)
    ]
    assert join_rows([ends[0], middle, ends[1]], [(0, 1, 0, 0), (1, 2, 1, 0)]).tolist() == expected
    assert any(expected)


# Misses of [2nd, 10th] over 100 seeds, bounded by FALSE_FAIL at the nominal 1.2 %. Planted bug: the sign of the
# second attribute left out.
@pytest.mark.parametrize("family", ["tabulation", "folded"])
def test_chains_are_covered(family):
    frequencies = streams.zipf(64, 0.8, 3000)
    rng = np.random.default_rng(5)
    pairs = rng.choice(64, (3000, 2), p=frequencies / frequencies.sum())
    keys, truth, misses = np.arange(64), int((frequencies[pairs[:, 0]] * frequencies[pairs[:, 1]]).sum()), 0
    for seed in range(100):
        a, b = (make_family(family, seed).derive(label) for label in "ab")
        ends = [ConvolutionSpec((f,), 11, 256).empty() for f in (a, b)]
        for end in ends:
            end.update([keys], frequencies)
        middle = ConvolutionSpec((a, b), 11, 256).empty()
        middle.update([pairs[:, 0], pairs[:, 1]])
        rows = join_rows([ends[0], middle, ends[1]], [(0, 1, 0, 0), (1, 2, 1, 0)])
        estimate = median_interval(rows)
        misses += not estimate.low <= truth <= estimate.high
    assert misses <= theory.most_misses(100, theory.order_statistic_miss(11, 2)), misses
