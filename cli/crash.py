"""A fault of our own: two lines for the user, the whole of it in a file."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
import traceback
from pathlib import Path


def report(fault: BaseException) -> str:
    """What to say of a fault that nobody foresaw, and where its report was written; with SKIMQL_DEBUG=1 all of it."""
    whole = "".join(traceback.format_exception(fault))
    said = f"{type(fault).__name__}: {fault}".strip().splitlines()[0]
    if os.environ.get("SKIMQL_DEBUG", "") not in ("", "0"):
        return whole.rstrip()
    from .. import __version__

    head = f"skimql {__version__}, Python {platform.python_version()}, {platform.platform()}\n"
    try:
        handle, path = tempfile.mkstemp(prefix="skimql-", suffix=".log", dir=_folder())
        with open(handle, "w", encoding="utf-8", errors="backslashreplace") as sink:
            sink.write(f"{head}{' '.join(sys.argv[:1])}\n\n{whole}")
    except OSError:
        return f"error: a fault of SkimQL itself: {said}\n  no report could be written; SKIMQL_DEBUG=1 shows it"
    return f"error: a fault of SkimQL itself: {said}\n  please send us the report in {path}"


def _folder() -> str:
    """Where reports go: the user's folder for logs, else the one for temporary files."""
    import platformdirs

    folder = Path(platformdirs.user_log_dir("skimql"))
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return tempfile.gettempdir()
    return str(folder) if os.access(folder, os.W_OK) else tempfile.gettempdir()
