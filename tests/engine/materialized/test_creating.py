"""What CREATE SKETCH builds: as it says, else as the first sketch of its class; nothing is scanned."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from support.kept import kept, remember

from skimql import BudgetExceeded, Session, UnsupportedQuery
from skimql.engine.catalog.catalog import Catalog
from skimql.engine.materialized.creating import Creation, refuse_large
from skimql.parser.statement import parse_statement


@pytest.fixture
def catalog():
    other = kept("other", "t", {"k": [1], "l": [1]}, classes=["x", "y"], summed=("v", [1]))
    return remember(Catalog(), other)


def drafted(catalog, text, **settings):
    context = Session(catalog=catalog, **settings).context
    return Creation(context, parse_statement(f"CREATE SKETCH {text}")).drafted()


def test_a_method_of_other_keys_or_without_sums_is_refused_at_its_name(catalog):
    with pytest.raises(UnsupportedQuery, match="has one join attribute, and 2 are given") as refused:
        drafted(catalog, "s ON t (k, l) USING hash")
    start, end = refused.value.span
    assert refused.value.sql[start:end] == "USING hash"
    assert refused.value.hint == "USING convolution"
    with pytest.raises(UnsupportedQuery, match="keeps no sum"):
        drafted(catalog, "s ON t (k) FOR SUM(v) USING distinct")


def test_several_keys_are_a_convolution_and_one_a_hash_sketch_of_the_sessions_size(catalog):
    head, form = drafted(catalog, "s ON t (k, l)", rows=5, buckets=64)
    assert (head.method, form.rows, form.buckets) == ("convolution", 5, 64)
    assert len({f.seed for f in head.families}) == 2
    assert drafted(catalog, "s ON t (k)", rows=5, buckets=64)[0].method == "hash"


def test_a_sketch_follows_the_first_of_its_class(catalog):
    first = kept("first", "t", {"k": [1, 2]}, seed=9, rows=3, buckets=128)
    catalog.put(replace(first, head=replace(first.head, made_by="statement")))
    head, form = drafted(catalog, "s ON t (k)")
    assert (form.seed, form.rows, form.buckets) == (9, 3, 128)
    assert head.families == first.head.families
    assert "as sketch first" in form.notes[0]
    _, own = drafted(catalog, "s ON t (k) USING agms OPTIONS (seed = 4)")
    assert (own.method, own.seed) == ("agms", 4)
    assert any("not joined with first" in n for n in own.notes)


def test_what_could_not_be_loaded_again_is_not_made():
    head = SimpleNamespace(name="s", most_bytes=2_000, groups=None)
    refuse_large(head, 2_000, "CREATE SKETCH s")
    with pytest.raises(BudgetExceeded, match="may take 2,000 bytes"):
        refuse_large(head, 1_999, "CREATE SKETCH s")
