"""What a seed decides: digests of counters, choices and estimates, printed as JSON, to be compared between processors.

Run as a program, so that numpy and BLAS can be told beforehand which instructions they may use.
"""

from __future__ import annotations

import doctest
import hashlib
import io
import json
import sys
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np
from support.column_figures import chain, exact_relation, one_class
from support.workloads import random_workload

from skimql.optimizer.candidates.enumerate import NoMethod, choose_method
from skimql.optimizer.objective import Objective
from skimql.optimizer.workload.allocate import Demand, allocate_rows
from skimql.optimizer.workload.coalesce import coalesce
from skimql.optimizer.workload.partition import best_parts, binary_parts
from skimql.sketches.hashing.xi import make_family
from skimql.sketches.intervals.interval import median_interval, ratio_interval
from skimql.sketches.joins.agms import AgmsSpec, join_averages
from skimql.sketches.joins.convolution import ConvolutionSpec, join_rows
from skimql.sketches.joins.hash_sketch import hash_spec
from skimql.sketches.joins.skim import skim
from skimql.sketches.joins.skim_join import skimmed_join
from skimql.sketches.samples.key_sample import KeySample, KeySampleSpec
from skimql.sketches.samples.sample_join import estimate_join
from skimql.sketches.samples.two_level import TwoLevel, TwoLevelSpec, sketch_join
from skimql.sketches.samples.two_level_plan import (
    candidate_keys,
    gather_candidates,
    heaviest,
    plan_two_level,
    rest_moments,
)

ROOT = Path(__file__).resolve().parents[2]
ONE = [(0, 1, 0, 0)]
CHAIN = [(0, 1, 0, 0), (1, 2, 1, 0)]


def digest(*parts):
    """Eight bytes of all bits of arrays and of all digits of everything else."""
    found = hashlib.sha256()
    for part in parts:
        found.update(part.tobytes() if isinstance(part, np.ndarray) else repr(part).encode())
    return found.hexdigest()[:16]


def tables():
    """Two tables of 3,000 keys, of which most are equally heavy, and one between them."""
    rng = np.random.default_rng(5)
    ends = [np.repeat(rng.permutation(3000)[:2000], rng.integers(1, 4, 2000)) for _ in range(2)]
    return ends[0], np.stack([rng.integers(0, 3000, 5000) for _ in range(2)]), ends[1]


def sketches():
    """Counters, and estimates from them."""
    left, middle, right = tables()
    one, two = (make_family("tabulation", seed=3).derive(label) for label in "ab")
    found = {}
    hashed = [hash_spec(one, 11, 256).empty() for _ in "lr"]
    hashed[0].update([left])
    hashed[1].update([right])
    rows = join_rows(hashed, ONE)
    found["hash"] = digest(*(h.counters for h in hashed), rows)
    found["interval"] = digest(median_interval(rows), ratio_interval(rows, rows + 1e6, 0.95))
    skimmed = [skim(h, [np.arange(3000)]) for h in hashed]
    found["skimmed"] = digest(skimmed_join(skimmed, ONE), *(s.keys[0] for s in skimmed))
    for group in (
        (one, two),
        tuple(make_family("folded", seed=3, fine_bits=12).derive(label) for label in "ab"),
    ):
        specs = [ConvolutionSpec(f, 11, 256) for f in ((group[0],), group, (group[1],))]
        three = [spec.empty() for spec in specs]
        three[0].update([left])
        three[1].update(list(middle))
        three[2].update([right])
        found[f"convolution {group[0].name}"] = digest(*(s.counters for s in three), join_rows(three, CHAIN))
    for name, parameters in (("bch5", {"domain_bits": 12}), ("polynomial61", {}), ("tabulation", {})):
        family = make_family(name, seed=3, **parameters).derive("k")
        copies = [AgmsSpec((family,), 64, 11).empty() for _ in "lr"]
        copies[0].update([left])
        copies[1].update([right])
        found[f"agms {name}"] = digest(*(c.counters for c in copies), join_averages(copies, ONE))
    samples = [KeySample(KeySampleSpec(one, 200)) for _ in "lr"]
    samples[0].update(left)
    samples[1].update(right)
    found["key sample"] = digest(*(s.known(["count"]).keys for s in samples))
    found["key sample join"] = digest(estimate_join(samples))
    return found


def two_levels():
    """Candidates and dense keys, where most are equally heavy."""
    left, _, right = tables()
    family = make_family("tabulation", seed=3).derive("k")
    named = [heaviest(keys, None, 150) for keys in (left, right)]
    union = candidate_keys(named)
    counts = np.stack([np.bincount(keys, minlength=3000)[union] for keys in (left, right)])
    pilots = [KeySample(KeySampleSpec(family, 64)) for _ in "lr"]
    for pilot, keys in zip(pilots, (left, right), strict=True):
        pilot.update(keys)
    rest = rest_moments([p.known(["count"]) for p in pilots], union)
    found = {"candidates": digest(*(n.keys for n in named))}
    for size in 2048, 4096, 16_384:
        plan = plan_two_level(gather_candidates(named, counts, union), rest, size)
        found[f"two level {size}"] = digest(plan.dense_keys, plan.method, plan.capacity, plan.largest_product)
        both = [TwoLevel(TwoLevelSpec(hash_spec(family, 11, 64)), plan.dense_keys) for _ in "lr"]
        both[0].update(left)
        both[1].update(right)
        found[f"two level join {size}"] = digest(sketch_join(*both))
    return found


def choices():
    """What the planner takes, out of which candidates, with which dense keys."""
    found = {}
    trees = {
        "two": one_class(2),
        "chain": chain(3),
    }
    for name, tree in trees.items():
        for kind in "flat", "zipf":
            rng = np.random.default_rng(len(name))
            known = []
            for v in range(tree.vertices):
                marginals = []
                for _ in tree.classes_of(v):
                    weights = np.full(500, 40) if kind == "flat" else 20_000 // np.arange(1, 501)
                    marginals.append(rng.permutation(weights))
                known.append(exact_relation(*marginals))
            for asked in (
                Objective(relative_error=0.05),
                Objective(size_bytes=4096, ordered=False),
                Objective(size_bytes=65_536, ordered=False),
            ):
                label = f"{name} {kind} {asked.size_bytes} {asked.relative_error}"
                try:
                    choice = choose_method(tree, known, asked)
                except NoMethod as none:
                    found[label] = str(none)
                    continue
                sample = choice.taken.sample
                found[label] = [
                    choice.taken.name,
                    [(c.name, round(c.nbytes), bool(c.refused)) for c in choice.candidates],
                    sample
                    and [digest(*sample.dense_keys), sample.capacities, [s.vertex for s in sample.steps]],
                ]
    return found


def workloads():
    """Which sketches a workload shares, and their sizes."""
    found = {}
    rng = np.random.default_rng(8)
    for number in range(3):
        graph = random_workload(rng, 12)
        for metric in "average", "maximum":
            shared = coalesce(graph, None, metric)
            weights = rng.integers(1, 9, len(shared.queries)) / 7.0
            rows = allocate_rows(Demand.of(shared, weights.tolist()), 200_000, metric)
            found[f"workload {number} {metric}"] = digest(shared.edges, rows)
    first, second = rng.random((2, 200)).round(1)
    found["parts"] = digest(
        *(best_parts(first, second, m).labels for m in (2, 5)), binary_parts(second, first).labels
    )
    return found


def pages():
    """Whether the examples in the documentation print what they say."""
    found = {}
    for page in sorted((ROOT / "docs" / "sketches").glob("*.md")):
        told = io.StringIO()
        with redirect_stdout(told):
            doctest.testfile(str(page), module_relative=False)
        found[page.stem] = told.getvalue()
    return found


if __name__ == "__main__":
    known = {} if "--without-pages" in sys.argv else pages()
    print(json.dumps(sketches() | two_levels() | choices() | workloads() | known))
