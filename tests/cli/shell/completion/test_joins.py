"""By which columns relations may be joined."""

from __future__ import annotations

import pytest

from skimql.cli.shell.completion.joins import join_conditions, same_class
from skimql.cli.shell.completion.scope import Relation
from skimql.cli.shell.names import Table


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [("int", "bigint", True), ("int", "decimal(12,2)", True), ("string", "char(3)", True), ("int", "string", False), ("", "int", True), ("double", "int", False)],
)  # fmt: skip
def test_types_that_may_be_equal(one, other, same):
    assert same_class(one, other) == same


def test_names_that_match_but_not_types_are_no_condition():
    a = Relation("a", Table("a", (("id", "int"), ("name", "string"))))
    b = Relation("b", Table("b", (("id", "string"), ("name", "string"))))
    assert join_conditions([a, b]) == ["a.name = b.name"]
    assert join_conditions([a]) == []
