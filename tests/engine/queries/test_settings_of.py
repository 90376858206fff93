"""What holds for one statement: clauses over OPTIONS over the session."""

import pytest

from skimql import Settings, SkimqlError
from skimql.engine.queries.settings_of import places_of, settings_of, span_of
from skimql.parser.statement import parse_statement

ASK = "SELECT APPROXIMATE COUNT(*) FROM a JOIN b ON a.k = b.k"


def of(clauses, **ours):
    return settings_of(Settings(**ours), parse_statement(f"{ASK} {clauses}"))


def test_clauses_go_over_options_and_these_over_the_session():
    found = of(
        "ERROR WITHIN 2% CONFIDENCE 90% SEED 7 OPTIONS (seed = 3, buckets = 64)", buckets=8, max_groups=5
    )
    assert (found.error, found.confidence, found.seed) == (0.02, 0.9, 7)
    assert (found.buckets, found.max_groups) == (64, 5)


@pytest.mark.parametrize(
    ("clauses", "error"),
    [
        ("", 0.05),
        ("OPTIONS (error = 0.2)", 0.2),
        ("SIZE 64 KB", None),
        ("USING hash", None),
        ("OPTIONS (buckets = 64)", None),
        ("SIZE 64 KB ERROR WITHIN 5%", 0.05),
        ("USING hash BEHAVIOR 'strict'", 0.05),
    ],
)
def test_the_sessions_error_is_no_measure_of_what_says_itself_by_what_it_is_answered(clauses, error):
    assert of(clauses).error == error


def test_what_does_not_exist_is_refused_where_it_stands():
    with pytest.raises(SkimqlError) as told:
        of("OPTIONS (buckits = 64)")
    assert told.value.sql[slice(*told.value.span)].startswith("OPTIONS")


def test_clauses_know_their_places():
    statement = parse_statement(f"{ASK} SIZE 64 KB")
    assert statement.sql[slice(*places_of(statement)["size"])] == "SIZE 64 KB"
    assert span_of(statement.clause_spans, "seed") is None
