"""Exact answers in memory against what DuckDB says."""

import duckdb
import pyarrow as pa
import pytest
from support.questions import query

from skimql.engine.memory_backend.exact import exact_groups
from skimql.engine.memory_backend.tables import MemoryTables
from skimql.errors import DataError

DATA = {
    "a": pa.table({"k": [1, 1, 2, None, 3], "g": ["x", "y", "x", "x", "z"], "v": [1, 2, 3, 4, None]}),
    "b": pa.table({"k": [1, 2, 2, 4], "w": [10, 20, 30, 40]}),
}
TABLES = MemoryTables(DATA)
JOIN = "FROM a JOIN b ON a.k = b.k"


def exact(text):
    return [
        (g.values, [e.value for e in g.aggregates])
        for g in exact_groups(TABLES.typed(query(text, TABLES)), TABLES)
    ]


@pytest.mark.parametrize(
    "select",
    ["COUNT(*)", "COUNT(a.v)", "SUM(a.v * b.w)", "AVG(a.v)", "COUNT(DISTINCT a.g)", "SUM(a.v), COUNT(*)"],
)
def test_one_row(select):
    database = duckdb.connect()
    for name, table in DATA.items():
        database.register(name, table)
    expected = list(database.execute(f"SELECT {select} {JOIN}").fetchone())
    assert exact(f"{select} {JOIN}") == [((), pytest.approx(expected))]


def test_groups_that_join_nothing_are_not_there():
    assert exact(f"a.g, COUNT(*) {JOIN} GROUP BY a.g") == [(("x",), [3]), (("y",), [1])]


def test_nothing_at_all_is_one_row_without_groups_and_none_with_them():
    assert exact(f"COUNT(*) {JOIN} WHERE a.v > 99") == [((), [0])]
    assert exact(f"a.g, COUNT(*) {JOIN} WHERE a.v > 99 GROUP BY a.g") == []


def test_sets():
    assert exact("COUNT(DISTINCT k) FROM (SELECT k FROM a EXCEPT SELECT k FROM b)")[0][1] == [1]
    assert exact("COUNT(DISTINCT k) FROM (SELECT k FROM a UNION SELECT k FROM b)")[0][1] == [4]


def test_a_value_that_cannot_be_computed_is_told_with_its_tables():
    with pytest.raises(DataError, match="a and b"):
        exact(f"SUM(a.v / (a.v - 1)) {JOIN}")
