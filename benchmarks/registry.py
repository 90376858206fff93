"""The studies of python -m benchmarks.sketches, and how a method takes part in them.

A method registers a function for a study; it gets the options and gives records, or cases to be run over all
seeds:

    @study("single")
    def skimmed_cases(options):
        for data in single_data(options):
            yield Case("single", "skimmed", data.words, data.parameters, data.truth, run)

Every module listed in `benchmarks.sketches.MODULES` is imported, and so has its say.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from skimql.sketches.intervals.interval import Estimate

from .trials import Record, record


@dataclass(frozen=True)
class Options:
    """What the command line asks for: number of seeds, and whether a quick look will do."""

    seeds: int
    quick: bool = False


@dataclass(frozen=True)
class Case:
    """One method on one data set at one size; `run(seed)` gives its estimate of `truth`.

    ``seeds`` replaces the number asked for where a case needs more, or cannot afford as many.
    """

    study: str
    method: str
    words: int
    parameters: dict[str, Any]
    truth: float
    run: Callable[[int], Estimate]
    seeds: int = 0


Contribution = Callable[[Options], Iterable[Case | Record]]
STUDIES: dict[str, list[Contribution]] = {}


def study(name: str) -> Callable[[Contribution], Contribution]:
    """Register a function that contributes cases or records to the study `name`."""

    def register(contribution: Contribution) -> Contribution:
        STUDIES.setdefault(name, []).append(contribution)
        return contribution

    return register


def run_study(name: str, options: Options) -> Iterable[Record]:
    """All records of a study, one after the other."""
    for contribution in STUDIES[name]:
        for item in contribution(options):
            yield run_case(item, options) if isinstance(item, Case) else item


def run_case(case: Case, options: Options) -> Record:
    """Run a case over its seeds.

    Estimates that say "cannot tell" (an infinite interval) have no error: they are counted as ``undecided``,
    and the record is that of the others.
    """
    start = time.process_time()
    estimates = [case.run(seed) for seed in range(case.seeds or options.seeds)]
    told = [e for e in estimates if math.isfinite(e.half_width)]
    if not told:
        raise ValueError(f"{case.method} at {case.words} words cannot tell for any seed: {case.parameters}")
    done = record(case.study, case.method, case.words, case.parameters, told, case.truth)
    done["undecided"] = len(estimates) - len(told)
    done["cpu_s"] = time.process_time() - start
    return done
