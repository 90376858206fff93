"""Every way to answer a query, with predicted error, bytes and CPU; the one to take; why not the others.

A candidate is a set of exact messages (`messages.fold_orders`) and a method for the residual tree of what is left.
With an error target the cheapest whose predicted interval meets it is taken, at the least size that does; with a
size the one with the least predicted error within the bytes. Nothing is run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial

from ..messages import JoinTree, Residual, fold_orders, whole
from ..methods import is_linear
from ..objective import ENTRY_BYTES
from ..objective import Objective as Objective
from ..prediction.cost import Cost, counted, exact_join, sample, sampled_messages, scans, sketches
from ..prediction.figures import Figures
from ..prediction.relation import RelationStatistics, complete
from ..prediction.sample_sketch import sample_sketch
from ..prediction.samples import SampledMessages, SamplePlan, key_sample, two_level_alone, two_level_joint
from ..prediction.sketches import (
    agms_variance,
    convolution_variance,
    exact_maps,
    hash_variance,
    skimmed_variance,
    tree_variance,
)
from ..prediction.variance import Predicted
from .candidate import EXACT, SAME_COST, Candidate, best_of, bytes_text, checked, too_long, unwanted
from .candidate import Choice as Choice
from .candidate import NoMethod as NoMethod
from .folding import edges, message_keys, messages_bytes, messages_cost, planned_bytes, unfolded

COUNTER_BYTES = 8
LEAST_BUCKETS = 64

# The search for a size: from the first by what its width tells, until it is within a tenth of the least, or the width
# close to the asked one.
LEAST_BYTES = 1024
FIRST_BYTES = 65_536.0
FINE = 1.1
CLOSE = 0.95
MOST_TRIES = 40

# Of methods that cost the same those are sized first that usually take the fewest bytes.
SIZED = (
    "sampled_messages",
    "two_level",
    "key_sample",
    "hash",
    "skimmed",
    "convolution",
    "agms",
    "sample_sketch",
)

MOST_ERROR = 1.0  # relative; an answer that is off by as much as itself says nothing


def choose_method(tree: JoinTree, statistics: Sequence[RelationStatistics], objective: Objective) -> Choice:
    """Choose how to answer a COUNT or SUM over a join tree.

    Parameters
    ----------
    tree : JoinTree
        Of the query; `messages.tree_of` makes it.
    statistics : sequence of RelationStatistics
        One for each vertex.
    objective : Objective

    Raises
    ------
    NoMethod
        If a forced method does not apply, or nothing fits or meets the target.

    Notes
    -----
    Deterministic. Some milliseconds for each candidate that has to be sized.
    """
    relations = [complete(s, len(tree.classes_of(v))) for v, s in enumerate(statistics)]
    figures = Figures(tree, relations)
    candidates = enumerate_candidates(figures, objective)
    able = [c for c in candidates if not c.refused]
    if not able:
        reasons = "; ".join(dict.fromkeys(f"{c.name}: {c.refused}" for c in candidates))
        raise NoMethod(f"no method can answer this: {reasons}", candidates)
    taken = best_of(able, objective)
    notes = dict.fromkeys(f"table {v}: {note}" for v, r in enumerate(relations) for note in r.assumptions)
    if len(tree.classes) > 1:
        notes["the keys of one relation are independent between its classes"] = None
    return Choice(
        taken, tuple(candidates), edges(figures, taken, objective), tuple(notes), objective, figures
    )


def enumerate_candidates(figures: Figures, objective: Objective) -> list[Candidate]:
    """All candidates, each sized for the objective, those that cannot be taken with the reason.

    With an error target the cheapest come first, and one that cannot be cheaper than what was found, or as cheap and
    smaller, is not sized at all.
    """
    tree = figures.tree
    allowed = objective.senders(tree.vertices)
    residuals = fold_orders(
        tree,
        lambda residual, leaf: planned_bytes(figures, leaf, message_keys(figures, residual, leaf), objective),
        min(objective.fold_bytes, objective.most_bytes),
        allowed,
        lambda v: figures.relations[v].tuples,
    )
    drafts: list[Candidate | _Way] = []
    for residual in residuals:
        drafts += _for_residual(figures, residual, objective)
    if objective.size_bytes is None:
        drafts.append(_exact_run(figures, objective))
    found = [checked(d, objective) if isinstance(d, Candidate) else None for d in drafts]
    able = [c for c in found if c is not None and not c.refused]
    ways = [(number, way) for number, way in enumerate(drafts) if isinstance(way, _Way)]
    for number, way in sorted(ways, key=lambda w: (w[1].least.seconds, SIZED.index(w[1].method))):
        sized = checked(_sized(way, objective, able), objective)
        found[number] = sized
        if not sized.refused:
            able.append(sized)
    refused_messages = unfolded(figures, residuals[-1], objective, allowed)
    every = [c for c in found if c is not None] + [checked(c, objective) for c in refused_messages]
    return _without_useless(every)


def _without_useless(candidates: list[Candidate]) -> list[Candidate]:
    """Sample x sketch refused where it is predicted to be off by more than the answer, unless others would be taken."""
    if any(not c.refused and c.method != "sample_sketch" for c in candidates):
        return candidates
    return [
        c
        if c.refused or c.error <= MOST_ERROR
        else replace(c, refused=f"{bytes_text(c.nbytes)}: predicted to be off by {c.error:.0%}")
        for c in candidates
    ]


# What a method is at a size, and what it costs at the least.
_Builder = tuple[Callable[[float], Candidate], Cost]


@dataclass(frozen=True, slots=True, eq=False)
class _Way:
    """A method for a residual tree, not yet sized: what it is at a size, with its messages, and its least cost."""

    method: str
    residual: Residual
    build: Callable[[float], Candidate]
    least: Cost
    messages_bytes: float


def _for_residual(figures: Figures, residual: Residual, objective: Objective) -> list[Candidate | _Way]:
    """The methods that can answer a residual tree."""
    classes = residual.classes
    if not classes:
        return [_exact(figures, residual, objective)]
    # Of each the class that it samples, whose keys may have tuples of several groups.
    builders: list[tuple[str, int | None, _Builder]] = []

    def sketch(kind: str) -> tuple[str, None, _Builder]:
        return kind, None, _sketch(figures, residual, objective, kind)

    if not residual.folds:
        two = len(residual.vertices) == 2
        builders += [sketch(kind) for kind in (*(("hash", "skimmed") if two else ("convolution",)), "agms")]
        if len(classes) == 1:
            joint = two_level_joint if objective.ordered else two_level_alone
            for kind, plan in (("key_sample", key_sample), ("two_level", joint)):
                planned = partial(plan, regressed=objective.regressed)
                builders.append((kind, classes[0], _samples(figures, residual, kind, planned)))
    else:
        builders.append(sketch("hash" if len(residual.vertices) == 2 else "convolution"))
    if objective.ordered:
        builders += [
            ("sampled_messages", joined, _messages(figures, residual, joined, objective.regressed))
            for joined in classes
        ]
    if _fits_sample_sketch(residual, objective):
        builders += [
            ("sample_sketch", None, _sample_sketch(figures, residual, joined, objective))
            for joined in classes
        ]
    messages, spent = messages_cost(figures, residual), messages_bytes(figures, residual, objective)
    found: list[Candidate | _Way] = []
    for kind, joined, (build, least) in builders:
        refused = unwanted(kind, objective)
        if refused:
            found.append(Candidate(kind, residual, 0.0, EXACT, Cost(math.inf), refused=refused))
        else:
            groups = math.inf if joined is None else groups_of_a_key(figures, residual, joined)
            found.append(_way(kind, residual, build, least, messages, spent, objective, groups))
    return found


def groups_of_a_key(figures: Figures, residual: Residual, joined: int) -> float:
    """How many groups a key of a class has tuples of, no more than it has joined tuples: the mean number of these."""
    tuples = 1.0
    for vertex in residual.vertices:
        own = residual.classes_of(vertex)
        facing = [figures.attribute(vertex, c).distinct for c in ((joined,) if joined in own else own)]
        tuples *= max(figures.relations[vertex].tuples / max(*facing, 1.0), 1.0)
    return tuples


def _fits_sample_sketch(residual: Residual, objective: Objective) -> bool:
    """Whether sample x sketch is looked at: several classes, and tables that are summarised by themselves."""
    wanted = not objective.ordered or objective.method == "sample_sketch"
    return (
        wanted and "sample_sketch" in objective.methods and len(residual.classes) > 1 and not residual.folds
    )


def _way(
    kind: str,
    residual: Residual,
    build: Callable[[float], Candidate],
    least: Cost,
    messages: Cost,
    spent: float,
    objective: Objective,
    groups: float,
) -> _Way:
    # Sketches have counters for every weight, samples keys with all their weights; sample x sketch reckons its own.
    if is_linear(kind):
        wider, most = float(objective.columns), 1.0
    else:
        entry = ENTRY_BYTES if kind == "sample_sketch" else objective.entry_bytes
        wider, most = entry / ENTRY_BYTES, float(objective.most_groups)

    def built(size: float) -> Candidate:
        each = min(groups, most)
        while True:
            candidate = build(size / (wider * each))
            plan = candidate.sample
            # A dense key may have tuples of every group.
            dense = 0 if plan is None else max((k.size for k in plan.dense_keys), default=0)
            nbytes = candidate.nbytes * wider * each + dense * objective.entry_bytes * (most - each)
            if nbytes <= size or each == most:
                return replace(candidate, nbytes=nbytes + spent, cost=candidate.cost.plus(messages))
            each = min(2.0 * each, most)

    return _Way(kind, residual, built, least.plus(messages), spent)


def _sized(way: _Way, objective: Objective, able: Sequence[Candidate]) -> Candidate:
    """A candidate of the given size, or of the least size that meets the target.

    Refused where it cannot be better than those that are `able`: dearer whatever its size, or as dear and larger.
    """
    target = None if objective.size_bytes is not None else objective.relative_error
    most = objective.most_bytes - way.messages_bytes
    best = best_of(able, objective) if able and target is not None else None
    larger = ""
    if best is not None:
        cheapest = min(c.cost.seconds for c in able)
        if way.least.seconds > SAME_COST * cheapest:
            why = f"{way.least.seconds:.2g} CPU s at the least: {best.name} takes {best.cost.seconds:.2g}"
            return Candidate(way.method, way.residual, way.messages_bytes, EXACT, way.least, refused=why)
        if way.least.seconds >= cheapest and best.nbytes < objective.most_bytes:
            most = min(most, best.nbytes - way.messages_bytes)
            larger = f"takes more than the {bytes_text(best.nbytes)} of {best.name}, and as much CPU"
    try:
        if target is None:
            return way.build(most)
        found = _least(way.build, most, target, objective.confidence)
    except ValueError as fault:
        why = larger or str(fault)
        return Candidate(way.method, way.residual, way.messages_bytes, EXACT, way.least, refused=why)
    missed = found.half_width(objective.confidence) > target
    return replace(found, refused=larger) if larger and missed else found


def _least(build: Callable[[float], Candidate], most: float, target: float, confidence: float) -> Candidate:
    """The candidate of the least size that meets the target, within a tenth; that of the most bytes where none does.

    A width falls with the root of the size, more or less: that says where to look next.
    """
    low, high, size = float(LEAST_BYTES), math.inf, min(FIRST_BYTES, most)
    best: Candidate | None = None
    for tries in range(MOST_TRIES):
        try:
            tried = build(size)
        except ValueError:
            if size >= most:
                raise
            width = math.inf
        else:
            width = tried.half_width(confidence)
            if width <= target:
                best, high = tried, size
            elif size >= most:
                return tried
        if width > target:
            low = max(low, size)
        elif width >= CLOSE * target:
            break
        if high <= FINE * low:
            break
        guess = size * (width / target) ** 2 * FINE if 0.0 < width < math.inf else 0.0
        if high < math.inf and (tries % 3 == 2 or not low < guess < high):
            guess = math.sqrt(low * high)
        elif high == math.inf:
            guess = max(guess, 8.0 * size)
        size = min(guess, most)
    assert best is not None, "the most bytes are tried before the tries end"
    return best


def _exact_run(figures: Figures, objective: Objective) -> Candidate:
    """Spark's own run of the query; refused where it would take longer than anyone waits."""
    order = figures.tree.joined_order()
    sizes = figures.sizes(order)
    cost = exact_join([figures.relations[v] for v in order], sizes)
    refused = too_long(cost, sizes, objective)
    return Candidate("exact_run", whole(figures.tree), 0.0, EXACT, cost, sizes=sizes, refused=refused)


def _exact(figures: Figures, residual: Residual, objective: Objective) -> Candidate:
    (last,) = residual.vertices
    cost = (
        scans(figures.relations).plus(messages_cost(figures, residual)).plus(counted(figures.relations[last]))
    )
    return Candidate("exact", residual, messages_bytes(figures, residual, objective), EXACT, cost)


def _sketch(figures: Figures, residual: Residual, objective: Objective, kind: str) -> _Builder:
    vertices, rows = residual.vertices, objective.rows
    relations = [figures.relations[v] for v in vertices]
    attributes = [len(residual.classes_of(v)) for v in vertices]
    scanned = scans(relations)

    @cache
    def of_a_row() -> float:
        return tree_variance(figures, residual)

    def variance(buckets: int) -> float:
        if kind == "agms":
            return agms_variance(of_a_row(), rows, buckets)
        if kind == "convolution" or residual.folds:
            return convolution_variance(of_a_row(), len(vertices), rows, buckets)
        cells = figures.cells(residual.classes[0])
        if kind == "hash":
            return hash_variance(cells, rows, buckets)
        keys = max(figures.attribute(v, residual.classes[0]).distinct for v in vertices)
        return skimmed_variance(cells, rows, buckets, keys)

    number = objective.sketches(vertices)

    def build(size: float) -> Candidate:
        buckets = int(size) // (COUNTER_BYTES * rows * number)
        if buckets < LEAST_BUCKETS:
            least = LEAST_BUCKETS * COUNTER_BYTES * rows * number
            raise ValueError(f"{bytes_text(size)} hold no {number} sketches; {bytes_text(least)} would")
        held = COUNTER_BYTES * rows * buckets * number
        cost = scanned.plus(sketches(relations, attributes, kind, rows * buckets))
        if (
            kind == "agms"
            and objective.relative_error is not None
            and cost.seconds > objective.max_exact_seconds
        ):
            # Its size is for the asked error alone to say, and every tuple moves every counter.
            raise ValueError(
                f"{rows * buckets:,} counters, which every tuple moves, take {cost.seconds:,.0f} s of CPU, more than"
                f" skimql.max_exact_seconds = {objective.max_exact_seconds:,.0f}"
            )
        held_exactly = objective.sparse and exact_maps(figures, vertices, attributes, rows * buckets)
        # What is not exact always varies: a variance of nothing is one of which nothing is known.
        own = 0.0 if held_exactly else variance(buckets) or math.inf
        predicted = Predicted(figures.total, own, rows=rows)
        return Candidate(kind, residual, held, predicted, cost, rows=rows, buckets=buckets)

    return build, scanned.plus(sketches(relations, attributes, kind, rows * LEAST_BUCKETS))


def _samples(
    figures: Figures, residual: Residual, kind: str, plan: Callable[[Figures, float], SamplePlan]
) -> _Builder:
    scanned = scans(figures.relations)

    def build(size: float) -> Candidate:
        found = plan(figures, size)
        dense = max(keys.size for keys in found.dense_keys)
        cost = scanned.plus(sample(figures.relations, found.probability, dense))
        return Candidate(kind, residual, found.nbytes, found.predicted, cost, found)

    return build, scanned.plus(sample(figures.relations, 0.0, 0))


def _messages(figures: Figures, residual: Residual, joined: int, regressed: bool) -> _Builder:
    relations = [figures.relations[v] for v in residual.vertices]
    inside = [figures.relations[v] for v in residual.members(joined)]
    outside = [figures.relations[v] for v in residual.vertices if v not in residual.members(joined)]
    scanned = scans(relations)

    @cache
    def sampled() -> SampledMessages:
        return SampledMessages(figures, residual, joined, regressed=regressed)

    def build(size: float) -> Candidate:
        found = sampled().plan(size)
        kept = sum(r.tuples for r in relations) * found.probability
        cost = scanned.plus(sampled_messages(inside, outside, kept, found.dense_keys[0].size))
        return Candidate("sampled_messages", residual, found.nbytes, found.predicted, cost, found)

    return build, scanned.plus(sampled_messages(inside, outside, 0.0, 0))


def _sample_sketch(figures: Figures, residual: Residual, joined: int, objective: Objective) -> _Builder:
    def build(size: float) -> Candidate:
        found = sample_sketch(figures, residual, joined, size, objective.rows, objective.columns)
        sampled = [figures.relations[v] for v in found.vertices]
        beyond = [figures.relations[b.vertex] for b in found.beyond]
        dense = max(keys.size for keys in found.dense_keys)
        cost = scans([*sampled, *beyond]).plus(sample(sampled, found.probability, dense))
        if beyond:
            cost = cost.plus(sketches(beyond, [1] * len(beyond), "hash", 0))
        return Candidate(
            "sample_sketch", residual, found.nbytes, found.predicted, cost, found, objective.rows
        )

    everything = [figures.relations[v] for v in residual.vertices]
    return build, scans(everything).plus(sample(everything, 0.0, 0))
