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
samples of keys              key_sample, sample_join, sample_regression, gamma_interval, known_keys, threshold_sample
several key classes          sample_sketch, sample_sketch_join
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
    from .distinct.join_distinct import join_distinct_with_key as join_distinct_with_key
    from .distinct.level import LevelSketch as LevelSketch
    from .distinct.level import LevelSpec as LevelSpec
    from .distinct.pair_sample import PairSample as PairSample
    from .distinct.pair_sample import PairSampleSpec as PairSampleSpec
    from .distinct.sparse_level import SparseLevelSketch as SparseLevelSketch
    from .distinct.sparse_pairs import SparsePairSample as SparsePairSample
    from .hashing.fingerprints import fingerprint as fingerprint
    from .hashing.xi import Family as Family
    from .hashing.xi import make_family as make_family
    from .intervals.interval import Estimate as Estimate
    from .intervals.interval import median_interval as median_interval
    from .intervals.interval import ratio_interval as ratio_interval
    from .joins.agms import AgmsSketch as AgmsSketch
    from .joins.agms import AgmsSpec as AgmsSpec
    from .joins.convolution import ConvolutionSketch as ConvolutionSketch
    from .joins.convolution import ConvolutionSpec as ConvolutionSpec
    from .joins.estimate import JoinTerm as JoinTerm
    from .joins.estimate import join_estimate as join_estimate
    from .joins.estimate import ratio_estimate as ratio_estimate
    from .joins.estimate import sum_estimate as sum_estimate
    from .joins.estimate import sum_ratio_estimate as sum_ratio_estimate
    from .joins.hash_sketch import HashSketch as HashSketch
    from .joins.hash_sketch import frequency_rows as frequency_rows
    from .joins.hash_sketch import hash_spec as hash_spec
    from .joins.hash_sketch import join_size_rows as join_size_rows
    from .joins.join_tree import Edge as Edge
    from .joins.skim import Skimmed as Skimmed
    from .joins.skim_join import skimmed_average as skimmed_average
    from .joins.skim_join import skimmed_join as skimmed_join
    from .joins.sparse import SparseFirstSketch as SparseFirstSketch
    from .reference.fm import FMSketch as FMSketch
    from .reference.fm import FMSpec as FMSpec
    from .samples.key_sample import KeySample as KeySample
    from .samples.key_sample import KeySampleSpec as KeySampleSpec
    from .samples.sample_join import estimate_average as estimate_average
    from .samples.sample_join import estimate_distinct as estimate_distinct
    from .samples.sample_join import estimate_join as estimate_join
    from .samples.sample_sketch import SampleSketch as SampleSketch
    from .samples.sample_sketch import SampleSketchSpec as SampleSketchSpec
    from .samples.sample_sketch_join import sample_sketch_average as sample_sketch_average
    from .samples.sample_sketch_join import sample_sketch_join as sample_sketch_join
    from .samples.two_level import TwoLevel as TwoLevel
    from .samples.two_level import TwoLevelSpec as TwoLevelSpec
    from .start import make_agms_sketch as make_agms_sketch
    from .start import make_convolution_sketch as make_convolution_sketch
    from .start import make_exact_first as make_exact_first
    from .start import make_hash_sketch as make_hash_sketch
    from .start import make_key_sample as make_key_sample
    from .start import make_level_sketch as make_level_sketch
    from .stored_form import Meaning as Meaning
    from .stored_form import from_bytes as from_bytes
    from .stored_form import meaning_of as meaning_of
    from .stored_form import to_bytes as to_bytes

# Where each name lives; modules are imported when a name of theirs is asked for.
_MODULES = {
    "joins.agms": (
        "AgmsSketch",
        "AgmsSpec",
    ),
    "joins.convolution": (
        "ConvolutionSketch",
        "ConvolutionSpec",
    ),
    "joins.estimate": (
        "JoinTerm",
        "join_estimate",
        "ratio_estimate",
        "sum_estimate",
        "sum_ratio_estimate",
    ),
    "hashing.fingerprints": ("fingerprint",),
    "reference.fm": (
        "FMSketch",
        "FMSpec",
    ),
    "joins.hash_sketch": (
        "HashSketch",
        "frequency_rows",
        "hash_spec",
        "join_size_rows",
    ),
    "intervals.interval": (
        "Estimate",
        "median_interval",
        "ratio_interval",
    ),
    "distinct.join_distinct": ("join_distinct_with_key",),
    "joins.join_tree": ("Edge",),
    "samples.key_sample": (
        "KeySample",
        "KeySampleSpec",
    ),
    "distinct.level": (
        "LevelSketch",
        "LevelSpec",
    ),
    "distinct.pair_sample": (
        "PairSample",
        "PairSampleSpec",
    ),
    "samples.sample_join": (
        "estimate_average",
        "estimate_distinct",
        "estimate_join",
    ),
    "joins.skim": ("Skimmed",),
    "joins.skim_join": (
        "skimmed_average",
        "skimmed_join",
    ),
    "joins.sparse": ("SparseFirstSketch",),
    "distinct.sparse_level": ("SparseLevelSketch",),
    "distinct.sparse_pairs": ("SparsePairSample",),
    "start": (
        "make_agms_sketch",
        "make_convolution_sketch",
        "make_exact_first",
        "make_hash_sketch",
        "make_key_sample",
        "make_level_sketch",
    ),
    "stored_form": (
        "Meaning",
        "from_bytes",
        "meaning_of",
        "to_bytes",
    ),
    "samples.sample_sketch": (
        "SampleSketch",
        "SampleSketchSpec",
    ),
    "samples.sample_sketch_join": (
        "sample_sketch_average",
        "sample_sketch_join",
    ),
    "samples.two_level": (
        "TwoLevel",
        "TwoLevelSpec",
    ),
    "hashing.xi": (
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
    "Meaning",
    "PairSample",
    "PairSampleSpec",
    "SampleSketch",
    "SampleSketchSpec",
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
    "meaning_of",
    "median_interval",
    "ratio_estimate",
    "ratio_interval",
    "sample_sketch_average",
    "sample_sketch_join",
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
