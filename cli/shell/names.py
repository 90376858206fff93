"""The names that a session knows, as completion and colours need them: frozen, made beside the prompt."""

from __future__ import annotations

import contextlib
import glob
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from ... import SkimqlError

if TYPE_CHECKING:
    from ... import Session

# Of Spark's own tables so many are asked for their columns.
MOST_OF_SPARK = 200
MOST_FILES = 200


@dataclass(frozen=True)
class Table:
    """A table: its columns with their types, and which of them are keys of kept sketches."""

    name: str
    columns: tuple[tuple[str, str], ...]
    keys: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Names:
    """What there is.

    Attributes
    ----------
    tables : tuple of Table
    sketches : tuple of str
    streams : tuple of Table
    views : tuple of str
        Continuous ones.
    queries : mapping of str to str
        Saved ones.
    complete : bool
        Whether there are no tables beside these, so that another name is a mistake.
    """

    tables: tuple[Table, ...] = ()
    sketches: tuple[str, ...] = ()
    queries: Mapping[str, str] = field(default_factory=dict)
    complete: bool = False
    streams: tuple[Table, ...] = ()
    views: tuple[str, ...] = ()

    @cached_property
    def by_name(self) -> Mapping[str, Table]:
        """The tables, views and streams by their names in lower case."""
        views = {v.lower(): Table(v, ()) for v in self.views}
        return {
            **{t.name.lower(): t for t in self.streams},
            **views,
            **{t.name.lower(): t for t in self.tables},
        }

    @cached_property
    def all_columns(self) -> Sequence[str]:
        """The columns of all tables, sorted in lower case, each once."""
        every = (*self.tables, *self.streams)
        return sorted({c.lower(): c for t in every for c, _ in t.columns}.values(), key=str.lower)


def gather(session: Session, queries: Mapping[str, str]) -> Names:
    """What a session knows now, without starting Spark; where it runs, with its own tables."""
    from ... import Answer

    at_hand = dict(session.tables.at_hand())
    ready = session.spark_state == "ready"
    if ready:
        with contextlib.suppress(SkimqlError):
            for number, name in enumerate(list(session.tables)):
                if name not in at_hand and number < MOST_OF_SPARK:
                    with contextlib.suppress(KeyError, SkimqlError):
                        at_hand[name] = session.tables[name]
    shown = session.sql("SHOW SKETCHES")
    sketches = shown.records() if isinstance(shown, Answer) else []
    keys: dict[str, set[str]] = {}
    for record in sketches:
        keys.setdefault(str(record.get("table", "")).lower(), set()).update(keys_of(record))
    tables = tuple(
        Table(
            schema.name,
            tuple((c.name, c.type) for c in schema.columns),
            frozenset(keys.get(schema.name.lower(), ())),
        )
        for schema in at_hand.values()
    )
    there = session.catalog.manifest.continuous
    streams = tuple(Table(s.name, tuple((c.name, c.type) for c in s.columns)) for s in there.streams.values())
    views = (*(v.name for v in there.views.values()), *(s.name for s in there.sets.values()))
    own = tuple(str(r["sketch"]) for r in sketches)
    return Names(tables, own, dict(queries), complete=ready, streams=streams, views=views)


def keys_of(record: Mapping[str, object]) -> set[str]:
    """The key columns of a row of SHOW SKETCHES, in lower case: of ``oid CLASS id, `k``` oid and k."""
    parts = str(record.get("keys") or "").split(",")
    return {part.split()[0].strip("`()").lower() for part in parts if part.strip()}


def files(beginning: str) -> list[str]:
    """Files that begin so, folders with a slash behind."""
    found = sorted(glob.glob(glob.escape(os.path.expanduser(beginning)) + "*"))[:MOST_FILES]
    return [f + "/" if os.path.isdir(f) else f for f in found]
