"""Where the command keeps what is the user's: the XDG folders, on every system."""

from __future__ import annotations

import os
from pathlib import Path

CONFIG_FILE = "config.toml"
PROJECT_FILE = ".skimql.toml"


def config_folder() -> Path:
    """The folder of `config.toml`."""
    return _folder("XDG_CONFIG_HOME", ".config")


def state_folder() -> Path:
    """The folder of the shell's history, and of what the user trusts."""
    return _folder("XDG_STATE_HOME", ".local/state")


def _folder(variable: str, otherwise: str) -> Path:
    base = os.environ.get(variable, "")
    # The specification has relative paths ignored.
    return Path(base if os.path.isabs(base) else os.path.join(os.path.expanduser("~"), otherwise)) / "skimql"


def is_configured() -> bool:
    """Whether anything but flags may set something: a file, or a variable of ours."""
    return (
        any(name.startswith("SKIMQL_") and name != "SKIMQL_DEBUG" for name in os.environ)
        or os.path.exists(PROJECT_FILE)
        or os.path.exists(config_folder() / CONFIG_FILE)
    )
