"""The Flajolet-Martin sketch: linear, with constants that are computed, not remembered."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.theory import most_misses

from skimql.sketches.hashing.xi import make_family
from skimql.sketches.reference.fm import FIRST_EMPTY, SPREAD, FMSketch, FMSpec

SPEC = FMSpec(make_family(seed=2), copies=3, levels=6)
TUPLES = st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), st.integers(-9, 9)), max_size=30)


def of(tuples, spec=SPEC):
    sketch = FMSketch(spec)
    columns = np.array(tuples, dtype=np.int64).reshape(-1, 2)
    sketch.update([columns[:, 0]], columns[:, 1])
    return sketch


@settings(deadline=None, max_examples=40)
@given(TUPLES, TUPLES)
def test_linear_to_the_last_bit(one, other):
    merged = of(one)
    merged.merge(of(other))
    assert np.array_equal(merged.counters, of((one + other)[::-1]).counters)
    merged.subtract(of(other))
    assert np.array_equal(merged.counters, of(one).counters)


def test_constants_of_the_first_empty_level():
    # P[first empty >= r] = prod_{j < r} (1 - exp(-n 2^-(j+1))), averaged over one octave of n.
    means, variances = [], []
    for n in np.exp2(20 + np.arange(64) / 64):
        tail = np.cumprod(-np.expm1(-n * np.exp2(-np.arange(1.0, 61.0))))
        mean, square = tail.sum(), (tail * (2 * np.arange(1, 61) - 1)).sum()
        means.append(mean - math.log2(n))
        variances.append(square - mean**2)
    assert math.isclose(2 ** np.mean(means), FIRST_EMPTY, rel_tol=1e-5)
    assert math.isclose(math.sqrt(np.mean(variances)), SPREAD, rel_tol=1e-4)


def test_nothing_is_nothing():
    assert FMSketch(SPEC).estimate().exact
    assert of([(4, 1), (4, -1)]).estimate().value == 0


# 40 seeds, 5,000 keys left of 10,000; 95 % intervals miss more often than `most_misses` with chance 1e-6. The
# square sum of 40 normal errors exceeds 2.4 * 40 with chance 1e-6. Seen to fail with levels shifted by one.
def test_both_estimates_cover_after_deletions():
    keys, copies = 5_000, 48
    misses, errors = np.zeros(2), np.zeros((2, 40))
    for seed in range(40):
        sketch = FMSketch(FMSpec(make_family(seed=seed), copies, 20))
        sketch.update([np.arange(2 * keys)])
        sketch.update([np.arange(keys)], np.full(keys, -1))
        for method, found in enumerate((sketch.estimate(), sketch.estimate_by_likelihood())):
            misses[method] += not found.low <= keys <= found.high
            errors[method, seed] = math.log(found.value / keys)
    assert misses.max() <= most_misses(40, 0.05)
    assert (np.sum(errors**2, axis=1) <= 2.4 * 40 * np.array([0.78, 0.649]) ** 2 / copies).all()


@pytest.mark.parametrize("arguments", [{"copies": 0}, {"levels": 1}, {"levels": 34}])
def test_sizes_are_checked(arguments):
    with pytest.raises(ValueError, match=next(iter(arguments))[:3]):
        FMSpec(**arguments)
    with pytest.raises(ValueError, match="confidence"):
        FMSketch(SPEC).estimate(1.0)


def test_sizing():
    assert FMSpec.for_error(0.1, 0.95).copies == 233  # (1.96 * 1.12127 * ln 2 / .1)^2
    with pytest.raises(ValueError, match="between 0 and 1"):
        FMSpec.for_error(0.1, 1.0)
