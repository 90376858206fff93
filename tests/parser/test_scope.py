"""What names mean: look-up as Spark does it."""

import pytest
from support.schemas import XYZ

from skimql.errors import UnknownName
from skimql.parser.fragment import Ref
from skimql.parser.relations import FromReader
from skimql.parser.scope import Scope, columns_of, near_names
from skimql.parser.select import parse_select


def read(items):
    source = parse_select(f"SELECT {items} FROM x a JOIN y ON a.id = y.id")
    return source.tree.expressions, FromReader(XYZ).read(source.tree, Scope(source, source.sql, XYZ))


def test_columns_are_found_with_and_without_their_table_whatever_the_case():
    items, scope = read("N, a.Id, Y.ID")
    assert [scope.resolve(i)[0].bound for i in items] == [Ref(0, "n"), Ref(0, "id"), Ref(1, "id")]


@pytest.mark.parametrize(
    ("name", "code", "hint"),
    [
        ("id", "SKIMQL_AMBIGUOUS_NAME", "a.id"),
        ("nn", "SKIMQL_UNKNOWN_COLUMN", "n"),
        ("b.n", "SKIMQL_UNKNOWN_TABLE", "a"),
    ],
)
def test_names_that_mean_nothing_or_two_things_are_refused_with_a_way_out(name, code, hint):
    (item,), scope = read(name)
    with pytest.raises(UnknownName) as fault:
        scope.resolve(item)
    assert fault.value.code == code
    assert hint in fault.value.hint


def test_a_unit_is_no_column():
    (item,), _ = read("extract(DAY FROM n)")
    assert [c.name for c in columns_of(item)] == ["n"]


def test_near_names_come_first():
    assert near_names("tailnun", ["a", "b", "tailnum"]) == "tailnum"
    assert near_names("q", ["a", "b"]) == "a, b"
