"""The all-JVM route: the sketches of a scan by DataFrame expressions alone, no Python worker.

Counts by one key come from Spark's own count-min sketch, everything else from one grouping (see `folded_scan`). Where
all sketches of a plan turn out to have few keys, a second pass gives their exact maps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ...optimizer.plan import Plan
from ...optimizer.route import COUNT_MIN
from ...sketches.joins.sparse import SparseFirstSketch
from .jvm_count_min import count_min_frame, count_min_passes
from .jvm_exact_keys import exact_sketch, few_keys, keys_frame
from .jvm_folded import FoldedScan
from .jvm_measures import Measure, Pass, measures_of, tally_of
from .partial_aggregate import Partial
from .scan import PreparedScan

Run = Callable[[DataFrame], pa.Table]


@dataclass(frozen=True, slots=True)
class JvmScan:
    """A scan whose first pass is done.

    Parameters
    ----------
    prepared : PreparedScan
    measures : sequence of Measure
    passes : mapping of int to Pass
        By synopsis.
    run : callable
        Runs a DataFrame and collects it.
    """

    prepared: PreparedScan
    measures: Sequence[Measure]
    passes: dict[int, Pass]
    run: Run

    @classmethod
    def first(cls, plan: Plan, prepared: PreparedScan, run: Run) -> JvmScan:
        """Make all sketches of the scan.

        Raises
        ------
        OverflowError
            If a sum or counter leaves 64 bits.
        ValueError
            If a weight is not finite.
        """
        measures = measures_of(plan, prepared)
        keyed = [m for m in measures if m.keys]
        totals = [m for m in measures if not m.keys]
        passes: dict[int, Pass] = {}
        if totals:
            passes |= _totals(prepared, totals, run)
        if keyed and plan.family == COUNT_MIN:
            [row] = run(count_min_frame(prepared.columns, keyed)).to_pylist()
            passes |= count_min_passes(row, keyed)
        elif keyed:
            passes |= FoldedScan(prepared.columns, keyed, run).passes()
        return cls(prepared, measures, passes, run)

    @property
    def few_keys(self) -> bool:
        """Whether every sketch has so few keys that a map of them would do, or no keys at all."""
        return all(few_keys(m, self.passes[m.synopsis]) for m in self.measures if m.keys)

    def partials(self, *, exact: bool) -> dict[int, Partial]:
        """The sketches by synopsis; `exact`: as exact maps where they are small enough.

        Raises
        ------
        DataError
            If the table has changed since the first pass.
        """
        sketches: dict[int, SparseFirstSketch[Any]] = {i: p.sketch for i, p in self.passes.items()}
        if exact:
            for keys in dict.fromkeys(m.keys for m in self.measures if m.keys):
                own = [m for m in self.measures if m.keys == keys]
                table = self.run(keys_frame(self.prepared.columns, own))
                for number, measure in enumerate(own):
                    found = self.passes[measure.synopsis]
                    sketches[measure.synopsis] = exact_sketch(table, number, measure, found)
        return {i: Partial(sketches[i], p.tally) for i, p in self.passes.items()}


def _totals(prepared: PreparedScan, measures: Sequence[Measure], run: Run) -> dict[int, Pass]:
    """Exact totals of the whole table."""
    sums = []
    for number, measure in enumerate(measures):
        add = F.sum if measure.spec.dtype == "float64" else F.try_sum
        sums += [add(measure.value).alias(f"{number}total"), *measure.tally_columns(f"{number}")]
    [row] = run(prepared.columns.agg(*sums)).to_pylist()
    passes = {}
    for number, measure in enumerate(measures):
        tuples, total = row[f"{number}tuples"] or 0, row[f"{number}total"]
        if total is None and tuples:
            raise OverflowError("a total")
        total = total or 0
        mass = float(total) if measure.counts else float(row[f"{number}mass"] or 0.0)
        negative = 0 if measure.counts else row[f"{number}negative"] or 0
        slack = 0.0 if measure.slack is None else row[f"{number}slack"] or 0.0
        tally = tally_of(tuples, mass, negative, slack)
        sketch = SparseFirstSketch(measure.spec, None if measure.sketch.sparse else 0)
        if total:
            sketch.update([], np.array([total], dtype=measure.spec.dtype))
        passes[measure.synopsis] = Pass(sketch, tally, 0.0)
    return passes
