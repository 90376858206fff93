"""The columns that relations offer."""

import pytest
from support.questions import edges, query
from support.schemas import XYZ

from skimql.errors import SkimqlError


def test_names_of_an_alias_rename_columns_in_order():
    found = query("SUM(b) FROM x AS t(a, b) JOIN y ON t.a = y.id", XYZ)
    assert found.aggregates[0].total[0].factors[0].expression == "`n`"
    assert edges(found) == edges(query("SUM(n) FROM x t JOIN y ON t.id = y.id", XYZ))


def test_a_star_offers_every_column():
    assert query("SUM(n + m) FROM (SELECT * FROM x JOIN y USING (id))", XYZ).graph.edges


def test_too_few_names_are_refused():
    with pytest.raises(SkimqlError):
        query("COUNT(*) FROM x AS t(a) JOIN y ON t.a = y.id", XYZ)
