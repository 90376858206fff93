"""XXH64 as Spark computes it."""

import numpy as np

from skimql.sketches.hashing.xxhash import SPARK_SEED, spark_xxhash64, xxh64_of_bytes, xxh64_of_long


def test_known_values():
    # The reference implementation's XXH64 of no bytes and of "abc", seed 0.
    seeds = np.zeros(2, np.uint64)
    assert xxh64_of_bytes(b"abc", np.array([0, 3]), seeds).tolist() == [
        0xEF46DB3751D8E999,
        0x44BC2CF5AD770999,
    ]


def test_sparks_function_hashes_the_seed_and_then_the_key():
    keys = np.array([0, 1, -5], np.int64)
    first = xxh64_of_long(np.full(3, 7, np.int64), SPARK_SEED)
    assert (spark_xxhash64(7, keys) == xxh64_of_long(keys, first)).all()


def test_a_long_is_its_eight_bytes():
    keys = np.array([1 << 40, -1], np.int64)
    whole = xxh64_of_bytes(keys.tobytes(), np.array([8, 8]), np.full(2, 42, np.uint64))
    assert (xxh64_of_long(keys, np.uint64(42)) == whole).all()
