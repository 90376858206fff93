"""Text, bytes and composite keys as 64-bit integers."""

import numpy as np

from skimql.sketches.hashing.fingerprints import as_column, fingerprint, is_text


def test_fingerprints_are_sparks():
    # SELECT xxhash64('Spark'), xxhash64('') on Spark 4
    assert fingerprint(["Spark", ""]).tolist() == [-4294468057691064905, -7444071767201028348]


def test_several_columns_are_one_key_in_their_order():
    one, other = fingerprint([1, 2], ["a", "b"]), fingerprint(["a", "b"], [1, 2])
    assert one.dtype == np.int64
    assert (one != other).all()
    assert (fingerprint([1], ["a"]) == one[:1]).all()


def test_a_list_with_text_is_not_made_text_of_all():
    mixed = as_column(["a", b"b"])
    assert mixed.dtype == object
    assert is_text(mixed)
    assert not is_text(as_column([1, 2]))
