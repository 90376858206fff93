"""Arrow tables by name."""

import math

import pyarrow as pa
import pytest
from support.questions import query

from skimql.engine.memory_backend.tables import MemoryTables
from skimql.errors import UnsupportedQuery

TABLES = MemoryTables(
    {
        "Tab": pa.table(
            {
                "i": pa.array([3, -1], pa.int16()),
                "x": [1.0, math.nan],
                "e": pa.array([None, None], pa.int64()),
            }
        ),
        "other": pa.table({"i": pa.array([1], pa.int64()), "s": ["a"], "d": pa.array([1], pa.date32())}),
    }
)


def test_names_ignore_case_and_are_shown_as_they_were_given():
    assert list(TABLES) == ["Tab", "other"]
    assert len(TABLES) == 2
    assert TABLES["TAB"].name == "Tab"
    assert [(c.name, c.type) for c in TABLES["tab"].columns] == [
        ("i", "smallint"),
        ("x", "double"),
        ("e", "bigint"),
    ]


def test_ranges_are_of_numbers_that_are_known():
    found = TABLES.column_range("tab", "i")
    assert (found.low, found.high, found.bits) == (-1.0, 3.0, 16)
    unknown = [TABLES.column_range("tab", c) for c in ("x", "e", "missing")]
    assert len({repr(r) for r in unknown}) == 1
    assert TABLES.column_range("other", "s") == unknown[0]


def test_types_of_keys_are_those_of_spark_s_comparison():
    typed = TABLES.typed(query("COUNT(*) FROM tab JOIN other ON tab.i = other.i", TABLES))
    assert typed.graph.edges[0].key_types == ("bigint",)
    counted = TABLES.typed(query("COUNT(DISTINCT s) FROM other", TABLES))
    assert counted.aggregates[0].types == ("string",)
    with pytest.raises(UnsupportedQuery):
        TABLES.typed(query("COUNT(*) FROM tab JOIN other ON tab.i = other.d", TABLES))
