"""Names of kept sketches in statements."""

from dataclasses import replace

import pytest
from support.kept import kept, remember

from skimql import UnknownName, UnsupportedQuery
from skimql.engine.catalog.catalog import Catalog
from skimql.engine.materialized.names import (
    find_head,
    is_taken,
    quoted,
    refuse_member,
    refuse_untrusted,
    taken_name,
)
from skimql.parser.statement import parse_statement

SKETCH = kept("orders_k", "orders", {"k": [1]})
SQL = "DROP SKETCH Orders_K"
NAME = parse_statement(SQL).name


@pytest.fixture
def catalog():
    return remember(Catalog(), SKETCH)


def test_a_sketch_is_found_by_its_name_in_any_case(catalog):
    assert find_head(catalog, SQL, NAME) == SKETCH.head
    assert is_taken(catalog, "ORDERS_K")
    assert not is_taken(catalog, "orders")


def test_a_name_that_is_not_there_is_marked_and_near_ones_are_told(catalog):
    sql = "DROP SKETCH order_k"
    with pytest.raises(UnknownName) as fault:
        find_head(catalog, sql, parse_statement(sql).name)
    assert fault.value.hint == "orders_k"
    start, end = fault.value.span
    assert sql[start:end] == "order_k"
    with pytest.raises(UnknownName) as empty:
        find_head(Catalog(), sql, parse_statement(sql).name)
    assert empty.value.hint == "CREATE SKETCH ..."


def test_a_member_of_a_workload_is_not_changed_by_itself(catalog):
    refuse_member(catalog, SQL, NAME)
    member = replace(SKETCH, head=replace(SKETCH.head, group="odd name"))
    with pytest.raises(UnsupportedQuery) as fault:
        refuse_member(remember(Catalog(), member), SQL, NAME)
    assert fault.value.code == "SKIMQL_SKETCH_OF_GROUP"
    assert "`odd name`" in fault.value.hint


def test_somebody_else_s_file_is_not_followed_before_the_user_says_so():
    refuse_untrusted(SKETCH.head, SQL, NAME)
    with pytest.raises(UnsupportedQuery) as fault:
        refuse_untrusted(replace(SKETCH.head, imported_from="/x/it's"), SQL, NAME)
    assert fault.value.code == "SKIMQL_NOT_TRUSTED"
    assert fault.value.hint.endswith("FROM '/x/it''s' TRUSTED")


def test_names_as_statements_have_them():
    assert (quoted("plain"), quoted("odd `name`")) == ("plain", "`odd ``name```")
    assert taken_name(SQL, NAME, "another").code == "SKIMQL_SKETCHES_EXIST"
