"""Columns of values with their Spark types."""

import datetime as dt

import pyarrow as pa
import pytest

from skimql.engine.memory_backend.values import (
    any_true,
    arrow_type,
    by_value,
    column_of,
    is_number,
    repeated,
    spark_type,
)
from skimql.errors import UnsupportedQuery


@pytest.mark.parametrize(
    "kind", ["boolean", "tinyint", "bigint", "float", "string", "date", "timestamp", "decimal(9,2)"]
)
def test_types_there_and_back(kind):
    assert spark_type(arrow_type(kind)) == kind


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (pa.uint8(), "smallint"),
        (pa.uint64(), "decimal(20,0)"),
        (pa.large_string(), "string"),
        (pa.dictionary(pa.int8(), pa.string()), "string"),
        (pa.timestamp("ns"), "timestamp_ntz"),
        (pa.list_(pa.int32()), "array<int>"),
        (pa.struct([("a", pa.date64())]), "struct<a:date>"),
        (pa.map_(pa.string(), pa.int64()), "map<string,bigint>"),
    ],
)
def test_arrow_types_as_spark_reads_them_from_files(kind, name):
    assert spark_type(kind) == name


def test_a_type_without_values_here_is_refused():
    with pytest.raises(UnsupportedQuery, match="interval"):
        arrow_type("interval day")


def test_a_column_is_one_array_of_its_type_whatever_its_chunks_and_codes():
    chunked = pa.chunked_array([pa.array(["a"]).dictionary_encode(), pa.array(["b"]).dictionary_encode()])
    assert column_of(chunked).data.to_pylist() == ["a", "b"]
    assert len(column_of(pa.chunked_array([], pa.int32()))) == 0
    nanoseconds = pa.array([1_999], pa.timestamp("ns"))
    assert column_of(nanoseconds).data.to_pylist() == [dt.datetime(1970, 1, 1, 0, 0, 0, 1)]
    assert column_of(pa.array([2**63], pa.uint64())).kind == "decimal(20,0)"


def test_constants_and_functions_of_distinct_values():
    assert repeated("int", None, 2).data.to_pylist() == [None, None]
    assert repeated("string", "x", 2).data.to_pylist() == ["x", "x"]
    calls = []
    made = by_value(pa.array(["a", None, "b", "a"]), lambda v: calls.append(v) or len(calls), pa.int64())
    assert (made.to_pylist(), calls) == ([1, None, 2, 1], ["a", "b"])


def test_what_is_a_number_and_what_is_true():
    assert [is_number(k) for k in ("tinyint", "double", "decimal(3,1)", "string", "date")] == [True] * 3 + [
        False
    ] * 2
    assert any_true(pa.array([None, True]))
    assert not any_true(pa.array([None, False]))
    assert not any_true(pa.array([], pa.bool_()))
