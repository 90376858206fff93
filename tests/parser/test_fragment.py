"""Expressions as text in which only column references are replaced."""

import pytest

from skimql.parser.fragment import Fragment, Ref, join_fragments, quote_name, typed_name

N, M = Fragment((Ref(0, "n"),), simple=True), Fragment((Ref(1, "a`b"),), simple=True)


def test_columns_stand_in_backticks():
    assert (N.sql, M.sql, quote_name("a`b")) == ("`n`", "`a``b`", "`a``b`")


@pytest.mark.parametrize(("name", "typed"), [("n", "n"), ("a b", "`a b`"), ("a-b", "`a-b`"), ("1a", "`1a`")])
def test_a_name_is_quoted_for_the_user_only_where_it_must_be(name, typed):
    assert typed_name(name).lower() == typed


def test_operands_keep_their_precedence():
    total = Fragment((Ref(0, "n"), " + 1"))
    product = join_fragments([total, M], " * ")
    assert product.sql == "(`n` + 1) * `a``b`"
    assert product.vertices == {0, 1}
    assert (N.column, product.column) == (Ref(0, "n"), None)
