"""Sample x sketch as planned: predicted against realised errors, bytes, the split, and shapes that are refused."""

import numpy as np
import pytest
from support.column_figures import chain, counted, exact_relation, figures_of

from skimql.optimizer.candidates.enumerate import NoMethod, Objective, choose_method
from skimql.optimizer.messages import JoinClass, JoinTree, whole
from skimql.optimizer.prediction.sample_sketch import sample_sketch
from skimql.sketches.hashing.xi import make_family
from skimql.sketches.joins.hash_sketch import hash_spec
from skimql.sketches.samples.dense_first import DenseFirstSketch
from skimql.sketches.samples.sample_sketch import SampleSketch, SampleSketchSpec
from skimql.sketches.samples.sample_sketch_join import sample_sketch_join

KEYS, TUPLES = 3000, 20_000
EDGES = [(0, 1, 0, 0), (1, 2, 1, 0)]


def tables(skewed, seed=5):
    """Tuples of R(a), S(a, b), T(b)."""
    rng = np.random.default_rng(seed)
    a = rng.permutation(KEYS)[(rng.zipf(1.6, TUPLES) - 1) % KEYS] if skewed else rng.integers(0, KEYS, TUPLES)
    b = rng.permutation(KEYS)[(rng.zipf(1.6, TUPLES) - 1) % KEYS] if skewed else rng.integers(0, KEYS, TUPLES)
    return [rng.integers(0, KEYS, TUPLES)], [a, rng.integers(0, KEYS, TUPLES)], [b]


def statistics_of(columns):
    counts = [np.bincount(c, minlength=KEYS) for c in columns]
    _, weights = np.unique(np.stack(columns), axis=1, return_counts=True)
    return exact_relation(*counts, joint=float(weights @ weights))


def built(plan, data, seed):
    base, synopses = make_family("tabulation", seed), {}
    for v, dense, capacity in zip(plan.vertices, plan.dense_keys, plan.capacities, strict=True):
        place = [(0,), (0, 1), (1,)][v].index(plan.joined)
        spec = SampleSketchSpec(base.derive("sample"), capacity, len(data[v]), place)
        synopses[v] = SampleSketch(spec, dense)
        synopses[v].update(data[v])
    for number, beyond in enumerate(plan.beyond):
        spec = hash_spec(base.derive(str(number)), 11, beyond.buckets)
        synopses[beyond.vertex] = DenseFirstSketch(spec, beyond.dense_keys, beyond.nbytes)
        synopses[beyond.vertex].update(data[beyond.vertex])
    return [synopses[v] for v in range(3)]


@pytest.mark.parametrize(("skewed", "size"), [(False, 9_000), (False, 40_000), (True, 15_000)])
def test_the_predicted_error_is_realised_within_the_bytes(skewed, size):
    data = tables(skewed)
    figures = figures_of(chain(3), [statistics_of(columns) for columns in data])
    plans = [
        sample_sketch(figures, whole(figures.tree), joined, size) for joined in ((1,) if skewed else (0, 1))
    ]
    truth = float(
        np.bincount(data[0][0], minlength=KEYS)[data[1][0]]
        @ np.bincount(data[2][0], minlength=KEYS)[data[1][1]]
    )
    for plan in plans:
        assert plan.nbytes <= size
        values = []
        for seed in range(24):
            synopses = built(plan, data, seed)
            assert sum(s.nbytes for s in synopses) <= size
            values.append(sample_sketch_join(synopses, EDGES).value)
        realised = float(np.sqrt(np.mean((np.array(values) - truth) ** 2)))
        assert 0.4 < np.sqrt(plan.predicted.variance) / max(realised, 1e-9) < 2.5
        assert plan.predicted.answer == pytest.approx(truth, rel=0.2)


def test_more_bytes_are_never_worse_and_enough_are_exact():
    figures = figures_of(chain(3), [statistics_of(columns) for columns in tables(False)])
    errors = [
        sample_sketch(figures, whole(figures.tree), 0, size).predicted.error
        for size in (8_000, 20_000, 50_000)
    ]
    assert errors[0] > errors[1] > errors[2]
    assert sample_sketch(figures, whole(figures.tree), 0, 200_000).predicted.error == 0.0


def test_a_small_table_beyond_is_kept_whole():
    keys = np.bincount(np.arange(40), minlength=KEYS)
    data = tables(False)
    figures = figures_of(chain(3), [*(statistics_of(c) for c in data[:2]), exact_relation(keys * 100)])
    plan = sample_sketch(figures, whole(figures.tree), 0, 100_000)
    (beyond,) = plan.beyond
    assert (beyond.vertex, beyond.buckets) == (2, 64)
    # 40 keys of 100 tuples each in a domain of 3,000: two bytes a key with its weight.
    assert beyond.nbytes == 76


def test_too_few_bytes_and_tables_further_beyond_are_refused():
    figures = figures_of(chain(3), [statistics_of(columns) for columns in tables(False)])
    with pytest.raises(ValueError, match="hold no sample"):
        sample_sketch(figures, whole(figures.tree), 0, 1000)
    far = figures_of(
        chain(4), [counted(1e5, 1e4), counted(1e5, 1e4, 1e4), counted(1e5, 1e4, 1e4), counted(1e5, 1e4)]
    )
    with pytest.raises(ValueError, match="beyond a table beyond"):
        sample_sketch(far, whole(far.tree), 0, 100_000)
    assert set(sample_sketch(far, whole(far.tree), 1, 4e6).vertices) == {1, 2}


def test_the_planner_takes_it_for_tables_by_themselves_on_several_classes_only():
    alone = [statistics_of(columns) for columns in tables(False)]
    choice = choose_method(chain(3), alone, Objective(size_bytes=100_000, ordered=False))
    assert choice.taken.method == "sample_sketch"
    assert choice.taken.name.startswith("sample sketch on k")
    ordered = choose_method(chain(3), alone, Objective(size_bytes=100_000))
    assert "sample_sketch" not in {c.method for c in ordered.candidates}
    forced = choose_method(chain(3), alone, Objective(size_bytes=100_000, method="sample_sketch"))
    assert forced.taken.method == "sample_sketch"
    met = choose_method(chain(3), alone, Objective(relative_error=0.5, ordered=False, method="sample_sketch"))
    assert met.taken.half_width(0.95) <= 0.5
    assert met.taken.nbytes < 500_000
    one = JoinTree(2, (JoinClass("k", (0, 1)),))
    with pytest.raises(NoMethod, match="USING sample_sketch"):
        choose_method(one, [counted(1e6, 1e5)] * 2, Objective(size_bytes=100_000, method="sample_sketch"))


def test_what_is_predicted_to_be_off_by_more_than_the_answer_is_refused_where_nothing_else_answers():
    skewed = [statistics_of(columns) for columns in tables(True)]
    asked = Objective(size_bytes=4_000, ordered=False, methods=("sample_sketch",))
    with pytest.raises(NoMethod, match=r"sample sketch.*: .* KB: predicted to be off by \d+%"):
        choose_method(chain(3), skewed, asked)
    both = Objective(size_bytes=20_000, ordered=False)
    assert choose_method(chain(3), skewed, both).taken.method == "sample_sketch"
