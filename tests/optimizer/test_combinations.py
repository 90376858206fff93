"""Combinations of a query with what is asked of it: refused with a code and a way out where nothing honours them."""

import pytest
from support.questions import query
from support.schemas import XYZ

from skimql import UnsupportedQuery
from skimql.optimizer.combinations import Asked, check, check_aggregates, check_materialized, worker_reason

JOIN = "FROM x JOIN y ON x.id = y.id"
THREE = f"COUNT(*) {JOIN} JOIN z ON y.m = z.id"
PLACE = {"error_within": (3, 9), "method": (10, 20)}


@pytest.mark.parametrize(
    ("text", "asked", "code", "way"),
    [
        (f"{THREE} USING hash", Asked(), "SKIMQL_UNKNOWN_METHOD", "USING convolution"),
        ("COUNT(*) FROM x USING hash", Asked(), "SKIMQL_UNKNOWN_METHOD", "no USING"),
        (
            f"x.id, COUNT(*) {JOIN} GROUP BY x.id USING skimmed",
            Asked(),
            "SKIMQL_UNKNOWN_METHOD",
            "USING hash",
        ),
        (f"COUNT(DISTINCT y.m) {JOIN} USING hash", Asked(), "SKIMQL_UNKNOWN_METHOD", "USING distinct"),
        (f"SUM(y.m) {JOIN} USING distinct", Asked(), "SKIMQL_UNKNOWN_METHOD", "no USING"),
        (f"COUNT(*) {JOIN} USING agms", Asked(route="jvm"), "SKIMQL_ROUTE", "route = auto"),
        (f"COUNT(DISTINCT y.m) {JOIN}", Asked(cache=True, route="jvm"), "SKIMQL_ROUTE", "route = auto"),
        (f"COUNT(*) {JOIN} USING key_sample", Asked(cache=True, route="jvm"), "SKIMQL_ROUTE", "route = auto"),
    ],
)
def test_what_nothing_honours_is_refused_with_a_way_out(text, asked, code, way):
    with pytest.raises(UnsupportedQuery) as refused:
        check(query(text, XYZ), asked)
    assert (refused.value.code, way in refused.value.hint) == (code, True)


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        (f"{THREE} USING convolution", Asked(clauses=PLACE)),
        (f"COUNT(*) {JOIN} USING agms", Asked(clauses=PLACE)),
        (f"COUNT(*) {JOIN} USING hash", Asked(route="jvm", cache=True)),
        (f"COUNT(*) {JOIN} USING key_sample", Asked(route="jvm")),
        (f"COUNT(*) {JOIN} WHERE x.id < 1 AND x.id > 1 USING distinct", Asked(route="jvm")),
    ],
)
def test_what_is_honoured_passes(text, asked):
    check(query(text, XYZ), asked)


def test_a_refusal_of_an_aggregate_points_at_it():
    asked = query(f"COUNT(*) AS n, COUNT(DISTINCT y.m) AS d {JOIN} USING hash", XYZ)
    with pytest.raises(UnsupportedQuery) as refused:
        check_aggregates(asked)
    start, end = refused.value.span
    assert asked.sql[start:end].startswith("COUNT(DISTINCT")


def test_why_workers_are_needed():
    assert worker_reason("distinct", grouped=False) == "distinct values are counted"
    assert worker_reason("agms", grouped=False) == "agms is asked for"
    assert worker_reason("hash", grouped=True).startswith("each group")
    assert worker_reason("hash", grouped=False) == worker_reason("key_sample", grouped=True) == ""


def test_kept_sketches_are_made_by_workers():
    check_materialized("auto", "CREATE SKETCH s")
    with pytest.raises(UnsupportedQuery) as refused:
        check_materialized("jvm", "CREATE SKETCH s")
    assert refused.value.hint == "SET skimql.route = auto"
