"""EXPLAIN: the resolved query and its plan, as text, JSON or a diagram; with ANALYZE beside what was measured."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

from ...optimizer.describe.physical import (
    describe_attempts,
    describe_physical,
    draw_physical,
    physical_dict,
)
from ...optimizer.methods import ANSWERED
from ...parser.explain import as_diagram, as_dict, explain
from ...parser.sampled_select import SampledQuery

if TYPE_CHECKING:
    from ...parser.diagram import Diagram
    from .run import SelectRun


def explained(run: SelectRun, form: str, *, analyze: bool) -> str:
    """The text of an EXPLAIN.

    Parameters
    ----------
    run : SelectRun
        Of the SELECT; one that this engine does not run is told as it was resolved.
    form : str
        One of `parser.syntax.FORMATS`.
    analyze : bool
        Whether the query is run, and what its operators took is told.

    Raises
    ------
    SkimqlError
        As planning; with `analyze` as the run.
    """
    query = run.query
    sampled = isinstance(query, SampledQuery)
    if any(f.name not in ANSWERED for f in query.features):
        if analyze:
            query.refuse_beyond(ANSWERED)
        return _drawn(as_diagram(query.graph), form) if form == "svg" else explain(query, form)
    if analyze:
        plan, answer = run.analyzed()
        attempts = answer.attempts
    else:
        plan, attempts = run.plan(), ()
    now = time.time()
    match form:
        case "json":
            told = {
                **({"sql": query.select_sql} if sampled else as_dict(query)),
                "plan": physical_dict(plan, attempts),
            }
            return json.dumps(told, indent=2, ensure_ascii=False)
        case "mermaid" | "svg":
            drawn = as_diagram(query.graph)
            draw_physical(plan, attempts, drawn)
            return _drawn(drawn, form)
    resolved = [] if sampled else [explain(query)]
    return "\n".join([*resolved, describe_physical(plan, now), *describe_attempts(attempts)])


def _drawn(diagram: Diagram, form: str) -> str:
    if form == "mermaid":
        return diagram.mermaid()
    from ...optimizer.describe.svg import as_svg  # with networkx

    return as_svg(diagram)
