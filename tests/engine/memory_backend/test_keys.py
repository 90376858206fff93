"""Keys as 64-bit integers, the same as Spark's; see test_backend for the comparison with Spark itself."""

import math
from decimal import Decimal

import pyarrow as pa
import pytest

from skimql.engine.memory_backend.keys import compared, fingerprints, key_values
from skimql.engine.memory_backend.values import Value
from skimql.errors import UnsupportedQuery
from skimql.optimizer.plan import Attribute

TABLE = pa.table({"i": pa.array([1, None, -3], pa.int16()), "s": ["a", "b", None]})


def of(*values, kind):
    return Value(kind, pa.array(values))


def test_one_whole_number_is_itself():
    assert key_values(Attribute(("i",), ("smallint",), "k"), TABLE).to_pylist() == [1, None, -3]


def test_several_columns_are_hashed_together_and_null_where_any_is():
    found = key_values(Attribute(("i", "s"), ("smallint", "string"), "k"), TABLE).to_pylist()
    assert found[0] is not None
    assert found[1:] == [None, None]
    turned = key_values(Attribute(("s", "i"), ("string", "smallint"), "k"), TABLE).to_pylist()
    assert turned[0] != found[0]


def test_spark_s_own_hashes():
    # SELECT xxhash64(1), xxhash64(1L), xxhash64('a'), xxhash64('') in Spark
    assert fingerprints([of(1, kind="int")]).to_pylist() == [-6698625589789238999]
    assert fingerprints([of(1, kind="bigint")]).to_pylist() == [-7001672635703045582]


def test_zeros_and_nans_are_one_key_each():
    zeros = fingerprints([of(0.0, -0.0, kind="double")]).to_pylist()
    nans = fingerprints([of(math.nan, -math.nan, kind="double")]).to_pylist()
    assert zeros[0] == zeros[1] != nans[0] == nans[1]


def test_long_decimals_are_hashed_as_java_s_numbers_and_short_ones_as_longs():
    short = Value("decimal(4,2)", pa.array([Decimal("1.25")], pa.decimal128(4, 2)))
    assert fingerprints([short]).to_pylist() == fingerprints([of(125, kind="bigint")]).to_pylist()
    long = Value("decimal(20,0)", pa.array([Decimal(-1)], pa.decimal128(20, 0)))
    assert fingerprints([long]).to_pylist() == fingerprints([of(b"\xff", kind="binary")]).to_pylist()


def test_padded_text_is_compared_without_its_blanks():
    assert compared(of("a  ", " a", kind="string"), "char", "UTC").data.to_pylist()[1] == " a"


def test_a_key_of_a_type_that_spark_does_not_hash_so_is_refused():
    with pytest.raises(UnsupportedQuery):
        fingerprints([Value("array<int>", pa.array([[1]]))])
