"""Exact weights of candidate dense keys in all tables of a class, and bounds on all other keys.

One pass a relation: a tuple of a candidate is grouped by its key, any other by a hash of it, so that what comes back
is small. No key weighs more than the tuples that share its hash value: with 16,384 values a bound that is certain, and
tight where the keys left over are light.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from ..optimizer.messages import tree_of
from ..optimizer.relation import RelationStatistics
from ..parser.join_graph import Query
from ..sketches.ranking import by_weight
from ..sketches.two_level_plan import Candidates
from .filters import kept_by
from .jobs import ProgressListener, run_job
from .keys import key_column
from .pilot import PILOT_FAMILY, VirtualRelation
from .statistics import relations_of
from .tables import Frames

FINE_BITS = 14
MOST_CANDIDATES = 1024

Ints = npt.NDArray[np.int64]


def with_exact_candidates(
    spark: SparkSession,
    tables: Frames,
    query: Query,
    statistics: Sequence[RelationStatistics],
    listener: ProgressListener | None = None,
    *,
    most: int = MOST_CANDIDATES,
    fine_bits: int = FINE_BITS,
) -> tuple[RelationStatistics, ...]:
    """The statistics of a query's relations with the heavy keys of every class known exactly in all of them.

    Parameters
    ----------
    spark, tables, query
        As for `gather`.
    statistics : sequence of RelationStatistics
        From `gather`.
    listener : ProgressListener, optional
    most : int
        Candidates that each relation names, its heaviest keys.
    fine_bits : int
        Other keys share 2**fine_bits hash values, by which they are bounded.

    Returns
    -------
    tuple of RelationStatistics
        `heavy` lists the candidates of all relations of the class, with weight 0 where a key does not occur, and
        its `largest_other` holds for certain.

    Notes
    -----
    A pass over every relation for each of its attributes; none where everything was counted already.
    """
    tree, relations = tree_of(query.graph), relations_of(query.graph)
    found = [list(s.attributes) for s in statistics]
    counted: dict[tuple[VirtualRelation, int, int], Candidates] = {}
    for number, joined in enumerate(tree.classes):
        at = {v: tree.position(v, number) for v in joined.vertices}
        if not all(found[v] for v in at):
            continue  # nothing is known of one of them, so nothing of the class
        keys = _union([found[v][p].heavy for v, p in at.items()], most)
        for v, position in at.items():
            known = found[v][position].pilot
            if known is not None and known.probability == 1.0:
                heavy = _among(known.keys, known.weights[0].astype(np.int64), keys)
            else:
                same = relations[v], position, number
                if same not in counted:
                    counted[same] = _counted(spark, tables, relations[v], position, keys, fine_bits, listener)
                heavy = counted[same]
            found[v][position] = replace(found[v][position], heavy=heavy)
    return tuple(replace(s, attributes=tuple(row)) for s, row in zip(statistics, found, strict=True))


def _union(candidates: Sequence[Candidates | None], most: int) -> Ints:
    """The heaviest keys of each relation, together."""
    named = [c for c in candidates if c is not None]
    keys = [c.keys[by_weight(c.weights, most)] for c in named]
    return np.unique(np.concatenate([np.empty(0, np.int64), *keys]))


def _among(keys: Ints, weights: Ints, chosen: Ints) -> Candidates:
    """The chosen keys' weights, out of those of all keys."""
    inside = np.isin(keys, chosen)
    exact = np.zeros(len(chosen), np.int64)
    exact[np.searchsorted(chosen, keys[inside])] = weights[inside]
    return Candidates(chosen, exact, float(weights[~inside].max(initial=0)))


def _counted(
    spark: SparkSession,
    tables: Frames,
    relation: VirtualRelation,
    position: int,
    keys: Ints,
    fine_bits: int,
    listener: ProgressListener | None,
) -> Candidates:
    """Count the candidates, and the tuples of every hash value of the other keys."""
    frame = kept_by(tables.frame(relation.table), [relation.filter])
    columns = [key_column(a).alias(f"k{n}") for n, a in enumerate(relation.attributes)]
    frame = frame.select(*columns)
    for n in range(len(columns)):
        frame = frame.where(F.col(f"k{n}").isNotNull())
    key = F.col(f"k{position}")
    # The other words of the hash decide which keys a pilot samples.
    word = F.xxhash64(F.lit(PILOT_FAMILY.word_seeds(2)[1]).cast("bigint"), key)
    value = word.bitwiseAND(F.lit((1 << fine_bits) - 1))
    # As text: a thousand literals one by one cost more than the pass.
    dense = F.expr(f"k{position} IN ({', '.join(f'{k}L' for k in keys.tolist())})" if keys.size else "false")
    grouped = (
        frame.select(dense.alias("dense"), F.when(dense, key).otherwise(value).alias("value"))
        .groupBy("dense", "value")
        .agg(F.count(F.lit(1)).alias("n"))
    )
    rows: Mapping[str, object] = run_job(
        spark, f"dense keys of {relation.table}", grouped.toArrow, listener
    ).to_pydict()
    is_dense, values, counts = (np.asarray(rows[name]) for name in ("dense", "value", "n"))
    is_dense = is_dense.astype(bool)
    exact = np.zeros(keys.size, np.int64)
    exact[np.searchsorted(keys, values[is_dense].astype(np.int64))] = counts[is_dense]
    return Candidates(keys, exact, float(counts[~is_dense].max(initial=0)))
