"""MIN and MAX: which of them files tell, which end of them a sample does, and the way out of the others."""

import pytest
from support.sampled_queries import SCHEMA

from skimql.errors import UnsupportedQuery
from skimql.parser.sampled_select import resolve_sampled
from skimql.parser.statement import parse_statement


def read(text):
    return resolve_sampled(parse_statement(f"{text} USING sampled_query"), SCHEMA)


def test_a_bound_of_min_and_max_is_what_the_keys_that_were_met_tell():
    query = read(
        "SELECT APPROXIMATE lower_bound(MAX(a.v)) AS m, upper_bound(MIN(b.v) FILTER (WHERE a.j > 1)) AS l"
        " FROM a JOIN b ON a.k = b.k"
    )
    only = "FILTER (WHERE a.j > 1)"
    assert query.measures == ("MAX(a.v)", "COUNT(a.v)", f"MIN(b.v) {only}", f"COUNT(b.v) {only}")
    assert query.extremes == ()
    for item, way_out in (
        ("MAX(a.v)", "lower_bound(MAX(a.v)) with USING sampled_query, which is certain, or EXACT SELECT ..."),
        (
            "MIN(a.v + 1)",
            "upper_bound(MIN(a.v + 1)) with USING sampled_query, which is certain, or EXACT SELECT ...",
        ),
        (
            "upper_bound(MAX(a.v))",
            "lower_bound(MAX(a.v)) with USING sampled_query, which is certain, or EXACT SELECT ...",
        ),
        ("MAX(CAST(a.v AS STRING))", "EXACT SELECT ..."),
    ):
        with pytest.raises(UnsupportedQuery, match="may be that of a single tuple") as raised:
            read(f"SELECT APPROXIMATE {item} AS x FROM a JOIN b ON a.k = b.k")
        assert raised.value.hint == way_out


def test_files_tell_min_and_max_of_a_column_that_reaches_the_result_as_a_whole():
    query = read("SELECT APPROXIMATE COUNT(*) AS n, MAX(a.v) - MIN(a.j) AS d FROM a LEFT JOIN b ON a.k = b.k")
    assert [(m, e.table, e.column) for m, e in query.extremes] == [
        ("MAX(a.v)", "a", "v"),
        ("MIN(a.j)", "a", "j"),
    ]
    assert not query.is_in_files
    assert read("SELECT APPROXIMATE MAX(v) - MIN(j) AS d FROM a").is_in_files
    for rest in ("a JOIN b ON a.k = b.k", "a WHERE v > 1", "a GROUP BY j", "a RIGHT JOIN b ON a.k = b.k"):
        with pytest.raises(UnsupportedQuery, match="may be that of a single tuple"):
            read(f"SELECT APPROXIMATE MAX(a.v) AS m FROM {rest}")
