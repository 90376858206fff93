"""The processes that `benchmarks.kills` starts, looks at and kills."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

# Of a JVM that lives for seconds.
JVM = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData"
    " -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)
LOOK_SECONDS, PATIENCE = 0.02, 400.0


class Stuck(Exception):
    """Nothing happens any more."""


@dataclass
class Child:
    """The process that runs the streams, in a session of its own, and what it has said."""

    folder: Path
    files: int
    master: str
    number: int
    jvm: str = JVM
    process: subprocess.Popen[bytes] = field(init=False)
    started: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        command = [
            sys.executable,
            "-m",
            "benchmarks.kills_child",
            str(self.folder),
            str(self.files),
            self.master,
        ]
        scratch = self.folder / "scratch"
        scratch.mkdir(exist_ok=True)
        environment = {**os.environ, "SPARK_SUBMIT_OPTS": self.jvm, "TMPDIR": str(scratch)}
        with open(self._log, "wb") as log:
            self.process = subprocess.Popen(
                command, start_new_session=True, stdout=log, stderr=subprocess.STDOUT, env=environment
            )

    @property
    def _log(self) -> Path:
        return self.folder / f"start {self.number}.log"

    @property
    def said(self) -> str:
        """All that it has said."""
        return self._log.read_text(errors="replace")

    @property
    def alive(self) -> bool:
        """Whether it has not ended."""
        return self.process.poll() is None

    def wait_for(self, condition: Callable[[], bool], what: str) -> bool:
        """Wait while it lives; whether the condition holds then. Raises Stuck."""
        until = time.monotonic() + PATIENCE
        while not condition():
            if not self.alive:
                return condition()
            if time.monotonic() > until:
                os.kill(self.process.pid, signal.SIGUSR1)  # tells where it is
                time.sleep(1.0)
                raise Stuck(f"waited {PATIENCE:.0f} s for {what}; it said: {self.said[-3000:]}")
            time.sleep(LOOK_SECONDS)
        return True

    def members(self) -> list[int]:
        """All processes of its session: its JVM, Python workers."""
        return [p for p in _processes() if _stat(p)[3:4] == [str(self.process.pid)]]

    def workers(self) -> list[int]:
        """Spark's Python workers: what the daemon that forks them has forked."""
        daemons = {p for p in self.members() if b"pyspark" in words_of(p) and b"daemon" in words_of(p)}
        return [p for p in daemons if int(_stat(p)[1:2][0] if _stat(p) else 0) in daemons]

    def end(self) -> None:
        """End whatever there is of it."""
        kill([self.process.pid, *self.members()])
        self.process.wait()


def _processes() -> list[int]:
    return [int(e.name) for e in Path("/proc").iterdir() if e.name.isdecimal()]


def _stat(process: int) -> list[str]:
    """The fields of ``/proc/<pid>/stat`` behind the command: state, parent, group, session; none where it is gone."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def words_of(process: int) -> bytes:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""


def kill(processes: list[int]) -> None:
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
