"""One way to answer a query, with its predicted figures; and the choice among several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...sketches.ranking import rounded
from ..combinations import worker_reason
from ..messages import Residual
from ..objective import Objective
from ..prediction.cost import Cost, duration_text
from ..prediction.figures import Figures
from ..prediction.samples import SamplePlan
from ..prediction.variance import Predicted

EXACT = Predicted(0.0, 0.0)
SAME_COST = 1.1


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """One way to answer a query.

    Parameters
    ----------
    method : str
        By its name in the registry: how the residual tree is answered.
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
    sizes : tuple of float
        Tuples that an exact run puts out: joins of the first two tables, the first three, ...
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
    sizes: tuple[float, ...] = ()
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
        folds = len(self.residual.folds)
        return f"{text}, {folds} exact message{'s' if folds > 1 else ''}" if folds else text


@dataclass(frozen=True, slots=True)
class EdgeChoice:
    """What is done with one edge of the query, and why."""

    edge: int
    what: str
    why: str


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """The candidate taken, all others with their figures, and what is done with each edge; by which figures."""

    taken: Candidate
    candidates: tuple[Candidate, ...]
    edges: tuple[EdgeChoice, ...]
    assumptions: tuple[str, ...]
    objective: Objective
    figures: Figures | None = None


class NoMethod(ValueError):
    """No candidate can be taken; `candidates` say why, each for itself."""

    def __init__(self, message: str, candidates: Sequence[Candidate]) -> None:
        super().__init__(message)
        self.candidates = tuple(candidates)


def best_of(candidates: Sequence[Candidate], objective: Objective) -> Candidate:
    """The candidate to take, of those that can be taken.

    Predicted costs that differ by less than a tenth from the least are the same: then the smaller state decides.
    """
    width = {id(c): c.half_width(objective.confidence) for c in candidates}
    if objective.size_bytes is not None:
        return min(candidates, key=lambda c: _rounded(c.error, width[id(c)], c.cost.seconds, c.nbytes))
    most = SAME_COST * min(c.cost.seconds for c in candidates)
    tied = [c for c in candidates if _rounded(c.cost.seconds) <= _rounded(most)]
    return min(tied, key=lambda c: _rounded(c.nbytes, width[id(c)], c.cost.seconds))


def _rounded(*figures: float) -> tuple[float, ...]:
    """Figures that rounding alone may tell apart are equal, and the next one decides."""
    return tuple(rounded(figures).tolist())


def unwanted(method: str, objective: Objective) -> str:
    """Why a method is out of the question whatever it costs; empty if it is not."""
    if objective.method is not None and method != objective.method:
        return f"USING {objective.method}"
    reason = worker_reason(method, grouped=bool(objective.groups)) if objective.route == "jvm" else ""
    if reason:
        return f"route = jvm: {reason}"
    return "" if method in objective.methods else "cannot be run here"


def checked(candidate: Candidate, objective: Objective) -> Candidate:
    """The candidate, refused where it is not what was asked for."""
    if candidate.refused:
        return candidate
    reason, confidence = unwanted(candidate.method, objective), objective.confidence
    if not reason and candidate.nbytes > objective.most_bytes:
        bound = "SIZE" if objective.size_bytes is not None else "skimql.max_bytes"
        reason = f"{bytes_text(candidate.nbytes)}: above {bound} of {bytes_text(objective.most_bytes)}"
    elif not reason and objective.size_bytes is None and objective.relative_error is not None:
        width = candidate.half_width(confidence)
        if width > objective.relative_error:
            reason = (
                f"predicted +-{width:.2g} of the answer at {bytes_text(candidate.nbytes)}: "
                f"misses {objective.relative_error:.2g}"
            )
    return replace(candidate, refused=reason)


def too_long(cost: Cost, sizes: Sequence[float], objective: Objective) -> str:
    """Why an exact run is not started: it would take longer than anyone waits; empty if it would not.

    `sizes` are the tuples of the joins on its way.
    """
    if cost.seconds <= objective.max_exact_seconds:
        return ""
    output = f"would put out {max(sizes):.2g} joined tuples, in " if sizes else "would take "
    most = duration_text(objective.max_exact_seconds)
    return f"{output}{duration_text(cost.seconds)} of CPU: above skimql.max_exact_seconds of {most}"


def bytes_text(nbytes: float) -> str:
    """Bytes as people read them: 24 MB."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if nbytes >= size:
            return f"{nbytes / size:.3g} {unit}"
    return f"{nbytes:.0f} bytes"


def count_text(keys: float) -> str:
    """A number of keys as people read it: 1.5M."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("K", 1e3)):
        if keys >= size:
            return f"{keys / size:.3g}{unit}"
    return f"{keys:.0f}"
