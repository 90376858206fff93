"""The parentheses of statements about streams."""

from __future__ import annotations

import pytest

from skimql import tokens
from skimql.cli.shell.completion.streams import declared, in_list, makes_stream


def test_the_columns_that_a_stream_declares_are_read_from_its_statement():
    text = "CREATE STREAM s (a BIGINT, `b c` DECIMAL(3, 1), d MAP<STRING, INT>, e DATE) FROM JSON 'x' DEDUP ("
    seen = tokens(text)
    assert makes_stream(seen)
    assert list(declared(seen)) == [("a", "BIGINT"), ("b c", "DECIMAL"), ("d", "MAP"), ("e", "DATE")]
    assert not makes_stream(tokens("CREATE TABLE stream (a INT)"))


@pytest.mark.parametrize(
    ("outer", "before", "first"),
    [
        ("CREATE STREAM s", "a", "BIGINT"),
        ("CREATE STREAM s", "a BIGINT, b", "BIGINT"),
        ("CREATE STREAM s", "a BIGINT", None),
        ("CREATE OR REPLACE CONTINUOUS VIEWS w", "q", "AS"),
        ("CREATE CONTINUOUS VIEWS w", "q AS", "("),
    ],
)
def test_what_follows_in_a_list_is_known(outer, before, first):
    found = in_list(tokens(outer), tokens(before))
    assert found is not None
    assert [text for text, _, _ in found[:1]] == ([] if first is None else [first])


def test_elsewhere_it_says_nothing():
    assert in_list(tokens("SELECT a IN"), tokens("1")) is None
    assert in_list(tokens("CREATE CONTINUOUS VIEWS w (q AS"), tokens("SELECT")) is None
