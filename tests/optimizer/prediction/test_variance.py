"""Predicted variances: equal to brute force where everything is known, close to it on a pilot."""

import numpy as np
import pytest
from support.column_figures import chain, exact_relation, figures_of, one_class
from support.golden import golden

from skimql.optimizer.messages import whole
from skimql.optimizer.prediction.relation import AttributeStatistics, RelationStatistics
from skimql.optimizer.prediction.samples import (
    SampledMessages,
    key_sample,
    scan_steps,
    two_level_alone,
    two_level_joint,
)
from skimql.optimizer.prediction.sketches import MEDIAN_LOSS, hash_variance, skimmed_variance, tree_variance
from skimql.optimizer.prediction.variance import sample_variance
from skimql.sketches.hashing.xi import make_family
from skimql.sketches.joins.moments import join_variance, single_join_variance
from skimql.sketches.samples.key_sample import KeySample, KeySampleSpec
from skimql.sketches.samples.two_level_plan import Candidates, heaviest

NO_KEYS = np.empty(0, np.int64)


def tables(number, seed, keys=300):
    rng = np.random.default_rng(seed)
    return [rng.geometric(0.2, keys) * (rng.random(keys) < 0.8) for _ in range(number)]


@pytest.mark.parametrize("number", [2, 3, 4])
def test_the_variance_of_a_plain_sample_is_that_of_its_definition(number):
    weights = tables(number, number)
    found = figures_of(one_class(number), [exact_relation(w) for w in weights]).contributions(0)
    products = np.prod(np.array(weights, float), axis=0)
    dense = products > np.quantile(products, 0.95)
    certain = np.repeat(dense[np.newaxis], number, axis=0)
    p = np.linspace(0.2, 0.3, number)
    variance, used = sample_variance(found, certain, tuple(p), (False,) * number)
    assert found.total == pytest.approx(products.sum())
    assert used == 1.0
    assert variance == pytest.approx(np.sum(products[~dense] ** 2) * (1 - 0.2) / 0.2)


def test_a_key_dense_in_some_tables_is_left_to_the_others_chance():
    f, g = np.array([100, 1, 1]), np.array([1, 50, 1])
    found = figures_of(one_class(2), [exact_relation(f), exact_relation(g)]).contributions(0)
    certain = np.array([[True, False, False], [False, True, False]])
    variance, _ = sample_variance(found, certain, (0.5, 0.25), (False, False))
    assert variance == pytest.approx(100**2 * 3 + 50**2 * 1 + 1 * 3)


def test_a_foreign_key_leaves_nothing_to_the_regression():
    rng = np.random.default_rng(3)
    orders = rng.geometric(0.2, 3000)
    figures = figures_of(one_class(2), [exact_relation(np.ones(3000, int)), exact_relation(orders)])
    found = key_sample(figures, 16_384)
    assert found.probability < 0.2
    assert found.predicted.error == pytest.approx(0.0, abs=1e-6)


def test_the_first_golden_join_has_its_exact_variance():
    case = golden("agms_moments")["cases"][0]
    figures = figures_of(one_class(2), [exact_relation(w) for w in case["inputs"]])
    assert figures.total == case["J"]
    assert tree_variance(figures, whole(figures.tree)) == pytest.approx(case["var_exact"], rel=1e-9)


def test_three_tables_on_one_key_have_the_variance_of_their_sketches():
    f, g, h = tables(3, 5, 40)
    figures = figures_of(one_class(3), [exact_relation(w) for w in (f, g, h)])
    middle = np.diag(g).astype(float)  # a replica attribute for each edge
    exact = join_variance([f.astype(float), middle, h.astype(float)], [(0, 1, 0, 0), (1, 2, 1, 0)])
    assert tree_variance(figures, whole(figures.tree)) == pytest.approx(exact, rel=1e-9)


# On flat data the rows are near normal, so the variance of their median is pi / 2 times that of their mean (for 11 rows
# 0.97 of it); the simulation's own error is 18 % (64 medians), three of which are allowed, fixed seed.
def test_flat_keys_give_near_normal_rows():
    f, g = tables(2, 7, 4000)
    figures = figures_of(one_class(2), [exact_relation(f), exact_relation(g)])
    found = hash_variance(figures.cells(0), 11, 256)
    expected = single_join_variance(f, g) * MEDIAN_LOSS / (11 * 256)
    assert found == pytest.approx(expected, rel=0.54)


def test_the_median_forgives_a_few_heavy_keys_and_skimming_more():
    ranks = np.arange(1, 5001)
    f, g = (1e6 / ranks**1.2).astype(int) + 1, np.roll((1e6 / ranks**1.2).astype(int) + 1, 60)
    figures = figures_of(one_class(2), [exact_relation(f), exact_relation(g)])
    of_mean = single_join_variance(f, g) * MEDIAN_LOSS / (11 * 1024)
    hashed = hash_variance(figures.cells(0), 11, 1024)
    assert hashed < of_mean / 4
    assert skimmed_variance(figures.cells(0), 11, 1024, 5000) < hashed


def test_dense_keys_lower_the_error_on_skew_and_jointly_chosen_ones_more():
    ranks = np.arange(1, 4001)
    f, g = (1e5 / ranks).astype(int) + 1, np.roll((1e5 / ranks).astype(int) + 1, 100)
    figures = figures_of(one_class(2), [exact_relation(f), exact_relation(g)])
    errors = [
        plan(figures, 32_768).predicted.error for plan in (key_sample, two_level_alone, two_level_joint)
    ]
    assert errors[0] > 3 * errors[1] > 3 * errors[2]


# Contributions of a chain over two keys by brute force: the middle table is the outer product of its marginals, so
# that the independence that the prediction assumes holds exactly.
def test_sampled_messages_over_two_keys_have_their_brute_force_variance():
    f, h = tables(2, 11, 60)
    left, right = np.random.default_rng(12).integers(1, 5, 60), np.random.default_rng(13).integers(1, 5, 60)
    middle = np.outer(left, right)
    figures = figures_of(
        chain(3),
        [exact_relation(f), exact_relation(middle.sum(axis=1), middle.sum(axis=0)), exact_relation(h)],
    )
    contributions = f * (middle @ h)
    found = figures.contributions(0)
    assert found.total == pytest.approx(contributions.sum())
    # Tuples receive independent messages, so a key's square is its mean's plus the tuples' spread.
    message = figures.received(1, 0)
    spread = f**2 * middle.sum(axis=1) * (message.square - message.mean**2)
    assert found.cells.total(found.squares) == pytest.approx(np.sum(contributions**2.0) + spread.sum())


def test_sampled_messages_start_at_the_fewest_keys_and_keep_within_the_bytes():
    f, g, h = tables(3, 17, 3000)
    h[100:] = 0
    figures = figures_of(one_class(3), [exact_relation(w) for w in (f, g, h)])
    tree = whole(figures.tree)
    assert scan_steps(figures, tree, 0)[0].vertex == 2
    small = SampledMessages(figures, tree, 0).plan(1500)
    assert small.probability < 1.0
    assert small.nbytes <= 1500
    assert small.predicted.error > 0.0
    all_keys = SampledMessages(figures, tree, 0).plan(1 << 20)
    assert (all_keys.probability, all_keys.predicted.error) == (1.0, 0.0)


def test_no_key_fits_into_no_bytes():
    figures = figures_of(one_class(2), [exact_relation(w) for w in tables(2, 19)])
    with pytest.raises(ValueError, match="hold no"):
        SampledMessages(figures, whole(figures.tree), 0).plan(10)
    with pytest.raises(ValueError, match="hold no sampled key"):
        key_sample(figures, 20)


def test_unseen_contributions_are_bounded_by_what_is_not_dense():
    f, g = np.array([9, 2, 1, 0]), np.array([1, 4, 1, 7])
    figures = figures_of(one_class(2), [exact_relation(f), exact_relation(g)])
    assert figures.largest_unseen(0, NO_KEYS) == 9.0
    assert figures.largest_unseen(0, np.array([0])) == 8.0
    assert figures.largest_unseen(0, np.array([0, 1])) == 1.0


# A pilot of 1,000 of 20,000 keys and the 50 heaviest of each table, counted in both. The moments of the light keys are
# a sample's: their relative error is that of a sum of squares of 1,000 near-exponential terms, about 10 %.
def test_a_pilot_predicts_what_full_statistics_predict():
    weights = tables(2, 23, 20_000)
    weights[0][:50] *= 100
    named = [heaviest(np.arange(w.size), w, 50) for w in weights]
    union = np.unique(np.concatenate([n.keys for n in named]))

    def piloted(w, own):
        sample = KeySample(KeySampleSpec(make_family("tabulation", 5), 1000))
        sample.update(np.flatnonzero(w), w[w > 0])
        heavy = Candidates(union, w[union], own.largest_other)
        return RelationStatistics(
            float(w.sum()), (AttributeStatistics(heavy=heavy, pilot=sample.known(["count"])),), source="pilot"
        )

    tree = one_class(2)
    full = figures_of(tree, [exact_relation(w) for w in weights])
    pilot = figures_of(tree, [piloted(w, own) for w, own in zip(weights, named, strict=True)])
    assert pilot.total == pytest.approx(full.total, rel=0.2)
    errors = [key_sample(figures, 65_536).predicted.error for figures in (full, pilot)]
    assert errors[1] == pytest.approx(errors[0], rel=0.4)


def test_a_pilot_of_a_tenth_of_the_rows_sees_light_keys_as_light():
    keys = np.arange(20_000)
    w = np.random.default_rng(29).geometric(0.5, keys.size)
    seen = np.random.default_rng(31).binomial(w, 0.1)
    sample = KeySample(KeySampleSpec(make_family("tabulation", 5), 4000))
    sample.update(keys[seen > 0], seen[seen > 0])
    given = RelationStatistics(
        float(w.sum()),
        (AttributeStatistics(float(keys.size), pilot=sample.known(["count"])),),
        row_fraction=0.1,
        source="pilot",
    )
    figures = figures_of(one_class(2), [given, exact_relation(np.ones(keys.size, int))])
    assert figures.relations[0].attributes[0].self_join_size == pytest.approx(float(w @ w), rel=0.3)
