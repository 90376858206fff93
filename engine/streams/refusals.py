"""What a continuous view does not do in this version, refused by its name."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from ...errors import StreamError
from ...parser.join_graph import Query
from ...parser.statement import ApproximateSelect
from ..settings import Settings

_GROUP_TYPE = re.compile(
    r"(tiny|small|big)?int|float|double|decimal\(.*\)|string|(var)?char\(\d+\)|date|timestamp(_ntz)?|boolean|binary"
)


def unsupported(what: str, hint: str, sql: str = "", span: tuple[int, int] | None = None) -> StreamError:
    """The refusal of what streams do not do in this version."""
    return StreamError(
        f"{what}: streams do not support this in this version", "SKIMQL_STREAM_UNSUPPORTED", sql, span, hint
    )


def refuse_groups(query: Query, streams: Collection[str], sql: str) -> None:
    """Refuse groups of what is no stream; raises StreamError, ``SKIMQL_STREAM_UNSUPPORTED``."""
    for group in query.groups:
        table = query.graph.vertices[group.vertex].table
        if table.lower() not in streams:
            place = (group.span.start, group.span.end)
            raise unsupported(
                f"GROUP BY a column of table {table}", "GROUP BY a column of a stream", sql, place
            )


def refuse_group_types(query: Query, sql: str) -> None:
    """Refuse groups of a type whose values are not kept; raises StreamError, ``SKIMQL_STREAM_UNSUPPORTED``."""
    for group in query.groups:
        if not _GROUP_TYPE.fullmatch(group.type or ""):
            place, way_out = (group.span.start, group.span.end), f"GROUP BY CAST({group.name} AS STRING)"
            raise unsupported(f"GROUP BY {(group.type or 'this').upper()}", way_out, sql, place)


def refuse_error(
    query: Query, select: ApproximateSelect, options: Mapping[str, str], settings: Settings, sql: str
) -> None:
    """Refuse an error beside what no size is planned for; raises StreamError, ``SKIMQL_STREAM_UNSUPPORTED``."""
    span = select.clause_spans.get("error_within")
    beside = (
        ("SIZE", settings.size_bytes is not None),
        ("OPTIONS (rows, buckets)", settings.by_hand),
        ("windows", "window" in options),
        ("GROUP BY", bool(query.groups)),
        ("COUNT(DISTINCT)", query.counts_distinct),
    )
    for what, there in beside:
        if there:
            place = None if span is None else (span.start, span.end)
            way_out = "the view without ERROR WITHIN" if "(" in what or what == "SIZE" else "SIZE 64 KB"
            raise unsupported(f"ERROR WITHIN beside {what}", way_out, sql, place)
