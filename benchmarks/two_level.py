"""Two-level synopses against key samples, hash sketches and skimmed sketches, at equal bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from skimql.sketches.hash_sketch import hash_spec
from skimql.sketches.interval import Estimate
from skimql.sketches.key_sample import KeySample, KeySampleSpec
from skimql.sketches.sample_join import estimate_join
from skimql.sketches.two_level import TwoLevel, TwoLevelSpec, sketch_join
from skimql.sketches.two_level_plan import (
    ENTRY_BYTES,
    TwoLevelPlan,
    candidate_keys,
    gather_candidates,
    heaviest,
    plan_two_level,
    rest_moments,
)
from skimql.sketches.xi import make_family

PILOT_KEYS = 512
ROWS = 11

Ints = npt.NDArray[np.int64]
Table = tuple[Ints, Ints]  # distinct keys and their weights


def sampled(tables: Sequence[Table], seed: int, capacity: int) -> Estimate:
    """The join estimated from plain key samples."""
    return estimate_join(key_samples(tables, seed, capacity))


def key_samples(tables: Sequence[Table], seed: int, capacity: int) -> list[KeySample]:
    """A key sample of each table."""
    spec = KeySampleSpec(make_family("tabulation", seed), capacity)
    samples = [KeySample(spec) for _ in tables]
    for sample, (keys, weights) in zip(samples, tables, strict=True):
        sample.update(keys, weights)
    return samples


def plan(tables: Sequence[Table], seed: int, budget_bytes: int) -> TwoLevelPlan:
    """Candidates of each table, exact counts of all in all, moments of the rest from a pilot of 512 keys."""
    named = [heaviest(keys, weights, budget_bytes // ENTRY_BYTES) for keys, weights in tables]
    union = candidate_keys(named)
    counts = np.stack([weights_of(table, union) for table in tables])
    pilots = [sample.known(["count"]) for sample in key_samples(tables, seed + 1_000_003, PILOT_KEYS)]
    moments = rest_moments(pilots, union)
    return plan_two_level(gather_candidates(named, counts, union), moments, budget_bytes, ROWS)


def weights_of(table: Table, keys: Ints) -> Ints:
    """Weights of these keys in a table of distinct ascending keys, 0 where absent."""
    at = np.minimum(np.searchsorted(table[0], keys), table[0].size - 1)
    return np.where(table[0][at] == keys, table[1][at], 0)


def jointly(tables: Sequence[Table], seed: int, budget_bytes: int) -> tuple[Estimate, TwoLevelPlan, int]:
    """The join from two-level synopses with jointly chosen dense keys; also the plan and the bytes of a
    table."""
    chosen = plan(tables, seed, budget_bytes)
    family = make_family("tabulation", seed)
    rest: Any = (
        KeySampleSpec(family, chosen.capacity)
        if chosen.method == "key sample"
        else hash_spec(family, ROWS, chosen.capacity)
    )
    synopses = [TwoLevel(TwoLevelSpec(rest), chosen.dense_keys) for _ in tables]
    for synopsis, (keys, weights) in zip(synopses, tables, strict=True):
        synopsis.update(keys, weights)
    size = max(synopsis.nbytes for synopsis in synopses)
    if chosen.method == "key sample":
        return estimate_join(synopses, largest_product=chosen.largest_product), chosen, size
    return sketch_join(*synopses), chosen, size
