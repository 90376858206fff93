"""docs/errors.md lists every code that the parser can give."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_code_of_the_parser_is_documented():
    used = {
        c for p in (ROOT / "parser").glob("*.py") for c in re.findall(r'"(SKIMQL_[A-Z_]+)"', p.read_text())
    }
    used |= set(re.findall(r'"(SKIMQL_PARSE_ERROR)"', (ROOT / "errors.py").read_text()))
    documented = set(re.findall(r"`(SKIMQL_[A-Z_]+)`", (ROOT / "docs" / "errors.md").read_text()))
    assert used == documented
