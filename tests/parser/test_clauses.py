"""The clauses behind a SELECT: each may stand once, in any order."""

import pytest

from skimql.errors import ParseError
from skimql.parser.statement import ApproximateSelect, EstimateRows, ExactSelect, Explain, parse_statement

SELECT = "SELECT APPROXIMATE COUNT(*) FROM x"


@pytest.mark.parametrize(
    "clauses",
    [
        " ERROR WITHIN 5% CONFIDENCE 90% USING hash SEED 3 SIZE 64 KB",
        " SIZE 64 KB SEED 3 USING hash ERROR WITHIN 0.05 CONFIDENCE 0.9",
        " -- now\n ERROR WITHIN 5 % CONFIDENCE 90 % /* so */ USING hash SEED 3 SIZE 65536",
    ],
)
def test_clauses_stand_in_any_order(clauses):
    read = parse_statement(SELECT + clauses)
    assert isinstance(read, ApproximateSelect)
    assert (read.accuracy.relative_error, read.accuracy.confidence) == (0.05, 0.9)
    assert (read.method, read.seed, read.size_bytes) == ("hash", 3, 65_536)
    assert read.select_sql.split() == ["SELECT", "COUNT(*)", "FROM", "x"]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("EXACT SELECT 1", ExactSelect),
        ("ESTIMATE ROWS FOR SELECT * FROM x", EstimateRows),
        (f"EXPLAIN {SELECT}", Explain),
    ],
)
def test_the_words_in_front_say_what_is_asked(text, kind):
    assert isinstance(parse_statement(text), kind)


@pytest.mark.parametrize(
    "clauses", [" SEED 1 SEED 2", " USING hash USING agms", " ERROR WITHIN", " SIZE 3 parsecs"]
)
def test_what_stands_twice_or_is_no_clause_is_refused(clauses):
    with pytest.raises(ParseError) as fault:
        parse_statement(SELECT + clauses)
    assert fault.value.line == 1
