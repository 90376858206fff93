"""What the intervals of an attempt are predicted to be: of every aggregate by itself, as the answer will tell them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ...optimizer.physical import Attempt, Predicted, SampleJoin, SketchJoin
from ...optimizer.plan import most_bytes
from ...parser.expressions import Aggregated, parts_of
from ...parser.join_graph import Query
from ..results.selection import SCREENED

# Samples of more keys that are looked at, and how many more keys are taken than a width tells.
MOST_ENLARGED = 4
ROOM = 1.05
# An interval is as wide as was asked relative to a value that is off itself: standard errors of the value, over its own
# half-width, that 95 % of the answers have room for.
OFF = 1.645 / 1.96
# Groups are not all of mean size: those of a few equal ones are by so much wider than one of that size, at the most
# (`benchmarks.promise`, ordinary classes).
UNEVEN = 1.1
# Intervals of rows are as wide as their order statistics lie apart, some twice as wide as others: so many of them are
# to be narrow enough.
MET = 0.975

if TYPE_CHECKING:
    from ...optimizer.candidates.candidate import Choice
    from ...optimizer.candidates.value_draws import Summed
    from ...optimizer.plan import Plan, Synopsis
    from ...optimizer.prediction.made_up_keys import Values
    from ...optimizer.prediction.reported_rows import Rows
    from ..sources.ordered_keys import Ints
    from .footers import Footers


def with_widths(predicted: Predicted, query: Query, widths: Sequence[float]) -> Predicted:
    """The prediction with the half-widths of the aggregates, and the widest of those that are shown."""
    chosen = [widths[n] for n in sorted(_shown(query))] or list(widths)
    widest = math.nan if any(map(math.isnan, chosen)) else max(chosen)
    return replace(predicted, half_width=widest, half_widths=tuple(widths))


def planned_sample(
    attempt: SampleJoin,
    choice: Choice,
    summed: Sequence[Summed],
    confidence: float,
    groups: Mapping[int, int],
) -> SampleJoin:
    """A sample that was chosen by statistics, with what its intervals will be."""
    from ...optimizer.prediction.reported import sample_widths
    from ...optimizer.prediction.sampled_class import by_statistics

    query, sample, figures = attempt.plan.query, attempt.plan.sample, choice.figures
    found = choice.taken.sample
    if sample is None or figures is None or found is None:
        return attempt
    known = by_statistics(figures, found.joined, sample.dense, _values(summed))
    if query.groups:
        # Which groups are shown is up to the sample.
        confidence = 1.0 - (1.0 - confidence) * (1.0 - SCREENED)
    widths = sample_widths(query, attempt.plan, known, confidence, groups)
    return replace(attempt, predicted=with_widths(attempt.predicted, query, widths))


def large_enough(
    attempt: SampleJoin,
    choice: Choice,
    target: float | None,
    of_plan: Callable[[Plan, Predicted], SampleJoin],
) -> SampleJoin:
    """The sample, or one of more keys where its intervals are not predicted to be as narrow as is asked.

    Candidates are sized by what chance alone makes of the whole answer; an interval has room for unseen keys beside,
    and that of a count may be wider than that of a sum: where no part of the keys is predicted to be enough all are
    taken. Where that costs more than the exact run it is the sample as it was.
    """
    aimed = None if target is None else target / (1.0 + OFF * target)
    if aimed is not None and attempt.plan.query.groups:
        aimed /= UNEVEN
    plan, predicted, taken = attempt.plan, attempt.predicted, choice.taken
    sample, found = plan.sample, attempt
    if aimed is None or sample is None or not sample.rate:
        return attempt
    read = sum(seconds for part, seconds in taken.cost.parts if part.startswith("sample"))

    def of_rate(rate: float) -> SampleJoin:
        more = rate / sample.rate
        costs = replace(
            predicted,
            seconds=taken.cost.seconds + (more - 1.0) * read,
            nbytes=more * taken.nbytes,
        )
        return of_plan(replace(plan, sample=replace(sample, rate=rate)), costs)

    for _ in range(MOST_ENLARGED):
        width = found.predicted.half_width
        assert found.plan.sample is not None, "it is of one plan"
        rate = found.plan.sample.rate
        if rate == 1.0 or not aimed < width < math.inf:
            break
        # A width falls with the root of the odds of a key to be left out.
        found = of_rate(1.0 / (1.0 + (1.0 / rate - 1.0) * (aimed / width) ** 2 / ROOM))
    if aimed < found.predicted.half_width < math.inf:
        # Room for unseen keys that no share of them makes small.
        found = of_rate(1.0)
    run = next((c for c in choice.candidates if c.method == "exact_run" and not c.refused), None)
    dear = run is not None and found.predicted.seconds > run.cost.seconds
    missed = not found.predicted.half_width <= aimed
    return attempt if missed or dear or found.predicted.nbytes > choice.objective.most_bytes else found


def exact_instead(attempt: Attempt, choice: Choice, target: float | None) -> Choice | None:
    """The choice of the exact run, where what would be taken is predicted to miss what is asked.

    A sample that would not costs more than the exact run, and sketches that would not more bytes than there are; the
    exact run would follow it.
    """
    estimates = isinstance(attempt, (SampleJoin, SketchJoin))
    if choice.objective.relative_error is None or target is None or not estimates:
        return None
    run = next((c for c in choice.candidates if c.method == "exact_run" and not c.refused), None)
    return replace(choice, taken=run) if run is not None and attempt.predicted.half_width > target else None


def planned_sketches(
    attempt: SketchJoin,
    choice: Choice,
    summed: Sequence[Summed],
    confidence: float,
    groups: Mapping[int, int],
    target: float | None = None,
) -> SketchJoin:
    """Sketches that were chosen by statistics, with what the intervals of their rows will be.

    For a target they have as many buckets as it takes; see `_enough`.
    """
    from ...optimizer.prediction.reported_rows import Rows

    plan, figures = attempt.plan, choice.figures
    sizes = [(s.rows, s.buckets) for s in plan.synopses if s.attributes]
    if figures is None or not sizes:
        return attempt
    widths: tuple[float, ...] = (0.0,) * len(plan.query.aggregates)
    if attempt.predicted.half_width > 0.0:
        taken = choice.taken
        sketches = Rows(figures, taken.residual, taken.method, *min(sizes), groups, _values(summed))
        attempt, sketches = _enough(attempt, sketches, choice, confidence, target)
        widths = _widths_of(sketches, attempt.plan, confidence)
    return replace(attempt, predicted=with_widths(attempt.predicted, plan.query, widths))


def planned_distinct(
    attempt: SketchJoin,
    choice: Choice,
    values: Callable[[], Sequence[Summed]],
    confidence: float,
    groups: Mapping[int, int],
    target: float | None = None,
) -> SketchJoin:
    """Synopses of distinct values, and the sketches of what stands beside the counts as `planned_sketches`."""
    from ...optimizer.candidates.distinct import DistinctPredicted

    taken, figures, query = choice.taken, choice.figures, attempt.plan.query
    if not isinstance(taken.predicted, DistinctPredicted):
        return attempt
    widths = list(taken.predicted.widths)
    beside = [n for n, a in enumerate(query.aggregates) if a.function != "count_distinct" and widths[n]]
    if figures is not None and _shown(query) & {*beside}:
        from ...optimizer.prediction.reported_rows import Rows

        kind = "hash" if len(taken.residual.vertices) == 2 else "convolution"
        buckets = max((s.buckets for s in attempt.plan.synopses if _has_counters(s)), default=taken.buckets)
        sketches = Rows(figures, taken.residual, kind, taken.rows, buckets, groups, _values(values()))
        attempt, sketches = _enough(attempt, sketches, choice, confidence, target)
        for number, width in enumerate(_widths_of(sketches, attempt.plan, confidence)):
            if number in beside:
                widths[number] = width
    return replace(attempt, predicted=with_widths(attempt.predicted, query, widths))


def _enough(
    attempt: SketchJoin, sketches: Rows, choice: Choice, confidence: float, target: float | None
) -> tuple[SketchJoin, Rows]:
    """The attempt and its rows, or with more buckets where their intervals might be wider than is asked.

    Candidates are sized for the typical interval of a COUNT: half of the answers would miss, and a SUM of far-spread
    values nearly always. Those that would take more bytes than may be taken stay as they are.
    """
    from ...optimizer.prediction.variance import rows_width

    query, found = attempt.plan.query, sketches
    if target is None or sketches.method == "agms":
        # Every tuple moves every counter of AGMS.
        return attempt, sketches
    typical, most = (rows_width(sketches.rows, confidence, part) for part in (0.5, MET))
    aimed = target * typical / most / (UNEVEN if query.groups else 1.0)
    shown = _shown(query)
    for _ in range(MOST_ENLARGED):
        widths = _widths_of(found, attempt.plan, confidence)
        # What is not told from 0 is out of reach.
        width = max((w for n, w in enumerate(widths) if n in shown and w < 1.0), default=0.0)
        if width <= aimed:
            break
        found = replace(found, buckets=math.ceil(found.buckets * (width / aimed) ** 2 * ROOM))
    more = found.buckets / sketches.buckets
    synopses = tuple(
        replace(s, buckets=math.ceil(more * s.buckets)) if _has_counters(s) else s
        for s in attempt.plan.synopses
    )
    held, whole = (sum(map(most_bytes, own)) for own in (attempt.plan.synopses, synopses))
    nbytes = attempt.predicted.nbytes + (whole - held) * math.prod(sketches.groups.values())
    if more == 1.0 or max(nbytes, whole) > choice.objective.most_bytes:
        return attempt, sketches
    plan = replace(attempt.plan, synopses=synopses)
    return replace(attempt, plan=plan, predicted=replace(attempt.predicted, nbytes=nbytes)), found


def _widths_of(sketches: Rows, plan: Plan, confidence: float) -> tuple[float, ...]:
    """The half-widths of rows, none where all their sketches stay exact maps."""
    if all(s.sparse for s in plan.synopses if _has_counters(s)) and sketches.are_exact:
        return (0.0,) * len(plan.query.aggregates)
    return sketches.widths(plan.query, confidence)


def _has_counters(synopsis: Synopsis) -> bool:
    return bool(synopsis.attributes) and not synopsis.distinct


def _shown(query: Query) -> set[int]:
    """The aggregates that the query shows."""
    return {p.index for i in query.items for p in parts_of(i.expression) if isinstance(p, Aggregated)}


def first_sample(
    attempt: SampleJoin,
    footers: Footers,
    summed: Sequence[Summed],
    confidence: float,
    groups: Mapping[int, int],
    *,
    jobs: bool,
) -> SampleJoin:
    """A first sample with what its intervals will be, by what files tell and by the values that were looked at."""
    from ...optimizer.candidates.first_sample import LEAST_SHARE, sampled_class
    from ...optimizer.messages import tree_of
    from ...optimizer.prediction.first_class import by_files
    from ...optimizer.prediction.reported import sample_widths

    query, sizes = attempt.plan.query, footers.sizes_by(jobs=jobs)
    joined = sampled_class(query.graph, [s.tuples for s in sizes])
    shares = [max(s.share, LEAST_SHARE) for s in sizes]
    known = by_files(
        tree_of(query.graph),
        joined,
        [s.tuples for s in sizes],
        shares,
        footers.values,
        _values(summed, query),
        footers.keys_seen,
        1.0 if footers.together is None else footers.together.times,
        _listed(attempt.plan, footers),
    )
    widths = sample_widths(query, attempt.plan, known, confidence, groups)
    return replace(attempt, predicted=with_widths(attempt.predicted, query, widths))


def _listed(plan: Plan, footers: Footers) -> dict[int, tuple[Ints, Ints]]:
    """By vertex the keys that a sample will list, with their tuples, as far as these are counted without delay."""
    assert plan.sample is not None, "a sample is predicted"
    found = {}
    for (place, _), most in zip(plan.sample.members, plan.sample.counted, strict=False):
        counted = footers.key_counts(plan.vertices[place]) if math.isfinite(most) else None
        if counted is not None:
            found[plan.vertices[place]] = counted.listed(most)
    return found


def _values(summed: Sequence[Summed], query: Query | None = None) -> dict[tuple[int, str], Values]:
    from ...optimizer.prediction.made_up_keys import Values

    def reached(one: Summed) -> bool:
        """Whether the ends are those of a column of all tuples."""
        whole = query is not None and query.graph.vertices[one.vertex].filter is None
        return whole and math.isfinite(one.largest) and re.fullmatch("`[^`]+`", one.expression) is not None

    return {
        (s.vertex, s.expression): Values(s.values, s.low, s.high, reached(s))
        for s in summed
        if s.values.size and s.has_squares
    }
