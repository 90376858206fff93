"""Statistics of a query's relations for the planner: exact ones, and what a cheap pilot would give."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from skimql.optimizer.prediction.histograms import equi_depth
from skimql.optimizer.prediction.pilot_figures import BUCKETS
from skimql.optimizer.prediction.relation import AttributeStatistics, RelationStatistics
from skimql.sketches.hashing.xi import make_family
from skimql.sketches.samples.key_sample import KeySample, KeySampleSpec
from skimql.sketches.samples.known_keys import KnownKeys
from skimql.sketches.samples.two_level_plan import Candidates, heaviest

from .join_queries import JoinQuery, Tuples, weights_at

Ints = npt.NDArray[np.int64]

PILOT_SEED = 1_000_003
PILOT_KEYS = 2048
HEAVY_KEYS = 2048
PILOT_ROWS = 0.1
PILOT_HEAVY = 512
LEAST_SEEN = 3  # a key seen less often in the pilot's rows is no candidate


def exact_statistics(query: JoinQuery, heavy: int = HEAVY_KEYS) -> list[RelationStatistics]:
    """Counts, distinct keys, F2, the heaviest keys of every table counted in all tables of the class, and a sample.

    The pilot sample has another seed than any synopsis.
    """
    found = []
    named = {
        (v, j): heaviest(*query.relations[v].grouped(query.tree.position(v, j)), heavy)
        for j, joined in enumerate(query.tree.classes)
        for v in joined.vertices
    }
    for v, own in enumerate(query.relations):
        attributes = []
        for position, j in enumerate(query.tree.classes_of(v)):
            keys, weights = own.grouped(position)
            union = np.unique(np.concatenate([named[u, j].keys for u in query.tree.classes[j].vertices]))
            counted = Candidates(union, _counts(keys, weights, union), named[v, j].largest_other)
            squares = weights.astype(np.float64)
            attributes.append(
                AttributeStatistics(
                    float(keys.size),
                    float(squares @ squares),
                    counted,
                    pilot=_sampled(keys, weights, PILOT_SEED),
                )
            )
        found.append(
            RelationStatistics(
                float(own.weights.sum()),
                tuple(attributes),
                float(own.scanned),
                float(own.weights.astype(float) @ own.weights),
                source="exact",
            )
        )
    return found


def alone_statistics(query: JoinQuery, heavy: int = HEAVY_KEYS) -> list[RelationStatistics]:
    """The same without a word about another table: every table's own heaviest keys and histogram, no common sample."""
    found = []
    for own in query.relations:
        attributes = []
        for position in range(len(own.keys)):
            keys, weights = own.grouped(position)
            squares = weights.astype(np.float64)
            attributes.append(
                AttributeStatistics(
                    float(keys.size),
                    float(squares @ squares),
                    heaviest(keys, weights, heavy),
                    equi_depth(keys, weights, BUCKETS),
                )
            )
        found.append(
            RelationStatistics(
                float(own.weights.sum()), tuple(attributes), float(own.scanned), source="exact"
            )
        )
    return found


def pilot_statistics(query: JoinQuery, seed: int = 0) -> list[RelationStatistics]:
    """What a cheap pilot gives: candidates from a tenth of the rows, then one pass of filtered counts.

    The pass counts the tuples, the candidates of all tables of the class, and a sample of 2,048 keys by hash: little
    more than a scan of the key column. Distinct keys and F2 are estimated from the sample; nothing bounds the weight
    of other keys.
    """
    candidates: dict[int, list[Ints]] = {}
    for v, own in enumerate(query.relations):
        seen = np.random.default_rng([seed, v]).binomial(own.weights, PILOT_ROWS)
        kept = Tuples(own.keys[:, seen > 0], seen[seen > 0], own.scanned)
        for position, j in enumerate(query.tree.classes_of(v)):
            named = heaviest(*kept.grouped(position), PILOT_HEAVY)
            candidates.setdefault(j, []).append(named.keys[named.weights >= LEAST_SEEN])
    found = []
    for v, own in enumerate(query.relations):
        attributes = []
        for position, j in enumerate(query.tree.classes_of(v)):
            keys, weights = own.grouped(position)
            union = np.unique(np.concatenate(candidates[j]))
            counted = Candidates(union, _counts(keys, weights, union), np.inf)
            sample = _sampled(keys, weights, PILOT_SEED + seed)
            attributes.append(AttributeStatistics(None, None, counted, pilot=sample))
        found.append(
            RelationStatistics(
                float(own.weights.sum()), tuple(attributes), float(own.scanned), source="pilot"
            )
        )
    return found


def _counts(keys: Ints, weights: Ints, wanted: Ints) -> Ints:
    return weights_at(keys, weights.astype(np.float64), wanted).astype(np.int64)


def _sampled(keys: Ints, weights: Ints, seed: int) -> KnownKeys:
    sample = KeySample(KeySampleSpec(make_family("tabulation", seed), PILOT_KEYS))
    sample.update(keys, weights)
    return sample.known(["count"])
