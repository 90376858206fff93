"""Values of Python as SQL."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from typing import Any

from ...errors import UnsupportedQuery


def literal(name: str, value: Any) -> str:
    """A value as SQL; `name` is what it stands for.

    Raises
    ------
    UnsupportedQuery
        ``SKIMQL_BAD_VALUE`` for one that SQL has no literal for.
    """
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case int():
            return str(value)
        case Decimal() if value.is_finite():
            return f"{value:f}BD"
        case float() if math.isfinite(value):
            return f"{value!r}D"
        case str():
            escaped = value.replace("\\", "\\\\").replace("'", "\\'")
            return f"'{escaped}'"
        case datetime.datetime():
            return f"TIMESTAMP '{value.isoformat(' ')}'"
        case datetime.date():
            return f"DATE '{value.isoformat()}'"
    raise UnsupportedQuery(
        f"{{{name}}} is a {type(value).__name__}, for which SQL has no literal",
        "SKIMQL_BAD_VALUE",
        hint="a DataFrame, number, text, date or None",
    )
