"""Exact messages of a candidate: keys, bytes and CPU; what is done with each edge, and what was not folded and why."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..messages import Residual, whole
from ..objective import Objective
from ..prediction.cost import Cost, message, received, scans
from ..prediction.figures import Figures
from .candidate import EXACT, Candidate, EdgeChoice, bytes_text, count_text

ROOM = 1.05  # two standard errors of a count from a sample of 2,048 keys


def message_keys(figures: Figures, residual: Residual, leaf: int) -> float:
    """Keys of the message that a leaf of a residual tree sends, after what it has received over the same class."""
    (joined,) = residual.classes_of(leaf)
    senders = [f.sender for f in residual.folds if f.receiver == leaf and f.joined == joined]
    return figures.message_keys(leaf, joined, senders)


def fold_keys(figures: Figures, residual: Residual) -> list[tuple[int, float, int]]:
    """Sender, keys and number of messages received, for each fold in order."""
    found, before = [], whole(residual.tree)
    for fold in residual.folds:
        keys = message_keys(figures, before, fold.sender)
        found.append((fold.sender, keys, sum(1 for f in before.folds if f.receiver == fold.sender)))
        before = before.without(fold.sender, fold.receiver)
    return found


def messages_bytes(figures: Figures, residual: Residual, objective: Objective) -> float:
    """Bytes to plan for all exact messages together."""
    return sum(planned_bytes(figures, v, keys, objective) for v, keys, _ in fold_keys(figures, residual))


def planned_bytes(figures: Figures, sender: int, keys: float, objective: Objective) -> float:
    """Bytes to plan for a message: a twentieth more where the number of its keys is an estimate."""
    room = 1.0 if figures.relations[sender].source == "exact" else ROOM
    return room * objective.entry_bytes * keys


def messages_cost(figures: Figures, residual: Residual) -> Cost:
    """Making the exact messages, and looking them up in the relations that are left."""
    cost = Cost(0.0)
    for sender, keys, got in fold_keys(figures, residual):
        cost = cost.plus(message(figures.relations[sender], keys, got))
        if residual.classes:
            cost = cost.plus(scans([figures.relations[sender]]))
    for v in residual.vertices:
        got = sum(1 for f in residual.folds if f.receiver == v)
        if got:
            cost = cost.plus(received(figures.relations[v], got))
    return cost


def unfolded(
    figures: Figures, last: Residual, objective: Objective, allowed: Sequence[int] | None
) -> list[Candidate]:
    """Why the messages behind the last fold are not sent: for EXPLAIN."""
    found = []
    for leaf in last.leaves if len(last.vertices) > 1 else ():
        keys = message_keys(figures, last, leaf)
        size = objective.entry_bytes * keys
        known = f"{count_text(keys)} keys are {bytes_text(size)}"
        if allowed is not None and leaf not in allowed:
            grouped = leaf in dict(objective.groups)
            reason = "its groups are told apart" if grouped else "its table cannot be read beforehand"
        elif size > objective.fold_bytes:
            reason = f"{known}: above skimql.fold_bytes of {bytes_text(objective.fold_bytes)}"
        else:
            reason = f"{known}: above the {bytes_text(objective.most_bytes)} allowed"
        reason = f"message of table {leaf}: {reason}"
        found.append(Candidate("exact", last, size, EXACT, Cost(math.inf), refused=reason))
    return found


def edges(figures: Figures, taken: Candidate, objective: Objective) -> tuple[EdgeChoice, ...]:
    """What the taken candidate does with each edge of the query."""
    found = []
    residual = taken.residual
    for number, joined in enumerate(residual.tree.classes):
        folds = [f for f in residual.folds if f.joined == number]
        for edge in joined.edges or (number,):
            if taken.method == "exact_run":
                found.append(EdgeChoice(edge, "exact run", f"cheapest: {taken.cost.seconds:.2g} CPU s"))
            elif number not in residual.classes:
                sizes = {s: k for s, k, _ in fold_keys(figures, residual)}
                keys = ", ".join(
                    f"table {f.sender} sends {count_text(sizes[f.sender])} keys, "
                    f"{bytes_text(objective.entry_bytes * sizes[f.sender])}"
                    for f in folds
                )
                found.append(EdgeChoice(edge, "exact message", keys))
            else:
                what = taken.method.replace("_", " ")
                if taken.sample is not None and taken.sample.joined != number:
                    what = "joined exactly within the sample"
                width = taken.half_width(objective.confidence)
                found.append(EdgeChoice(edge, what, f"predicted +-{width:.2g}, {bytes_text(taken.nbytes)}"))
    return tuple(sorted(found, key=lambda e: e.edge))
