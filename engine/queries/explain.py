"""EXPLAIN: the resolved query and its plan, as text, JSON or a diagram; with ANALYZE beside what was measured."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

from ...optimizer.describe.physical import (
    describe_attempts,
    describe_physical,
    physical_dict,
    physical_mermaid,
)
from ...optimizer.methods import ANSWERED
from ...parser.explain import as_dict, explain
from ...parser.sampled_select import SampledQuery

if TYPE_CHECKING:
    from .run import SelectRun


def explained(run: SelectRun, form: str, *, analyze: bool) -> str:
    """The text of an EXPLAIN.

    Parameters
    ----------
    run : SelectRun
        Of the SELECT; one that this engine does not run is told as it was resolved.
    form : str
        ``text``, ``json`` or ``mermaid``.
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
        return explain(query, form)
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
        case "mermaid":
            graph = "graph TD" if sampled else explain(query, "mermaid")
            return graph + "\n" + physical_mermaid(plan, attempts)
    resolved = [] if sampled else [explain(query)]
    return "\n".join([*resolved, describe_physical(plan, now), *describe_attempts(attempts)])
