"""Repeated trials of one estimator, summed up in the records that all studies share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from skimql.sketches.intervals.interval import Estimate

Record = dict[str, Any]


def record(
    study: str,
    method: str,
    words: int,
    parameters: dict[str, Any],
    estimates: Sequence[Estimate],
    truth: float,
) -> Record:
    """One line of a study.

    Parameters
    ----------
    study, method : str
        What was compared, and which of it this is.
    words : int
        8-byte words of one relation's synopsis.
    parameters : dict
        What identifies the data and the query.
    estimates : sequence of Estimate
        One for each seed.
    truth : float
        The exact answer, not zero.

    Returns
    -------
    dict
        ``coverage`` counts intervals that hold the truth, ``mean_width`` is the mean half-width relative to
        the truth, and ``width_over_rmse`` the median half-width over the root mean square error.
    """
    errors = np.array([e.value for e in estimates]) / truth - 1.0
    widths = np.array([e.half_width for e in estimates]) / abs(truth)
    rmse = float(np.sqrt(np.mean(errors**2)))
    misses = sum(not e.low <= truth <= e.high for e in estimates)
    return {
        "study": study,
        "method": method,
        "words": words,
        "parameters": parameters,
        "seeds": len(estimates),
        "median_relative_error": float(np.median(np.abs(errors))),
        "mean_relative_error": float(np.mean(np.abs(errors))),
        "coverage": 1.0 - misses / len(estimates),
        "mean_width": float(np.mean(widths)),
        "misses": misses,
        "width_over_rmse": float(np.median(widths)) / rmse if rmse else 0.0,
        "errors": np.abs(errors).tolist(),
    }


def worse_ratio(
    errors: Sequence[float], reference: Sequence[float], resamples: int = 4000, level: float = 0.01
) -> float:
    """One-sided lower bootstrap bound of the ratio of two paired mean errors.

    Above 1.1, the first method is worse than 1.1 times the second with all but `level` certainty.
    """
    a, b = np.asarray(errors), np.asarray(reference)
    drawn = np.random.default_rng(1).integers(0, a.size, (resamples, a.size))
    below = b[drawn].mean(axis=1)
    ratios = a[drawn].mean(axis=1) / np.where(below > 0, below, np.inf)
    return float(np.quantile(ratios, level))


def zipf(domain: int, z: float, tuples: int, shift: int = 0) -> npt.NDArray[np.int64]:
    """Rounded frequencies of a Zipf law on [0, domain), the ranks moved to the right by `shift`."""
    weights = 1.0 / np.arange(1, domain + 1) ** z
    return np.roll(np.rint(tuples * weights / weights.sum()).astype(np.int64), shift)


def table_of(records: Iterable[Record]) -> str:
    """The records as aligned text."""
    lines = [f"{'method':<28} {'words':>8} {'mean error':>11} {'cover':>6} {'w/rmse':>7}  parameters"]
    lines += [
        f"{r['method']:<28} {r['words']:>8} {r['mean_relative_error']:>11.5f} {r['coverage']:>6.3f} "
        f"{r['width_over_rmse']:>7.2f}  {r['parameters']}"
        for r in records
    ]
    return "\n".join(lines)
