"""Every way to answer a query, with predicted error, bytes and CPU; the one to take; why not the others.

A candidate is a set of exact messages (`messages.fold_orders`) and a method for the residual tree of what is left.
With an error target the cheapest whose predicted interval meets it is taken, at the least size that does; with a
size the one with the least predicted error within the bytes. Nothing is run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from .cost import Cost, exact_join, message, received, sample, sampled_messages, scans, sketches
from .figures import Figures
from .messages import JoinTree, Residual, fold_orders, whole
from .predict import Predicted
from .predict_samples import SamplePlan, key_sample, two_level_alone, two_level_joint
from .predict_samples import sampled_messages as plan_messages
from .predict_sketch import agms_variance, convolution_variance, hash_variance, skimmed_variance
from .relation import RelationStatistics, complete

ENTRY_BYTES = 16
COUNTER_BYTES = 8
LEAST_BUCKETS = 64
LEAST_BYTES = 1024
METHODS = (
    "exact",
    "hash",
    "skimmed",
    "convolution",
    "agms",
    "key_sample",
    "two_level",
    "sampled_messages",
    "level_sketch",
    "join_distinct",
    "exact_run",
)
SKETCHES = ("hash", "skimmed", "convolution", "agms")
EXACT = Predicted(0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Objective:
    """What is asked of the answer and what it may take.

    Parameters
    ----------
    relative_error : float, optional
        Half-width of the interval over the answer, asked with `confidence`.
    confidence : float
    size_bytes : int, optional
        Bytes for all state of the query together; goes over the error target.
    max_bytes : int
        Never more than this, whatever is asked.
    fold_bytes : int
        Largest exact message.
    ordered : bool
        Whether the tables can be read one after another, with what the first told; false for streams and for
        synopses that are built once for any query.
    static : tuple of int, optional
        Where `ordered` is false, the vertices that can be read beforehand all the same and send exact messages.
    method : str, optional
        Forces one of `METHODS`.
    methods : tuple of str
        Those that whoever asks can run.
    rows : int
        Rows of a sketch.
    columns : int
        Most weights that a table's tuples have in the query: 1 for a COUNT, 2 for SUM and AVG (the argument and
        its presence). Every table is planned for as many.
    """

    relative_error: float | None = None
    confidence: float = 0.95
    size_bytes: int | None = None
    max_bytes: int = 256 << 20
    fold_bytes: int = 8 << 20
    ordered: bool = True
    static: tuple[int, ...] = ()
    method: str | None = None
    methods: tuple[str, ...] = METHODS
    rows: int = 11
    columns: int = 1

    def __post_init__(self) -> None:
        if self.method is not None and self.method not in METHODS:
            raise ValueError(f"a method is one of {', '.join(METHODS)}, not {self.method!r}")
        if self.relative_error is None and self.size_bytes is None:
            raise ValueError("an objective has an error target or a size")

    @property
    def entry_bytes(self) -> float:
        """Bytes of a key with its weights, in a message or a sample."""
        return ENTRY_BYTES * (1 + self.columns) / 2

    @property
    def most_bytes(self) -> float:
        """What the state may take."""
        return min(self.max_bytes, self.max_bytes if self.size_bytes is None else self.size_bytes)


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """One way to answer a query.

    Parameters
    ----------
    method : str
        One of `METHODS`: how the residual tree is answered.
    residual : Residual
        What the folds leave.
    nbytes : float
        Predicted bytes of messages and synopses together.
    predicted : Predicted
        Answer and standard error.
    cost : Cost
        CPU seconds.
    sample : SamplePlan, optional
        For key samples, two levels and sampled messages.
    rows, buckets : int
        Of every sketch, for the sketches.
    refused : str
        Why it cannot be taken; empty if it can.
    """

    method: str
    residual: Residual
    nbytes: float
    predicted: Predicted
    cost: Cost
    sample: SamplePlan | None = None
    rows: int = 0
    buckets: int = 0
    refused: str = ""

    @property
    def error(self) -> float:
        """Predicted relative standard error."""
        return self.predicted.error

    def half_width(self, confidence: float) -> float:
        """Predicted half-width of the interval over the answer."""
        return self.predicted.half_width(confidence)

    @property
    def name(self) -> str:
        """The method and what it is applied to, as EXPLAIN shows it."""
        tree = self.residual.tree
        text = self.method.replace("_", " ")
        if self.sample is not None:
            text += f" on {tree.classes[self.sample.joined].name}"
        return f"{text}, {len(self.residual.folds)} exact messages" if self.residual.folds else text


@dataclass(frozen=True, slots=True)
class EdgeChoice:
    """What is done with one edge of the query, and why."""

    edge: int
    what: str
    why: str


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """The candidate taken, all others with their figures, and what is done with each edge."""

    taken: Candidate
    candidates: tuple[Candidate, ...]
    edges: tuple[EdgeChoice, ...]
    assumptions: tuple[str, ...]
    objective: Objective


class NoMethod(ValueError):
    """No candidate can be taken; `candidates` say why, each for itself."""

    def __init__(self, message: str, candidates: Sequence[Candidate]) -> None:
        super().__init__(message)
        self.candidates = tuple(candidates)


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
    return Choice(taken, tuple(candidates), _edges(figures, taken, objective), tuple(notes), objective)


def rank(candidate: Candidate, objective: Objective) -> tuple[float, ...]:
    """What is least for the candidate to take."""
    width = candidate.half_width(objective.confidence)
    if objective.size_bytes is not None:
        return (candidate.error, width, candidate.cost.seconds, candidate.nbytes)
    # Predicted costs that differ by less than a tenth are the same: then the smaller state decides.
    return (round(math.log(max(candidate.cost.seconds, 1e-9)), 1), candidate.nbytes, width)


def enumerate_candidates(figures: Figures, objective: Objective) -> list[Candidate]:
    """All candidates, each sized for the objective, those that cannot be taken with the reason."""
    tree = figures.tree
    allowed = None if objective.ordered else objective.static
    residuals = fold_orders(
        tree,
        lambda residual, leaf: objective.entry_bytes * _message_keys(figures, residual, leaf),
        min(objective.fold_bytes, objective.most_bytes),
        allowed,
        lambda v: figures.relations[v].tuples,
    )
    found = []
    for residual in residuals:
        found += _for_residual(figures, residual, objective)
    if objective.size_bytes is None:
        everything = list(figures.relations)
        found.append(
            Candidate("exact_run", whole(tree), 0.0, EXACT, scans(everything).plus(exact_join(everything)))
        )
    found += _unfolded(figures, residuals[-1], objective, allowed)
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
    refused = _unwanted(kind, objective)
    if refused:
        return Candidate(kind, residual, 0.0, EXACT, Cost(math.inf), refused=refused)
    spent = _messages_bytes(figures, residual, objective)
    # Sketches have counters for every weight, samples keys with all their weights.
    wider = objective.columns if kind in SKETCHES else objective.entry_bytes / ENTRY_BYTES
    most = objective.most_bytes - spent

    def built(size: float) -> Candidate:
        candidate = build(size / wider)
        cost = candidate.cost.plus(_messages_cost(figures, residual))
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


def _unwanted(method: str, objective: Objective) -> str:
    """Why a method is out of the question whatever it costs; empty if it is not."""
    if objective.method is not None and method != objective.method:
        return f"USING {objective.method}"
    return "" if method in objective.methods else "cannot be run here"


def checked(candidate: Candidate, objective: Objective) -> Candidate:
    """The candidate, refused where it is not what was asked for."""
    if candidate.refused:
        return candidate
    reason, confidence = _unwanted(candidate.method, objective), objective.confidence
    if not reason and candidate.nbytes > objective.most_bytes:
        bound = "SIZE" if objective.size_bytes is not None else "skimql.max_bytes"
        reason = f"{_size(candidate.nbytes)}: above {bound} of {_size(objective.most_bytes)}"
    elif not reason and objective.size_bytes is None and objective.relative_error is not None:
        width = candidate.half_width(confidence)
        if width > objective.relative_error:
            reason = (
                f"predicted +-{width:.2g} of the answer at {_size(candidate.nbytes)}: "
                f"misses {objective.relative_error:.2g}"
            )
    return replace(candidate, refused=reason)


def _exact(figures: Figures, residual: Residual, objective: Objective) -> Candidate:
    cost = scans(figures.relations).plus(_messages_cost(figures, residual))
    return Candidate("exact", residual, _messages_bytes(figures, residual, objective), EXACT, cost)


def _sketch(
    figures: Figures, residual: Residual, objective: Objective, kind: str
) -> Callable[[float], Candidate]:
    vertices, rows = residual.vertices, objective.rows
    relations = [figures.relations[v] for v in vertices]
    attributes = [len(residual.classes_of(v)) for v in vertices]

    def build(size: float) -> Candidate:
        buckets = int(size) // (COUNTER_BYTES * rows * len(vertices))
        if buckets < LEAST_BUCKETS:
            least = LEAST_BUCKETS * COUNTER_BYTES * rows * len(vertices)
            raise ValueError(f"{_size(size)} hold no {len(vertices)} sketches; {_size(least)} would")
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
        held = COUNTER_BYTES * rows * buckets * len(vertices)
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


def _message_keys(figures: Figures, residual: Residual, leaf: int) -> float:
    """Keys of the message that a leaf of a residual tree sends, after what it has received over the same class."""
    (joined,) = residual.classes_of(leaf)
    senders = [f.sender for f in residual.folds if f.receiver == leaf and f.joined == joined]
    return figures.message_keys(leaf, joined, senders)


def _folds(figures: Figures, residual: Residual) -> list[tuple[int, float, int]]:
    """Sender, keys and number of messages received, for each fold in order."""
    found, before = [], whole(residual.tree)
    for fold in residual.folds:
        keys = _message_keys(figures, before, fold.sender)
        found.append((fold.sender, keys, sum(1 for f in before.folds if f.receiver == fold.sender)))
        before = before.without(fold.sender, fold.receiver)
    return found


def _messages_bytes(figures: Figures, residual: Residual, objective: Objective) -> float:
    return sum(objective.entry_bytes * keys for _, keys, _ in _folds(figures, residual))


def _messages_cost(figures: Figures, residual: Residual) -> Cost:
    """Making the exact messages, and looking them up in the relations that are left."""
    cost = Cost(0.0)
    for sender, keys, got in _folds(figures, residual):
        cost = cost.plus(message(figures.relations[sender], keys, got))
        if residual.classes:
            cost = cost.plus(scans([figures.relations[sender]]))
    for v in residual.vertices:
        got = sum(1 for f in residual.folds if f.receiver == v)
        if got:
            cost = cost.plus(received(figures.relations[v], got))
    return cost


def _unfolded(
    figures: Figures, last: Residual, objective: Objective, allowed: Sequence[int] | None
) -> list[Candidate]:
    """Why the messages behind the last fold are not sent: for EXPLAIN."""
    found = []
    for leaf in last.leaves if len(last.vertices) > 1 else ():
        keys = _message_keys(figures, last, leaf)
        size = objective.entry_bytes * keys
        if allowed is not None and leaf not in allowed:
            reason = "its table cannot be read beforehand"
        elif size > objective.fold_bytes:
            reason = f"{_count(keys)} keys are {_size(size)}: above skimql.fold_bytes of {_size(objective.fold_bytes)}"
        else:
            reason = f"{_count(keys)} keys are {_size(size)}: above the {_size(objective.most_bytes)} allowed"
        reason = f"message of table {leaf}: {reason}"
        found.append(Candidate("exact", last, size, EXACT, Cost(math.inf), refused=reason))
    return found


def _edges(figures: Figures, taken: Candidate, objective: Objective) -> tuple[EdgeChoice, ...]:
    """What the taken candidate does with each edge of the query."""
    found = []
    residual = taken.residual
    for number, joined in enumerate(residual.tree.classes):
        folds = [f for f in residual.folds if f.joined == number]
        for edge in joined.edges or (number,):
            if taken.method == "exact_run":
                found.append(EdgeChoice(edge, "exact run", f"cheapest: {taken.cost.seconds:.2g} CPU s"))
            elif number not in residual.classes:
                sizes = {s: k for s, k, _ in _folds(figures, residual)}
                keys = ", ".join(
                    f"table {f.sender} sends {_count(sizes[f.sender])} keys, {_size(objective.entry_bytes * sizes[f.sender])}"
                    for f in folds
                )
                found.append(EdgeChoice(edge, "exact message", keys))
            else:
                what = taken.method.replace("_", " ")
                if taken.sample is not None and taken.sample.joined != number:
                    what = "joined exactly within the sample"
                width = taken.half_width(objective.confidence)
                found.append(EdgeChoice(edge, what, f"predicted +-{width:.2g}, {_size(taken.nbytes)}"))
    return tuple(sorted(found, key=lambda e: e.edge))


def _size(nbytes: float) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if nbytes >= size:
            return f"{nbytes / size:.3g} {unit}"
    return f"{nbytes:.0f} bytes"


def _count(keys: float) -> str:
    for unit, size in (("G", 1e9), ("M", 1e6), ("K", 1e3)):
        if keys >= size:
            return f"{keys / size:.3g}{unit}"
    return f"{keys:.0f}"
