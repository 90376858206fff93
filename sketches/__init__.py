"""Sketches of join keys: numpy in, numbers out. No SQL, no Spark, no files.

A sketch is a small array that stands for a weighted relation. It is *linear*: the sketch of two streams is the sum of
their sketches, a deletion is a negative weight, and fixed-size counters are the same integers whatever the order.
Every estimate comes with an interval (`interval.Estimate`); programmers' mistakes raise ValueError, a sum that leaves
64 bits OverflowError. docs/sketches has a page for each kind, and library.md for the start:

>>> from skimql.sketches import Edge, join_estimate, make_hash_sketch
>>> orders, visits = (make_hash_sketch("user", seed=7) for _ in "ov")
>>> orders.update(["ann", "bob", "bob"])
>>> visits.update(["bob", "cid"])
>>> join_estimate([orders, visits], [Edge(0, 1)]).value
2.0

============================ ============================================================================
what                         where
============================ ============================================================================
hash families                xi, tabulation, xxhash, fields
all linear sketches          linear, accumulate; exact maps first: sparse_first, exact_map, sparse
joins: one and several keys  hash_sketch (Fast-AGMS, US 2006/0143170), convolution, agms (SIGMOD 2002)
estimates with intervals      estimate, join_tree, interval, collision; sizes: sizing, moments
skimming (US 2006/0143170)   skim, dyadic, skim_join
choices by rank, bits alike     ranking
samples of keys              key_sample, sample_join, sample_regression, gamma_interval, known_keys
dense keys exact, rest not   two_level, two_level_plan
distinct counts              level, sparse_level, count_signature, occupancy, witness; fm, two_level_hash
set expressions              set_expression
distinct over joins          join_distinct, pair_sample, sparse_pairs, tuple_table
                             of PODS 2005: jd_sketch, linear_jd, composed
in the JVM                   folding
an easy start                start, fingerprints, stored_form
============================ ============================================================================
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .agms import AgmsSketch as AgmsSketch
    from .agms import AgmsSpec as AgmsSpec
    from .convolution import ConvolutionSketch as ConvolutionSketch
    from .convolution import ConvolutionSpec as ConvolutionSpec
    from .estimate import JoinTerm as JoinTerm
    from .estimate import join_estimate as join_estimate
    from .estimate import ratio_estimate as ratio_estimate
    from .estimate import sum_estimate as sum_estimate
    from .estimate import sum_ratio_estimate as sum_ratio_estimate
    from .fingerprints import fingerprint as fingerprint
    from .fm import FMSketch as FMSketch
    from .fm import FMSpec as FMSpec
    from .hash_sketch import HashSketch as HashSketch
    from .hash_sketch import frequency_rows as frequency_rows
    from .hash_sketch import hash_spec as hash_spec
    from .hash_sketch import join_size_rows as join_size_rows
    from .interval import Estimate as Estimate
    from .interval import median_interval as median_interval
    from .interval import ratio_interval as ratio_interval
    from .join_distinct import join_distinct_with_key as join_distinct_with_key
    from .join_tree import Edge as Edge
    from .key_sample import KeySample as KeySample
    from .key_sample import KeySampleSpec as KeySampleSpec
    from .level import LevelSketch as LevelSketch
    from .level import LevelSpec as LevelSpec
    from .pair_sample import PairSample as PairSample
    from .pair_sample import PairSampleSpec as PairSampleSpec
    from .sample_join import estimate_average as estimate_average
    from .sample_join import estimate_distinct as estimate_distinct
    from .sample_join import estimate_join as estimate_join
    from .skim import Skimmed as Skimmed
    from .skim_join import skimmed_average as skimmed_average
    from .skim_join import skimmed_join as skimmed_join
    from .sparse import SparseFirstSketch as SparseFirstSketch
    from .sparse_level import SparseLevelSketch as SparseLevelSketch
    from .sparse_pairs import SparsePairSample as SparsePairSample
    from .start import make_agms_sketch as make_agms_sketch
    from .start import make_convolution_sketch as make_convolution_sketch
    from .start import make_exact_first as make_exact_first
    from .start import make_hash_sketch as make_hash_sketch
    from .start import make_key_sample as make_key_sample
    from .start import make_level_sketch as make_level_sketch
    from .stored_form import from_bytes as from_bytes
    from .stored_form import to_bytes as to_bytes
    from .two_level import TwoLevel as TwoLevel
    from .two_level import TwoLevelSpec as TwoLevelSpec
    from .xi import Family as Family
    from .xi import make_family as make_family

# Where each name lives; modules are imported when a name of theirs is asked for.
_MODULES = {
    "agms": (
        "AgmsSketch",
        "AgmsSpec",
    ),
    "convolution": (
        "ConvolutionSketch",
        "ConvolutionSpec",
    ),
    "estimate": (
        "JoinTerm",
        "join_estimate",
        "ratio_estimate",
        "sum_estimate",
        "sum_ratio_estimate",
    ),
    "fingerprints": ("fingerprint",),
    "fm": (
        "FMSketch",
        "FMSpec",
    ),
    "hash_sketch": (
        "HashSketch",
        "frequency_rows",
        "hash_spec",
        "join_size_rows",
    ),
    "interval": (
        "Estimate",
        "median_interval",
        "ratio_interval",
    ),
    "join_distinct": ("join_distinct_with_key",),
    "join_tree": ("Edge",),
    "key_sample": (
        "KeySample",
        "KeySampleSpec",
    ),
    "level": (
        "LevelSketch",
        "LevelSpec",
    ),
    "pair_sample": (
        "PairSample",
        "PairSampleSpec",
    ),
    "sample_join": (
        "estimate_average",
        "estimate_distinct",
        "estimate_join",
    ),
    "skim": ("Skimmed",),
    "skim_join": (
        "skimmed_average",
        "skimmed_join",
    ),
    "sparse": ("SparseFirstSketch",),
    "sparse_level": ("SparseLevelSketch",),
    "sparse_pairs": ("SparsePairSample",),
    "start": (
        "make_agms_sketch",
        "make_convolution_sketch",
        "make_exact_first",
        "make_hash_sketch",
        "make_key_sample",
        "make_level_sketch",
    ),
    "stored_form": (
        "from_bytes",
        "to_bytes",
    ),
    "two_level": (
        "TwoLevel",
        "TwoLevelSpec",
    ),
    "xi": (
        "Family",
        "make_family",
    ),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "AgmsSketch",
    "AgmsSpec",
    "ConvolutionSketch",
    "ConvolutionSpec",
    "Edge",
    "Estimate",
    "FMSketch",
    "FMSpec",
    "Family",
    "HashSketch",
    "JoinTerm",
    "KeySample",
    "KeySampleSpec",
    "LevelSketch",
    "LevelSpec",
    "PairSample",
    "PairSampleSpec",
    "Skimmed",
    "SparseFirstSketch",
    "SparseLevelSketch",
    "SparsePairSample",
    "TwoLevel",
    "TwoLevelSpec",
    "estimate_average",
    "estimate_distinct",
    "estimate_join",
    "fingerprint",
    "frequency_rows",
    "from_bytes",
    "hash_spec",
    "join_distinct_with_key",
    "join_estimate",
    "join_size_rows",
    "make_agms_sketch",
    "make_convolution_sketch",
    "make_exact_first",
    "make_family",
    "make_hash_sketch",
    "make_key_sample",
    "make_level_sketch",
    "median_interval",
    "ratio_estimate",
    "ratio_interval",
    "skimmed_average",
    "skimmed_join",
    "sum_estimate",
    "sum_ratio_estimate",
    "to_bytes",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    found = getattr(import_module(f".{_HOME[name]}", __name__), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
