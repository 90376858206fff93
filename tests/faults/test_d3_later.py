"""What sketches alone cannot answer and people write: by the user's own query on sampled keys, or anywhere in Spark SQL."""

from __future__ import annotations

import pytest
from support.schemas import schema, table

from skimql.errors import UnsupportedQuery
from skimql.parser.embedded import embedded, markers
from skimql.parser.join_graph import Span
from skimql.parser.sampled_select import resolve_sampled
from skimql.parser.statement import parse_statement

TABLES = schema(table("a", k="int", x="int"), table("b", k="int", y="int"))


@pytest.mark.parametrize(
    "text",
    [
        "SELECT APPROXIMATE COUNT(*) FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k)",
        "SELECT APPROXIMATE COUNT(*) FROM (SELECT k FROM a UNION ALL SELECT k FROM b) z",
        "SELECT APPROXIMATE COUNT(*) > 3 FROM a JOIN b ON a.k = b.k",
        "SELECT APPROXIMATE COUNT(*) FROM a LEFT JOIN b ON a.k = b.k WHERE b.k IS NULL",
    ],
)
def test_what_people_really_write_decomposes_over_its_key(text):
    assert resolve_sampled(parse_statement(text), TABLES).ways


def test_within_a_statement_of_sparks_it_is_the_extensions():
    text = "CREATE TABLE z AS SELECT APPROXIMATE COUNT(*) FROM a"
    with pytest.raises(UnsupportedQuery) as fault:
        parse_statement(text)
    assert "skimql.enable(spark)" in fault.value.hint
    (found,) = embedded(text)
    assert text[found.span.start : found.span.end] == "SELECT APPROXIMATE COUNT(*) FROM a"


def test_parameters_are_found_where_the_extension_binds_them():
    text = "SELECT APPROXIMATE COUNT(*) FROM a WHERE x < :limit"
    assert [m.name for m in markers(text, Span(0, len(text)))] == ["limit"]


def test_from_in_front_of_select_is_refused_with_the_order_to_write():
    with pytest.raises(UnsupportedQuery) as fault:
        parse_statement("FROM a SELECT APPROXIMATE COUNT(*)")
    assert fault.value.hint == "SELECT APPROXIMATE ... FROM ..., with SELECT in front"
