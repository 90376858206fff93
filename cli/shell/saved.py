"""Queries that the user has saved under names, in the XDG state folder."""

from __future__ import annotations

import json
import os

from ..folders import state_folder

_FILE = "queries.json"


def kept_queries() -> dict[str, str]:
    """The saved queries by name."""
    try:
        kept = json.loads((state_folder() / _FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {str(k): str(v) for k, v in kept.items()} if isinstance(kept, dict) else {}


def keep(name: str, sql: str) -> None:
    """Save a query, whole or not at all."""
    folder = state_folder()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = folder / f"{_FILE}.{os.getpid()}"
    draft.write_text(json.dumps({**kept_queries(), name: sql}, indent=1), encoding="utf-8")
    draft.replace(folder / _FILE)
