"""Spark's words."""

from skimql.parser.spark_words import FUNCTIONS, KEYWORDS


def test_they_are_words_in_the_case_that_is_looked_up():
    assert all(w.isupper() and w.replace("_", "").isalnum() for w in KEYWORDS)
    assert all(w.islower() and w.isidentifier() for w in FUNCTIONS)
    assert {"SELECT", "JOIN", "WITH"} <= KEYWORDS
    assert {"count", "sum", "year"} <= FUNCTIONS
