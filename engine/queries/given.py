"""Values that a statement takes from Python: ``sql("SELECT … FROM {df}", df=df)``, as Spark's own `sql` does."""

from __future__ import annotations

import string
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ...errors import UnsupportedQuery
from ..results.columns import Names
from ..sources.literals import literal
from ..sources.spark_tables import is_frame
from ..sources.tables import Tables


@contextmanager
def given(tables: Tables, text: str, values: Mapping[str, Any]) -> Iterator[str]:
    """The text with its ``{names}`` replaced: a DataFrame by a table that is there as long as the statement runs.

    Raises
    ------
    UnsupportedQuery
        ``SKIMQL_BAD_VALUE`` for a name without a value, or a value that SQL has no literal for.
    """
    used = _names_in(text, values)
    names = Names({n.lower() for n in tables.registered()})
    written: dict[str, str] = {}
    registered: list[str] = []
    try:
        for name in used:
            if is_frame(values[name]):
                free = names.free(name)
                tables.register(free, values[name], {})
                registered.append(free)
                written[name] = f"`{free}`"
            else:
                written[name] = literal(name, values[name])
        yield text.format(**written)
    finally:
        for name in registered:
            tables.unregister(name)


def _names_in(text: str, values: Mapping[str, Any]) -> list[str]:
    try:
        fields = [name for _, name, _, _ in string.Formatter().parse(text) if name is not None]
    except ValueError as fault:
        raise UnsupportedQuery(
            f"the braces of the text do not fit: {fault}", "SKIMQL_BAD_VALUE", hint="{{ and }} for braces"
        ) from fault
    for name in fields:
        if name not in values:
            raise UnsupportedQuery(
                f"there is no value for {{{name}}}",
                "SKIMQL_BAD_VALUE",
                hint=", ".join(f"{{{v}}}" for v in values),
            )
    return list(dict.fromkeys(fields))
