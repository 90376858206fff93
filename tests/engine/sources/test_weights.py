"""Weights as Spark computes them: what is known without Spark."""

from skimql.engine.sources.weights import LEAVES_64_BITS, WeightColumn, product, total

N, D, ONE = WeightColumn("n", "int64", 100.0), WeightColumn("d", "float64"), WeightColumn(None, "int64")


def test_products_of_integers_are_checked_and_of_doubles_are_doubles():
    assert product([ONE, ONE]).text is None
    both = product([N, N, ONE])
    assert (both.dtype, both.scale) == ("int64", 10_000.0)
    assert LEAVES_64_BITS in both.text
    assert product([N, D]).dtype == "float64"


def test_totals_of_integers_are_checked_too():
    assert total(ONE) == "count(1)"
    assert LEAVES_64_BITS in total(N)
    assert total(D) == "sum(d)"


def test_a_weight_of_one_is_no_column():
    assert ONE.column is None
