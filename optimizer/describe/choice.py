"""A choice as text: for every edge what is done with it and why, and every candidate with its predicted figures."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from ...parser.join_graph import JoinGraph
from ..candidates.candidate import Candidate, Choice
from ..prediction.relation import RelationStatistics

_TABLE = re.compile(r"\btable (\d+)\b")


def describe_choice(
    choice: Choice, graph: JoinGraph, statistics: Sequence[RelationStatistics], now: float
) -> str:
    """Lines for EXPLAIN.

    Parameters
    ----------
    choice : Choice
    graph : JoinGraph
        Of the query that was planned.
    statistics : sequence of RelationStatistics
        One for each vertex: their sources and ages are told.
    now : float
        Seconds since the epoch.
    """

    def named(text: str) -> str:
        return _TABLE.sub(lambda m: graph.vertices[int(m[1])].alias, text)

    lines = [f"choice: {choice.taken.name}, predicted {_figures(choice.taken, choice.objective.confidence)}"]
    for edge in choice.edges:
        ends = graph.edges[edge.edge]
        names = f"{graph.vertices[ends.left].alias} - {graph.vertices[ends.right].alias}"
        lines.append(f"  {names} on {ends.class_name}: {edge.what}; {named(edge.why)}")
    lines.append("  candidates, with the interval, bytes and CPU that are predicted")
    for candidate in choice.candidates:
        if candidate is choice.taken:
            told = "taken"
        else:
            told = named(candidate.refused) or "not as good"
        if not candidate.refused:
            told = f"{_figures(candidate, choice.objective.confidence)}; {told}"
        elif math.isfinite(candidate.cost.seconds) and "CPU" not in told:
            told = f"{told}; {candidate.cost.seconds:.2g} CPU s"
        lines.append(f"    {candidate.name}: {told}")
    for number, known in enumerate(statistics):
        age = known.age(now)
        since = "" if age is None else f", {age:,.0f} s old"
        tuples = "" if known.tuples is None else f", {known.tuples:,.0f} tuples"
        alias = graph.vertices[number].alias
        if known.source == "assumed":
            lines.append(f"  statistics of {alias}: none before the query runs and looks at it")
        else:
            lines.append(f"  statistics of {alias}: {known.source}{tuples}{since}")
    lines += [f"  assumed: {named(a)}" for a in choice.assumptions]
    return "\n".join(lines)


def _figures(candidate: Candidate, confidence: float) -> str:
    width = candidate.half_width(confidence)
    text = f"±{width:.2%}, {candidate.nbytes / 1024:,.0f} KB, {candidate.cost.seconds:.2g} CPU s"
    if candidate.sizes:
        text += f", puts out {candidate.sizes[-1]:,.0f} tuples"
        if max(candidate.sizes) > candidate.sizes[-1]:
            text += f", {max(candidate.sizes):,.0f} on the way"
    return text
