"""Text fixtures that are read in review: written when SKIMQL_UPDATE_GOLDEN is set, compared otherwise."""

from __future__ import annotations

import difflib
import os
from pathlib import Path

FIXTURES = Path(__file__).parents[1] / "fixtures"


def assert_golden(folder, name, text):
    """`text` is what ``fixtures/<folder>/<name>`` holds."""
    path = FIXTURES / folder / name
    if os.environ.get("SKIMQL_UPDATE_GOLDEN"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n", encoding="utf-8")
    assert path.exists(), f"{path.name} is missing; run with SKIMQL_UPDATE_GOLDEN=1 and read it"
    wanted = path.read_text(encoding="utf-8")
    differing = difflib.unified_diff(wanted.splitlines(), text.splitlines(), name, "now", lineterm="", n=1)
    assert wanted == text + "\n", "\n".join(differing)
