"""Queries and the catalog, without Spark."""

import pytest
from support.kept import kept, remember

from skimql import Session
from skimql.engine.catalog.catalog import Catalog
from skimql.engine.materialized.lookup import MaterializedLookup, asked_of
from skimql.parser.statement import parse_statement


@pytest.fixture
def found(monkeypatch):
    monkeypatch.setattr(Session, "_running", lambda self: None)
    sketches = kept("a", "x", {"id": [1, 2]}), kept("b", "y", {"id": [2, 2]})
    return Session(catalog=remember(Catalog(), *sketches))


def test_types_of_keys_are_known_from_the_sketches(found):
    assert MaterializedLookup(found.context).key_types() == {("x", "`id`"): "bigint", ("y", "`id`"): "bigint"}


def test_a_query_is_supplied_without_building(found):
    select = parse_statement("SELECT APPROXIMATE COUNT(*) FROM x JOIN y ON x.id = y.id")
    query = found.typed(found._resolved(select))
    supply = MaterializedLookup(found.context).supply(select, query, found.settings)
    assert (len(supply.built), supply.build_seconds, supply.stale) == (2, 0.0, False)
    assert MaterializedLookup(found.context).plan(select, query).missing == ()


def test_a_statement_fixes_what_it_names():
    asked = asked_of(parse_statement("SELECT APPROXIMATE COUNT(*) FROM x USING hash SEED 9"))
    assert asked != asked_of(parse_statement("SELECT APPROXIMATE COUNT(*) FROM x"))
