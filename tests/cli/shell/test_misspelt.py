"""Words that are nearly those that may stand at their place."""

from __future__ import annotations

import pytest
from support.completion_cases import NAMES

from skimql.cli.shell.misspelt import respelt


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("SELCT APROXIMATE COUNT(*) FORM flights", "SELECT APPROXIMATE COUNT(*) FROM flights"),
        ("SELECT COUNT(*) FROM flights", None),
        ("SELECT carrier AS form FROM flights", None),
        ("SELECT form.x FROM form", None),
        ("SELECT COUNT(*) FROM flights WHERE carrier IN (SELCT carrier FROM flights)", "SELECT COUNT(*) FROM flights WHERE carrier IN (SELECT carrier FROM flights)"),
        ("", None),
    ],
)  # fmt: skip
def test_misspelt_words(text, meant):
    assert respelt(text, NAMES) == meant
