"""A glance at summed values on Arrow tables: those behind the filter, from several parts of the table."""

import numpy as np
import pyarrow as pa
import pytest

from skimql import Settings
from skimql.engine.memory_backend.backend import MemoryBackend
from skimql.engine.memory_backend.run import MemoryRun
from skimql.engine.memory_backend.summed import summed_values
from skimql.engine.memory_backend.tables import MemoryTables

ROWS = 1_000
TABLES = MemoryTables(
    {
        "a": pa.table(
            {"k": np.arange(ROWS), "v": np.arange(ROWS) - 500, "x": np.r_[np.nan, np.ones(ROWS - 1)]}
        ),
        "b": pa.table({"k": np.arange(ROWS)}),
    }
)


def summed(select, probe=ROWS):
    text = f"SELECT APPROXIMATE {select} FROM a JOIN b ON a.k = b.k"
    return summed_values(MemoryRun.of(text, MemoryBackend(TABLES), Settings()).query, TABLES, probe)


def test_each_expression_of_one_table_is_looked_at_once():
    found = summed("SUM(a.v), AVG(a.v), SUM(a.v + 1), SUM(a.v * b.k), COUNT(*)")
    assert [(s.vertex, s.expression, s.alone) for s in found] == [
        (0, "`v`", True),
        (0, "`v` + 1", True),
        (1, "`k`", False),
    ]


def test_values_have_their_signs_and_their_bounds_are_those_of_the_column():
    (own,) = summed("SUM(a.v)")
    assert sorted(own.values) == sorted(np.arange(ROWS) - 500.0)
    assert sorted(own.sizes) == sorted(abs(np.arange(ROWS) - 500.0))
    assert (own.low, own.high, own.largest) == (-500, 499, 500)


def test_null_is_no_value_that_was_seen_and_adds_nothing():
    (holed,) = summed("SUM(a.x)")
    assert len(holed.values) == ROWS
    assert np.isnan(holed.values).sum() == 1
    assert holed.sizes.sum() == ROWS - 1


@pytest.mark.parametrize("probe", [40, 100])
def test_a_glance_is_of_all_parts_of_the_table(probe):
    (own,) = summed("SUM(a.k)", probe)
    assert len(own.values) == probe
    assert {int(v) // 250 for v in own.values} == {0, 1, 2, 3}


def test_the_filter_is_kept_to():
    text = "SELECT APPROXIMATE SUM(a.v) FROM a JOIN b ON a.k = b.k WHERE a.v > 490"
    (own,) = summed_values(MemoryRun.of(text, MemoryBackend(TABLES), Settings()).query, TABLES)
    assert sorted(own.values) == list(range(491, 500))
