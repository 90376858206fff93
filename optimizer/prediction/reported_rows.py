"""The half-widths that an answer from sketches will report, of each aggregate by itself.

An interval of R rows reaches from one of their order statistics to another, which for few rows is much wider than two
standard errors of their median. What a row is off by follows from the second moments of what keys weigh: of a SUM with
the values' own, of an AVG those of their distance from the mean, since what SUM and COUNT share cancels row by row.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...parser.join_graph import Aggregate, Factor, Query, Term
from ...sketches.intervals.interval import averaged, median_interval
from ..messages import Residual
from .figures import Figures
from .made_up_keys import Values, combined_mean
from .reported import wider_than_itself
from .sampled_class import behind
from .sketches import CONVOLUTION_TAIL, exact_maps, row_errors, skimmed_errors, tree_variance
from .variance import rows_width

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Moments:
    """Mean and mean square of what a tuple is multiplied by."""

    mean: float = 1.0
    square: float = 1.0

    def times(self, other: Moments) -> Moments:
        """Of the product, taken to be independent."""
        return Moments(self.mean * other.mean, self.square * other.square)


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Sketches of a residual tree whose rows are predicted.

    Attributes
    ----------
    figures : Figures
    residual : Residual
    method : str
        "hash", "skimmed", "convolution" or "agms", as candidates name them.
    rows, buckets : int
    groups : mapping of int to int
        How many groups each grouped vertex has.
    values : mapping
        By vertex and expression what has been looked at.
    """

    figures: Figures
    residual: Residual
    method: str
    rows: int
    buckets: int
    groups: Mapping[int, int]
    values: Mapping[tuple[int, str], Values]

    @property
    def are_exact(self) -> bool:
        """Whether they are exact maps to the end, if they begin as such."""
        vertices = self.residual.vertices
        attributes = [len(self.residual.classes_of(v)) for v in vertices]
        return self.method != "agms" and exact_maps(
            self.figures, vertices, attributes, self.rows * self.buckets, self.groups
        )

    def widths(self, query: Query, confidence: float) -> tuple[float, ...]:
        """The relative half-width of each aggregate; NaN where it is not known."""
        return tuple(self._width(a, confidence) for a in query.aggregates)

    def _width(self, aggregate: Aggregate, confidence: float) -> float:
        factors = [f for t in aggregate.total for f in t.factors]
        known = [self.values.get((f.vertex, f.expression)) for f in factors if not f.presence]
        if aggregate.function == "count_distinct" or any(v is None for v in known):
            return math.nan
        total = self.figures.total / math.prod(self.groups.values())
        value = reach = most = 0.0
        for term in aggregate.total:
            moments = self._moments(term)
            mean = math.prod(m.mean for m in moments.values())
            value += term.coefficient * total * mean
            own = [self.values[f.vertex, f.expression] for f in term.factors if not f.presence]
            most += abs(term.coefficient) * total * math.prod(v.largest_mean for v in own)
            if aggregate.function == "avg":
                # The ratio's rows are off by what the distances from the mean make.
                square = math.prod(m.square for m in moments.values())
                owner = next(iter(moments), 0)
                moments = {owner: Moments(0.0, max(square - mean**2 / self._present(term), 0.0))}
            reach += abs(term.coefficient) * self._reach(moments, confidence)
        spread = all(self._is_spread(f) for f in factors if not f.presence)
        if len(aggregate.total) > 1:
            summed = [
                (t.coefficient, [self.values[f.vertex, f.expression] for f in t.factors if not f.presence])
                for t in aggregate.total
            ]
            mean, error = combined_mean(summed)
            if error > abs(mean):
                # The terms may cancel out.
                return wider_than_itself(reach, total * (abs(mean) + error))
        if not spread or not all(v is not None and v.tells for v in known):
            return wider_than_itself(reach, most)
        return reach / abs(value) if value and reach else math.nan

    def _is_spread(self, factor: Factor) -> bool:
        """Whether the second moment is known: by the values that were looked at, or by the largest, which is there."""
        return self.values[factor.vertex, factor.expression].is_spread or self._has_ends(factor)

    def _has_ends(self, factor: Factor) -> bool:
        """Whether some tuple has the least value and some the largest: of a column of a table without a filter."""
        relation = self.figures.relations[factor.vertex]
        known = self.values[factor.vertex, factor.expression]
        whole = relation.tuples >= relation.scanned and re.fullmatch("`[^`]+`", factor.expression or "")
        return bool(whole) and math.isfinite(known.low) and math.isfinite(known.high)

    def _present(self, term: Term) -> float:
        """The share of the joined tuples of which no factor is NULL."""
        shares = [
            1.0 - float(np.isnan(self.values[f.vertex, f.expression].seen).mean())
            for f in term.factors
            if (f.vertex, f.expression) in self.values
        ]
        return max(math.prod(shares), 1e-9)

    def _moments(self, term: Term) -> dict[int, Moments]:
        found: dict[int, Moments] = {}
        for factor in term.factors:
            known = self.values.get((factor.vertex, factor.expression))
            seen = np.ones(1) if known is None else known.seen
            x = (~np.isnan(seen)).astype(np.float64) if factor.presence else np.nan_to_num(seen)
            own = Moments(float(x.mean()), float((x**2).mean()))
            if known is not None and not factor.presence and not known.is_spread and self._has_ends(factor):
                # A value that was not met among so many, and is there.
                ends, number = (known.low, known.high), max(self.figures.relations[factor.vertex].tuples, 1.0)
                rare = [e for e in ends if not x.min() <= e <= x.max()]
                own = Moments(own.mean + sum(rare) / number, own.square + sum(e * e for e in rare) / number)
            found[factor.vertex] = found.get(factor.vertex, Moments()).times(own)
        return found

    def _reach(self, moments: Mapping[int, Moments], confidence: float) -> float:
        """The half-width of one term's interval, as it stands."""
        if self.method in ("hash", "skimmed") and not self.residual.folds:
            rows = self._of_two(moments)
        else:
            tail = CONVOLUTION_TAIL if self.method != "agms" and len(self.residual.vertices) > 2 else 1.0
            deviation = math.sqrt(tail * self._tree(moments) / self.buckets)
            reach = rows_width(self.rows, confidence) * math.sqrt(math.pi / 2.0 / self.rows)
            return deviation * reach
        reaches = []
        for own in rows:
            found = median_interval(averaged(own, self.buckets, confidence), confidence)
            reaches.append(max(found.high - found.value, found.value - found.low))
        return float(np.median(reaches))

    def _of_two(self, moments: Mapping[int, Moments]) -> Floats:
        (joined,) = self.residual.classes
        cells, hangs = self.figures.cells(joined), behind(self.figures.tree, joined)
        sides = []
        for place, vertex in enumerate(self.figures.tree.classes[joined].vertices):
            weights, squares = cells.weights[place], cells.weights[place] ** 2
            groups = self.groups.get(vertex, 1)
            if groups > 1:
                squares = np.maximum(squares - weights, 0.0) / groups**2 + weights / groups
                weights = weights / groups
            for v, own in moments.items():
                if hangs[v] == place:
                    squares = squares * own.mean**2 + weights * max(own.square - own.mean**2, 0.0)
                    weights = weights * own.mean
            sides.append((weights, squares))
        if self.method == "skimmed":
            return skimmed_errors(sides[0], sides[1], cells, self.rows, self.buckets)
        return row_errors(sides[0], sides[1], cells.counts, self.rows, self.buckets)

    def _tree(self, moments: Mapping[int, Moments]) -> float:
        """The variance of one atomic sketch of each vertex: that of a COUNT, by how much squares grow."""
        figures, found = self.figures, tree_variance(self.figures, self.residual)
        for v, relation in enumerate(figures.relations):
            single = len(figures.tree.classes_of(v)) == 1
            square = relation.attributes[0].self_join_size if single else relation.joint_self_join_size
            square = max(square, 1.0)
            groups, own = self.groups.get(v, 1), moments.get(v, Moments())
            tuples, part = relation.tuples / groups, square
            if groups > 1:
                part = max(square - relation.tuples, 0.0) / groups**2 + tuples
            part = part * own.mean**2 + tuples * max(own.square - own.mean**2, 0.0)
            found *= part / square
        return found
