"""Names of kept sketches in statements: what they stand for, whether they are taken, what may not change."""

from __future__ import annotations

from ...errors import UnknownName, UnsupportedQuery
from ...parser.join_graph import Span
from ...parser.syntax import Part
from ..catalog.catalog import Catalog
from ..catalog.form import Head


def find_head(catalog: Catalog, sql: str, name: Part) -> Head:
    """The head of a sketch that a statement names; UnknownName with the near names otherwise."""
    entry = catalog.entry(name.text)
    if entry is None:
        import difflib

        known = sorted(e.name for e in catalog.manifest.sketches.values())
        near = difflib.get_close_matches(name.text, known, 3) or known[:10]
        hint = ", ".join(near) or "CREATE SKETCH ..."
        raise UnknownName(f"there is no sketch {name.text}", sql=sql, span=place_of(name), hint=hint)
    return entry.head or catalog.load(name.text).head


def is_taken(catalog: Catalog, name: str) -> bool:
    """Whether a sketch or a set of sketches has the name."""
    return catalog.entry(name) is not None or catalog.workload(name) is not None


def taken_name(sql: str, name: Part, hint: str) -> UnsupportedQuery:
    """The error for a name that is taken."""
    return UnsupportedQuery(
        f"there are sketches {name.text} already", "SKIMQL_SKETCHES_EXIST", sql, place_of(name), hint
    )


def refuse_member(catalog: Catalog, sql: str, name: Part) -> None:
    """Refuse to change one of the sketches that were planned and built together."""
    low = name.text.lower()
    entry = catalog.entry(low)
    groups = [w.name for w in catalog.manifest.workloads.values() if low in {s.lower() for s in w.sketches}]
    if entry is not None and entry.head is not None and entry.head.group:
        groups.append(entry.head.group)
    if groups:
        raise UnsupportedQuery(
            f"sketch {name.text} is one of the sketches {groups[0]}, which are kept together",
            "SKIMQL_SKETCH_OF_GROUP",
            sql,
            place_of(name),
            f"CREATE OR REPLACE SKETCHES {quoted(groups[0])} ..., DROP SKETCH {quoted(groups[0])}",
        )


def refuse_untrusted(head: Head, sql: str, name: Part) -> None:
    """Refuse to read what somebody else's file names, or to compute what it says, before the user has said so."""
    if head.imported_from:
        read = ", ".join(dict.fromkeys(e.source for e in head.lineage)) or head.table
        path = head.imported_from.replace("'", "''")
        raise UnsupportedQuery(
            f"sketch {head.name} was imported from {head.imported_from} without TRUSTED; it says that it is made of"
            f" {read}",
            "SKIMQL_NOT_TRUSTED",
            sql,
            place_of(name),
            f"DROP SKETCH {quoted(name.text)}; IMPORT SKETCH {quoted(name.text)} FROM '{path}' TRUSTED",
        )


def quoted(name: str) -> str:
    """A name as a statement has it: in backticks where it is no plain word."""
    return name if name.isidentifier() else "`" + name.replace("`", "``") + "`"


def place_of(part: Part) -> tuple[int, int]:
    span: Span = part.span
    return span.start, span.end
