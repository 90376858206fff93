"""Sketches of join keys: numpy in, numbers out. No SQL, no Spark, no files.

A sketch is a small array that stands for a weighted relation. It is *linear*: the sketch of two streams is the sum of
their sketches, a deletion is a negative weight, and fixed-size counters are the same integers whatever the order.
Every estimate comes with an interval (`interval.Estimate`); programmers' mistakes raise ValueError, a sum that leaves
64 bits OverflowError. docs/sketches has a page for each kind.

============================ ============================================================================
what                         where
============================ ============================================================================
hash families                xi, tabulation, xxhash, fields
all linear sketches          linear, accumulate; exact maps first: exact_map, sparse
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
============================ ============================================================================
"""
