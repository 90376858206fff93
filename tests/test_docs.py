"""docs/errors.md lists every code that SkimQL can give, and no other."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]

# Defaults of classes that streams will raise, and of bases that are never raised themselves.
NOT_YET = {"SKIMQL_STREAM_ERROR"}
VARIABLES = {"SKIMQL_DEBUG"}
BASES = {"SKIMQL_ERROR", "SKIMQL_DATA_ERROR", "SKIMQL_ENVIRONMENT_FAULT", "SKIMQL_UNSUPPORTED_QUERY"}


def test_every_code_is_documented():
    files = [p for f in ("parser", "optimizer", "engine", "cli") for p in (ROOT / f).rglob("*.py")]
    text = "\n".join(p.read_text() for p in [*files, ROOT / "errors.py"])
    used = set(re.findall(r'"(SKIMQL_[A-Z_]+)"', text)) - NOT_YET - BASES - VARIABLES
    documented = set(re.findall(r"`(SKIMQL_[A-Z_]+)`", (ROOT / "docs" / "errors.md").read_text()))
    assert used == documented
