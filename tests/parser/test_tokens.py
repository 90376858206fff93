"""Tokens of SQL text, for colours and completion."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skimql import tokens


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("SELECT APPROXIMATE count(*)", "keyword ours function symbol symbol symbol"),
        ("t.error < 1.5e3", "name symbol name symbol number"),
        ("error.x", "name symbol name"),
        ("`a``b` 'c''d' \"e\\\"f\"", "quoted_name text text"),
        (r"r'\' 'x'", "text text"),
        ("/* a /* b */ c */ x1 -- all", "comment name comment"),
        ("SIZE 64KB <=> 5%", "ours number symbol number symbol"),
        ("'open", "mistake"),
        ("/* open /* */", "mistake"),
        ("x IN (1)", "keyword keyword symbol number symbol"),
        ("größe 東京", "name name"),
        ("FROM lines l JOIN date WHERE", "keyword name name keyword keyword keyword"),
        ("n AS delay FROM", "name keyword name keyword"),
        ("VIEW v AS SELECT", "keyword name keyword keyword"),
        ("", ""),
    ],
)
def test_every_piece_has_its_kind(text, kinds):
    assert " ".join(t.kind for t in tokens(text)) == kinds


@given(st.text(alphabet=st.sampled_from("aSELECT'\"`\\/*-; \n\t.()1%<=>é\x00"), max_size=60))
def test_any_text_is_tokens_in_order_and_only_blanks_between(text):
    at = 0
    for token in tokens(text):
        assert not text[at : token.start].strip()
        assert token.text == text[token.start : token.end]
        at = token.end
    assert not text[at:].strip()


def test_many_open_comments_take_linear_time():
    assert len(tokens("/* " * 50_000)) == 1
