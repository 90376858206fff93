"""What views do not do has a code and a way out."""

from __future__ import annotations

from skimql.engine.streams.refusals import unsupported


def test_a_refusal_names_what_and_says_what_to_do():
    fault = unsupported("X in a continuous view", "a view without it", "SELECT X", (7, 8))
    assert fault.code == "SKIMQL_STREAM_UNSUPPORTED"
    assert (fault.span, fault.hint) == ((7, 8), "a view without it")
    assert "X in a continuous view" in fault.message
