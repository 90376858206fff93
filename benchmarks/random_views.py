"""Random continuous views over random orders of events, beside DuckDB.

``python -m benchmarks.random_views --json FILE``: each seed draws streams with their signs, tables, views (joins,
filters, aggregates, groups, windows, sizes), and events in a random order: twice, deleted before they come, late,
without key, value or sign, in batches of which some are empty; and perhaps a moment at which the process is killed.
The product's own batches keep the views, in memory, and DuckDB computes the same from the events. Where an answer is
exact it must be equal, else the interval is to have the value; all of one seed is one trial.

`--seeds FIRST:LAST` runs a range; what is in FILE is not run again. The exit code is 1 if a value differs, a fault is
none of ours, or more intervals miss than correct ones do in 99 of 100 runs.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from scipy.special import bdtrc

from skimql import Estimate
from skimql.errors import SkimqlError

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.continuous import Killed, MemorySpark, asked, declared, stream_of
from support.memory import arrow

from skimql.engine.catalog.catalog import Catalog

Record = dict[str, Any]
Rng = np.random.Generator
SCHEMA = "k BIGINT, g BIGINT, v BIGINT, w BIGINT, ts TIMESTAMP"
# How an event counts: for the stream, for DuckDB, and whether an event of weight -1 is its own deletion.
SIGNS = {
    "inserts": (None, "1"),
    "deletes": ("CASE WHEN `w` < 0 THEN -1 ELSE 1 END", "CASE WHEN {0}.w < 0 THEN -1 ELSE 1 END"),
    "weights": ("coalesce(CAST((`w`) AS BIGINT), 0L)", "coalesce({0}.w, 0)"),
}
START = datetime(2026, 3, 1, tzinfo=UTC)
FALSE_ALARM = 0.01
# What a random view may be refused for.
REFUSALS = frozenset({"SKIMQL_STREAM_UNSUPPORTED", "SKIMQL_BUDGET_EXCEEDED", "SKIMQL_UNKNOWN_METHOD"})
TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class Item:
    """An aggregate: of a view, and the same of weighted events. `{w}` is how often a joined tuple counts."""

    view: str
    truth: str
    distinct: bool = False


@dataclass
class View:
    """A view in its parts."""

    text: str
    options: dict[str, str]
    truth: str
    keys: int  # columns before the aggregates: ends of windows, groups
    having: bool
    streams: Sequence[str]


@dataclass
class World:
    """The streams with their events in batches, and the tables."""

    signs: dict[str, str]
    batches: dict[str, list[pa.Table]]
    tables: dict[str, pa.Table]
    netted: bool  # nothing is deleted that was not inserted
    days: int = 0
    delay: int = 0  # minutes by which events are late at most
    views: dict[str, View] = field(default_factory=dict)

    def weight(self, name: str) -> str:
        """How often an event of a stream, or a tuple of a table, counts."""
        return SIGNS[self.signs[name]][1].format(name) if name in self.signs else "1"


def some(rng: Rng, *choices: Any) -> Any:
    """One of them."""
    return choices[int(rng.integers(len(choices)))]


def world_of(rng: Rng) -> World:
    """Streams and tables of a seed."""
    names = "abc"[: int(some(rng, 1, 2, 2, 3))]
    netted = bool(rng.random() < 0.7)
    signs = {n: some(rng, "inserts", "deletes", "deletes", "weights") for n in names}
    delay = int(some(rng, 0, 20, 90))
    found = World(signs, {}, {}, netted, int(some(rng, 1, 2)), delay)
    domain = int(some(rng, 3, 60, 400))
    for name in names:
        found.batches[name] = events_of(rng, signs[name], netted, domain, found)
    if rng.random() < 0.5:
        rows = [(some(rng, None, *range(4)), int(rng.integers(1, 5))) for _ in range(int(rng.integers(0, 8)))]
        found.tables["t"] = arrow("g BIGINT, y BIGINT", rows)
    return found


def events_of(rng: Rng, sign: str, netted: bool, domain: int, world: World) -> list[pa.Table]:
    """The batches of a stream."""
    rows = []
    for _ in range(int(some(rng, 0, 8, 60, 300, 300, 300))):
        key = None if rng.random() < 0.05 else int(rng.integers(domain))
        value = None if rng.random() < 0.1 else int(rng.integers(-5, 20))
        rows.append((key, some(rng, None, 0, 1, 2, 3), value))
    events: list[tuple[Any, ...]] = []
    for row in rows:
        times = int(some(rng, 1, 1, 1, 2)) if sign != "weights" else 1
        weight = int(some(rng, 1, 1, 2, 5)) if sign == "weights" else 1
        told = None if sign != "weights" and rng.random() < 0.05 else weight
        events += [(*row, told)] * times
        if sign != "inserts" and rng.random() < 0.3:
            events.append((*row, -weight if told is not None else -1))
        if sign == "weights" and rng.random() < 0.05:
            events.append((*row, None))
        if sign != "inserts" and not netted and rng.random() < 0.1:
            events.append((*row, -2 if sign == "weights" else -1))
    order = rng.permutation(len(events))
    minutes = np.sort(rng.integers(0, world.days * 1440, len(events)))
    # An event and its deletion may be in two windows, as the times are those of their arrival, or late.
    late = rng.integers(0, world.delay + 1, len(events))
    times_ = [START + timedelta(minutes=int(max(0, m - d))) for m, d in zip(minutes, late, strict=True)]
    table = [(*events[i], t) for i, t in zip(order, times_, strict=True)]
    cuts = sorted(int(c) for c in rng.integers(0, len(table) + 1, int(rng.integers(0, 5))))
    return [arrow(SCHEMA, table[a:b]) for a, b in zip([0, *cuts], [*cuts, len(table)], strict=True)]


def items_of(rng: Rng, names: Sequence[str], world: World, apart: bool) -> list[Item]:
    """Aggregates of a view; `{w}` and the presence of values stand for what joins."""
    one, other = str(some(rng, *names)), str(some(rng, *names))

    def ratio(above: str, below: str) -> str:
        return f"CASE WHEN {below} = 0 THEN NULL ELSE CAST({above} AS DOUBLE) / {below} END"

    def total(value: str) -> str:
        present = f"SUM(CASE WHEN {value} IS NULL THEN 0 ELSE {{w}} END)"
        return f"CASE WHEN {present} = 0 THEN NULL ELSE SUM({value} * {{w}}) END"

    chosen = f"CASE WHEN {one}.v > 3 THEN {one}.v ELSE 0 END"
    known = [
        Item("COUNT(*)", "coalesce(SUM({w}), 0)"),
        Item(f"COUNT({one}.v)", f"coalesce(SUM(CASE WHEN {one}.v IS NULL THEN 0 ELSE {{w}} END), 0)"),
        Item(f"SUM({one}.v)", total(f"{one}.v")),
        Item(f"SUM({one}.v * {other}.v)", total(f"({one}.v * {other}.v)")),
        Item(f"SUM({one}.v + 2 * {one}.g)", total(f"({one}.v + 2 * {one}.g)")),
        Item(f"SUM({chosen})", total(f"({chosen})")),
        Item(
            f"AVG({one}.v)",
            ratio(f"SUM({one}.v * {{w}})", f"SUM(CASE WHEN {one}.v IS NULL THEN 0 ELSE {{w}} END)"),
        ),
        Item("COUNT(*) + 1", "coalesce(SUM({w}), 0) + 1"),
    ]  # fmt: skip
    if world.netted and not apart and rng.random() < 0.25:
        return [Item(f"COUNT(DISTINCT {one}.k)", "", True)]
    return [known[i] for i in rng.permutation(len(known))[: int(some(rng, 1, 2, 3))]]


def view_of(rng: Rng, world: World) -> View:
    """A random view over the streams of a seed."""
    streams = list(rng.permutation(list(world.batches)))[: int(some(rng, 1, 2, 2, 3))]
    conditions, joined = [], [streams[0]]
    for name in streams[1:]:
        column = str(some(rng, "k", "k", "k", "g"))
        conditions.append((name, f"{some(rng, *joined)}.{column} = {name}.{column}"))
        joined.append(name)
    if "t" in world.tables and rng.random() < 0.5:
        conditions.append(("t", f"{some(rng, *joined)}.g = t.g"))
    joins = streams[0] + "".join(f" JOIN {n} ON {c}" for n, c in conditions)
    where = ""
    if rng.random() < 0.5:
        one = some(rng, *joined)
        where = str(
            some(
                rng,
                f"{one}.v > {int(rng.integers(-5, 15))}",
                f"{one}.g IN (1, 2)",
                f"{one}.v IS NOT NULL",
                f"{one}.k % 2 = 0",
                f"({one}.v < 3 OR {one}.g = 0)",
            )
        )
    windowed, grouped = rng.random() < 0.3, rng.random() < 0.4
    items = items_of(rng, joined, world, windowed or grouped)
    if items[0].distinct:
        grouped = windowed = False
    keys = []
    if grouped:
        one = some(rng, *joined)
        keys = [f"{one}.g", f"{one}.v % 3"][: int(some(rng, 1, 1, 2))]
        keys = [k.replace(f"{one}.v % 3", f"coalesce({one}.v, 7) > 4") for k in keys]
    having = limit = ""
    if grouped and rng.random() < 0.3:
        having = "HAVING COUNT(*) > 3"
    if grouped and not windowed and not having and len(keys) == 1 and rng.random() < 0.3:
        limit = f"ORDER BY {keys[0]} DESC NULLS LAST LIMIT 2"
    clauses = str(
        some(
            rng,
            "",
            "",
            *[f"OPTIONS (rows = 11, buckets = {some(rng, 16, 64, 512)}, sparse = false)"] * 3,
            f"SIZE {some(rng, 4, 32)} KB",
            f"SIZE {some(rng, 6, 64)} KB USING hash",
            f"SIZE {some(rng, 1, 16)} KB USING key_sample",
        )
    )
    selected = [*keys, *(f"{i.view} AS i{n}" for n, i in enumerate(items))]
    text = f"SELECT APPROXIMATE {', '.join(selected)} FROM {joins}"
    text += f" WHERE {where}" if where else ""
    text += f" GROUP BY {', '.join(keys)}" if keys else ""
    text = " ".join(filter(None, (text, having, limit, clauses)))
    options: dict[str, str] = {}
    if windowed:
        slide = int(some(rng, 30, 60, 120))
        length = slide * int(some(rng, 1, 2, 4))
        options = {"window": f"{length} minutes", "slide": f"{slide} minutes", "time": "ts"}
        options["watermark"] = f"{world.delay} minutes"
    truth = truth_of(world, streams, joins, where, keys, items, having, limit, options)
    return View(text, options, truth, len(keys) + 2 * windowed, bool(having), streams)


def truth_of(
    world: World,
    streams: Sequence[str],
    joins: str,
    where: str,
    keys: Sequence[str],
    items: Sequence[Item],
    having: str,
    limit: str,
    options: dict[str, str],
) -> str:
    """DuckDB's SQL over the events."""
    weight = " * ".join(f"({world.weight(n)})" for n in streams)
    if items[0].distinct:
        (column,) = [items[0].view.removeprefix("COUNT(DISTINCT ").removesuffix(")")]
        inner = f"SELECT {column} FROM {joins} WHERE {where or 'true'} GROUP BY 1 HAVING SUM({weight}) <> 0"
        return f"SELECT COUNT(*) FROM ({inner}) WHERE {column.partition('.')[2]} IS NOT NULL"
    columns, conditions, source = list(keys), [where or "true"], joins
    if options:
        columns = ["win.start", "win.finish", *columns]
        source += ", win"
        conditions += [f"{n}.ts >= win.start AND {n}.ts < win.finish" for n in streams]
    chosen = [i.truth.replace("{w}", weight) for i in items]
    text = f"SELECT {', '.join([*columns, *chosen])} FROM {source} WHERE {' AND '.join(conditions)}"
    more = having.replace("HAVING COUNT(*)", f"AND SUM({weight})")
    if columns:
        text += f" GROUP BY {', '.join(columns)}"
    if keys:
        text += f" HAVING SUM({weight}) > 0 {more} {limit}"
    return text


def record_of(seed: int) -> Record:
    """What becomes of the views of a seed."""
    rng = np.random.default_rng([seed, 15])
    world = world_of(rng)
    views = {f"q{n}": view_of(rng, world) for n in range(int(some(rng, 1, 2, 3)))}
    kill = (int(rng.integers(0, 4)), some(rng, "planned", "built", "saved", "committed"))
    killed = bool(rng.random() < 0.4)
    record: Record = {"seed": seed, "views": len(views), "refused": [], "exact": 0, "estimated": 0}
    record |= {"missed": 0, "fault": ""}
    with TemporaryDirectory() as folder:
        catalog = Catalog(Path(folder) / "catalog")
        streams = [stream_of(n, SCHEMA, SIGNS[s][0]) for n, s in world.signs.items()]
        kept = {}
        for name, view in views.items():
            try:
                declared(catalog, streams, {name: (view.text, view.options)}, world.tables, seed=seed)
                kept[name] = view
            except SkimqlError as fault:
                record["refused"].append(f"{fault.code}: {fault.message}")
                if fault.code not in REFUSALS:
                    record["fault"] = f"{view.text}: {fault}"
        text = ""
        try:
            read = {s for v in kept.values() for s in v.streams}
            for name in sorted(read):
                spark = MemorySpark(catalog, name, Path(folder) / name, world.tables)
                if killed:
                    try:
                        spark.run(world.batches[name], kill=kill)
                    except Killed:
                        spark = MemorySpark(catalog, name, Path(folder) / name, world.tables)
                spark.run(world.batches[name])
            with duckdb.connect() as database:
                database.execute("SET TimeZone = 'UTC'")
                for name, batches in world.batches.items():
                    database.register(name, pa.concat_tables(batches))
                for name, table in world.tables.items():
                    database.register(name, table)
                for name, view in kept.items():
                    text = f"{view.text} {view.options or ''} (signs {world.signs})"
                    compare(record, asked(catalog, name), view, truths(database, view), world, text)
        except SkimqlError as fault:
            record["fault"] = f"{text}: {fault}"
    return record


def truths(database: duckdb.DuckDBPyConnection, view: View) -> list[tuple[Any, ...]]:
    """The rows that DuckDB has."""
    if view.options:
        slide = int(view.options["slide"].split()[0])
        length = int(view.options["window"].split()[0])
        first = START - timedelta(minutes=length)
        database.execute(
            "CREATE OR REPLACE TEMP TABLE win AS SELECT ? + to_minutes(CAST(i * ? AS BIGINT)) AS start, start +"
            " to_minutes(?) AS finish FROM range(?) r(i)",
            [first, slide, length, (3 * 1440 + length) // slide],
        )
    return database.execute(view.truth).fetchall()


def watermark(world: World, view: View) -> datetime | None:
    """Behind which windows are closed: the lesser of the streams' newest events, less their delay; None of no event."""
    found = [t for n in view.streams for t in [pa.concat_tables(world.batches[n])["ts"].to_pylist()]]
    newest = [max(times) for times in found if times]
    return min(newest) - timedelta(minutes=world.delay) if len(newest) == len(found) else None


def compare(
    record: Record,
    answer: Any,
    view: View,
    wanted: list[tuple[Any, ...]],
    world: World,
    text: str,
) -> None:
    """An answer beside the rows of DuckDB; windows that are open are all to be there."""
    closed = watermark(world, view)
    drop = 1 if "other" in answer.columns else 0
    rows = [row[: len(row) - drop] for row in answer.rows if not (drop and row[-1])]
    estimates = [c for row in rows for c in row if isinstance(c, Estimate)]
    # NULL is exact as well, and has no ends.
    is_exact = all(e.certified and not e.low < e.high for e in estimates)
    record["exact" if is_exact else "estimated"] += 1
    there = {tuple(map(plain, r[: view.keys])): r[view.keys :] for r in wanted}
    if len(there) != len(wanted):
        record["fault"] = f"{text}: DuckDB has a group twice"
        return
    missed = 0
    seen = set()
    for row in rows:
        key = tuple(map(plain, row[: view.keys]))
        seen.add(key)
        if key not in there:
            values = [plain(c) for c in row[view.keys :]]
            empty = view.options and all(v in (None, 0, 1) for v in values)
            if is_exact and not empty:
                record["fault"] = f"{text}: the row {key} {values} is not there"
            continue
        for cell, value in zip(row[view.keys :], there[key], strict=True):
            inside = same(plain(cell), value) if is_exact else covered(cell, value)
            # Where a deletion has no insertion, or has it in another window, values of a sum may be left whose number
            # is 0, which counters do not know for certain.
            inside = inside or (value is None and (bool(view.options) or not world.netted))
            if not inside and is_exact:
                record["fault"] = f"{text}: {key} is {plain(cell)!r} and not {value!r}"
            missed += not inside
    if is_exact and not view.options and seen != set(there):
        record["fault"] = f"{text}: {sorted(set(there) - seen, key=repr)} are not there"
    if view.options and is_exact and not view.having and closed is not None:
        lacking = [k for k in there if k not in seen and k[1] > closed]
        if lacking:
            record["fault"] = f"{text}: the open windows {lacking} are not there"
    record["missed"] += missed > 0


def plain(cell: Any) -> Any:
    """The value of a cell, None of NULL; times in UTC."""
    value = cell.value if isinstance(cell, Estimate) else cell
    if isinstance(value, float) and np.isnan(value):
        return None
    if isinstance(value, datetime):
        return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
    return value


def same(value: Any, other: Any) -> bool:
    """Equal, but for the rounding of a division."""
    if value is None or other is None:
        return value is None and other is None
    return bool(abs(value - other) <= TOLERANCE * max(1.0, abs(other)))


def covered(cell: Any, value: Any) -> bool:
    """Whether the interval has the value; of NULL there is none to have."""
    if value is None:
        return True
    if not isinstance(cell, Estimate) or np.isnan(cell.low):
        return False
    margin = TOLERANCE * max(1.0, abs(value))
    return bool(cell.low - margin <= value <= cell.high + margin)


def most_misses(trials: int) -> int:
    """The least count that correct intervals exceed in one of 100 runs at most."""
    return next(k for k in range(trials + 1) if bdtrc(k, trials, 0.05) <= FALSE_ALARM) if trials else 0


def main() -> None:
    """Run what is not in the file yet; the exit code is 1 where anything is not as it must be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="0:1000")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    first, last = map(int, options.seeds.split(":"))
    records = json.loads(options.json.read_text()) if options.json and options.json.exists() else []
    done = {r["seed"] for r in records}
    for seed in range(first, last):
        if seed in done:
            continue
        records.append(record_of(seed))
        if records[-1]["fault"]:
            print(f"seed {seed}: {records[-1]['fault']}", flush=True)
        if options.json and (seed % 50 == 49 or seed == last - 1):
            options.json.write_text(json.dumps(records))
    tried = [r for r in records if r["estimated"]]
    missed = sum(r["missed"] > 0 for r in tried)
    refused = Counter(c.partition(":")[0] for r in records for c in r["refused"])
    faults = [r["seed"] for r in records if r["fault"]]
    print(
        f"{len(records):,} seeds, {sum(r['views'] for r in records):,} views: {sum(r['exact'] for r in records):,}"
        f" exact and equal, {sum(r['estimated'] for r in records):,} estimated in {len(tried):,} seeds, of which"
        f" {missed} missed (at most {most_misses(len(tried))}); refused {dict(refused)}; faults {faults}"
    )
    sys.exit(bool(faults) or missed > most_misses(len(tried)))


if __name__ == "__main__":
    main()
