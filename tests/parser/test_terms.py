"""Arguments of aggregates to terms: sums of products with one factor per table."""

import pytest
from support.questions import query
from support.schemas import XYZ

from skimql.errors import UnsupportedQuery

FROM = " FROM x JOIN y ON x.id = y.id"


def total(argument):
    (aggregate,) = query(f"SUM({argument})" + FROM, XYZ).aggregates
    return [(t.coefficient, {f.vertex: f.expression for f in t.factors}) for t in aggregate.total]


def test_a_product_over_two_tables_is_one_term():
    assert total("n * m") == [(1.0, {0: "`n`", 1: "`m`"})]


def test_a_difference_within_a_product_is_two_terms():
    terms = total("n * (n - m)")
    assert [c for c, _ in terms] == [1.0, -1.0]


def test_what_cancels_adds_nothing():
    assert all(c == 0 or f for c, f in total("n + m - m"))


def test_an_expression_that_no_product_gives_is_refused():
    with pytest.raises(UnsupportedQuery):
        total("sqrt(n + m)")
