"""What a statement and its settings ask of a query."""

import pytest
from support.questions import query
from support.schemas import XYZ

from skimql import Settings
from skimql.engine.queries.request import Request
from skimql.parser.statement import parse_statement

COUNT = "SELECT APPROXIMATE COUNT(*) FROM x JOIN y ON x.id = y.id"


def request(clauses="", select=COUNT, counts_rows=False, **settings):
    text = f"{select} {clauses}"
    return Request(parse_statement(text), query(text, XYZ), Settings(**settings), counts_rows)


@pytest.mark.parametrize(
    ("asked", "may_run"),
    [
        (request(), True),
        (request(counts_rows=True), False),
        (request(cache=True), False),
        (request(select="SELECT APPROXIMATE LOWER_BOUND(COUNT(*)) FROM x JOIN y ON x.id = y.id"), True),
    ],
)
def test_what_may_be_run_exactly(asked, may_run):
    assert asked.may_run is may_run


@pytest.mark.parametrize(
    ("clauses", "settings", "by_hand"),
    [
        ("", {}, False),
        ("", {"error": None}, True),
        ("", {"error": None, "size_bytes": 1000}, False),
        ("USING hash", {}, True),
        ("USING hash ERROR WITHIN 5%", {}, False),
        ("USING agms ERROR WITHIN 5%", {}, False),
        ("USING skimmed", {}, True),
        ("USING skimmed ERROR WITHIN 5%", {}, False),
        ("USING key_sample", {"buckets": 64}, False),
    ],
)
def test_whose_size_is_the_sessions(clauses, settings, by_hand):
    assert request(clauses, **settings).sized_by_hand is by_hand


def test_the_error_that_is_planned_for_is_with_using_that_of_the_statement():
    assert request(error=0.1).target == 0.1
    assert request("USING key_sample", error=0.1).target is None
    assert request("USING key_sample ERROR WITHIN 2%", error=0.1).target == 0.02


@pytest.mark.parametrize(
    ("clauses", "settings", "freely"),
    [
        ("", {}, True),
        ("", {"cache": True}, False),
        ("", {"size_bytes": 1000}, False),
        ("USING key_sample ERROR WITHIN 5%", {}, False),
        ("GROUP BY x.id", {"behavior": "partial_run_on_base_table"}, False),
        ("", {"behavior": "partial_run_on_base_table"}, True),
    ],
)
def test_when_an_error_alone_is_asked(clauses, settings, freely):
    assert request(clauses, **settings).aims_freely is freely


def test_a_behaviour_says_what_to_do_where_what_is_kept_misses():
    assert request("ERROR WITHIN 5%").asks_more_than_materialized
    assert not request("ERROR WITHIN 5% BEHAVIOR 'do_nothing'").asks_more_than_materialized
    assert not request(error=0.05).asks_more_than_materialized


def test_a_convolution_of_two_tables_is_a_hash_sketch():
    assert request("USING convolution").forced == "hash"
    three = "SELECT APPROXIMATE COUNT(*) FROM x JOIN y ON x.id = y.id JOIN z ON y.m = z.id"
    assert request("USING convolution", three).forced == "convolution"


def test_a_sample_of_keys_over_several_classes_has_messages_behind_it():
    three = "SELECT APPROXIMATE COUNT(*) FROM x JOIN y ON x.id = y.id JOIN z ON y.m = z.id"
    assert request("USING key_sample").forced == "key_sample"
    assert request("USING key_sample", three).forced == "sampled_messages"
    assert request("USING key_sample", three, cache=True).forced == "key_sample"


def test_exact_messages_may_take_what_any_synopsis_may():
    assert request("USING exact").objective(1000, {}).size_bytes is None
    assert request("USING exact SIZE 1000", size_bytes=1000).objective(1000, {}).size_bytes == 1000


def test_the_objective_is_of_each_group_and_of_what_may_be_taken():
    asked = request(error=0.06)
    assert asked.objective(0, {}).relative_error == 0.06
    assert asked.objective(0, {0: 3, 1: 3}).relative_error == pytest.approx(0.02)
    assert "exact_run" in asked.objective(0, {}).methods
    kept = request(error=0.06, cache=True).objective(0, {})
    assert "exact_run" not in kept.methods
    assert "sample_sketch" in kept.methods
    by_jvm = request(error=0.06, cache=True, route="jvm").objective(0, {})
    assert set(by_jvm.methods) == {"hash", "convolution"}


def test_where_nothing_is_asked_the_bytes_are_those_of_the_sessions_sketches():
    asked = request(error=None, rows=3, buckets=100)
    assert asked.objective(0, {}).size_bytes == 8 * 3 * 100 * 2


def test_regressions_are_predicted_only_of_samples_that_come_with_the_totals_of_their_tables():
    """Samples of one query's scans have none; those that the catalog keeps do."""
    assert not request(error=0.06).objective(0, {}).regressed
    assert not request("USING key_sample ERROR WITHIN 5%").objective(0, {}).regressed
    assert request(error=0.06, cache=True).objective(0, {}).regressed
