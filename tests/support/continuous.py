"""Streams and continuous views on Arrow tables: the state machine of `engine.streams` without Spark."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from support.memory import arrow

from skimql.engine.catalog.catalog import Catalog
from skimql.engine.catalog.streams import Continuous, StoredStream
from skimql.engine.execution.partial_aggregate import sketch_plan
from skimql.engine.memory_backend import batches as in_memory
from skimql.engine.memory_backend.expressions import evaluate
from skimql.engine.memory_backend.tables import MemoryTables
from skimql.engine.settings import Settings
from skimql.engine.streams.batches import Batches
from skimql.engine.streams.checkpoint import batch_to_repeat, read_checkpoint, uncommit
from skimql.engine.streams.domains import no_first_events
from skimql.engine.streams.planned import with_group_types
from skimql.engine.streams.state import times_of
from skimql.engine.streams.store import continuous, load
from skimql.engine.streams.view_answer import answer
from skimql.engine.streams.view_sets import define_set
from skimql.engine.streams.views import define, planned
from skimql.engine.streams.windows import check_windows
from skimql.optimizer.plan import Scan
from skimql.parser.statement import parse_statement

AT = "2026-11-29T00:00:00Z"


def stream_of(name, schema, times=None, format="parquet"):
    """A stream of ``"k BIGINT, op STRING"``."""
    columns = MemoryTables({name: arrow(schema, [])})[name].columns
    identity = f"{abs(hash(name)) % 16**32:032x}"
    return StoredStream(name, identity, columns, format, "", {}, times, times or "", True, "UTC", (), AT)


@dataclass
class MemoryBuilder(in_memory.MemoryBuilder):
    """Knows what was put aside."""

    quarantined: list = field(default_factory=list)
    passed_over: list = field(default_factory=list)

    def pass_over(self, frame):
        self.passed_over.append(frame)

    def quarantine(self, frame, batch, ahead):
        self.quarantined.append((batch, ahead))


class Killed(BaseException):
    """The process is gone."""


@dataclass
class MemorySpark:
    """What Spark's micro-batches do with one stream: offsets, the batch, the commit; killed where a test says.

    `kill` is (batch, place), places being "planned", "built", "saved", "committed".
    """

    catalog: Catalog
    name: str
    checkpoint: Path
    statics: dict = field(default_factory=dict)

    def run(self, batches, kill=None, last=None):
        """Take all batches that are there, as `availableNow` does; goes on from the checkpoint."""
        own = Catalog(self.catalog.folder)
        handler = Batches(own, self.name, MemoryBuilder(self.name, self.statics))
        loaded = handler.start()
        found = read_checkpoint(self.checkpoint)
        again = batch_to_repeat(self.name, loaded.state, found, lost=bool(loaded.lost))
        if again is not None:
            uncommit(self.checkpoint, again)
            found = read_checkpoint(self.checkpoint)
        for part in ("offsets", "commits"):
            (self.checkpoint / part).mkdir(parents=True, exist_ok=True)
        if not found.id:
            (self.checkpoint / "metadata").write_text(json.dumps({"id": f"query of {self.name}"}))
        handler.checkpoint = read_checkpoint(self.checkpoint).id
        start = -1 if found.planned is None else found.planned
        if found.planned == found.committed:
            start += 1
        for number in range(max(start, 0), len(batches) if last is None else last):
            (self.checkpoint / "offsets" / str(number)).write_text("{}")
            self._die(kill, number, "planned")
            builder = handler.builder

            def built(frame, plan, times, cuts, number=number, build=MemoryBuilder.build, builder=builder):
                result = build(builder, frame, plan, times, cuts)
                self._die(kill, number, "built")
                return result

            builder.build = built
            handler(batches[number], number)
            self._die(kill, number, "saved")
            (self.checkpoint / "commits" / str(number)).write_text("{}")
            self._die(kill, number, "committed")
        return handler

    def _die(self, kill, number, place):
        if kill == (number, place):
            raise Killed


def declared(catalog, streams, views, statics=None, **settings):
    """Streams and views (by name, their SELECTs) put into a catalog."""
    tables = MemoryTables(
        {**(statics or {}), **{s.name: _nothing(s) for s in streams}},
    )
    known = {s.name.lower(): s for s in streams}
    only = MemoryTables(statics or {})
    made = {}
    for name, text in views.items():
        options = {}
        if isinstance(text, tuple):
            text, options = text
            options = {**options, **check_windows(options, "")}
        ours = replace(Settings(), **settings)
        made[name.lower()] = define(
            name,
            text,
            only,
            Continuous(known, {**continuous(catalog).views, **made}),
            ours,
            typed_by(tables),
            options,
            text,
        ).view

    def change(now, _):
        return replace(now, streams={**now.streams, **known}, views={**now.views, **made})

    catalog.change_streams(change)
    return catalog


def typed_by(tables):
    """What finds the types of keys and groups."""

    def typed(query):
        vertices = query.graph.vertices
        kinds = [
            evaluate(g.expression, tables.table(vertices[g.vertex].table).slice(0, 0)).kind
            for g in query.groups
        ]
        return with_group_types(tables.typed(query), kinds)

    return typed


def declared_set(catalog, streams, sql, statics=None, first=None, **settings):
    """CREATE CONTINUOUS VIEWS over streams, put into a catalog; `first` has the first events of streams by name."""
    tables = MemoryTables({**(statics or {}), **{s.name: _nothing(s) for s in streams}})
    known, statement = {s.name.lower(): s for s in streams}, parse_statement(sql)
    found = continuous(catalog)
    made = define_set(
        statement,
        MemoryTables(statics or {}),
        replace(found, streams={**found.streams, **known}),
        replace(Settings(), **settings),
        typed_by(tables),
        {**statement.settings, **check_windows(dict(statement.settings), sql)},
        lambda maps: first_maps(maps, known, first or {}),
    )

    def change(now, _):
        return Continuous(
            {**now.streams, **known},
            {**now.views, **{v.view.name.lower(): v.view for v in made.views}},
            {**now.sets, made.stored.name.lower(): made.stored},
        )

    catalog.change_streams(change)
    return made


def first_maps(maps, streams, first):
    """What `pilot.pilot_of` gives, of Arrow tables; refused for streams without."""
    found = {}
    for scan in maps.scans:
        if scan.table not in first:
            raise no_first_events(f"{scan.table} is no local folder with files in it")
        own = tuple(maps.synopses[i] for i in scan.synopses)
        part = replace(maps, synopses=own, scans=(Scan(scan.table, tuple(range(len(own)))),))
        times = times_of(streams[scan.table.lower()], own)
        found.update(
            zip(own, MemoryBuilder(scan.table).build(first[scan.table], part, times)[0], strict=True)
        )
    return found


def _nothing(stream):
    return arrow(", ".join(f"{c.name} {c.type.upper()}" for c in stream.columns), [])


def asked(catalog, name):
    """The answer of a view, from the catalog alone."""
    catalog = Catalog(catalog.folder)
    found = continuous(catalog)
    view = planned(found.views[name.lower()], found.streams)
    states = {
        s.lower(): load(catalog, found.streams[s.lower()], view.view.seed).state for s in view.view.streams
    }
    return answer(view, states)


def inside(synopsis, table):
    """Which events are behind the filter of a synopsis, which is ``v > 10`` or none."""
    return table["v"].to_numpy() > 10 if synopsis.filter else np.ones(len(table), bool)


def counters_by_hand(synopsis, table):
    """What all events of a table with deletions (`op`) and values (`v`) make of a sketch, without parts."""
    sketch = sketch_plan(synopsis, 1, "int64").empty()
    sign = np.where(np.array(table["op"].to_pylist()) == "d", -1, 1)
    weight = synopsis.weight
    sign = sign * (table["v"].to_numpy() if weight.expression and not weight.presence else 1)
    chosen = inside(synopsis, table)
    names = [a.keys[0].strip("`") for a in synopsis.attributes]
    sketch.update([table[n].to_numpy()[chosen] for n in names], sign[chosen].astype(np.int64))
    return sketch.dense().counters
