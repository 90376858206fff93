"""COUNT, SUM and AVG as terms, and their default names."""

import pytest
from support.questions import query
from support.schemas import XYZ

from skimql.errors import UnsupportedQuery

FROM = " FROM x JOIN y ON x.id = y.id"


def test_a_filter_restricts_the_total_and_the_presence_alike():
    (aggregate,) = query("SUM(x.n) FILTER (WHERE y.m > 3)" + FROM, XYZ).aggregates
    assert aggregate.function == "sum"
    assert all(
        any("`m` > 3" in f.expression for f in t.factors) for t in (*aggregate.total, *aggregate.presence)
    )


def test_names_by_default_are_those_that_spark_prints():
    names = [i.name for i in query("COUNT(*), SUM( n ), AVG(x.n)" + FROM, XYZ).items]
    assert names == ["count(1)", "sum(n)", "avg(n)"]


@pytest.mark.parametrize("item", ["MEDIAN(n)", "MAX(n)", "STDDEV(n)"])
def test_other_aggregates_are_refused_where_they_stand(item):
    with pytest.raises(UnsupportedQuery) as fault:
        query(item + FROM, XYZ)
    start, end = fault.value.span
    assert fault.value.sql[start:end] == item
