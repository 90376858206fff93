"""Expressions over the columns that their names mean, in the user's own words."""

import pytest
from support.schemas import XYZ

from skimql.errors import UnsupportedQuery
from skimql.parser.bound import bound_fragment, fragment_of
from skimql.parser.fragment import Ref
from skimql.parser.relations import FromReader
from skimql.parser.scope import Scope
from skimql.parser.select import parse_select


def item(text):
    source = parse_select(f"SELECT {text} FROM x JOIN (SELECT id + 1 AS k, m FROM y) t ON x.id = t.k")
    scope = FromReader(XYZ).read(source.tree, Scope(source, source.sql, XYZ))
    return source.tree.expressions[0], scope


def test_names_are_replaced_by_columns_and_derived_ones_by_their_expressions():
    node, scope = item("N*(k - 1)")
    assert fragment_of(node, scope).sql == "`n` * ((`id` + 1) - 1)"
    assert fragment_of(node, scope).vertices == {0, 1}


def test_an_output_is_the_column_or_the_expression_that_it_stands_for():
    _, scope = item("n")
    column, derived = scope.relations[0].outputs[0], scope.relations[1].outputs[0]
    assert bound_fragment(column).column == Ref(0, "id")
    assert bound_fragment(derived).sql == "`id` + 1"


@pytest.mark.parametrize("text", ["rand() * n", "explode(n)", "SUM(n)", "row_number() OVER (ORDER BY n)"])
def test_what_has_no_value_of_one_tuple_is_refused(text):
    node, scope = item(text)
    with pytest.raises(UnsupportedQuery):
        fragment_of(node, scope)
