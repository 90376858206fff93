"""Making sketches that are kept: what they are of, their synopses, and one pass over the source."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ...errors import UnsupportedQuery
from ...optimizer.plan import Attribute, Weight
from ...parser.join_graph import Column
from ...parser.types import common_type
from ...sketches.hashing.family import Family
from ..catalog.file import StoredSketch
from ..catalog.form import Head, Measure, Part, together
from ..sources.environment import Circumstances
from ..sources.keys import expression_type
from ..sources.tables import Tables
from ..synopses import Built, Tally

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


# Expressions with another value tomorrow, or that read more than their table; names of columns stand in backticks.
_UNSTABLE = re.compile(
    r"\b(select|current_date|current_time|current_timestamp|curdate|now|localtimestamp|current_timezone|current_user"
    r"|user|session_user|current_catalog|current_database|current_schema|input_file_name|unix_timestamp(?=\s*\(\s*\)))\b",
    re.IGNORECASE,
)
# Texts that Spark reads as another day tomorrow wherever they become a date or time, with a zone behind them or not.
_RELATIVE_DAY = re.compile(r"""[rR]?(['"])\s*(?:now|today|tomorrow|yesterday)(?:\s.*)?\1""", re.IGNORECASE)
# What may read a session time zone: any word about dates and times.
_ZONED = re.compile(r"date|time|hour|minute|second|day|week|month|quarter|year|trunc|epoch", re.IGNORECASE)
_CALL = re.compile(r"(?:`((?:[^`]|``)+)`|(\w+))\s*\(")
# Names, raw texts (in which a backslash is one), other texts.
_QUOTED = re.compile(
    r"""`(?:[^`]|``)*`|\b[rR](?:'[^']*'|"[^"]*")|'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*\"""", re.DOTALL
)


@dataclass(frozen=True, slots=True)
class OneFrame:
    """A single DataFrame under a single name, for a plan over it."""

    name: str
    data: DataFrame

    def frame(self, name: str) -> DataFrame:
        """The DataFrame; nothing else has a name."""
        assert name == self.name, f"{name} is not {self.name}"
        return self.data


def now(precision: str = "seconds") -> str:
    """The present time, UTC, to the second, or as precise as `datetime.isoformat` takes it."""
    return datetime.now(UTC).isoformat(timespec=precision).replace("+00:00", "Z")


def refuse_unstable(
    sql: str, expressions: Iterable[str | None], functions: Callable[[], Collection[str]]
) -> None:
    """Refuse to keep what has another value tomorrow, or depends on more than its table.

    `functions` gives the names of the user's own functions, as `unstable` wants them.

    Raises
    ------
    UnsupportedQuery
        ``SKIMQL_UNSTABLE``.
    """
    found = unstable(expressions, functions)
    if found is not None:
        what = "a subquery" if found.lower() == "select" else f"{found}"
        raise UnsupportedQuery(
            f"a kept sketch cannot depend on {what}: its value changes while the sketch does not",
            "SKIMQL_UNSTABLE",
            sql,
            hint="write the value itself",
        )


def unstable(expressions: Iterable[str | None], functions: Callable[[], Collection[str]]) -> str | None:
    """The first part of these expressions that may have another value tomorrow, or None.

    `functions` gives the user's own functions in lower case, which may be others tomorrow; it is asked where one of the
    expressions calls any.
    """
    texts = [text for text in expressions if text]
    for text in texts:
        found = _UNSTABLE.search(_QUOTED.sub(" ", text))
        if found is not None:
            return found.group(1)
        day = next((q for q in _QUOTED.findall(text) if _RELATIVE_DAY.fullmatch(q)), None)
        if day is not None:
            return str(day)
    called = {(name or quoted).lower(): name or quoted for t in texts for quoted, name in _CALL.findall(t)}
    own = set(functions()) & set(called) if called else set()
    return called[min(own)] + "()" if own else None


def is_zoned(expressions: Iterable[str | None], types: Iterable[str], columns: Sequence[Column]) -> bool:
    """Whether the session time zone may change the value of these expressions; if in doubt, it may."""
    stamps = {c.name.lower() for c in columns if "timestamp" in c.type}
    for text in expressions:
        if text is None:
            continue
        if _names_in(text) & stamps or _ZONED.search(_QUOTED.sub(" ", text)):
            return True
    return any(t == "timestamp" for t in types)


def columns_read(head: Head) -> frozenset[str]:
    """The names in all expressions of a sketch, in lower case: of its columns, and of fields of structs."""
    expressions = (
        head.filter,
        *(k for a in head.attributes for k in a.keys),
        *(w.expression for w in head.weights),
        *(() if head.groups is None else head.groups.expressions),
    )
    return frozenset(name for text in expressions if text for name in _names_in(text))


def _names_in(text: str) -> set[str]:
    """The names that stand in backticks in an expression, in lower case."""
    return {q[1:-1].replace("``", "`").lower() for q in _QUOTED.findall(text) if q.startswith("`")}


def weights_for(summed: str | None) -> tuple[Weight, ...]:
    """What a kept sketch has: the tuples, and for SUM the values and where they are not NULL."""
    return (Weight(),) if summed is None else (Weight(), Weight(summed), Weight(summed, presence=True))


def blank(
    name: str,
    table: str,
    condition: str | None,
    attributes: tuple[Attribute, ...],
    weights: Iterable[Weight],
    *,
    method: str,
    seed: int,
    rows: int,
    buckets: int,
    sparse: bool,
    families: tuple[Family, ...] = (),
    **others: Any,
) -> Head:
    """A head with nothing in it yet: what is of its table is for `typed` to say, `others` are further fields."""
    made = now()
    return Head(
        name=name,
        table=table,
        filter=condition,
        attributes=attributes,
        key_types=(),
        families=families,
        method=method,
        seed=seed,
        rows=rows,
        buckets=buckets,
        limit_bytes=int(sparse),
        measures=tuple(Measure(w, "int64", 1.0, Tally(), True, 0) for w in weights),
        columns=(),
        ansi=True,
        time_zone="",
        zoned=False,
        lineage=(),
        created=made,
        updated=made,
        **others,
    )


def stored(head: Head, built: Sequence[Built]) -> StoredSketch:
    """A head with its finished sketches, measured: one for each measure, group by group."""
    kind, each = head.kind, len(head.measures)
    parts = []
    for start in range(0, len(built), each):
        own = built[start : start + each]
        sizes = [
            kind.nbytes(head.size(m), b.sketch)
            for m, b in zip(head.measures[: head.synopses], own, strict=False)
        ]
        sizes += [0] * (each - head.synopses)
        parts.append(tuple(Part(b.tally, kind.exact(b.sketch), n) for b, n in zip(own, sizes, strict=True)))
    kinds = [kind.dtype(b.sketch) for b in built[:each]] or [m.dtype for m in head.measures]
    scales = [b.scale for b in built[:each]] or [m.scale for m in head.measures]
    measures = tuple(Measure(w, kinds[n], scales[n], Tally(), True, 0) for n, w in enumerate(head.weights))
    whole = replace(
        head,
        measures=together(tuple(parts), measures),
        families=kind.families(built[0].sketch) or head.families if built else head.families,
        limit_bytes=kind.limit_bytes(built[0].sketch) if built else head.limit_bytes,
        program=_program(),
        groups=None if head.groups is None else replace(head.groups, parts=tuple(parts)),
    )
    return StoredSketch(whole, tuple(built))


def _program() -> str:
    """Name and version of this package, as its root says it."""
    root = sys.modules[__name__.partition(".")[0]]
    return f"{root.__name__} {getattr(root, '__version__', '')}"


def both(first: str | None, second: str | None) -> str | None:
    """The conjunction of two filters."""
    present = [f"({f})" for f in (first, second) if f is not None]
    return " AND ".join(present) if len(present) > 1 else (first or second)


def typed(
    head: Head, tables: Tables, circumstances: Circumstances, sql: str, *, compared: bool = False
) -> Head:
    """The head with what its table decides now: types of the keys, schema, ANSI mode, time zone.

    With `compared` the comparison types are known already.

    Raises
    ------
    UnsupportedQuery
        If Spark refuses a key, or its equal values have unequal bytes.
    UnknownName
        If there is no such table.
    """
    columns = tables[head.table].columns
    known = {f"`{c.name}`".lower(): c.type for c in columns}
    types = tuple(
        tuple(known.get(k.lower()) or expression_type(tables, head.table, k, sql) for k in a.keys)
        for a in head.attributes
    )
    attributes = (
        head.attributes
        if compared
        else tuple(
            replace(a, key_types=tuple(_compared(t, circumstances.ansi, sql) for t in own))
            for a, own in zip(head.attributes, types, strict=True)
        )
    )
    expressions = [
        head.filter,
        *(w.expression for w in head.weights),
        *(k for a in attributes for k in a.keys),
        *(() if head.groups is None else head.groups.expressions),
    ]
    return replace(
        head,
        attributes=attributes,
        key_types=types,
        columns=columns,
        ansi=circumstances.ansi,
        time_zone=circumstances.time_zone,
        settings=circumstances.settings,
        zoned=is_zoned(expressions, (t for a in attributes for t in a.key_types), columns),
    )


def _compared(kind: str, ansi: bool, sql: str) -> str:
    """The type in which values of one type are compared with one another."""
    comparison = common_type(kind, kind, ansi)
    if comparison.type is None:
        raise UnsupportedQuery(
            comparison.reason, "SKIMQL_INCOMPARABLE_KEYS", sql, hint="CAST the key to another type"
        )
    return comparison.type


def changes(before: Sequence[Column], after: Sequence[Column]) -> tuple[str, ...]:
    """What is different between two schemas, one sentence a column."""
    old = {c.name.lower(): c for c in before}
    new = {c.name.lower(): c for c in after}
    return (
        *(f"column {c.name} ({c.type}) is gone" for n, c in old.items() if n not in new),
        *(f"column {c.name} ({c.type}) is new" for n, c in new.items() if n not in old),
        *(
            f"column {c.name} was {old[n].type} and is {c.type}"
            for n, c in new.items()
            if n in old and old[n].type != c.type
        ),
    )
