"""Streams whose processes are killed: ``python -m benchmarks.kills --kills 50 --json FILE``.

Two streams with 30 % deletions, from real folders with real checkpoints: joined with one another, and
within a sliding window. The process that runs them is killed with ``kill -9`` at random moments of a random batch (with
its JVM or without, which then ends by itself), and started again until all files are read; so are Spark's Python
workers, after which the process goes on. Between two starts, once in every run, a batch that the state has is made to
be delivered again and the newest state is cut off; in the first run the disk is full for a while (where a file system
may be mounted). Then every sketch of both states, as counters, must be bit for bit what numpy makes of the files
without Spark, with every event once, and the sinks must have every batch of each stream once.

What is in FILE already is not run again. Nothing is left behind, also where this process is ended by SIGTERM.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from skimql.engine.catalog.catalog import Catalog
from skimql.engine.streams.checkpoint import read_checkpoint, uncommit
from skimql.engine.streams.place import stream_folder
from skimql.engine.streams.store import continuous

from .kills_child import batch_of
from .kills_data import NAMES, truth_differs, write_data
from .kills_processes import JVM, LOOK_SECONDS, Child, Stuck, kill, words_of

# Of a run: events in a file, and files of a stream beyond those that its kills take.
ROWS, MORE_FILES = 2_000, 8
ORPHAN_SECONDS = 60.0  # that a JVM and its workers have to end by themselves when their driver is gone
# A task whose worker is killed is tried again, or fails: then the stream stops, and is resumed.
MASTERS = ("local[2]", "local[2,4]")


@dataclass
class Run:
    """One run with some kills."""

    folder: Path
    created: Path
    kinds: tuple[str, ...]
    seed: int
    full: bool
    say: Callable[[str], None]
    jvm: str = JVM
    children: list[Child] = field(default_factory=list)
    met: list[str] = field(default_factory=list)
    places: list[str] = field(default_factory=list)
    starts_s: list[float] = field(default_factory=list)
    chance: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)

    @property
    def files(self) -> int:
        """Of each stream: between two kills a batch or two of both together, and what comes while one is waited for."""
        return 2 * len(self.kinds) + MORE_FILES

    def record(self) -> dict[str, Any]:
        """Run, and say what came of it."""
        began = time.monotonic()
        wrong: list[str] = []
        write_data(self.folder, self.files, ROWS, self.seed)
        with _disk(self.folder / "catalog", small=self.full) as full:
            shutil.copytree(self.created, self.folder / "catalog", dirs_exist_ok=True)
            try:
                self._run(full)
                wrong = truth_differs(self.folder, self.files)
                wrong.extend(self._left())
            except Stuck as fault:
                wrong = [str(fault)]
            finally:
                for child in self.children:
                    child.end()
            if wrong:
                shutil.copytree(self.folder / "catalog", self.folder / "catalog as it was")
        return {
            "study": "kills",
            "seed": self.seed,
            "asked": list(self.kinds),
            "kills": list(self.kinds[: len(self.places)]),
            "places": self.places,
            "met": self.met,
            "master": MASTERS[self.seed % 2],
            "starts": len(self.children),
            "start_s": round(sum(self.starts_s) / max(1, len(self.starts_s)), 1),
            "events": len(NAMES) * self.files * ROWS,
            "seconds": round(time.monotonic() - began, 1),
            "wrong": wrong,
        }

    def _run(self, full: bool) -> None:
        left = list(self.kinds)
        while True:
            child = self._start()
            if full and len(self.children) == 1:
                self._fill(child)
            while left and child.alive:
                self._kill(child, left.pop(0))
            if not left:
                child.wait_for(lambda: not child.alive, "the end")  # noqa: B023 - called at once
            code = child.process.wait()
            if code == 0:
                return
            if code != -signal.SIGKILL:
                raise Stuck(f"the process ended with {code}: {child.said[-3000:]}")
            self._disturb()

    def _left(self) -> list[str]:
        """What has outlived its driver, and does not end by itself."""
        until = time.monotonic() + ORPHAN_SECONDS
        while (left := [p for c in self.children for p in c.members()]) and time.monotonic() < until:
            time.sleep(LOOK_SECONDS)
        return [f"process {p} has outlived its driver: {words_of(p)[:200]!r}" for p in left]

    def _start(self) -> Child:
        child = Child(self.folder, self.files, MASTERS[self.seed % 2], len(self.children), self.jvm)
        self.children.append(child)
        if child.wait_for(lambda: " runs\n" in child.said or " done\n" in child.said, "the start"):
            self.starts_s.append(time.monotonic() - child.started)
        return child

    def _kill(self, child: Child, kind: str) -> None:
        """Kill at a random moment of one of the next batches."""
        before, more = self._batches(), self.chance.choice((0, 1, 1, 2))
        began = time.monotonic()
        child.wait_for(lambda: self._batches() >= before + more, f"{more} batches")
        each = (time.monotonic() - began) / more if more else 1.0
        time.sleep(self.chance.uniform(0.0, min(each, 5.0)))
        if kind == "worker":
            child.wait_for(lambda: bool(child.workers()), "a worker")
            targets = self.chance.sample(child.workers(), 1) if child.alive else []
        else:
            targets = [child.process.pid] if kind == "driver" else [child.process.pid, *child.members()]
        kill(targets)
        if kind != "worker":
            child.process.wait()
        self.places.append(self._place())
        batches = " ".join(f"{n} {batch_of(self._catalog(), n)}" for n in NAMES)
        self.say(
            f"kill {len(self.places)} of {len(self.kinds)}: {kind}, after batches {batches}, {self.places[-1]}"
        )

    def _catalog(self) -> Catalog:
        return Catalog(self.folder / "catalog")

    def _batches(self) -> int:
        return sum(batch_of(self._catalog(), n) + 1 for n in NAMES)

    def _place(self) -> str:
        """Where between the plan of a batch and its commit each stream was."""
        found = []
        for state, checkpoint in self._sides():
            have = -1 if state is None else state
            planned = -1 if checkpoint.planned is None else checkpoint.planned
            committed = -1 if checkpoint.committed is None else checkpoint.committed
            where = {(1, 0): "planned", (0, -1): "saved", (0, 0): "committed"}
            found.append(
                where.get((planned - have, committed - have), f"{planned - have} {committed - have}")
            )
        return ", ".join(found)

    def _sides(self) -> Iterator[tuple[int | None, Any]]:
        catalog = self._catalog()
        for stream in continuous(catalog).streams.values():
            state = None if stream.state is None else stream.state.batch
            yield state, read_checkpoint(stream_folder(catalog, stream) / "checkpoint")

    def _disturb(self) -> None:
        """Between two starts: a batch is delivered again, or the newest state is cut off; each once.

        What is left of the process has ended by then: else its JVM might plan a batch behind the one looked at.
        """
        if len(self.met) < 2 + ("disk full" in self.met):
            self.children[-1].end()
        for name, disturb in (("delivered again", self._deliver_again), ("state cut off", self._cut_off)):
            if name not in self.met and disturb():
                self.met.append(name)
                self.say(name)
                return

    def _deliver_again(self) -> bool:
        """Take back the commit of a batch that a state has; whether there was one."""
        catalog = self._catalog()
        for stream in continuous(catalog).streams.values():
            checkpoint = stream_folder(catalog, stream) / "checkpoint"
            found = read_checkpoint(checkpoint)
            have = None if stream.state is None else stream.state.batch
            # Of one that was planned behind it, planned anew, a file more might be part.
            if have is not None and have == found.committed == found.planned:
                uncommit(checkpoint, have)
                return True
        return False

    def _cut_off(self) -> bool:
        """Cut off the newest state of a stream that has one; whether there was one."""
        for stream in reversed(continuous(self._catalog()).streams.values()):
            if stream.state is not None and stream.before is not None:
                file = self.folder / "catalog" / stream.state.file
                file.write_bytes(file.read_bytes()[:-1])
                return True
        return False

    def _fill(self, child: Child) -> None:
        """Leave no room on the file system of the catalog until a stream has stopped because of it."""
        child.wait_for(lambda: self._batches() > 0, "a batch")
        filler = self.folder / "catalog" / "filler"
        before = child.said.count(" on with ")
        try:
            with open(filler, "wb", buffering=0) as sink:

                def refused() -> bool:
                    with contextlib.suppress(OSError):
                        while True:
                            sink.write(bytes(1 << 12))
                    return child.said.count(" on with ") > before

                if child.wait_for(refused, "a stream that stops on a full disk"):
                    self.met.append("disk full")
        finally:
            filler.unlink()
        self.say("the disk was full" if "disk full" in self.met else "the process ended on a full disk")


@contextlib.contextmanager
def _disk(folder: Path, *, small: bool) -> Iterator[bool]:
    """A file system of its own that is soon full; whether that is allowed here, and wanted."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64m", "none", str(folder)]
    mounted = small and subprocess.run(command, capture_output=True).returncode == 0
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", "--lazy", str(folder)], check=True)


def kinds_of(kills: int, seed: int) -> list[str]:
    """What is killed: three of ten are workers, the others the driver, half of them with its JVM."""
    workers = round(0.3 * kills)
    alone = (kills - workers) // 2
    every = ["worker"] * workers + ["driver"] * alone + ["all"] * (kills - workers - alone)
    random.Random(seed).shuffle(every)
    return every


def create(folder: Path, created: Path, classes: Path | None) -> str:
    """Streams and views of every run, which lie in one folder one after the other; what to start its JVMs with.

    Their classes come from an archive, which is made where it is not there.
    """
    write_data(folder, 0, ROWS, 0)
    made = classes is None or classes.exists()
    child = Child(folder, 0, MASTERS[0], 0, JVM if made else f"{JVM} -XX:ArchiveClassesAtExit={classes}")
    try:
        child.wait_for(lambda: False, "streams and views")
    finally:
        child.end()
    if child.process.returncode:
        raise Stuck(child.said)
    (folder / "catalog").rename(created)
    shutil.rmtree(folder)
    return f"{JVM} -XX:SharedArchiveFile={classes}" if classes is not None and classes.exists() else JVM


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--a-run", type=int, default=5, help="kills in one run")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--runs", type=int, help="to do now; the others when this is called again")
    parser.add_argument("--classes", type=Path, help="an archive of Java's classes: starts take less")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    records: list[dict[str, Any]] = []
    if options.json is not None and options.json.exists():
        records = json.loads(options.json.read_text())
    kinds = kinds_of(options.kills, options.seed)
    left = [
        (number, own)
        for number, start in enumerate(range(0, len(kinds), options.a_run))
        for own in [kinds[start : start + options.a_run]]
        if not any((r["seed"], r["asked"]) == (options.seed + number, own) for r in records)
    ]
    base = Path(tempfile.mkdtemp(prefix="skimql-kills-"))
    kept = False
    try:
        jvm = create(base / "run", base / "created", options.classes) if left else ""
        for number, own in left[: options.runs]:

            def say(text: str, number: int = number) -> None:
                print(f"{time.strftime('%H:%M:%S')} run {number}: {text}", flush=True)

            run = Run(
                base / "run", base / "created", tuple(own), options.seed + number, number == 0, say, jvm
            )
            records.append(run.record())
            say(str(records[-1]))
            if options.json is not None:
                options.json.write_text(json.dumps(records, indent=1) + "\n")
            kept = bool(records[-1]["wrong"])
            if kept:
                say(f"kept in {base}")
                break
            shutil.rmtree(base / "run")
    finally:
        if not kept:
            shutil.rmtree(base, ignore_errors=True)
    if any(r["wrong"] for r in records):
        sys.exit(1)


if __name__ == "__main__":
    main()
