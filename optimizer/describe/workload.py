"""What CREATE SKETCHES builds, as text: every stage before and after, the queries' errors, and the sketches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from math import sqrt

from ..plan import BYTES_PER_COUNTER, Synopsis
from ..prediction.relation import RelationStatistics
from ..workload.declared import DeclaredQueries
from ..workload.partition_shared import ClassPartition
from ..workload.plan import Figures, Stage
from .plan import count

STAGES = {
    "share": "one sketch for equal relations and join columns of several queries",
    "allocate": "space by the queries' weights, in place of equal sketches",
    "partition": "skewed domains in parts with sketches of their own",
}
SHOWN_RANGES = 3
ASSUMPTIONS = (
    "join columns of a relation independent of each other, keys of a histogram's bucket equally frequent"
)


def describe_workload(name: str, declared: DeclaredQueries, statistics: Sequence[RelationStatistics]) -> str:
    """The plan of standing queries.

    Parameters
    ----------
    name : str
        Of the workload.
    standing : StandingQueries
    statistics : sequence of RelationStatistics
        What it was planned on.
    """
    plan = declared.plans[0]
    stages = declared.workload.stages
    lines = [f"sketches {name} for {len(declared.plans)} queries, seed {plan.seed}", _known(statistics)]
    for stage in stages:
        lines.append(f"{stage.name}: {STAGES[stage.name]}")
        before, after = _figures(stage.before), _figures(stage.after)
        lines += (
            ["  changes nothing here"] if before == after else [f"  before {before}", f"  after  {after}"]
        )
    chosen = declared.workload.partition.classes
    for (class_name, _), (_, part) in zip(plan.partitions, chosen, strict=True):
        lines.append(f"  {class_name} in {part.domain.count} parts: {_parts(part)}")
    lines.append("predicted standard error of each query:")
    lines += _errors(declared, stages)
    lines.append("built, in one pass a table:")
    lines += [f"  {i}: {_synopsis(declared, i)}" for i in range(len(plan.synopses))]
    return "\n".join(lines)


def _known(statistics: Sequence[RelationStatistics]) -> str:
    """Where the statistics come from, how old they are, and what is assumed beyond them."""
    sources = dict.fromkeys(s.source for s in statistics)
    times = [s.gathered_at for s in statistics if s.gathered_at is not None]
    text = f"statistics: {', '.join(sources) or 'none'}"
    if times:
        text += f", gathered at {datetime.fromtimestamp(min(times), UTC).isoformat(timespec='seconds')}"
    if len(times) < len(statistics):
        text += f", of unknown age for {len(statistics) - len(times)} of {len(statistics)} relations"
    return f"{text}; assumed: {ASSUMPTIONS}"


def _figures(figures: Figures) -> str:
    cells = f" of {figures.cells} cells" if figures.cells != figures.vertices else ""
    size = BYTES_PER_COUNTER * figures.words / 1024
    known = [e for e in figures.relative_errors if e is not None]
    error = "unknown"
    if known:
        usual = sqrt(sum(e * e for e in known) / len(known))
        error = f"{100 * usual:.3g} % on average, {100 * max(known):.3g} % at most"
    return (
        f"{count(figures.vertices, 'sketch', 'sketches')}{cells}, {count(figures.classes, 'xi class', 'xi classes')},"
        f" {size:,.0f} KB; predicted standard error {error}"
    )


def _parts(part: ClassPartition) -> str:
    """The share of the space of each part, and the first of its ranges of keys."""
    ends: list[int | None] = [*part.domain.lows[1:], None]
    ranges: dict[int, list[str]] = {}
    for number, (low, end, label) in enumerate(zip(part.domain.lows, ends, part.domain.labels, strict=True)):
        first = "" if number == 0 else f"{low}"
        ranges.setdefault(label, []).append(f"{first}..{'' if end is None else end - 1}")
    told = []
    for label in sorted(ranges):
        shown, more = ranges[label][:SHOWN_RANGES], len(ranges[label]) - SHOWN_RANGES
        others = f" and {more} more ranges" if more > 0 else ""
        told.append(f"{part.shares[label]:.0%} of the space for keys {', '.join(shown)}{others}")
    return "; ".join(told)


def _errors(declared: DeclaredQueries, stages: Sequence[Stage]) -> Iterator[str]:
    """A line for each query: its own error, and what it would be without each stage."""
    labels = declared.workload.graph.queries
    for number, plan in enumerate(declared.plans):
        terms = [k for k, label in enumerate(labels) if isinstance(label, tuple) and label[0] == number]
        final = _worst(stages[-1].after, terms)
        without = ", ".join(f"without {s.name} {_worst(s.before, terms)}" for s in stages)
        tables = " ⋈ ".join(v.table for v in plan.query.graph.vertices)
        yield f"  {number + 1} {tables}: {final} ({without})"


def _worst(figures: Figures, terms: Sequence[int]) -> str:
    """The greatest error of a query's terms."""
    errors = [figures.relative_errors[k] for k in terms]
    known = [e for e in errors if e is not None]
    return f"{100 * max(known):.3g} %" if known and len(known) == len(errors) else "unknown"


def _synopsis(declared: DeclaredQueries, number: int) -> str:
    synopsis = declared.plans[0].synopses[number]
    users = sum(any(number in t.synopses for t in plan.terms) for plan in declared.plans)
    classes = ", ".join(a.class_name for a in synopsis.attributes)
    where = f" where {synopsis.filter}" if synopsis.filter else ""
    part = f" part {', '.join(map(str, synopsis.cell))}" if synopsis.cell else ""
    size = f"{synopsis.rows} x {synopsis.buckets:,}, {_bytes(synopsis):,} bytes"
    return (
        f"{synopsis.table}{where} by {classes}{part}{_weight(synopsis)}, {size},"
        f" read by {users} {'query' if users == 1 else 'queries'}"
    )


def _weight(synopsis: Synopsis) -> str:
    weight = synopsis.weight
    if weight.expression is None:
        return ""
    return f" counting {weight.expression}" if weight.presence else f" summing {weight.expression}"


def _bytes(synopsis: Synopsis) -> int:
    return BYTES_PER_COUNTER * synopsis.rows * synopsis.buckets
