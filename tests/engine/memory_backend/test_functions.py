"""Functions as Spark has them; more of them against Spark in test_expressions."""

import math

import pyarrow as pa
import pytest

from skimql.engine.memory_backend.expressions import evaluate
from skimql.engine.memory_backend.functions import like
from skimql.engine.memory_backend.values import Value
from skimql.errors import UnsupportedQuery

TABLE = pa.table(
    {
        "i": pa.array([7, -7, None], pa.int32()),
        "x": [2.5, math.nan, -0.5],
        "s": [" ab ", "a_b%", None],
        "day": pa.array([19782, 0, None], pa.date32()),
    }
)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("abs(i)", [7, 7, None]),
        ("i % 3", [1, -1, None]),
        ("pmod(i, 3)", [1, 2, None]),
        ("coalesce(i, 0)", [7, -7, 0]),
        ("nullif(i, 7)", [None, -7, None]),
        ("if(i > 0, 'p', 'n')", ["p", "n", "n"]),
        ("greatest(i, 0)", [7, 0, 0]),
        ("least(i, 0)", [0, -7, 0]),
        ("floor(x)", [2, None, -1]),
        ("upper(trim(s))", ["AB", "A_B%", None]),
        ("length(s)", [4, 4, None]),
        ("substring(s, 2, 2)", ["ab", "_b", None]),
        ("year(day)", [2024, 1970, None]),
        ("concat(s, '!')", [" ab !", "a_b%!", None]),
    ],
)
def test_values_of_functions(text, found):
    table = TABLE if "floor" not in text else TABLE.set_column(1, "x", pa.array([2.5, None, -0.5]))
    assert evaluate(text, table, "UTC").data.to_pylist() == found


def test_nan_is_the_greatest():
    assert math.isnan(evaluate("greatest(x, 1e300)", TABLE, "UTC").data[1].as_py())
    assert evaluate("least(x, 1e300)", TABLE, "UTC").data[1].as_py() == 1e300


@pytest.mark.parametrize(
    ("pattern", "told"),
    [
        ("a_b%", [False, True, None]),
        (r"a\_b\%", [False, True, None]),
        ("% ", [True, False, None]),
        ("%B%", [False, False, None]),
    ],
)
def test_patterns(pattern, told):
    assert (
        like(Value("string", TABLE["s"].combine_chunks()), pattern, "\\", any_case=False).to_pylist() == told
    )
    whole = like(Value("string", pa.array(["AB"])), "ab", "\\", any_case=True)
    assert whole.to_pylist() == [True]


@pytest.mark.parametrize("text", ["soundex(s)", "rand()", "upper('é')"])
def test_what_is_not_known_here_is_refused(text):
    with pytest.raises(UnsupportedQuery):
        evaluate(text, TABLE, "UTC")
