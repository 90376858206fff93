"""Subqueries inside an expression: Spark's, if they read nothing of the query around them."""

import pytest
from support.questions import filters, query
from support.schemas import XYZ

from skimql.errors import SkimqlError

FROM = "COUNT(*) FROM x JOIN y ON x.id = y.id WHERE "


def test_a_subquery_of_its_own_is_part_of_the_filter():
    assert "SELECT id FROM z" in filters(query(FROM + "x.n IN (SELECT id FROM z WHERE w = 'p')", XYZ))["x"]


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        ("EXISTS (SELECT 1 FROM z WHERE z.id = x.n)", "SKIMQL_CORRELATED_SUBQUERY"),
        ("x.n > (SELECT count(*) FROM z WHERE z.id = n)", "SKIMQL_CORRELATED_SUBQUERY"),
        ("x.n IN (SELECT id FROM nowhere)", "SKIMQL_UNKNOWN_TABLE"),
    ],
)
def test_what_reads_the_tables_around_it_is_refused(condition, code):
    with pytest.raises(SkimqlError) as fault:
        query(FROM + condition, XYZ)
    assert fault.value.code == code


def test_the_way_out_of_an_exists_is_an_in():
    with pytest.raises(SkimqlError) as fault:
        query(FROM + "EXISTS (SELECT 1 FROM z WHERE z.id = x.n)", XYZ)
    assert fault.value.hint.startswith("x.n IN (SELECT z.id FROM z)")
