"""The reference values that several test modules read."""

from __future__ import annotations

import json
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "fixtures" / "golden"


def golden(name):
    """The parsed content of `fixtures/golden/<name>.json`."""
    return json.loads((FOLDER / f"{name}.json").read_text())
