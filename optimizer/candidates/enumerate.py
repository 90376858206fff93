"""Every way to answer a query, with predicted error, bytes and CPU; the one to take; why not the others.

A candidate is a set of exact messages (`messages.fold_orders`) and a method for the residual tree of what is left.
With an error target the cheapest whose predicted interval meets it is taken, at the least size that does; with a
size the one with the least predicted error within the bytes. Nothing is run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from ..messages import JoinTree, Residual, fold_orders, whole
from ..objective import ENTRY_BYTES, SKETCHES
from ..objective import METHODS as METHODS
from ..objective import Objective as Objective
from ..prediction.cost import MOST_OUTPUT, Cost, exact_join, sample, sampled_messages, scans, sketches
from ..prediction.figures import Figures
from ..prediction.relation import RelationStatistics, complete
from ..prediction.samples import SamplePlan, key_sample, two_level_alone, two_level_joint
from ..prediction.samples import sampled_messages as plan_messages
from ..prediction.sketches import agms_variance, convolution_variance, hash_variance, skimmed_variance
from ..prediction.variance import Predicted
from .candidate import EXACT, Candidate, bytes_text, checked, rank, unwanted
from .candidate import Choice as Choice
from .candidate import NoMethod as NoMethod
from .folding import edges, message_keys, messages_bytes, messages_cost, planned_bytes, unfolded

COUNTER_BYTES = 8
LEAST_BUCKETS = 64
LEAST_BYTES = 1024


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
    Deterministic. Some ten milliseconds for each candidate with an error target, which is met by bisection.
    """
    relations = [complete(s, len(tree.classes_of(v))) for v, s in enumerate(statistics)]
    figures = Figures(tree, relations)
    candidates = enumerate_candidates(figures, objective)
    able = [c for c in candidates if not c.refused]
    if not able:
        reasons = "; ".join(dict.fromkeys(f"{c.name}: {c.refused}" for c in candidates))
        raise NoMethod(f"no method can answer this: {reasons}", candidates)
    taken = min(able, key=lambda c: rank(c, objective))
    notes = dict.fromkeys(f"table {v}: {note}" for v, r in enumerate(relations) for note in r.assumptions)
    if len(tree.classes) > 1:
        notes["the keys of one relation are independent between its classes"] = None
    return Choice(taken, tuple(candidates), edges(figures, taken, objective), tuple(notes), objective)


def enumerate_candidates(figures: Figures, objective: Objective) -> list[Candidate]:
    """All candidates, each sized for the objective, those that cannot be taken with the reason."""
    tree = figures.tree
    allowed = objective.senders(tree.vertices)
    residuals = fold_orders(
        tree,
        lambda residual, leaf: planned_bytes(figures, leaf, message_keys(figures, residual, leaf), objective),
        min(objective.fold_bytes, objective.most_bytes),
        allowed,
        lambda v: figures.relations[v].tuples,
    )
    found = []
    for residual in residuals:
        found += _for_residual(figures, residual, objective)
    if objective.size_bytes is None:
        everything = list(figures.relations)
        output = abs(figures.total)
        cost = scans(everything).plus(exact_join(everything, output))
        refused = f"would put out {output:.2g} joined tuples" if output > MOST_OUTPUT else ""
        found.append(Candidate("exact_run", whole(tree), 0.0, EXACT, cost, refused=refused))
    found += unfolded(figures, residuals[-1], objective, allowed)
    return [checked(c, objective) for c in found]


def _for_residual(figures: Figures, residual: Residual, objective: Objective) -> list[Candidate]:
    """The methods that can answer a residual tree."""
    classes = residual.classes
    if not classes:
        return [_exact(figures, residual, objective)]
    builders: list[tuple[str, Callable[[float], Candidate]]] = []
    if not residual.folds:
        if len(residual.vertices) == 2:
            builders += [(kind, _sketch(figures, residual, objective, kind)) for kind in ("hash", "skimmed")]
        else:
            builders.append(("convolution", _sketch(figures, residual, objective, "convolution")))
        builders.append(("agms", _sketch(figures, residual, objective, "agms")))
        if len(classes) == 1:
            plan = two_level_joint if objective.ordered else two_level_alone
            builders.append(("key_sample", _samples(figures, residual, "key_sample", key_sample)))
            builders.append(("two_level", _samples(figures, residual, "two_level", plan)))
    else:
        kind = "hash" if len(residual.vertices) == 2 else "convolution"
        builders.append((kind, _sketch(figures, residual, objective, kind)))
    if objective.ordered:
        builders += [("sampled_messages", _messages(figures, residual, joined)) for joined in classes]
    return [_sized(figures, residual, kind, build, objective) for kind, build in builders]


def _sized(
    figures: Figures,
    residual: Residual,
    kind: str,
    build: Callable[[float], Candidate],
    objective: Objective,
) -> Candidate:
    """A candidate of the given size, or of the least size that meets the target."""
    refused = unwanted(kind, objective)
    if refused:
        return Candidate(kind, residual, 0.0, EXACT, Cost(math.inf), refused=refused)
    spent = messages_bytes(figures, residual, objective)
    # Sketches have counters for every weight, samples keys with all their weights.
    wider = objective.columns if kind in SKETCHES else objective.entry_bytes / ENTRY_BYTES
    most = objective.most_bytes - spent

    def built(size: float) -> Candidate:
        candidate = build(size / wider)
        cost = candidate.cost.plus(messages_cost(figures, residual))
        return replace(candidate, nbytes=candidate.nbytes * wider + spent, cost=cost)

    try:
        best = built(most)
    except ValueError as fault:
        return Candidate(kind, residual, spent, EXACT, Cost(math.inf), refused=str(fault))
    target = objective.relative_error
    if objective.size_bytes is not None or target is None:
        return best
    if best.half_width(objective.confidence) > target:
        return best
    low, high = float(LEAST_BYTES), float(most)
    while high > 1.1 * low:
        middle = math.sqrt(low * high)
        try:
            tried = built(middle)
        except ValueError:
            low = middle
            continue
        if tried.half_width(objective.confidence) <= target:
            high, best = middle, tried
        else:
            low = middle
    return best


def _exact(figures: Figures, residual: Residual, objective: Objective) -> Candidate:
    cost = scans(figures.relations).plus(messages_cost(figures, residual))
    return Candidate("exact", residual, messages_bytes(figures, residual, objective), EXACT, cost)


def _sketch(
    figures: Figures, residual: Residual, objective: Objective, kind: str
) -> Callable[[float], Candidate]:
    vertices, rows = residual.vertices, objective.rows
    relations = [figures.relations[v] for v in vertices]
    attributes = [len(residual.classes_of(v)) for v in vertices]
    number = objective.sketches(vertices)

    def build(size: float) -> Candidate:
        buckets = int(size) // (COUNTER_BYTES * rows * number)
        if buckets < LEAST_BUCKETS:
            least = LEAST_BUCKETS * COUNTER_BYTES * rows * number
            raise ValueError(f"{bytes_text(size)} hold no {number} sketches; {bytes_text(least)} would")
        if kind == "agms":
            variance = agms_variance(figures, residual, rows, buckets)
        elif kind == "convolution" or residual.folds:
            variance = convolution_variance(figures, residual, rows, buckets)
        else:
            cells = figures.cells(residual.classes[0])
            if kind == "hash":
                variance = hash_variance(cells, rows, buckets)
            else:
                keys = max(figures.attribute(v, residual.classes[0]).distinct for v in vertices)
                variance = skimmed_variance(cells, rows, buckets, keys)
        held = COUNTER_BYTES * rows * buckets * number
        cost = scans(relations).plus(sketches(relations, attributes, kind, rows * buckets))
        return Candidate(
            kind, residual, held, Predicted(figures.total, variance), cost, rows=rows, buckets=buckets
        )

    return build


def _samples(
    figures: Figures, residual: Residual, kind: str, plan: Callable[[Figures, float], SamplePlan]
) -> Callable[[float], Candidate]:
    def build(size: float) -> Candidate:
        found = plan(figures, size)
        dense = max(keys.size for keys in found.dense_keys)
        cost = scans(figures.relations).plus(sample(figures.relations, found.probability, dense))
        return Candidate(kind, residual, found.nbytes, found.predicted, cost, found)

    return build


def _messages(figures: Figures, residual: Residual, joined: int) -> Callable[[float], Candidate]:
    relations = [figures.relations[v] for v in residual.vertices]

    def build(size: float) -> Candidate:
        found = plan_messages(figures, residual, joined, size)
        kept = sum(r.tuples for r in relations) * found.probability
        inside = [figures.relations[v] for v in residual.members(joined)]
        outside = [figures.relations[v] for v in residual.vertices if v not in residual.members(joined)]
        dense = found.dense_keys[0].size
        cost = scans(relations).plus(sampled_messages(inside, outside, kept, dense))
        return Candidate("sampled_messages", residual, found.nbytes, found.predicted, cost, found)

    return build
