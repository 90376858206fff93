"""Groups in memory: numbered in Spark's order, one for what Spark takes as equal."""

import math

import numpy as np
import pyarrow as pa
import pytest
from support.questions import query

from skimql import BudgetExceeded
from skimql.engine.memory_backend.groups import listed, numbered, ranks, values_at
from skimql.engine.memory_backend.tables import MemoryTables
from skimql.engine.memory_backend.values import Value

TABLES = MemoryTables({"t": pa.table({"g": ["b", "a", None, "b"], "v": [1, 2, 3, 4]})})


def test_ranks_put_null_first_and_nan_last_with_one_zero():
    values = Value("double", pa.array([math.nan, 0.0, None, -0.0, -5.0]))
    assert (
        ranks(values).tolist() == [3, 2, 0, 2, 1] or np.argsort(ranks(values), kind="stable").tolist()[0] == 2
    )
    found = ranks(values)
    assert found[1] == found[3]
    assert found[2] < found[4] < found[1] < found[0]


def test_combinations_are_numbered_in_the_order_of_their_values():
    numbers, first = numbered([np.array([2, 1, 2, 1]), np.array([0, 1, 0, 0])], 4)
    assert numbers.tolist() == [2, 1, 2, 0]
    assert first.tolist() == [3, 1, 0]
    none, one = numbered([], 3)
    assert (none.tolist(), one.tolist()) == ([0, 0, 0], [0])
    assert numbered([], 0)[1].size == 0


def test_each_tuple_gets_the_number_of_its_group_and_none_behind_the_filter():
    found = listed(query("g, COUNT(*) FROM t WHERE v < 4 GROUP BY g", TABLES), TABLES, 10)
    assert found.parts[0].values == ((None,), ("a",), ("b",))
    column = found.tables.table("t").column(2).to_pylist()
    assert column == [2, 1, 0, None]


def test_more_groups_than_may_be_are_refused():
    with pytest.raises(BudgetExceeded) as fault:
        listed(query("g, COUNT(*) FROM t GROUP BY g", TABLES), TABLES, 2)
    assert fault.value.code == "SKIMQL_TOO_MANY_GROUPS"


def test_values_are_those_of_results():
    assert values_at([Value("double", pa.array([-0.0, 2.0]))], np.array([1, 0]), "UTC") == ((2.0,), (0.0,))
