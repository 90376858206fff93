"""How large a kept sketch is made; nothing is scanned."""

from types import SimpleNamespace

import pytest
from support.kept import kept

from skimql import BudgetExceeded, Settings, UnsupportedQuery
from skimql.engine.catalog.catalog import Catalog
from skimql.engine.materialized.form_sizing import FormSizing, usual_size
from skimql.parser.statement import parse_statement

SUMMED = kept("s", "t", {"k": [1, 2, 3]}, summed=("v", [1, 2, 3])).head
COUNTED = kept("s", "t", {"k": [1, 2, 3]}).head
PAIRED = kept("s", "t", {"k": [1, 2, 3], "l": [1, 1, 1]}).head


def sizing(clauses="", **settings):
    context = SimpleNamespace(catalog=Catalog(), settings=Settings(**settings))
    return FormSizing(context, parse_statement(f"CREATE SKETCH s ON t (k) {clauses}")), context.settings


def sized(head, method, clauses="", **settings):
    maker, known = sizing(clauses, **settings)
    return maker.sized(head, known, method)


def test_without_a_word_it_is_of_the_sessions_size():
    form = sized(COUNTED, "hash", rows=7, buckets=96)
    assert (form.method, form.rows, form.buckets) == ("hash", 7, 96)
    assert usual_size(Settings(rows=None, buckets=64)) == (11, 64)


@pytest.mark.parametrize(
    ("head", "method"),
    [
        (COUNTED, "hash"),
        (SUMMED, "hash"),
        (PAIRED, "convolution"),
        (COUNTED, "agms"),
        (SUMMED, "key_sample"),
        (COUNTED, "skimmed"),
        (COUNTED, "distinct"),
        (PAIRED, "join_distinct"),
    ],
)
def test_a_size_is_filled_and_not_exceeded(head, method):
    maker, settings = sizing("SIZE 100 KB")
    form = maker.sized(head, settings, method)
    taken = maker.bytes_of(form, head, form.rows, form.buckets)
    assert 0.4 * 102_400 < taken <= 102_400
    more = maker.bytes_of(form, head, form.rows, 2 * form.buckets)
    assert more > 102_400


def test_a_size_that_is_too_small_says_what_would_do():
    with pytest.raises(BudgetExceeded) as refused:
        sized(SUMMED, "hash", "SIZE 100", rows=11)
    least = int(refused.value.hint.split()[1])
    assert sized(SUMMED, "hash", f"SIZE {least}", rows=11).buckets == 2


def test_an_error_is_that_of_a_join_with_itself():
    narrow, wide = (sized(COUNTED, "hash", f"ERROR WITHIN {e}%") for e in (2, 10))
    # A row's variance is 2 F2^2 / buckets: of the fifth error 25 times the buckets.
    assert narrow.buckets / wide.buckets == pytest.approx(25, rel=0.1)
    two = sized(PAIRED, "convolution", "ERROR WITHIN 10%")
    assert two.buckets == pytest.approx(4 * wide.buckets, rel=0.05), "3^2 - 1 over 3 - 1"


def test_an_error_of_distinct_values_is_that_of_their_sketch():
    narrow, wide = (sized(COUNTED, "distinct", f"ERROR WITHIN {e}%") for e in (2, 10))
    assert narrow.buckets > 20 * wide.buckets


def test_what_a_sampled_table_errs_by_is_not_known():
    with pytest.raises(UnsupportedQuery) as refused:
        sized(COUNTED, "sample_sketch", "ERROR WITHIN 5%")
    assert refused.value.code == "SKIMQL_CLAUSE"
    assert dict(sized(COUNTED, "sample_sketch", "SIZE 10 KB").parameters) == {"dense": 0, "sampled": 0}
