"""What the operators of a run took and gave, recorded while it runs.

Whatever runs as one operator says so by `observed`. Rows, bytes and wall time are recorded in every run, as they cost
nothing; a `Meter` measures CPU and bytes read, for EXPLAIN ANALYZE alone.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Protocol

from ..optimizer.operators import Figures, Operator


@dataclass(slots=True)
class Measured:
    """What a meter has found since a mark.

    Attributes
    ----------
    cpu_seconds : float or None
        With that of all that ran inside, which `inner` has.
    bytes_read : float or None
        By this operator alone.
    whole_cpu : bool
        See `Operator.whole_cpu`.
    """

    cpu_seconds: float | None = None
    bytes_read: float | None = None
    whole_cpu: bool = True


class Meter(Protocol):
    """Measures what operators take."""

    def mark(self) -> object:
        """A point in time from which something is measured."""

    def since(self, mark: object, own: Observation) -> Measured:
        """What an operator took since a mark, with what ran inside it."""


@dataclass(slots=True, eq=False)
class Observation:
    """One operator that runs.

    Whoever runs it says `rows`, `bytes_held` and `half_width`; who reads files without Spark, `bytes_read`.

    Attributes
    ----------
    jobs : list of str
        The tags of the Spark jobs that it has run.
    worker_seconds : float
        CPU of its Python workers.
    thread_seconds, jvm_thread_seconds : float
        CPU of the threads that started its jobs, here and in the JVM.
    """

    kind: str
    of: str = ""
    rows: float | None = None
    bytes_held: float | None = None
    half_width: float | None = None
    bytes_read: float | None = None
    jobs: list[str] = field(default_factory=list)
    worker_seconds: float = 0.0
    thread_seconds: float = 0.0
    jvm_thread_seconds: float = 0.0
    seconds: float | None = None
    measured: Measured = field(default_factory=Measured)
    inputs: list[Observation] = field(default_factory=list)

    def operator(self) -> Operator:
        """As it was recorded, what its inputs took taken off."""
        cpu, inner = self.measured.cpu_seconds, [i.measured.cpu_seconds or 0.0 for i in self.inputs]
        waited = [i.seconds or 0.0 for i in self.inputs]
        actual = Figures(
            self.rows,
            self.bytes_read if self.bytes_read is not None else self.measured.bytes_read,
            self.bytes_held,
            None if cpu is None else max(cpu - sum(inner), 0.0),
            self.half_width,
            None if self.seconds is None else max(self.seconds - sum(waited), 0.0),
        )
        return Operator(
            self.kind,
            self.of,
            actual=actual,
            runs=1,
            whole_cpu=self.measured.whole_cpu,
            inputs=tuple(i.operator() for i in self.inputs),
        )


@dataclass
class Recorder:
    """Records the operators of one run.

    Attributes
    ----------
    meter : Meter or None
        Measures what they take; None where that is not asked for.
    """

    meter: Meter | None = None
    _found: list[Observation] = field(default_factory=list)
    _running: list[Observation] = field(default_factory=list)

    @contextmanager
    def recording(self) -> Iterator[None]:
        """What runs inside is recorded here."""
        token = _RECORDER.set(self)
        try:
            yield
        finally:
            _RECORDER.reset(token)

    @contextmanager
    def operator(self, kind: str, of: str) -> Iterator[Observation]:
        """See `observed`."""
        own = Observation(kind, of)
        (self._running[-1].inputs if self._running else self._found).append(own)
        self._running.append(own)
        mark = None if self.meter is None else self.meter.mark()
        started = time.perf_counter()
        try:
            yield own
        finally:
            own.seconds = time.perf_counter() - started
            if self.meter is not None:
                own.measured = self.meter.since(mark, own)
            self._running.pop()

    def taken(self) -> tuple[Operator, ...]:
        """The operators since the last call, outermost ones with their inputs."""
        found, self._found = self._found, []
        return tuple(own.operator() for own in found)

    @property
    def running(self) -> Observation | None:
        """The innermost operator that runs."""
        return self._running[-1] if self._running else None


_RECORDER: ContextVar[Recorder | None] = ContextVar("recorder of operators", default=None)


@contextmanager
def observed(kind: str, of: str = "") -> Iterator[Observation]:
    """Run an operator; `kind` as in `optimizer.operators`."""
    recorder = _RECORDER.get()
    if recorder is None:
        yield Observation(kind, of)
        return
    with recorder.operator(kind, of) as own:
        yield own


def reads(nbytes: int) -> None:
    """Say that the innermost operator has read bytes itself, without a job."""
    recorder = _RECORDER.get()
    if recorder is not None and recorder.running is not None:
        recorder.running.bytes_read = (recorder.running.bytes_read or 0.0) + nbytes


def metered() -> Observation | None:
    """The innermost operator that runs, where what it takes is measured."""
    recorder = _RECORDER.get()
    return None if recorder is None or recorder.meter is None else recorder.running


@dataclass(frozen=True, slots=True)
class ProcessMeter:
    """CPU of this process: of plans that are carried out in it."""

    def mark(self) -> float:
        """CPU seconds so far."""
        return time.process_time()

    def since(self, mark: object, own: Observation) -> Measured:
        """See `Meter.since`."""
        assert isinstance(mark, float), "a mark of this meter"
        return Measured(time.process_time() - mark)
