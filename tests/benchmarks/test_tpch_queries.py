"""The queries of TPC-H: which are the sum of what each key of a join class adds, by their text alone."""

from benchmarks.tpch_queries import DECOMPOSE, QUERIES, SCHEMA, approximate
from skimql.errors import SkimqlError
from skimql.parser.sampled_select import resolve_sampled
from skimql.parser.statement import parse_statement


def test_fourteen_queries_decompose_and_the_others_say_why_not():
    refused = {}
    for number in QUERIES:
        try:
            resolve_sampled(parse_statement(approximate(number, "USING sampled_query")), SCHEMA)
        except SkimqlError as fault:
            refused[number] = fault.code.removeprefix("SKIMQL_")
    assert refused == {
        2: "NOT_AGGREGATED",
        11: "SUBQUERY",
        15: "NOT_AGGREGATED",
        18: "NOT_DECOMPOSED",
        20: "NOT_AGGREGATED",
    }
    # Those beside these have groups of a key each, or more than can be told apart.
    assert {3, 10, 16} == set(QUERIES) - set(refused) - set(DECOMPOSE)
