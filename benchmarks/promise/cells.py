"""What the answers of a cell came to, and what they may come to: class x query x error x route."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
from scipy.special import bdtrc

from skimql import Estimate
from skimql.engine.results.answer import Answer, half_width, is_null
from skimql.engine.results.answer import state_of as of_cell
from skimql.optimizer.physical import ExactRun, Nothing
from skimql.parser.expressions import Aggregated

SLACK = 1e-9
NARROW = 1e-3  # of half-widths it matters no more how narrow they are
STATES = ("met", "missed", "unknown", "exact")
RAISED = "raised"  # what no refusal of ours is
FALSE_ALARM = 0.01  # that any of the cells of a correct program is reported


@dataclass(frozen=True, slots=True)
class Seen:
    """One value of one answer against the truth."""

    state: str
    method: str
    covered: bool
    wrong: bool  # off by more than the asked error
    certified: bool
    error: float  # of the value, relative
    half_width: float  # relative
    absent: int  # groups that the answer does not have
    cpu: float
    foreseen: float  # predicted half-width over the one that it has; NaN where nothing was predicted
    attempts: int = 1  # what was run for it
    by_estimate: bool = True  # whether synopses gave it, which a prediction is of


def state_of(answer: Answer, cell: Any, target: float) -> str:
    """`met`, `missed` or `unknown`: of the value, where the answer does not know less."""
    state = of_cell(cell, target)
    return "unknown" if state == "met" and answer.target == "unknown" else state


def seen(
    answer: Answer, truths: Mapping[str, float], target: float, seed: int, cpu: float, item: int = 0
) -> Seen | None:
    """One value of an answer: of the only row, or by the seed of one of them; None for an answer without rows.

    `item` counts the estimated columns, which come behind the groups; `truths` are by group.
    """
    position = len(answer.columns) - 1 if "g" in answer.columns else item
    groups = position if "g" in answer.columns else 0
    if not answer.rows:
        return None
    row = answer.rows[seed % len(answer.rows)]
    truth = truths.get(key_of(row[:groups]))
    absent = len(set(truths) - {key_of(r[:groups]) for r in answer.rows})
    cell = row[position]
    if truth is None:
        truth = math.nan
    if not isinstance(cell, Estimate):
        cell = Estimate(*(math.nan if cell is None else float(cell),) * 3, 1.0, True, "exact")
    value, low, high = (float(v) for v in (cell.value, cell.low, cell.high))
    nothing = math.isnan(truth)
    told = foreseen(answer, position), len(answer.attempts), _by_estimate(answer)
    if nothing and is_null(cell):
        return Seen("exact", answer.method, True, False, True, 0.0, 0.0, absent, cpu, *told)
    # A sum of nothing is NULL, which an estimate comes close to as a 0.
    truth = 0.0 if nothing else truth
    off, scale = abs(value - truth), abs(truth) or 1.0
    if cell.exact and (off <= SLACK * scale):
        return Seen("exact", answer.method, True, False, True, 0.0, 0.0, absent, cpu, *told)
    state = "met" if cell.exact else state_of(answer, cell, target)
    if math.isnan(value):
        low, high, off = -math.inf, math.inf, math.inf
    covered = low - SLACK * scale <= truth <= high + SLACK * scale
    return Seen(
        state,
        answer.method,
        covered,
        not off <= target * abs(truth) + SLACK * scale,
        cell.certified,
        (value - truth) / scale,
        max(high - value, value - low) / scale,
        absent,
        cpu,
        *told,
    )


def _by_estimate(answer: Answer) -> bool:
    return bool(answer.attempts) and not isinstance(answer.attempts[-1].attempt, ExactRun | Nothing)


def foreseen(answer: Answer, position: int) -> float:
    """The predicted half-width of a column over the one it has; NaN where nothing was predicted of it.

    Of a grouped answer that of a group of mean size over the median of the groups'. Two that say nothing, as wide as
    their values or wider, are the same, and what is narrower than `NARROW` is as wide.
    """
    if not _by_estimate(answer) or answer.plan is None or not answer.rows:
        return math.nan
    predicted, expression = (
        answer.attempts[-1].attempt.predicted,
        answer.plan.query.items[position].expression,
    )
    widths = predicted.half_widths
    known = (
        widths[expression.index] if widths and isinstance(expression, Aggregated) else predicted.half_width
    )
    own = median(_relative(row[position]) for row in answer.rows)
    if math.isnan(known):
        return math.nan
    if min(known, own) >= 1.0:
        return 1.0
    return max(known, NARROW) / max(own, NARROW)


def _relative(cell: Any) -> float:
    if not isinstance(cell, Estimate) or cell.exact or is_null(cell):
        return 0.0
    return half_width(cell) / abs(cell.value) if cell.value and math.isfinite(cell.value) else math.inf


def key_of(values: Sequence[Any]) -> str:
    """A group as text."""
    return repr([v.value if isinstance(v, Estimate) else v for v in values])


def record_of(found: Sequence[Seen], scan: float, exact: float) -> dict[str, Any]:
    """The rates and counts of a cell; rates are over the answers that are not exact."""
    states = Counter(s.state for s in found)
    sampled = [s for s in found if s.state != "exact"]
    certified = [s for s in sampled if s.certified]
    told = [s for s in sampled if math.isfinite(s.error) and math.isfinite(s.half_width)]
    errors = np.array([s.error for s in told])
    rmse = float(np.sqrt(np.mean(errors**2))) if told else math.nan
    cpu = float(np.median([s.cpu for s in found])) if found else math.nan
    methods = Counter(s.method for s in sampled or found)
    estimated = [s.foreseen for s in found if s.by_estimate]
    predicted = [f for f in estimated if not math.isnan(f)]
    return {
        "method": methods.most_common(1)[0][0] if methods else "",
        "methods": dict(methods),
        "seeds": len(found),
        "sampled": len(sampled),
        "state": states.most_common(1)[0][0] if states else "",
        "states": {s: states.get(s, 0) for s in STATES},
        "covered": _rate(sum(s.covered for s in sampled), len(sampled)),
        "wrong_and_met": sum(s.wrong and s.state == "met" for s in sampled),
        "wrong_and_unknown": sum(s.wrong and s.state == "unknown" for s in sampled),
        "certified": len(certified),
        "certified_missed": sum(not s.covered for s in certified),
        "uncertified_missed": sum(
            not s.covered and not s.certified and s.state != "unknown" for s in sampled
        ),
        "uncertified": sum(not s.certified and s.state != "unknown" for s in sampled),
        "absent": float(np.mean([s.absent for s in found])) if found else 0.0,
        "bias": float(errors.mean()) if told else math.nan,
        "half_width_over_rmse": float(np.median([s.half_width for s in told]) / rmse)
        if rmse > 0
        else math.nan,
        "foreseen": len(predicted),
        "unforeseen": len(estimated) - len(predicted),
        "predicted_within_2": _rate(sum(0.5 <= f <= 2.0 for f in predicted), len(predicted)),
        "predicted_over_realised": float(np.median(predicted)) if predicted else math.nan,
        "attempts": float(np.mean([s.attempts for s in found])) if found else math.nan,
        "cpu": cpu,
        "cpu_over_scan": cpu / scan if scan else math.nan,
        "cpu_over_exact": cpu / exact if exact else math.nan,
    }


def _rate(part: int, whole: int) -> float:
    return part / whole if whole else math.nan


# What is added up where a cell has several records, and by which of these what is averaged.
SUMMED = ("seeds", "sampled", "wrong_and_met", "wrong_and_unknown", "certified", "certified_missed")
SUMMED += ("uncertified_missed", "uncertified", "foreseen", "unforeseen")
AVERAGED = {"covered": "sampled", "bias": "sampled", "half_width_over_rmse": "sampled"}
AVERAGED |= {"predicted_within_2": "foreseen", "predicted_over_realised": "foreseen", "absent": "seeds"}


def pooled(records: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One record for each cell, of those of its ranges of seeds."""
    cells: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for record in records:
        names = ("class", "aggregate", "error_asked", "route", "backend")
        cells.setdefault(tuple(record[n] for n in names), []).append(record)
    return [_pooled(parts) if len(parts) > 1 else dict(parts[0]) for parts in cells.values()]


def _pooled(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = dict(parts[0])
    for name in SUMMED:
        found[name] = sum(p.get(name, 0) for p in parts)
    for name, weight in AVERAGED.items():
        told = [(p[name], p.get(weight, 0)) for p in parts if p.get(name) is not None]
        whole = sum(w for _, w in told)
        found[name] = sum(v * w for v, w in told) / whole if whole else None
    found["states"] = {s: sum(p["states"][s] for p in parts) for s in STATES}
    found["state"] = max(STATES, key=lambda s: found["states"][s])
    found["refused"] = next((p["refused"] for p in parts if p["refused"]), "")
    return found


def most(trials: int, share: float, cells: int) -> int:
    """The least k with P[Bin(trials, share) > k] <= `FALSE_ALARM` / cells."""
    return next(k for k in range(trials + 1) if bdtrc(k, trials, share) <= FALSE_ALARM / cells)


def faults_of(record: Mapping[str, Any], cells: int) -> list[str]:
    """In which ways a record breaks the promise."""
    found = [record["refused"]] if record["refused"].startswith(RAISED) else []
    for name, of, share in (
        ("wrong_and_met", "sampled", 0.05),
        ("certified_missed", "certified", 0.05),
        ("uncertified_missed", "uncertified", 0.10),
    ):
        if record[name] > most(record[of], share, cells):
            found.append(f"{name} {record[name]} of {record[of]}")
    return found
