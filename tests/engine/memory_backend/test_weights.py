"""Weights of tuples in memory: whole where that loses nothing, doubles with how far rounding may have moved them."""

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from skimql.engine.memory_backend.weights import Weights, product, totals, weights_of
from skimql.errors import UnsupportedQuery
from skimql.optimizer.plan import Weight

TABLE = pa.table(
    {
        "i": pa.array([1, None, -3], pa.int16()),
        "d": pa.array([Decimal("0.10"), Decimal("-1.25"), None], pa.decimal128(9, 2)),
        "x": [0.5, None, 2.0],
        "s": ["1", "x", None],
    }
)


@pytest.mark.parametrize(
    ("weight", "values", "dtype", "scale"),
    [
        (Weight(), None, "int64", 1.0),
        (Weight("i"), [1, 0, -3], "int64", 1.0),
        (Weight("i", presence=True), [1, 0, 1], "int64", 1.0),
        (Weight("d"), [10, -125, 0], "int64", 100.0),
        (Weight("x"), [0.5, 0.0, 2.0], "float64", 1.0),
    ],
)
def test_what_tuples_weigh(weight, values, dtype, scale):
    found = weights_of(weight, TABLE, "SELECT")
    assert (found.dtype, found.scale, found.counts) == (dtype, scale, values is None)
    assert values is None or found.values.tolist() == values


def test_what_cannot_be_summed_is_refused():
    with pytest.raises(UnsupportedQuery) as refused:
        weights_of(Weight("i > 0"), TABLE, "SELECT")
    assert refused.value.code == "SKIMQL_BAD_ARGUMENT"


def test_products_of_whole_numbers_stay_whole_or_overflow():
    two, three = Weights(np.array([2, 5])), Weights(np.array([3, -1]), scale=10.0)
    found = product([two, Weights(None), three])
    assert (found.values.tolist(), found.scale, found.dtype) == ([6, -5], 10.0, "int64")
    assert product([Weights(None), Weights(None)]).counts
    large = Weights(np.array([2**40]))
    with pytest.raises(OverflowError):
        product([large, large])


def test_rounding_of_a_factor_moves_the_product_by_the_others():
    moved = Weights(np.array([3.0]), "float64", slack=np.array([0.5]))
    assert product([moved, Weights(np.array([-4]))]).slack.tolist() == [2.0]
    assert product([Weights(np.array([3.0]), "float64")]).slack is None


def test_totals_by_group_are_exact_or_say_how_far_they_may_be_off():
    which = np.array([0, 1, 0])
    assert totals(Weights(None), which, 2).values.tolist() == [2, 1]
    assert totals(Weights(np.array([2**53, 1, 1])), which, 2).values.tolist() == [2**53 + 1, 1]
    found = totals(Weights(np.array([0.1, 5.0, 0.2]), "float64"), which, 2)
    assert abs(found.values[0] - 0.3) <= found.slack[0] < 1e-14
    with pytest.raises(OverflowError):
        totals(Weights(np.array([2**62, 0, 2**62])), which, 2)


def test_tuples_without_a_partner_weigh_nothing():
    assert Weights(np.array([4, 7])).taken(np.array([1, -1, 0])).values.tolist() == [7, 0, 4]
    assert Weights(None).taken(np.array([-1])).counts
