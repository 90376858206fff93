"""Which way a SELECT is read: by sketches and samples, or on sampled keys where nothing else is left."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from support.schemas import schema, table

from skimql.engine.queries.resolving import Resolving, by_sample
from skimql.engine.queries.sampled_tables import SampledTables
from skimql.engine.settings import Settings
from skimql.errors import UnsupportedQuery
from skimql.parser.sampled_select import SampledQuery
from skimql.parser.statement import parse_statement

TABLES = schema(table("a", k="int", x="int"), table("b", k="int", y="int"))


@pytest.fixture(autouse=True)
def _of_no_files(monkeypatch):
    """Tables of which nothing but the schema is known."""
    monkeypatch.setattr(SampledTables, "in_order", lambda self, table: ())


def at_home(settings):
    return SimpleNamespace(
        tables=TABLES,
        environment=SimpleNamespace(circumstances=lambda: SimpleNamespace(ansi=True)),
        settings=settings,
    )


NO_ERROR = Settings(error=None)
OUTER = "SELECT APPROXIMATE COUNT(*) FROM a LEFT JOIN b ON a.k = b.k"


def resolved(text, settings=NO_ERROR):
    return Resolving(at_home(settings)).select(parse_statement(text))


def test_what_has_a_join_tree_is_not_sampled():
    assert not isinstance(resolved("SELECT APPROXIMATE COUNT(*) FROM a JOIN b ON a.k = b.k"), SampledQuery)


def test_what_has_none_is_sampled_where_an_error_is_asked_and_told_so_where_not():
    found = resolved(f"{OUTER} ERROR WITHIN 5%")
    assert isinstance(found, SampledQuery)
    assert found.warnings[-1].startswith("by a sample of keys: ")
    with pytest.raises(UnsupportedQuery) as fault:
        resolved(OUTER)
    assert fault.value.hint == "the same with USING sampled_query at its end, or EXACT SELECT ..."
    assert isinstance(resolved(f"{OUTER} USING sampled_query"), SampledQuery)


def test_the_session_aims_at_an_error_too():
    assert isinstance(resolved(OUTER, Settings()), SampledQuery)
    for otherwise in ("SIZE 10 KB", "OPTIONS (rows = 7)"):
        with pytest.raises(UnsupportedQuery):
            resolved(f"{OUTER} {otherwise}", Settings())


def test_a_named_method_is_not_changed():
    with pytest.raises(UnsupportedQuery):
        resolved(f"{OUTER} ERROR WITHIN 5% USING hash")
    select = parse_statement(f"{OUTER} USING hash")
    assert by_sample(select).method == "sampled_query"


def test_what_no_sketch_answers_is_explained_as_far_as_it_was_read():
    text = "SELECT APPROXIMATE COUNT(*) FROM a CROSS JOIN b USING hash"
    with pytest.raises(UnsupportedQuery):
        resolved(text)
    assert len(Resolving(at_home(NO_ERROR)).to_be_explained(parse_statement(text)).graph.vertices) == 2


def test_so_is_what_could_be_written_otherwise():
    """People write EXISTS: that sketches would take it as IN is one way out, and a sample of keys another."""
    text = "SELECT APPROXIMATE COUNT(*) FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k)"
    assert isinstance(resolved(f"{text} ERROR WITHIN 5%"), SampledQuery)
    with pytest.raises(UnsupportedQuery) as fault:
        resolved(text)
    assert fault.value.hint == (
        "a.k IN (SELECT b.k FROM b), or the same with USING sampled_query at its end, or EXACT SELECT ..."
    )
