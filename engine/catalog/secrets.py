"""What a catalog does not keep: passwords and the like among the options of Spark's readers, and in addresses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

# Rather too much than too little: who registers a table once more gives its options once more.
_SECRET = re.compile(
    r"pass(word|wd|phrase|code)|pwd|secret|token|credential|key|auth|private|signature|\bsas\b", re.IGNORECASE
)
_USER_INFO = re.compile(r"(?<=://)[^/@\s]*@")
_ASSIGNED = re.compile(rf"(?i)([?&;,]\s*[\w.-]*({_SECRET.pattern})[\w.-]*\s*=)[^&;,\s]*")


def split_options(options: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The options that may be kept, and the names of the others."""
    kept = {n: v for n, v in options.items() if not _SECRET.search(n) and not has_secret(str(v))}
    return kept, tuple(sorted(n for n in options if n not in kept))


def has_secret(text: str) -> bool:
    """Whether an address holds a password: ``scheme://user:password@host``, ``?token=...``."""
    return redacted(text) != text


def redacted(text: str) -> str:
    """An address without the secrets in it, to be shown."""
    return _ASSIGNED.sub(r"\1***", _USER_INFO.sub("***@", text))
