"""What the files of a query's tables tell without a job: how many tuples, what filters keep of some, and key ranges."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from ...optimizer.candidates.first_sample import Size, is_large, sampled_class
from ...optimizer.messages import JoinClass, tree_of
from ...parser.join_graph import Query
from ..sources.files import files_of, values_between
from ..sources.selectivity import kept_share
from ..sources.tables import Tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Footers:
    """Of the tables of one query.

    Attributes
    ----------
    spark, tables
        The session's.
    query : Query
        With every key type known.
    """

    spark: SparkSession
    tables: Tables
    query: Query

    @property
    def large(self) -> bool:
        """Whether a table is so large that a sample is tried before anything else is known."""
        return is_large(self.tuples)

    @cached_property
    def tuples(self) -> tuple[float | None, ...]:
        """Tuples of the table of each vertex, where files tell."""
        return tuple(
            files_of(self.tables, v.table, self.tables.frame(v.table), count=True).tuples
            for v in self.query.graph.vertices
        )

    @cached_property
    def sizes(self) -> tuple[Size, ...]:
        """Tuples of each vertex, and what its filter keeps of some of them."""
        sizes = []
        for vertex, tuples in zip(self.query.graph.vertices, self.tuples, strict=True):
            frame = self.tables.frame(vertex.table)
            share = 1.0 if vertex.filter is None else kept_share(self.spark, frame, vertex.filter)
            sizes.append(Size(tuples or 0.0, share))
        return tuple(sizes)

    @property
    def bare_sizes(self) -> tuple[Size, ...]:
        """Tuples of each vertex, its filter not looked at."""
        return tuple(Size(t or 0.0) for t in self.tuples)

    @cached_property
    def values(self) -> float:
        """Most distinct keys that the class of a first sample can have; infinite where files do not tell."""
        graph = self.query.graph
        return self._distinct(tree_of(graph).classes[sampled_class(graph, [t or 0.0 for t in self.tuples])])

    @cached_property
    def output(self) -> float:
        """Joined tuples if keys are spread evenly; infinite where files do not tell."""
        classes = tree_of(self.query.graph).classes
        if None in self.tuples:
            return math.inf
        output = math.prod(max(t or 0.0, 1.0) for t in self.tuples)
        for joined in classes:
            distinct = self._distinct(joined)
            if not math.isfinite(distinct):
                return math.inf
            output /= max(distinct, 1.0) ** (len(joined.vertices) - 1)
        return output

    def _distinct(self, joined: JoinClass) -> float:
        """Most distinct keys that a class can have, as far as files tell; infinite where they do not."""
        edges = [self.query.graph.edges[e] for e in joined.edges]
        keys = {(e.left, e.left_keys) for e in edges} | {(e.right, e.right_keys) for e in edges}
        return min(
            math.prod(values_between(self._frame(vertex), key.strip("`")) for key in own)
            for vertex, own in keys
        )

    def _frame(self, vertex: int) -> DataFrame:
        return self.tables.frame(self.query.graph.vertices[vertex].table)
