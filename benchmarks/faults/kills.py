"""Writers of a catalog killed by SIGKILL: before the n-th call that changes a file, for every n, and at any time.

Each try is a process of its own, forked, without Spark. Afterwards the state is the one before the statement or the one
after it, every sketch loads, files of others are as they were, and two changes later nothing is left behind.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from skimql.engine.catalog.catalog import Catalog
from skimql.engine.catalog.file import decode, encode
from skimql.engine.catalog.manifest import StoredWorkload
from skimql.errors import SkimqlError

from .files import WithoutSpark, begun, samples
from .record import Tally

TRIES = 250
AT_RANDOM = 5  # one try in so many is killed at a random time
# What changes files, in the modules that the folder layer calls.
CALLS = ("open", "write", "fsync", "link", "replace", "unlink", "mkdir", "chmod")
FOREIGN = (
    "notes.txt",
    "a.parquet",
    "x.partial",
    ".x.partial",
    "0" * 32 + ".parquet",
    "catalog-00000099.json",
)
PLANS = {"stages": "", "gathered_at": None, "queries": []}

Statement = Callable[[Path], Any]


def statements() -> dict[str, Statement]:
    """What a writer does, by the statement that would do it; the argument is the try's own folder."""
    one = samples()[1]
    more = [replace(one, head=replace(one.head, name=f"v.{i}", group="v")) for i in range(3)]
    workload = StoredWorkload("v", tuple(m.head.name for m in more), PLANS)
    renamed = replace(one, head=replace(one.head, name="fresh"))

    def changed(home: Path) -> None:
        catalog = catalog_of(home)
        entry = catalog.entry("map")
        assert entry is not None, "it is there from the start"
        sketch = catalog.load("map")
        newer = replace(sketch, head=replace(sketch.head, updated="2026-11-29T00:00:00Z"))
        catalog.put(newer, based_on={"map": entry.file})

    return {
        "CREATE": lambda home: catalog_of(home).put(renamed, based_on={"fresh": None}),
        "CREATE OR REPLACE": lambda home: catalog_of(home).put(
            replace(one, head=replace(one.head, name="map")), forget=("map",)
        ),
        "APPEND": changed,
        "REFRESH": changed,
        "DROP": lambda home: catalog_of(home).put(forget=("map",)),
        "EXPORT": lambda home: sql(home, f"EXPORT SKETCH map TO '{home}/user/out.parquet'"),
        "IMPORT": lambda home: sql(home, f"IMPORT SKETCH fresh FROM '{home}/user/in.parquet'"),
        "CREATE SKETCHES": lambda home: catalog_of(home).put(*more, forget=("v",), workload=workload),
        "the first CREATE": lambda home: Catalog(home / "new").put(renamed),
    }


def run(tries: int, seed: int, folder: Path) -> Tally:
    """Kill `tries` writers, most before chosen calls, the others at random times."""
    tally = Tally("kills")
    draw = random.Random(seed)
    known = statements()
    start = folder / "start"
    (start / "user").mkdir(parents=True)
    begun(start / "catalog", samples())
    (start / "user" / "in.parquet").write_bytes(encode(samples()[0]))
    for place in (start / "catalog", start / "user"):
        for name in FOREIGN:
            (place / name).write_bytes(b"mine")
    before = everything(start)
    points: list[tuple[str, int]] = []
    seconds, wanted = {}, {}
    for name, statement in known.items():
        home = shutil.copytree(start, folder / "counted")
        began = time.perf_counter()
        calls = counted(statement, home)
        seconds[name] = time.perf_counter() - began
        points += [(name, n) for n in range(calls)]
        wanted[name] = (before, everything(home))
        shutil.rmtree(home)
    by_point = tries - tries // AT_RANDOM
    chosen: list[tuple[str, int | None]] = [points[i * len(points) // by_point] for i in range(by_point)]
    chosen += [(draw.choice(list(known)), None) for _ in range(tries - by_point)]
    for name, point in chosen:
        home = shutil.copytree(start, folder / "try")
        with tally.trying(f"{name} killed at {point}"):
            if point is None:
                killed_after(known[name], home, draw.uniform(0, seconds[name]))
            else:
                killed_before(known[name], home, point)
            check(tally, f"{name} killed at {point}", wanted[name], home)
        shutil.rmtree(home)
    return tally


def check(tally: Tally, what: str, wanted: tuple[Any, Any], home: Path) -> None:
    """Note what is lost, changed or left behind after a kill."""
    try:
        found = everything(home)
    except SkimqlError as fault:
        tally.lost.append(f"{what}: {fault.message}")
        return
    if found not in wanted:
        tally.lost.append(f"{what}: neither the state before nor the one after")
    for place in ("catalog", "user"):
        for name in FOREIGN:
            path = home / place / name
            if not path.exists() or path.read_bytes() != b"mine":
                tally.foreign.append(f"{what}: {place}/{name}")
    for place in ("catalog", "new"):
        left = left_behind(home / place)
        if left:
            tally.lost.append(f"{what}: {', '.join(sorted(left))} stay for ever")
    if {p.name for p in (home / "user").iterdir()} - {*FOREIGN, "in.parquet", "out.parquet"}:
        tally.lost.append(f"{what}: something is left beside the exported file")


def everything(home: Path) -> dict[str, Any]:
    """All that a user has: sketches with their arrays, workloads, tables, the exported file."""
    found: dict[str, Any] = {}
    for place in ("catalog", "new"):
        catalog = Catalog(home / place)
        for head in catalog.heads():
            arrays = [
                {n: a.tobytes() for n, a in b.sketch.state().items()} for b in catalog.load(head.name).built
            ]
            # An imported sketch names its own try's folder.
            found[f"{place} {head.name}"] = (replace(head, imported_from=""), arrays)
        found[f"{place} workloads"] = {n: w.sketches for n, w in catalog.manifest.workloads.items()}
        found[f"{place} tables"] = dict(catalog.manifest.tables)
        for workload in catalog.manifest.workloads.values():
            catalog.members(workload)
    out = home / "user" / "out.parquet"
    if out.exists():
        found["exported"] = decode(out.read_bytes(), str(out)).head
    return found


def left_behind(home: Path) -> set[str]:
    """What nobody names any more, two changes later."""
    if not home.exists():
        return set()
    for number in range(2):
        sketch = samples()[1]
        Catalog(home).put(replace(sketch, head=replace(sketch.head, name=f"later{number}")))
    state = Catalog(home).manifest
    named = {e.file for e in state.sketches.values()} | {
        n for n in state.garbage or () if n.endswith(".parquet")
    }
    numbers = {f"catalog-{state.generation - n:08d}.json" for n in (0, 1)}
    return {p.name for p in home.iterdir()} - named - numbers - {"catalog.json", "catalog.lock", *FOREIGN}


def counted(statement: Statement, home: Path) -> int:
    """How many of `CALLS` a statement makes, found out in a child."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        made = 0

        def count(_: int) -> None:
            nonlocal made
            made += 1

        _run_watched(statement, home, count)
        _tell(writer, made)
        os._exit(0)
    os.close(writer)
    with open(reader) as told:
        calls = int(told.read())
    os.waitpid(child, 0)
    return calls


def killed_before(statement: Statement, home: Path, point: int) -> None:
    """Run a statement in a child that kills itself before its n-th call."""
    child = os.fork()
    if child == 0:
        _run_watched(
            statement, home, lambda made: os.kill(os.getpid(), signal.SIGKILL) if made == point else None
        )
        os._exit(0)
    os.waitpid(child, 0)


def killed_after(statement: Statement, home: Path, seconds: float) -> None:
    """Run a statement in a child, and kill it after some time."""
    child = os.fork()
    if child == 0:
        _run_watched(statement, home, lambda made: None)
        os._exit(0)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def _run_watched(statement: Statement, home: Path, before: Callable[[int], None]) -> None:
    """Run a statement; `before` is told the number of each call that changes a file."""
    made = 0

    def watched(call: Callable[..., Any]) -> Callable[..., Any]:
        def counting(*arguments: Any, **named: Any) -> Any:
            nonlocal made
            before(made)
            made += 1
            return call(*arguments, **named)

        return counting

    for name in CALLS:
        setattr(os, name, watched(getattr(os, name)))
    statement(home)


def _tell(writer: int, number: int) -> None:
    with open(writer, "w") as sink:
        sink.write(str(number))


def catalog_of(home: Path) -> Catalog:
    """The catalog of a try."""
    return Catalog(home / "catalog")


def sql(home: Path, text: str) -> None:
    """Run a statement on the catalog of a try."""
    WithoutSpark(catalog=home / "catalog").sql(text)
