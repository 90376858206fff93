"""The operators of an attempt: scans, messages, samples, what reads a catalog, what estimates; predicted and actual.

What EXPLAIN ANALYZE shows. A figure that is not known, or cannot be measured, is None; none is made up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace

PLANNING = "planning"
COUNT = "count"
PILOT = "pilot"
GROUPS = "groups"
SCAN = "scan"
RELATION = "relation"
MESSAGE = "message"
SAMPLE = "sample"
LOAD = "load"
ESTIMATE = "estimate"
EXACT_RUN = "exact run"
EXACT_GROUPS = "exact groups"


@dataclass(frozen=True, slots=True)
class Figures:
    """What an operator takes and gives, without its inputs.

    Attributes
    ----------
    rows : float or None
        What it gives: tuples put into synopses, keys of a message, tuples of a sample, groups, rows of a result.
    bytes_read : float or None
        From files.
    bytes_held : float or None
        Of synopses, messages or samples, in memory.
    cpu_seconds : float or None
    half_width : float or None
        The widest interval over its value; 0 where all is exact.
    seconds : float or None
        Wall time.
    """

    rows: float | None = None
    bytes_read: float | None = None
    bytes_held: float | None = None
    cpu_seconds: float | None = None
    half_width: float | None = None
    seconds: float | None = None

    def plus(self, other: Figures) -> Figures:
        """Both together; the wider interval."""
        added = {f.name: _added(getattr(self, f.name), getattr(other, f.name)) for f in fields(Figures)}
        widths = [w for w in (self.half_width, other.half_width) if w is not None]
        return Figures(**{**added, "half_width": max(widths, default=None)})


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator and its inputs.

    Attributes
    ----------
    kind : str
        A name of this module.
    of : str
        Which table or materialized synopses, where it is of some.
    predicted : Figures
    actual : Figures or None
        None where it has not run.
    runs : int
        How often it ran: sums of all runs are told.
    whole_cpu : bool
        Whether `actual.cpu_seconds` has everything that Spark's JVM did for it; not where others used it meanwhile.
    inputs : tuple of Operator
    """

    kind: str
    of: str = ""
    predicted: Figures = Figures()
    actual: Figures | None = None
    runs: int = 0
    whole_cpu: bool = True
    inputs: tuple[Operator, ...] = field(default=())

    @property
    def name(self) -> str:
        """``scan flights``."""
        return f"{self.kind} {self.of}" if self.of else self.kind


def relation_name(table: str, condition: str | None, alias: str = "") -> str:
    """A virtual relation as operators are named by it."""
    named = table if not alias or alias == table else f"{table} {alias}"
    return f"{named} where {condition}" if condition else named


def beside(predicted: Sequence[Operator], ran: Sequence[Operator]) -> tuple[Operator, ...]:
    """What was predicted with what ran, matched by kind and name; what was not predicted comes behind."""
    waiting = list(_together(ran))
    found = []
    for own in predicted:
        match = next((r for r in waiting if (r.kind, r.of) == (own.kind, own.of)), None)
        if match is None:
            found.append(own)
            continue
        waiting.remove(match)
        found.append(
            replace(match, predicted=own.predicted, inputs=beside(own.inputs, match.inputs)),
        )
    return (*found, *(replace(r, inputs=beside((), r.inputs)) for r in waiting))


def total(operators: Sequence[Operator]) -> Figures:
    """CPU, wall time and bytes read of operators and all their inputs."""
    found = Figures()
    for own in operators:
        actual = own.actual or Figures()
        cost = Figures(bytes_read=actual.bytes_read, cpu_seconds=actual.cpu_seconds, seconds=actual.seconds)
        found = found.plus(cost).plus(total(own.inputs))
    return found


def _together(ran: Sequence[Operator]) -> list[Operator]:
    """Runs of one operator as one."""
    found: dict[tuple[str, str], Operator] = {}
    for own in ran:
        known = found.get((own.kind, own.of))
        if known is None:
            found[own.kind, own.of] = own
            continue
        found[own.kind, own.of] = replace(
            known,
            actual=(known.actual or Figures()).plus(own.actual or Figures()),
            runs=known.runs + own.runs,
            whole_cpu=known.whole_cpu and own.whole_cpu,
            inputs=(*known.inputs, *own.inputs),
        )
    return list(found.values())


def _added(left: float | None, right: float | None) -> float | None:
    return right if left is None else left if right is None else left + right
